/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The loop of a machine: one poll(2) over the control port, SIGCHLD, the workload's two output pipes and its input pipe.
 *
 * Nothing here may block or end init once the command runs. Output is read only while the outbox is empty, so a host that
 * does not read stops the workload at its pipes and loses nothing. When the main process has ended, all others are killed,
 * the pipes are read until they are dry, and EXITED is the command's last frame. Then the next one may come. */

#include "init/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "init/log.h"
#include "init/session-private.h"

#define KILL_AGAIN_MS     100
#define KILL_TIMEOUT_USEC (10U * 1000U * 1000U)
#define FAILED_TIMEOUT_MS 2000
#define PUMP_ROUNDS_MAX   16U

int session_block_signals(void) {
        sigset_t all;

        /* Of its own pipes init wants EPIPE; the child takes SIGPIPE back. */
        signal(SIGPIPE, SIG_IGN);
        sigfillset(&all);
        return sigprocmask(SIG_SETMASK, &all, NULL) < 0 ? -errno : 0;
}

static void session_free(Session *session) {
        log_set_sink(NULL, NULL);
        frame_reader_done(&session->reader);
        command_done(&session->command);
        workload_done(&session->workload);
        inbox_done(&session->inbox);
        fd_close(session->signal_fd);
        free(session);
}
DEFINE_CLEANUP(Session *, session_free);

/* A line too many is dropped: the console has it. */
static void on_log(const char *text, void *userdata) {
        Session *session = userdata;

        snprintf(session->last_words, sizeof(session->last_words), "%s", text);
        outbox_put_text(&session->outbox, FRAME_LOG, text);
}

static int session_new(int control_fd, const SessionOps *ops, Session **ret) {
        _cleanup_(session_freep) Session *session = calloc(1, sizeof(Session));
        sigset_t set;

        if (!session)
                return -ENOMEM;
        session->ops = ops;
        session->control_fd = control_fd;
        command_init(&session->command);
        workload_init(&session->workload);
        frame_reader_init(&session->reader);
        outbox_init(&session->outbox, control_fd);
        inbox_init(&session->inbox, -EBADF);

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (session->signal_fd < 0)
                return -errno;

        log_set_sink(on_log, session);
        *ret = TAKE_PTR(session);
        return 0;
}

static int send_hello(Session *session) {
        HelloMessage hello = {.version = MESSAGE_PROTOCOL_VERSION};
        uint8_t encoded[HELLO_FRAME_SIZE_MAX];
        struct utsname name;
        ssize_t n;

        if (uname(&name) < 0)
                return -errno;
        snprintf(hello.kernel_release, sizeof(hello.kernel_release), "%s", name.release);
        n = message_encode_hello(encoded, &hello);
        return n < 0 ? (int) n : outbox_put(&session->outbox, encoded, (size_t) n);
}

/* 1: go on; 0: the host is gone; -errno. */
static int on_control_readable(Session *session) {
        ssize_t n = frame_reader_fill(&session->reader, session->control_fd);
        Frame frame;
        int r;

        if (n == -EAGAIN)
                return 1;
        if (n == 0)
                return 0;
        if (n < 0)
                return log_errno((int) n, "control port");

        while ((r = frame_reader_next(&session->reader, &frame)) > 0) {
                r = session_dispatch(session, &frame);
                if (r < 0)
                        return r;
        }
        return r < 0 ? log_errno(r, "control port: not a frame") : 1;
}

static void on_main_ended(Session *session, int wait_status) {
        session->wait_status = wait_status;
        session->state = SESSION_KILLED;
        session->kill_deadline = monotonic_usec() + KILL_TIMEOUT_USEC;
        inbox_done(&session->inbox);
        session->ops->kill_all(session->workload.pid);
}

static void reap(Session *session) {
        struct signalfd_siginfo info;

        while (read(session->signal_fd, &info, sizeof(info)) > 0)
                ;
        for (;;) {
                struct rusage usage;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG, &usage);

                if (pid <= 0) {
                        session->childless = pid < 0 && errno == ECHILD;
                        return;
                }
                workload_add_usage(&session->workload, &usage);
                if (pid == session->workload.pid && session->state == SESSION_RUNNING)
                        on_main_ended(session, status);
        }
}

/* Moves one chunk. False while there is none: the stream is closed, or dry with nobody left to write. */
static bool forward(Session *session, FrameType type, int *fd) {
        ssize_t n;

        if (*fd < 0)
                return false;
        n = outbox_put_from(&session->outbox, type, *fd);
        if (n > 0)
                return true;
        /* Dry for good too when every process is gone but the write end is not: it may sit in a socket that nobody reads. */
        if (n != -EAGAIN || (session->childless && session->state == SESSION_KILLED))
                *fd = fd_close(*fd);
        return false;
}

