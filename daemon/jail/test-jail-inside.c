/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Stands in QEMU's place inside a jail, as somebody who broke out of the guest would, and tries. Started by test-jail.c with the name
 * of one probe; linked statically, so that the jail holds nothing but this file. Exits with 0 when all was as it should be; a call
 * that kills is the probe's own kind of success, which test-jail.c hears from the jail.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"

#define WAIT_MSEC 30000

extern char **environ;

typedef struct Probe {
        const char *name;
        int (*run)(char **arguments);
} Probe;

static int breach(const char *what, const char *detail) {
        fprintf(stderr, "breach: %s %s\n", what, detail);
        return EXIT_FAILURE;
}

static int probe_files(char **arguments) {
        static const char *const paths[] = {
                "/etc/passwd",
                "/etc/ld.so.cache",
                "/root",
                "/home",
                "/usr/bin/sh",
                "/bin/sh",
                "/run",
                "/run/dbus/system_bus_socket",
                "/run/systemd/private",
                "/sys",
                "/var",
                "/dev/mem",
                "/dev/null",
                "/dev/kvm",
                "/dev/shm",
                "/..//etc/passwd",
                "/../../../../etc/passwd",
                "/proc/1/root/etc/passwd",
                "/proc/self/root/../etc/passwd",
                "/proc/self/cwd/../etc/passwd",
                "/proc/2",
                "/proc/kcore",
                "/proc/kmsg",
                "/proc/cmdline",
                "/proc/cpuinfo",
                "/proc/mounts",
                "/proc/net",
                "/proc/sys",
                "/proc/sys/kernel/core_pattern",
                "/proc/sysrq-trigger",
                "/proc/keys",
        };
        struct stat st;

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                if (stat(paths[i], &st) == 0 || open(paths[i], O_RDONLY | O_CLOEXEC) >= 0 ||
                    open(paths[i], O_PATH | O_CLOEXEC) >= 0)
                        return breach("there is", paths[i]);
        return EXIT_SUCCESS;
}

static int probe_write(char **arguments) {
        const char *const paths[] = {
                "/new", "/dev/new", "/proc/new", "/proc/self/mem", "/proc/self/oom_score_adj", arguments[0]};

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                if (open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0)
                        return breach("could write", paths[i]);
        if (open("/", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) >= 0)
                return breach("could make", "an unnamed file");
        return EXIT_SUCCESS;
}

/* Standard streams and those given. */
static int probe_fds(char **arguments) {
        for (int fd = 0; fd < 1024; fd++) {
                bool expected = fd <= STDERR_FILENO, open_now = fcntl(fd, F_GETFD) >= 0;
                char text[16];

                snprintf(text, sizeof(text), "%d", fd);
                for (size_t i = 1; arguments[i]; i++)
                        expected = expected || strcmp(arguments[i], text) == 0;
                if (expected != open_now)
                        return breach(open_now ? "open:" : "closed:", text);
        }
        return EXIT_SUCCESS;
}

static int probe_status(char **arguments) {
        static const char *const lines[] = {
                "NSpid:\t1\n",
                "\nGroups:\t \n",
                "\nSigBlk:\t0000000000000000\n",
                "\nSigIgn:\t0000000000000000\n",
                "\nCapInh:\t0000000000000000\n",
                "\nCapPrm:\t0000000000000000\n",
                "\nCapEff:\t0000000000000000\n",
                "\nCapBnd:\t0000000000000000\n",
                "\nCapAmb:\t0000000000000000\n",
                "\nNoNewPrivs:\t1\n",
                "\nSeccomp:\t2\n",
                "\nTHP_enabled:\t0\n",
        };
        char text[8192], ids[256];
        int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n < 0)
                return breach("cannot read", "/proc/self/status");
        text[n] = 0;
        snprintf(ids, sizeof(ids), "\nUid:\t%s\t%s\t%s\t%s\nGid:\t%s\t%s\t%s\t%s\n", arguments[1], arguments[1],
                 arguments[1], arguments[1], arguments[1], arguments[1], arguments[1], arguments[1]);
        if (!strstr(text, ids))
                return breach("not the ids:", text);
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                if (!strstr(text, lines[i]))
                        return breach("not in the status:", lines[i]);
        if (environ[0])
                return breach("an environment:", environ[0]);
        return EXIT_SUCCESS;
}

