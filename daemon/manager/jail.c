/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Starts ephemeral-jail as a child with an environment of nothing and exactly the file descriptors of its plan, and follows it
 * until it is reaped. vm.c calls it. Between fork and exec only async-signal-safe calls are made.
 */
#include "manager/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "common/strv.h"

struct Jail {
        JailHandlers handlers;
        pid_t pid; /* 0: reaped */
        int go_fd, status_fd, stderr_fd;
        sd_event_source *child, *status, *output;
        char how[256]; /* the last word on QEMU's end */
        char text[JAIL_STDERR_MAX + 1];
        size_t text_size;
};

/* The child's ends, in the order of their numbers. */
typedef struct ChildFds {
        int null, err;
        int numbered[JAIL_FDS_MAX + 2]; /* go, status, then the settings' */
        size_t n;
} ChildFds;

static int build_arguments(const JailSettings *settings, char ***ret) {
        _cleanup_(strv_freep) char **argv = NULL;
        int r;

        r = strv_add(&argv, settings->path);
        if (r >= 0)
                r = strv_addf(&argv, "--uid=%u", (unsigned) settings->uid);
        if (r >= 0)
                r = strv_addf(&argv, "--gid=%u", (unsigned) settings->uid);
        if (r >= 0)
                r = strv_addf(&argv, "--go-fd=%d", JAIL_GO_FD);
        if (r >= 0)
                r = strv_addf(&argv, "--status-fd=%d", JAIL_STATUS_FD);
        for (size_t i = 0; r >= 0 && i < settings->n_fds; i++)
                r = strv_addf(&argv, "--keep-fd=%d", JAIL_FIRST_FD + (int) i);
        for (size_t i = 0; r >= 0 && i < settings->n_holds; i++)
                r = strv_addf(&argv, "--hold-fd=%d", JAIL_FIRST_FD + (int) (settings->n_fds + i));
        for (size_t i = 0; r >= 0 && settings->binds && settings->binds[i]; i++)
                r = strv_addf(&argv, "--bind=%s", settings->binds[i]);
        if (r >= 0 && settings->kvm)
                r = strv_add(&argv, "--kvm");
        if (r >= 0)
                r = strv_add(&argv, "--");
        if (r >= 0)
                r = strv_add_all(&argv, settings->arguments);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(argv);
        return 0;
}

/* Never returns. Moves every fd out of the way first, so that no number is overwritten before it was copied. */
static void child_exec(const ChildFds *fds, char *const *argv) {
        static char *const environment[] = {NULL};
        int high[JAIL_FDS_MAX + 2];
        sigset_t none;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < fds->n; i++) {
                high[i] = fcntl(fds->numbered[i], F_DUPFD_CLOEXEC, 64);
                if (high[i] < 0)
                        _exit(125);
        }
        if (dup2(fds->null, 0) < 0 || dup2(fds->err, 1) < 0 || dup2(fds->err, 2) < 0)
                _exit(125);
        for (size_t i = 0; i < fds->n; i++)
                if (dup2(high[i], JAIL_GO_FD + (int) i) < 0)
                        _exit(125);
        signal(SIGPIPE, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(argv[0], argv, environment);
        dprintf(2, "%s: %s\n", argv[0], strerror(errno));
        _exit(125);
}

static int on_child(sd_event_source *s, const siginfo_t *si, void *userdata) {
        Jail *j = userdata;

        j->pid = 0;
        if (!j->how[0])
                snprintf(j->how, sizeof(j->how),
                         si->si_code == CLD_EXITED ? "jail exited %d" : "jail killed by signal %d", si->si_status);
        j->handlers.on_gone(j, j->how, j->handlers.userdata);
        return 0;
}

static void on_status_text(Jail *j, const char *text) {
        int pid, number;

        if (strncmp(text, "verified ", 9) == 0)
                j->handlers.on_verified(j, text + 9, j->handlers.userdata);
        else if (sscanf(text, "started %d", &pid) == 1 && pid > 1)
                j->handlers.on_started(j, pid, j->handlers.userdata);
        else if (sscanf(text, "killed %d", &number) == 1 && sigabbrev_np(number))
                snprintf(j->how, sizeof(j->how), "killed by SIG%s", sigabbrev_np(number));
        else
                snprintf(j->how, sizeof(j->how), "%.255s", text);
}

