/* A plain MPI program that can be stopped, saved and resumed: it adds up the area under a curve.
 *
 * Each step adds a block of rectangles, divided among the ranks. Rank 0 writes a checkpoint aside and
 * renames it, so that half of one never counts, and a line for each step to metrics.jsonl.
 */
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STOPPED_EARLY = 85 }; /* the exit code that says: saved, and not done */

static char folder[PATH_MAX / 2];

static const char *path(const char *name)
{
    static char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    return whole;
}

static void save(long step, long steps, long parts, double sum)
{
    char aside[PATH_MAX];
    strcpy(aside, path("checkpoint.new"));
    FILE *file = fopen(aside, "w");
    int written = file && fprintf(file, "%ld %ld %ld %.17g\n", step, steps, parts, sum) > 0;
    if (file && fclose(file))
        written = 0;
    mkdir(path("checkpoints"), 0700);
    if (!written || rename(aside, path("checkpoints/state"))) {
        fprintf(stderr, "The checkpoint could not be written to %s. Is the disk full?\n", folder);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void load(long *step, long steps, long parts, double *sum)
{
    long had_steps = 0, had_parts = 0;
    FILE *file = fopen(path("checkpoints/state"), "r");
    if (!file)
        return;
    if (fscanf(file, "%ld %ld %ld %lf", step, &had_steps, &had_parts, sum) != 4 || had_steps != steps
        || had_parts != parts) {
        fprintf(stderr, "%s is no checkpoint of this program with these --steps and --parts.\n",
                path("checkpoints/state"));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    fclose(file);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *planned = getenv("WORLD_SIZE"), *run = getenv("RUN_DIR");
    snprintf(folder, sizeof folder, "%s", run ? run : ".");
    if (planned && atoi(planned) != ranks) {
        fprintf(stderr, "MPI sees %d ranks, but the job has %s. Choose a launcher that starts ranks of"
                " this MPI: `launcher: mpirun`.\n", ranks, planned);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long steps = 200, done = 0, parts = 2000000;
    int resume = 0;
    double sum = 0;
    for (int at = 1; at < count; at++) {
        if (!strcmp(words[at], "--steps") && at + 1 < count)
            steps = atol(words[++at]);
        else if (!strcmp(words[at], "--parts") && at + 1 < count)
            parts = atol(words[++at]);
        else if (!strcmp(words[at], "--resume"))
            resume = 1;
    }
    if (resume && !rank)
        load(&done, steps, parts, &sum);
    MPI_Bcast(&done, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    double began = MPI_Wtime(), width = 1.0 / ((double)steps * parts);
    FILE *metrics = rank ? NULL : fopen(path("metrics.jsonl"), "a");
    if (metrics)
        fprintf(metrics, "{\"event\": \"start\", \"world_size\": %d, \"global_batch\": %ld}\n", ranks, parts);
    int stop = 0;
    while (done < steps && !stop) {
        double step_began = MPI_Wtime(), mine = 0, all = 0;
        for (long part = rank; part < parts; part += ranks) {
            double x = width * (done * (double)parts + part + 0.5);
            mine += 4 / (1 + x * x);
        }
        MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        sum += width * all;
        done++;
        int asked = !rank && !access(path("stop"), F_OK); /* lumitui makes it near the time limit */
        MPI_Allreduce(&asked, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (metrics) {
            double now = MPI_Wtime();
            fprintf(metrics, "{\"step\": %ld, \"loss\": %.3e, \"seconds\": %.6f, \"samples_per_s\": %.1f}\n",
                    done, fabs(sum - acos(-1)), now - began, parts / (now - step_began));
            fflush(metrics);
        }
        if (!rank && (stop || done == steps || done % 50 == 0))
            save(done, steps, parts, sum);
    }
    if (metrics)
        fprintf(metrics, "{\"event\": \"%s\", \"step\": %ld}\n", done < steps ? "stop" : "end", done);
    if (metrics)
        fclose(metrics);
    if (!rank)
        printf("pi is about %.12f after step %ld on %d ranks\n", sum, done, ranks);
    MPI_Finalize();
    return done < steps ? STOPPED_EARLY : 0;
}
