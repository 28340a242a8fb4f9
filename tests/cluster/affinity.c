/* Lets a small machine play a node of many CPUs for slurmd and the tasks it starts.
 *
 * Slurm's own task/affinity computes and checks every mask; only the last system call is replaced:
 * the mask is kept in a file instead of reaching a kernel that has two CPUs. Preloaded into slurmd
 * (slurmstepd inherits it) and, by the task prolog, into every task.
 *
 * AFFINITY_DIR       folder of the files, writable by everyone and without the sticky bit, so that
 *                    a task may replace the file that slurmstepd wrote for it as root
 * AFFINITY_CPUS      how many CPUs the node has (default 128)
 * AFFINITY_RESERVED  comma-separated CPUs that no task may use; set for tasks only
 *
 * A file is named by process id and start time: process ids come again, the pair does not.
 * A mask with a CPU that does not exist or is reserved is refused with EINVAL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST 512

/* Parent and start time (fields 4 and 22 of proc(5) stat); the name may hold blanks and brackets. */
static int look_up(pid_t pid, pid_t *parent, unsigned long long *start) {
    char path[64], text[1024], *rest;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return -1;
    text[n] = 0;
    if (!(rest = strrchr(text, ')'))) return -1;
    return sscanf(rest + 1, " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                            " %*s %*s %llu", parent, start) == 2 ? 0 : -1;
}

static int file_name(pid_t pid, pid_t *parent, char *name) {
    const char *dir = getenv("AFFINITY_DIR");
    unsigned long long start;
    if (look_up(pid, parent, &start)) return -1;
    snprintf(name, LONGEST, "%s/%d.%llu", dir ? dir : "/tmp", pid, start);
    return 0;
}

static int cpus(void) {
    const char *n = getenv("AFFINITY_CPUS");
    return n ? atoi(n) : 128;
}

static void usable(size_t size, cpu_set_t *mask) {
    const char *reserved = getenv("AFFINITY_RESERVED");
    memset(mask, 0, size);
    for (int i = 0, n = cpus(); i < n && i < (int)size * 8; i++) CPU_SET_S(i, size, mask);
    while (reserved && *reserved) {
        char *end;
        long cpu = strtol(reserved, &end, 10);
        if (end == reserved) break;
        if (cpu >= 0 && cpu < (long)size * 8) CPU_CLR_S(cpu, size, mask);
        reserved = *end ? end + 1 : end;
    }
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask) {
    char name[LONGEST], aside[LONGEST + 32];
    pid_t parent;
    unsigned char allowed[1024] = {0};
    size_t whole = sizeof allowed;
    int any = 0, fd;

    usable(whole, (cpu_set_t *)allowed);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = ((const unsigned char *)mask)[i];
        if (byte & ~(i < whole ? allowed[i] : 0)) { errno = EINVAL; return -1; }
        any |= byte;
    }
    if (!any) { errno = EINVAL; return -1; }
    if (file_name(pid ? pid : gettid(), &parent, name)) { errno = ESRCH; return -1; }
    snprintf(aside, sizeof aside, "%s.%d", name, (int)gettid());
    if ((fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0) return -1;
    /* slurmstepd's umask is 077, and the task that it binds may still be root's at this moment. */
    int bad = fchmod(fd, 0644) || write(fd, mask, size) != (ssize_t)size;
    close(fd);
    if (bad || rename(aside, name)) { int kept = errno; unlink(aside); errno = kept; return -1; }
    return 0;
}

/* One's own file, else that of the thread's process, else of the nearest ancestor, else every CPU. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask) {
    char name[LONGEST];
    pid_t parent, leader = pid ? 0 : getpid(), next = pid ? pid : gettid();
    if (size * 8 < (size_t)cpus()) { errno = EINVAL; return -1; }   /* as the kernel: no part of a mask */
    memset(mask, 0, size);
    while (next > 1) {
        if (file_name(next, &parent, name)) break;
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            ssize_t n = read(fd, mask, size);
            close(fd);
            if (n > 0) return 0;
        }
        if (leader && next != leader) { next = leader; leader = 0; continue; }
        next = parent;
    }
    if (pid && kill(pid, 0) && errno == ESRCH) return -1;
    usable(size, mask);
    return 0;
}

/* taskset asks the kernel itself how many CPUs a mask may have, and would not see those above this machine's. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    long given[6], bytes = (cpus() + 63) / 64 * 8;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) given[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_sched_getaffinity)
        return sched_getaffinity((pid_t)given[0], (size_t)given[1], (cpu_set_t *)given[2]) ? -1 : bytes;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