static int on_status(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Jail *j = userdata;
        char text[1024];
        ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                j->status = sd_event_source_disable_unref(j->status);
                return 0;
        }
        text[n] = 0;
        on_status_text(j, text);
        return 0;
}

static int on_output(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Jail *j = userdata;
        char rest[1024];
        size_t room = JAIL_STDERR_MAX - j->text_size;
        ssize_t n = room > 0 ? read(fd, j->text + j->text_size, room) : read(fd, rest, sizeof(rest));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                j->output = sd_event_source_disable_unref(j->output);
                return 0;
        }
        if (room > 0)
                j->text_size += (size_t) n;
        return 0;
}

static int watch(sd_event *event, Jail *j) {
        int r;

        r = sd_event_add_io(event, &j->status, j->status_fd, EPOLLIN, on_status, j);
        if (r < 0)
                return r;
        r = fd_set_nonblocking(j->stderr_fd, true);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &j->output, j->stderr_fd, EPOLLIN, on_output, j);
        if (r < 0)
                return r;
        r = sd_event_add_child(event, &j->child, j->pid, WEXITED, on_child, j);
        if (r < 0)
                return r;
        /* Its last words are read before its death is told. */
        return sd_event_source_set_priority(j->child, SD_EVENT_PRIORITY_NORMAL + 10);
}

static int spawn(Jail *j, const JailSettings *settings, char *const *argv) {
        _cleanup_(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        _cleanup_(fd_closep) int go = -EBADF, status = -EBADF, err = -EBADF;
        ChildFds fds = {.n = 2 + settings->n_fds + settings->n_holds};
        int pair[2];

        if (null < 0 || pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        go = pair[0];
        j->go_fd = pair[1];
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        j->stderr_fd = pair[0];
        err = pair[1];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        j->status_fd = pair[0];
        status = pair[1];

        fds.null = null;
        fds.err = err;
        fds.numbered[0] = go;
        fds.numbered[1] = status;
        memcpy(fds.numbered + 2, settings->fds, settings->n_fds * sizeof(int));
        memcpy(fds.numbered + 2 + settings->n_fds, settings->holds, settings->n_holds * sizeof(int));
        j->pid = fork();
        if (j->pid < 0) {
                j->pid = 0;
                return -errno;
        }
        if (j->pid == 0)
                child_exec(&fds, argv);
        return 0;
}

int jail_spawn(sd_event *event, const JailSettings *settings, const JailHandlers *handlers, Jail **ret) {
        _cleanup_(jail_freep) Jail *j = calloc(1, sizeof(*j));
        _cleanup_(strv_freep) char **argv = NULL;
        int r;

        if (!j)
                return -ENOMEM;
        j->go_fd = j->status_fd = j->stderr_fd = -EBADF;
        j->handlers = *handlers;
        if (settings->n_fds + settings->n_holds > JAIL_FDS_MAX)
                return -E2BIG;
        r = build_arguments(settings, &argv);
        if (r < 0)
                return r;
        r = spawn(j, settings, argv);
        if (r < 0)
                return r;
        r = watch(event, j);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(j);
        return 0;
}

pid_t jail_pid(const Jail *j) {
        return j->pid;
}

int jail_release(Jail *j) {
        ssize_t n = write(j->go_fd, "g", 1);
        int r = n < 0 ? -errno : 0;

        j->go_fd = fd_close(j->go_fd);
        return r;
}

void jail_kill(Jail *j) {
        if (j->pid > 0)
                kill(j->pid, SIGKILL); /* not reaped yet, so the number is still its own */
}

const char *jail_stderr(const Jail *j) {
        return j->text;
}

Jail *jail_free(Jail *j) {
        if (!j)
                return NULL;
        sd_event_source_disable_unref(j->child);
        sd_event_source_disable_unref(j->status);
        sd_event_source_disable_unref(j->output);
        if (j->pid > 0) {
                kill(j->pid, SIGKILL);
                waitpid(j->pid, NULL, 0);
        }
        fd_close(j->go_fd);
        fd_close(j->status_fd);
        fd_close(j->stderr_fd);
        free(j);
        return NULL;
}
