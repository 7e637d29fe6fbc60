/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The half that stays: it builds the jail around itself, proves that the network is empty, waits for the manager's word, and becomes
 * the parent of QEMU inside the scope, because a restarted manager could not wait for a process that is not its child.
 *
 * Until the word it dies with the manager; afterwards it has no right left but to wait and to write one socket, and ignores what
 * stops a scope, so that it can report how QEMU ended. QEMU dies with it.
 */
#include "jail/outer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "jail/fds.h"
#include "jail/filter.h"
#include "jail/identity.h"
#include "jail/inner.h"
#include "jail/namespaces.h"
#include "jail/network.h"
#include "jail/root.h"
#include "jail/status.h"
#include "jail/title.h"

typedef struct Outer {
        const Options *options;
        Identity identity;
        struct sock_fprog program; /* our own filter */
        pid_t pid;                 /* QEMU's, in the manager's PID namespace */
        int failure_fd;
} Outer;

static int ignore_signals(Failure *reterr) {
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
        struct sigaction action = {.sa_handler = SIG_IGN};
        sigset_t none;

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                if (sigaction(signals[i], &action, NULL) < 0)
                        return failure_set(reterr, -errno, "signal %d", signals[i]);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                return failure_set(reterr, -errno, "signal mask");
        return 0;
}

static int build(Outer *o, Network *ret_network, Failure *reterr) {
        int r;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "PR_SET_PDEATHSIG");
        r = fds_prepare(o->options, reterr);
        if (r < 0)
                return r;
        r = namespaces_enter(reterr);
        if (r < 0)
                return r;
        r = root_enter(o->options, &o->identity.extra_gid, reterr);
        if (r < 0)
                return r;
        r = network_gather(ret_network, reterr);
        if (r < 0)
                return r;
        return network_check(ret_network, reterr);
}

static int compile_filters(Outer *o, Inner *inner, Failure *reterr) {
        int r;

        r = inner_place_path(o->options->argv[0], &inner->exec_path, reterr);
        if (r < 0)
                return r;
        r = filter_compile(o->options->kvm ? FILTER_KVM : FILTER_TCG, inner->exec_path, &inner->program, reterr);
        if (r < 0)
                return r;
        return filter_compile(FILTER_OUTER, NULL, &o->program, reterr);
}

/* 1 on the word, 0 when the manager closed the pipe instead. */
static int wait_for_go(int go_fd, Failure *reterr) {
        char word;
        ssize_t n;

        do
                n = read(go_fd, &word, 1);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return failure_set(reterr, -errno, "waiting on --go-fd=%d", go_fd);
        if (n == 0)
                return 0;
        if (word != 'g')
                return failure_set(reterr, -EBADMSG, "byte %d on --go-fd=%d", word, go_fd);
        return 1;
}

static int start_inner(Outer *o, Inner *inner, Failure *reterr) {
        _cleanup_(fd_closep) int pidfd = pidfd_open(getpid(), 0), read_fd = -EBADF, write_fd = -EBADF;
        int pipe_fds[2];
        pid_t pid;

        if (pidfd < 0)
                return failure_set(reterr, -errno, "pidfd of the outer half");
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return failure_set(reterr, -errno, "pipe");
        read_fd = pipe_fds[0];
        write_fd = pipe_fds[1];
        pid = fork();
        if (pid < 0)
                return failure_set(reterr, -errno, "fork");
        inner->outer_pidfd = pidfd;
        inner->failure_fd = write_fd;
        if (pid == 0)
                inner_run(inner);
        o->pid = pid;
        o->failure_fd = TAKE_FD(read_fd);
        return 0;
}

/* The word was given and the process is in its scope: from here on it outlives the manager. */
static int release(Outer *o, Inner *inner, Failure *reterr) {
        int r;

        r = ignore_signals(reterr);
        if (r < 0)
                return r;
        if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "PR_SET_PDEATHSIG");
        r = namespaces_enter_cgroup(reterr);
        if (r < 0)
                return r;
        return start_inner(o, inner, reterr);
}

/* 0 once QEMU runs; else what the inner half wrote. */
static int await_exec(Outer *o, Failure *reterr) {
        size_t size = 0;
        ssize_t n;

        do {
                n = read(o->failure_fd, reterr->text + size, sizeof(reterr->text) - 1 - size);
                if (n > 0)
                        size += (size_t) n;
        } while (n > 0 || (n < 0 && errno == EINTR));
        reterr->text[size] = 0;
        o->failure_fd = fd_close(o->failure_fd);
        return size > 0 ? -ECHILD : 0;
}

static int drop_rights(Outer *o, Failure *reterr) {
        int r;

        r = identity_assume(&o->identity, reterr);
        if (r < 0)
                return r;
        r = fds_close_for_outer(o->options, reterr);
        if (r < 0)
                return r;
        return filter_load(&o->program, reterr);
}

/* That nobody listens any more is no reason to leave QEMU without a parent. */
static int report_end(const Outer *o, Failure *reterr) {
        int status;
        pid_t pid;

        do
                pid = waitpid(o->pid, &status, 0);
        while (pid < 0 && errno == EINTR);
        if (pid < 0)
                return failure_set(reterr, -errno, "waiting for process %d", o->pid);
        if (WIFSIGNALED(status))
                status_send(o->options->status_fd, "killed %d", WTERMSIG(status));
        else
                status_send(o->options->status_fd, "exited %d", WEXITSTATUS(status));
        return 0;
}

/* A failure is told when nothing is left of QEMU. (Without the right to kill any more, our own end does it: PR_SET_PDEATHSIG.) */
static int give_up(const Outer *o, int error) {
        if (kill(o->pid, SIGKILL) == 0)
                waitpid(o->pid, NULL, 0);
        return error;
}

static int watch(Outer *o, Failure *reterr) {
        int r = await_exec(o, reterr);

        if (r < 0)
                return give_up(o, r);
        r = drop_rights(o, reterr);
        if (r < 0)
                return give_up(o, r);
        title_set(o->options);
        status_send(o->options->status_fd, "started %d", o->pid);
        return report_end(o, reterr);
}

int outer_run(const Options *options, Failure *reterr) {
        Outer outer = {
                .options = options,
                .identity = {options->uid, options->gid, 0},
                .failure_fd = -EBADF,
        };
        Inner inner = {.options = options, .outer_pidfd = -EBADF, .failure_fd = -EBADF};
        Network network;
        int r;

        r = build(&outer, &network, reterr);
        if (r < 0)
                return r;
        inner.identity = outer.identity;
        outer.identity.extra_gid = 0;
        r = compile_filters(&outer, &inner, reterr);
        if (r < 0)
                return r;
        r = status_send(options->status_fd, "verified uid=%u links=%s:%s addresses=%zu routes=%zu", options->uid,
                        network.links[0].name, network.links[0].up ? "up" : "down", network.n_addresses,
                        network.n_routes);
        if (r < 0)
                return failure_set(reterr, r, "telling the manager");
        r = wait_for_go(options->go_fd, reterr);
        if (r <= 0)
                return r;
        r = release(&outer, &inner, reterr);
        if (r < 0)
                return r;
        return watch(&outer, reterr);
}
