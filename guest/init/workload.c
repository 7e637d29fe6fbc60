/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Starts a command. Nothing of init's is in its reach: every fd of ours is close-on-exec, signals and
 * their mask are as a fresh process expects them, and no_new_privs makes set-uid programs ordinary ones. */

#include "init/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"

typedef struct Pipe {
        int read_fd;
        int write_fd;
} Pipe;

static void pipe_done(Pipe *p) {
        p->read_fd = fd_close(p->read_fd);
        p->write_fd = fd_close(p->write_fd);
}

static int pipe_open(Pipe *p) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        *p = (Pipe){fds[0], fds[1]};
        return 0;
}

typedef struct Streams {
        Pipe in;
        Pipe out;
        Pipe err;
        Pipe exec;
} Streams;

static void streams_done(Streams *s) {
        pipe_done(&s->in);
        pipe_done(&s->out);
        pipe_done(&s->err);
        pipe_done(&s->exec);
}

#define PIPE_EMPTY                                                                                                    \
        { -EBADF, -EBADF }
#define STREAMS_EMPTY                                                                                                 \
        { PIPE_EMPTY, PIPE_EMPTY, PIPE_EMPTY, PIPE_EMPTY }

void workload_init(Workload *workload) {
        *workload = (Workload){
                .stdin_fd = -EBADF,
                .stdout_fd = -EBADF,
                .stderr_fd = -EBADF,
                .exec_fd = -EBADF,
        };
}

void workload_done(Workload *workload) {
        workload->stdin_fd = fd_close(workload->stdin_fd);
        workload->stdout_fd = fd_close(workload->stdout_fd);
        workload->stderr_fd = fd_close(workload->stderr_fd);
        workload->exec_fd = fd_close(workload->exec_fd);
}

uint64_t monotonic_usec(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}

static int open_streams(Streams *s, bool with_stdin) {
        int r;

        if (with_stdin) {
                r = pipe_open(&s->in);
        } else {
                s->in.read_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
                r = s->in.read_fd < 0 ? -errno : 0;
        }
        if (r < 0)
                return r;
        r = pipe_open(&s->out);
        if (r < 0)
                return r;
        r = pipe_open(&s->err);
        if (r < 0)
                return r;
        return pipe_open(&s->exec);
}

/* Init is the last one the kernel kills for memory; its children are not. */
static void reset_oom_score(void) {
        _cleanup_(fd_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                fd_write_all(fd, "0", 1);
}

static void reset_signals(void) {
        sigset_t none;

        sigemptyset(&none);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

static int become(const StartMessage *start) {
        if (geteuid() == 0 && setgroups(0, NULL) < 0)
                return -errno;
        if (setresgid(start->gid, start->gid, start->gid) < 0)
                return -errno;
        if (setresuid(start->uid, start->uid, start->uid) < 0)
                return -errno;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        return 0;
}

/* In the child. Returns only with the -errno that kept it from the command. */
static int child_exec(const Streams *s, const Command *command, const StartMessage *start) {
        const char *home = command_getenv(command, "HOME");
        int r;

        reset_oom_score();
        setsid();
        if (dup2(s->in.read_fd, STDIN_FILENO) < 0 || dup2(s->out.write_fd, STDOUT_FILENO) < 0 ||
            dup2(s->err.write_fd, STDERR_FILENO) < 0)
                return -errno;
        if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
                return -errno;
        r = become(start);
        if (r < 0)
                return r;
        if ((!home || chdir(home) < 0) && chdir("/") < 0)
                return -errno;

        reset_signals();
        environ = command->env;
        execvp(command->argv[0], command->argv);
        return -errno;
}

int workload_spawn(Workload *workload, const Command *command, const StartMessage *start) {
        _cleanup_(streams_done) Streams s = STREAMS_EMPTY;
        pid_t pid;
        int r;

        if (command->n_argv == 0)
                return -EINVAL;
        r = open_streams(&s, start->flags & START_STDIN);
        if (r < 0)
                return r;
        if (s.in.write_fd >= 0 && (r = fd_set_nonblocking(s.in.write_fd, true)) < 0)
                return r;
        if ((r = fd_set_nonblocking(s.out.read_fd, true)) < 0 || (r = fd_set_nonblocking(s.err.read_fd, true)) < 0 ||
            (r = fd_set_nonblocking(s.exec.read_fd, true)) < 0)
                return r;

        workload->started_usec = monotonic_usec();
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                r = child_exec(&s, command, start);
                fd_write_all(s.exec.write_fd, &r, sizeof(r));
                _exit(127);
        }

        workload->pid = pid;
        workload->stdin_fd = TAKE_FD(s.in.write_fd);
        workload->stdout_fd = TAKE_FD(s.out.read_fd);
        workload->stderr_fd = TAKE_FD(s.err.read_fd);
        workload->exec_fd = TAKE_FD(s.exec.read_fd);
        return 0;
}

void workload_add_usage(Workload *workload, const struct rusage *usage) {
        struct rusage *sum = &workload->usage;

        timeradd(&sum->ru_utime, &usage->ru_utime, &sum->ru_utime);
        timeradd(&sum->ru_stime, &usage->ru_stime, &sum->ru_stime);
        if (usage->ru_maxrss > sum->ru_maxrss)
                sum->ru_maxrss = usage->ru_maxrss;
}

static uint64_t timeval_usec(const struct timeval *tv) {
        return (uint64_t) tv->tv_sec * 1000000U + (uint64_t) tv->tv_usec;
}

void workload_result(const Workload *workload, int wait_status, ExitedMessage *ret) {
        int exec_error;

        *ret = (ExitedMessage){
                .user_usec = timeval_usec(&workload->usage.ru_utime),
                .system_usec = timeval_usec(&workload->usage.ru_stime),
                .max_rss_kib = (uint64_t) workload->usage.ru_maxrss,
                .duration_usec = monotonic_usec() - workload->started_usec,
        };

        if (read(workload->exec_fd, &exec_error, sizeof(exec_error)) == (ssize_t) sizeof(exec_error)) {
                ret->how = EXITED_NO_EXEC;
                ret->status = (uint32_t) -exec_error;
        } else if (WIFSIGNALED(wait_status)) {
                ret->how = EXITED_BY_SIGNAL;
                ret->status = (uint32_t) WTERMSIG(wait_status);
        } else {
                ret->how = EXITED_NORMALLY;
                ret->status = (uint32_t) WEXITSTATUS(wait_status);
        }
}
