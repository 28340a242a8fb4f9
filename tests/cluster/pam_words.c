/* A PAM module that asks for words: a fixed one, or a code that is good for one login.
 *
 *     auth requisite pam_words.so folder=/tmp/x [prompt=Verification code: ] [info=...] [echo] [again] [fixed=word]
 *
 * Without fixed= the codes stand in FOLDER/codes, one a line; a code that was used is struck out.
 * Every answer adds a line to FOLDER/answers: prompt, right or wrong.
 * PAM's header package is not needed: what is used of it is declared here (pam_conv(3)).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pam_message { int style; const char *text; };
struct pam_response { char *text; int code; };
struct pam_conv {
    int (*ask)(int, const struct pam_message **, struct pam_response **, void *);
    void *data;
};
extern int pam_get_item(const void *pamh, int item, const void **found);
enum { SUCCESS = 0, AUTH_ERR = 7, CONV_ERR = 19, CONV = 5, ECHO_OFF = 1, ECHO_ON = 2, INFO = 4 };

static const char *word(int argc, const char **argv, const char *name, const char *otherwise) {
    for (int i = 0; i < argc; i++) {
        size_t n = strlen(name);
        if (!strncmp(argv[i], name, n) && (argv[i][n] == '=' || !argv[i][n]))
            return argv[i][n] ? argv[i] + n + 1 : "";
    }
    return otherwise;
}

static char *say(const void *pamh, int style, const char *text) {
    const struct pam_conv *conv = NULL;
    const struct pam_message message = {style, text}, *messages = &message;
    struct pam_response *answer = NULL;
    if (pam_get_item(pamh, CONV, (const void **)&conv) || !conv ||
        conv->ask(1, &messages, &answer, conv->data) || !answer)
        return NULL;
    char *given = answer->text;
    free(answer);
    return given ? given : strdup("");
}

/* Whether `code` is good; it is struck out. */
static int once(const char *folder, const char *code) {
    char path[512], text[4096] = "", line[128];
    int right = 0;
    snprintf(path, sizeof path, "%s/codes", folder);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!right && *line && !strcmp(line, code)) { right = 1; continue; }
        strncat(text, line, sizeof text - strlen(text) - 2);
        strcat(text, "\n");
    }
    fclose(file);
    if ((file = fopen(path, "w"))) { fputs(text, file); fclose(file); }
    return right;
}

int pam_sm_authenticate(const void *pamh, int flags, int argc, const char **argv) {
    const char *folder = word(argc, argv, "folder", "/"), *fixed = word(argc, argv, "fixed", NULL);
    const char *prompt = word(argc, argv, "prompt", "Verification code: ");
    const char *info = word(argc, argv, "info", NULL);
    int style = word(argc, argv, "echo", NULL) ? ECHO_ON : ECHO_OFF;
    int tries = word(argc, argv, "again", NULL) ? 3 : 1;
    if (info) free(say(pamh, INFO, info));
    for (; tries; tries--) {
        char path[512], *given = say(pamh, style, prompt);
        if (!given) return CONV_ERR;
        int right = fixed ? !strcmp(given, fixed) : once(folder, given);
        free(given);
        snprintf(path, sizeof path, "%s/answers", folder);
        FILE *file = fopen(path, "a");
        if (file) { fprintf(file, "%s%s\n", prompt, right ? "right" : "wrong"); fclose(file); }
        if (right) return SUCCESS;
    }
    return AUTH_ERR;
}

int pam_sm_setcred(const void *pamh, int flags, int argc, const char **argv) { return SUCCESS; }
