/* Runs a command where only the given paths exist, as the same user, in the same process.
 *
 *     contain EMPTY_FOLDER [SOURCE DESTINATION]... -- COMMAND [ARGUMENT]...
 *
 * What a container runtime does with user and mount namespaces. No process stays between the caller
 * and the command, so signals that Slurm sends to a step reach the program and nothing else. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "FATAL:   container creation failed: %s: %s\n", what, strerror(errno));
    exit(255);
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) fail(path);
    close(fd);
}

/* Makes the mount point: every folder above it, and a folder or an empty file like the source. */
static void make_target(char *path, int is_folder) {
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    if (is_folder) mkdir(path, 0755);
    else close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

int main(int argc, char **argv) {
    char text[4096], folder[4096];
    struct stat source;
    int i = 2;

    if (argc < 4) { fprintf(stderr, "usage: contain EMPTY_FOLDER [FROM TO]... -- COMMAND...\n"); return 255; }
    const char *root = argv[1];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (!getcwd(folder, sizeof folder)) strcpy(folder, "/");
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) fail("unshare");
    put("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1\n", uid, uid);
    put("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1\n", gid, gid);
    put("/proc/self/gid_map", text);
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) fail("mount");
    if (mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")) fail(root);
    for (; i + 1 < argc && strcmp(argv[i], "--"); i += 2) {
        if (stat(argv[i], &source)) fail(argv[i]);
        snprintf(text, sizeof text, "%s%s", root, argv[i + 1]);
        make_target(text, S_ISDIR(source.st_mode));
        if (mount(argv[i], text, NULL, MS_BIND | MS_REC, NULL)) fail(argv[i + 1]);
    }
    snprintf(text, sizeof text, "%s/.outside", root);
    mkdir(text, 0755);
    if (syscall(SYS_pivot_root, root, text)) fail("pivot_root");
    if (chdir("/") || umount2("/.outside", MNT_DETACH) || rmdir("/.outside")) fail("umount");
    if (chdir(folder)) fprintf(stderr, "WARNING: %s is not in the container\n", folder);
    if (i + 1 >= argc) fail("not a command");
    execvp(argv[i + 1], argv + i + 1);
    fprintf(stderr, "FATAL:   \"%s\": executable file not found in $PATH\n", argv[i + 1]);
    return 255;
}