static void forward_output(Session *session) {
        Workload *w = &session->workload;

        session->stderr_first = !session->stderr_first;
        if (session->stderr_first)
                (void) (forward(session, FRAME_STDERR, &w->stderr_fd) ||
                        forward(session, FRAME_STDOUT, &w->stdout_fd));
        else
                (void) (forward(session, FRAME_STDOUT, &w->stdout_fd) ||
                        forward(session, FRAME_STDERR, &w->stderr_fd));
}

static void give_credit(Session *session) {
        uint32_t credit = inbox_take_credit(&session->inbox);
        uint8_t encoded[CREDIT_FRAME_SIZE];
        ssize_t n;

        if (credit == 0)
                return;
        n = message_encode_stdin_credit(encoded, credit);
        if (n > 0)
                outbox_put(&session->outbox, encoded, (size_t) n);
}

/* Nothing of a command is met by the next one, but for the files that it made. */
static void end_command(Session *session) {
        workload_done(&session->workload);
        workload_init(&session->workload);
        inbox_done(&session->inbox);
        inbox_init(&session->inbox, -EBADF);
        (void) unlink(session->ops->script_path);
        session->state = SESSION_ENDED;
}

/* Of a killed workload: EXITED once all is reaped and all of its output has gone before. */
static int end_if_dry(Session *session) {
        uint8_t encoded[EXITED_FRAME_SIZE];
        ExitedMessage exited;
        ssize_t n;

        if (session->state != SESSION_KILLED || !outbox_is_empty(&session->outbox))
                return 0;
        if (!session->childless) {
                if (monotonic_usec() < session->kill_deadline)
                        return 0;
                log_line("processes are left that cannot be killed");
                session->childless = true;
        }
        if (session->workload.stdout_fd >= 0 || session->workload.stderr_fd >= 0)
                return 0;

        workload_result(&session->workload, session->wait_status, &exited);
        n = message_encode_exited(encoded, &exited);
        if (n < 0)
                return (int) n;
        end_command(session);
        return outbox_put(&session->outbox, encoded, (size_t) n);
}

/* Fills and empties the outbox as far as it goes without waiting; a few rounds, then it is the others' turn. */
static int pump(Session *session) {
        for (unsigned round = 0; round < PUMP_ROUNDS_MAX; round++) {
                int r = outbox_flush(&session->outbox);

                if (r <= 0)
                        return r;
                if (session->state == SESSION_RUNNING || session->state == SESSION_KILLED) {
                        give_credit(session);
                        if (outbox_is_empty(&session->outbox))
                                forward_output(session);
                        r = end_if_dry(session);
                        if (r < 0)
                                return r;
                }
                if (outbox_is_empty(&session->outbox))
                        return 0;
        }
        return 0;
}

static int wait_for_events(Session *session, struct pollfd control[static 1]) {
        const Workload *w = &session->workload;
        bool can_send = outbox_is_empty(&session->outbox);
        struct pollfd fds[] = {
                {session->control_fd,                                            (short) (can_send ? POLLIN : POLLIN | POLLOUT), 0},
                {session->signal_fd,                                             POLLIN,                                         0},
                {can_send ? w->stdout_fd : -1,                                   POLLIN,                                         0},
                {can_send ? w->stderr_fd : -1,                                   POLLIN,                                         0},
                {inbox_wants_to_write(&session->inbox) ? session->inbox.fd : -1, POLLOUT,                                        0},
        };

        if (poll(fds, ELEMENTSOF(fds), session->state == SESSION_KILLED ? KILL_AGAIN_MS : -1) < 0 && errno != EINTR)
                return -errno;
        *control = fds[0];
        return 0;
}

/* 1: go on; 0: the host is gone; -errno. */
static int session_step(Session *session) {
        struct pollfd control = {0};
        int r;

        r = pump(session);
        if (r < 0)
                return log_errno(r, "control port");
        r = wait_for_events(session, &control);
        if (r < 0)
                return log_errno(r, "poll");

        reap(session);
        if (session->state == SESSION_KILLED && !session->childless)
                session->ops->kill_all(session->workload.pid);
        inbox_flush(&session->inbox);
        if (control.revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL))
                return on_control_readable(session);
        return 1;
}

int session_run(int control_fd, const SessionOps *ops) {
        _cleanup_(session_freep) Session *session = NULL;
        int r;

        r = session_new(control_fd, ops, &session);
        if (r < 0)
                return r;
        r = send_hello(session);
        if (r < 0)
                return r;

        do
                r = session_step(session);
        while (r > 0);

        if (r < 0 && outbox_put_text(&session->outbox, FRAME_FAILED, session->last_words) >= 0)
                outbox_flush_wait(&session->outbox, FAILED_TIMEOUT_MS);
        return r;
}
