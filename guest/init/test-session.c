/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whole sessions over a socketpair: init's loop in a child of its own, the workloads ordinary processes of this machine.
 * That child is a subreaper, as PID 1 is one, and its kill_all goes for the workload's session. */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "init/log.h"
#include "init/session.h"

#define TIMEOUT_MS 20000

typedef struct Host {
        int fd;
        pid_t pid;
        FrameReader reader;
        char script[64];
} Host;

static int fake_setup(const SetupMessage *setup) {
        return strcmp(setup->hostname, "refuse") == 0 ? log_errno(-EPERM, "cannot set the clock") : 0;
}

static int fake_links(LinksMessage *ret) {
        *ret = (LinksMessage){1, {{1, 73, "lo"}}};
        return 0;
}

static void fake_kill_all(pid_t main_pid) {
        kill(-main_pid, SIGKILL);
}

/* The child's exit status is the result of session_run(). */
static void guest_main(int fd, const char *script) {
        const SessionOps ops = {script, fake_setup, fake_links, fake_kill_all};
        int r;

        assert(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
        assert(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        assert(session_block_signals() == 0);
        assert(fd_set_nonblocking(fd, true) == 0);
        r = session_run(fd, &ops);
        _exit(r < 0 ? -r : 0);
}

static void host_init(Host *host) {
        int fds[2];

        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        snprintf(host->script, sizeof(host->script), "/tmp/test-session-%d", getpid());
        host->pid = fork();
        assert(host->pid >= 0);
        if (host->pid == 0) {
                close(fds[0]);
                guest_main(fds[1], host->script);
        }
        close(fds[1]);
        host->fd = fds[0];
        frame_reader_init(&host->reader);
}

/* Hangs up; the session must end with that result. */
static void host_done(Host *host, int expected) {
        int status;

        shutdown(host->fd, SHUT_WR);
        assert(waitpid(host->pid, &status, 0) == host->pid);
        assert(WIFEXITED(status) && WEXITSTATUS(status) == expected);
        frame_reader_done(&host->reader);
        close(host->fd);
        unlink(host->script);
}

static Frame receive(Host *host) {
        struct pollfd p = {.fd = host->fd, .events = POLLIN};
        Frame frame;
        int r;

        while ((r = frame_reader_next(&host->reader, &frame)) == 0) {
                assert(poll(&p, 1, TIMEOUT_MS) == 1);
                assert(frame_reader_fill(&host->reader, host->fd) > 0);
        }
        assert(r == 1 && frame_type_from_guest(frame.type) && message_check(&frame) == 0);
        return frame;
}

static void host_send(Host *host, FrameType type, const void *data, size_t size) {
        uint8_t header[FRAME_HEADER_SIZE];

        frame_encode_header(header, (uint8_t) type, size);
        assert(fd_write_all(host->fd, header, sizeof(header)) == 0);
        assert(fd_write_all(host->fd, data, size) == 0);
}

static void send_text(Host *host, FrameType type, const char *text) {
        host_send(host, type, text, strlen(text));
}

static void send_setup(Host *host, const char *hostname) {
        uint8_t encoded[SETUP_FRAME_SIZE_MAX];
        SetupMessage setup = {.realtime_usec = 1};
        ssize_t n;

        snprintf(setup.hostname, sizeof(setup.hostname), "%s", hostname);
        n = message_encode_setup(encoded, &setup);
        assert(n > 0 && fd_write_all(host->fd, encoded, (size_t) n) == 0);
}

static void send_start(Host *host, uint32_t flags) {
        StartMessage start = {geteuid(), getegid(), flags};
        uint8_t encoded[START_FRAME_SIZE];
        ssize_t n = message_encode_start(encoded, &start);

        assert(n > 0 && fd_write_all(host->fd, encoded, (size_t) n) == 0);
}

static void until_ready(Host *host) {
        HelloMessage hello;
        LinksMessage links;
        Frame frame;

        frame = receive(host);
        assert(message_decode_hello(&frame, &hello) == 0 && hello.version == MESSAGE_PROTOCOL_VERSION);
        send_setup(host, "test");
        frame = receive(host);
        assert(message_decode_links(&frame, &links) == 0 && links.n_links == 1 &&
               strcmp(links.links[0].name, "lo") == 0);
}

static uint32_t until_started(Host *host) {
        Frame frame = receive(host);
        uint32_t pid;

        assert(message_decode_started(&frame, &pid) == 0);
        return pid;
}

static uint32_t send_shell(Host *host, const char *line, uint32_t flags) {
        send_text(host, FRAME_ARG, "sh");
        send_text(host, FRAME_ARG, "-c");
        send_text(host, FRAME_ARG, line);
        send_start(host, flags);
        return until_started(host);
}

static uint32_t start_shell(Host *host, const char *line, uint32_t flags) {
        host_init(host);
        until_ready(host);
        return send_shell(host, line, flags);
}

typedef struct Result {
        char out[2][4096];
        size_t size[2]; /* counted past the array, too */
        size_t credit;
        ExitedMessage exited;
} Result;

static Result until_exited(Host *host) {
        Result r = {0};
        Frame frame;

        while ((frame = receive(host)).type != FRAME_EXITED) {
                uint32_t credit;

                if (frame.type == FRAME_STDIN_CREDIT) {
                        assert(message_decode_stdin_credit(&frame, &credit) == 0);
                        r.credit += credit;
                        continue;
                }
                assert(frame.type == FRAME_STDOUT || frame.type == FRAME_STDERR);
                size_t i = frame.type == FRAME_STDERR;
                if (r.size[i] + frame.size < sizeof(r.out[i]))
                        memcpy(r.out[i] + r.size[i], frame.data, frame.size);
                r.size[i] += frame.size;
        }
        assert(message_decode_exited(&frame, &r.exited) == 0);
        return r;
}

static Result run_shell(const char *line) {
        Host host;
        Result r;

        start_shell(&host, line, 0);
        r = until_exited(&host);
        host_done(&host, 0);
        return r;
}

static void streams_and_status_arrive(void) {
        Result r = run_shell("echo out; echo err >&2; exit 7");

        assert(strcmp(r.out[0], "out\n") == 0);
        assert(strcmp(r.out[1], "err\n") == 0);
        assert(r.exited.how == EXITED_NORMALLY && r.exited.status == 7);
        assert(r.exited.max_rss_kib > 0 && r.exited.duration_usec > 0);
}

static void a_signal_is_told_as_one(void) {
        Result r = run_shell("kill -TERM $$");

        assert(r.exited.how == EXITED_BY_SIGNAL && r.exited.status == SIGTERM);
}

static void what_cannot_be_executed_is_told_with_its_errno(void) {
        Host host;
        Result r;

        host_init(&host);
        until_ready(&host);
        send_text(&host, FRAME_ARG, "no-such-program");
        send_start(&host, 0);
        until_started(&host);
        r = until_exited(&host);
        assert(r.exited.how == EXITED_NO_EXEC && r.exited.status == ENOENT);
        host_done(&host, 0);
}

static void the_command_gets_its_environment_and_a_clean_process(void) {
        Host host;
        Result r;

        host_init(&host);
        until_ready(&host);
        send_text(&host, FRAME_ENV, "X=a b");
        send_text(&host, FRAME_ENV, "HOME=/");
        send_text(&host, FRAME_ARG, "sh");
        send_text(&host, FRAME_ARG, "-c");
        send_text(&host, FRAME_ARG,
                  "echo \"$X $HOME $PWD $LANG\"; ls /proc/self/fd | wc -l; readlink /proc/self/fd/0;"
                  "grep -E 'SigBlk|SigIgn|NoNewPrivs' /proc/self/status | tr -d ' \\t'");
        send_start(&host, 0);
        until_started(&host);
        r = until_exited(&host);
        assert(strcmp(r.out[0], "a b / / C.UTF-8\n4\n/dev/null\n"
                                "SigBlk:0000000000000000\nSigIgn:0000000000000000\nNoNewPrivs:1\n") == 0);
        host_done(&host, 0);
}

static void a_script_is_executed(void) {
        Host host;
        Result r;

        host_init(&host);
        until_ready(&host);
        send_text(&host, FRAME_SCRIPT, "#!/bin/sh\n");
        send_text(&host, FRAME_SCRIPT, "echo \"script $1\"\n");
        send_text(&host, FRAME_ARG, host.script);
        send_text(&host, FRAME_ARG, "");
        send_start(&host, 0);
        until_started(&host);
        r = until_exited(&host);
        assert(strcmp(r.out[0], "script \n") == 0);
        host_done(&host, 0);
}

static void standard_input_comes_back_through_its_window(void) {
        static const char block[4096] = {'x'};
        size_t sent = 0, window = STDIN_WINDOW_BYTES, back = 0;
        const size_t total = 1000 * 1000;
        Host host;
        Frame frame;

        start_shell(&host, "cat", START_STDIN);
        while (back < total) {
                while (sent < total && window > 0) {
                        size_t n = total - sent < sizeof(block) ? total - sent : sizeof(block);

                        n = n < window ? n : window;
                        host_send(&host, FRAME_STDIN, block, n);
                        window -= n;
                        sent += n;
                }
                frame = receive(&host);
                if (frame.type == FRAME_STDIN_CREDIT) {
                        uint32_t credit;

                        assert(message_decode_stdin_credit(&frame, &credit) == 0);
                        window += credit;
                } else {
                        assert(frame.type == FRAME_STDOUT);
                        back += frame.size;
                }
        }
        assert(back == total);
        host_send(&host, FRAME_STDIN_EOF, "", 0);
        assert(until_exited(&host).exited.status == 0);
        host_done(&host, 0);
}

static void input_for_one_that_closed_it_is_thrown_away(void) {
        Host host;
        Result r;

        start_shell(&host, "exec <&-; sleep 0.2; echo done", START_STDIN);
        for (unsigned i = 0; i < 4; i++)
                host_send(&host, FRAME_STDIN, "0123456789", 10);
        r = until_exited(&host);
        assert(strcmp(r.out[0], "done\n") == 0);
        /* Frames that cross EXITED are no error. */
        host_send(&host, FRAME_STDIN, "late", 4);
        host_send(&host, FRAME_STDIN_EOF, "", 0);
        host_done(&host, 0);
}

static void all_output_comes_before_the_end(void) {
        Result r = run_shell("head -c 5000000 /dev/zero; head -c 300000 /dev/zero >&2");

        assert(r.size[0] == 5000000 && r.size[1] == 300000);
}

static void the_end_of_the_main_process_takes_the_others_along(void) {
        /* The grandchild holds both pipes open for a minute. */
        Result r = run_shell("sleep 60 & echo bye");

        assert(strcmp(r.out[0], "bye\n") == 0);
        assert(r.exited.how == EXITED_NORMALLY && r.exited.duration_usec < 20 * 1000 * 1000);
}

static void streams_closed_early_are_no_end(void) {
        Result r = run_shell("exec >&- 2>&-; sleep 0.2; exit 3");

        assert(r.exited.how == EXITED_NORMALLY && r.exited.status == 3);
}

static void a_script_of(Host *host, const char *text) {
        send_text(host, FRAME_SCRIPT, text);
        send_text(host, FRAME_ARG, host->script);
        send_start(host, 0);
        until_started(host);
}

/* A machine that ran a command takes another name and another command, and neither meets anything of the one before. */
static void commands_follow_one_another(void) {
        Host host;
        Frame frame;
        Result r;

        start_shell(&host, "sleep 1000 & head -c 50000000 /dev/zero | tail -c 1 >/dev/null; exit 7", START_STDIN);
        r = until_exited(&host);
        assert(r.exited.status == 7 && r.exited.user_usec + r.exited.system_usec > 0);
        send_text(&host, FRAME_STDIN, "on its way when the command ended");
        send_setup(&host, "another");
        frame = receive(&host);
        assert(frame.type == FRAME_LINKS);

        send_shell(&host, "cat; echo end", START_STDIN);
        send_text(&host, FRAME_STDIN, "fresh ");
        host_send(&host, FRAME_STDIN_EOF, NULL, 0);
        r = until_exited(&host);
        assert(strcmp(r.out[0], "fresh end\n") == 0 && r.exited.status == 0);

        a_script_of(&host, "#!/bin/sh\necho one\n");
        r = until_exited(&host);
        assert(strcmp(r.out[0], "one\n") == 0);
        a_script_of(&host, "#!/bin/sh\necho two\n");
        r = until_exited(&host);
        assert(strcmp(r.out[0], "two\n") == 0);
        host_done(&host, 0);
}

/* What a command used is told of it alone. */
static void usage_is_counted_anew_for_each_command(void) {
        Host host;
        Result first, second;

        start_shell(&host, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", 0);
        first = until_exited(&host);
        send_shell(&host, ":", 0);
        second = until_exited(&host);
        assert(second.exited.user_usec < first.exited.user_usec);
        assert(second.exited.duration_usec < first.exited.duration_usec);
        host_done(&host, 0);
}

static void a_signal_of_the_host_reaches_the_group(void) {
        uint8_t encoded[SIGNAL_FRAME_SIZE];
        Host host;
        Result r;

        start_shell(&host, "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.1; done", 0);
        assert(receive(&host).type == FRAME_STDOUT);
        assert(message_encode_signal(encoded, SIGUSR1) == sizeof(encoded));
        assert(fd_write_all(host.fd, encoded, sizeof(encoded)) == 0);
        r = until_exited(&host);
        assert(strcmp(r.out[0], "got\n") == 0 && r.exited.status == 9);
        host_done(&host, 0);
}

static void a_host_that_does_not_read_stops_the_command_and_loses_nothing(void) {
        Host host;
        Result r;

        start_shell(&host, "head -c 20000000 /dev/zero", 0);
        /* Everything between is full; the command is asleep in write(2). */
        sleep(1);
        r = until_exited(&host);
        assert(r.size[0] == 20000000 && r.exited.duration_usec > 900 * 1000);
        host_done(&host, 0);
}

/* The guest says FAILED, with the reason, and ends with the error. */
static void expect_failed(Host *host, int error, const char *reason) {
        Frame frame;

        while ((frame = receive(host)).type == FRAME_LOG)
                ;
        assert(frame.type == FRAME_FAILED);
        assert(memmem(frame.data, frame.size, reason, strlen(reason)));
        host_done(host, error);
}

static void frames_out_of_order_end_the_session(void) {
        Host host;

        host_init(&host);
        assert(receive(&host).type == FRAME_HELLO);
        send_text(&host, FRAME_ARG, "sh");
        expect_failed(&host, EPROTO, "out of order");

        host_init(&host);
        until_ready(&host);
        send_text(&host, FRAME_STDIN, "for no command");
        expect_failed(&host, EPROTO, "out of order");

        start_shell(&host, "sleep 60", 0);
        send_setup(&host, "again");
        expect_failed(&host, EPROTO, "out of order");

        start_shell(&host, "sleep 60", 0);
        send_start(&host, 0);
        expect_failed(&host, EPROTO, "out of order");

        start_shell(&host, "sleep 60", 0);
        send_text(&host, FRAME_STDIN, "closed");
        expect_failed(&host, EPROTO, "STDIN");

        host_init(&host);
        until_ready(&host);
        send_start(&host, 0); /* nothing to execute */
        expect_failed(&host, EINVAL, "cannot start");
}

static void bytes_that_are_no_frames_end_the_session(void) {
        Host host;

        host_init(&host);
        assert(receive(&host).type == FRAME_HELLO);
        assert(fd_write_all(host.fd, "GET / HTTP/1.1\r\n", 16) == 0);
        expect_failed(&host, EPROTONOSUPPORT, "not a frame");

        host_init(&host);
        until_ready(&host);
        host_send(&host, FRAME_ENV, "=x", 2);
        expect_failed(&host, EBADMSG, "frame of type 0x03");
}

static void a_setup_that_fails_is_told(void) {
        Host host;

        host_init(&host);
        assert(receive(&host).type == FRAME_HELLO);
        send_setup(&host, "refuse");
        expect_failed(&host, EPERM, "cannot set the clock");
}

int main(void) {
        streams_and_status_arrive();
        a_signal_is_told_as_one();
        what_cannot_be_executed_is_told_with_its_errno();
        the_command_gets_its_environment_and_a_clean_process();
        a_script_is_executed();
        standard_input_comes_back_through_its_window();
        input_for_one_that_closed_it_is_thrown_away();
        all_output_comes_before_the_end();
        the_end_of_the_main_process_takes_the_others_along();
        streams_closed_early_are_no_end();
        commands_follow_one_another();
        usage_is_counted_anew_for_each_command();
        a_signal_of_the_host_reaches_the_group();
        a_host_that_does_not_read_stops_the_command_and_loses_nothing();
        frames_out_of_order_end_the_session();
        bytes_that_are_no_frames_end_the_session();
        a_setup_that_fails_is_told();
        return 0;
}