static int probe_limits(char **arguments) {
        static const struct {
                __rlimit_resource_t resource;
                rlim_t most;
        } limits[] = {
                {RLIMIT_CORE,     0       },
                {RLIMIT_NOFILE,   256     },
                {RLIMIT_FSIZE,    16 << 20},
                {RLIMIT_NPROC,    128     },
                {RLIMIT_MEMLOCK,  0       },
                {RLIMIT_MSGQUEUE, 0       },
        };

        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                struct rlimit limit;

                if (getrlimit(limits[i].resource, &limit) < 0 || limit.rlim_max > limits[i].most)
                        return breach("a wider limit", "");
                limit.rlim_cur = limit.rlim_max = limits[i].most + 1;
                if (setrlimit(limits[i].resource, &limit) == 0)
                        return breach("could raise a limit", "");
        }
        return EXIT_SUCCESS;
}

static int probe_not_there(char **arguments) {
        struct clone_args clone = {.flags = CLONE_NEWUSER};

        if (syscall(SYS_clone3, &clone, sizeof(clone)) >= 0 || errno != ENOSYS)
                return breach("answers:", "clone3");
        if (syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != ENOSYS)
                return breach("answers:", "io_uring_setup");
        if (memfd_create("x", 0) >= 0 || errno != ENOSYS)
                return breach("answers:", "memfd_create");
        return EXIT_SUCCESS;
}

static void *on_thread(void *userdata) {
        *(int *) userdata = 1;
        return NULL;
}

/* What QEMU has to have: threads and memory that runs. */
static int probe_threads(char **arguments) {
        pthread_t thread;
        int ran = 0;

        if (pthread_create(&thread, NULL, on_thread, &ran) != 0 || pthread_join(thread, NULL) != 0 || !ran)
                return breach("no", "thread");
        if (mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
                return breach("no", "memory to translate into");
        return EXIT_SUCCESS;
}

static int probe_call(char **arguments) {
        syscall(atol(arguments[1]), -1L, -1L, -1L, -1L, -1L, -1L);
        return breach("lived through call", arguments[1]);
}

static int probe_run_itself_again(char **arguments) {
        char *const argv[] = {arguments[0], (char *) "exit", (char *) "0", NULL};

        execve(arguments[0], argv, environ);
        return breach("lived through", "execve");
}

static int probe_exit(char **arguments) {
        return atoi(arguments[1]);
}

static int probe_crash(char **arguments) {
        volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        *page = 1;
        return breach("lived through", "a wild write");
}

static void on_term(int signal) {
        _exit(7);
}

/* Says so on the kept fd once SIGTERM is handled. Ends by itself should the test have ended before it. */
static int probe_wait(char **arguments) {
        if (signal(SIGTERM, on_term) == SIG_ERR || write(atoi(arguments[1]), "w", 1) != 1)
                return breach("cannot", "wait");
        poll(NULL, 0, WAIT_MSEC);
        return EXIT_FAILURE;
}

int main(int argc, char **argv) {
        static const Probe probes[] = {
                {"call",             probe_call            },
                {"crash",            probe_crash           },
                {"exit",             probe_exit            },
                {"fds",              probe_fds             },
                {"files",            probe_files           },
                {"limits",           probe_limits          },
                {"not-there",        probe_not_there       },
                {"run-itself-again", probe_run_itself_again},
                {"status",           probe_status          },
                {"threads",          probe_threads         },
                {"wait",             probe_wait            },
                {"write",            probe_write           },
        };

        for (size_t i = 0; argc > 1 && i < ELEMENTSOF(probes); i++)
                if (strcmp(probes[i].name, argv[1]) == 0) {
                        argv[1] = argv[0];
                        return probes[i].run(argv + 1);
                }
        return breach("no such probe", "");
}
