/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Inbox, outbox, command and limits, each alone. */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/command.h"
#include "init/inbox.h"
#include "init/limits.h"
#include "init/outbox.h"

static void pipe_nonblocking(int fds[2]) {
        assert(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
}

static uint8_t pattern(size_t i) {
        return (uint8_t) (i * 7 + i / 251);
}

static void the_window_wraps_and_loses_nothing(void) {
        static Inbox inbox;
        size_t sent = 0, seen = 0, window = STDIN_WINDOW_BYTES;
        uint8_t buffer[10007];
        int fds[2];

        pipe_nonblocking(fds);
        assert(fcntl(fds[1], F_SETPIPE_SZ, 4096) > 0);
        inbox_init(&inbox, fds[1]);
        while (seen < 1000000) {
                size_t n = window < sizeof(buffer) ? window : sizeof(buffer);
                ssize_t got;

                for (size_t i = 0; i < n; i++)
                        buffer[i] = pattern(sent + i);
                assert(inbox_put(&inbox, buffer, n) == 0);
                sent += n;
                window -= n;
                inbox_flush(&inbox);
                window += inbox_take_credit(&inbox);
                while ((got = read(fds[0], buffer, 777)) > 0)
                        for (ssize_t i = 0; i < got; i++, seen++)
                                assert(buffer[i] == pattern(seen));
        }
        inbox_done(&inbox);
        close(fds[0]);
}

static void more_than_the_window_is_refused(void) {
        static uint8_t bytes[STDIN_WINDOW_BYTES];
        static Inbox inbox;
        int fds[2];

        pipe_nonblocking(fds);
        inbox_init(&inbox, fds[1]);
        assert(inbox_put(&inbox, bytes, sizeof(bytes)) == 0);
        assert(inbox_put(&inbox, bytes, 1) == -EPROTO);
        inbox_flush(&inbox);                            /* a pipe takes 65536 */
        assert(inbox_put(&inbox, bytes, 1) == -EPROTO); /* until the host was told */
        assert(inbox_take_credit(&inbox) == sizeof(bytes));
        assert(inbox_put(&inbox, bytes, 1) == 0);
        assert(inbox_put_eof(&inbox) == 0);
        assert(inbox_put(&inbox, bytes, 1) == -EPROTO);
        assert(inbox_put_eof(&inbox) == -EPROTO);
        inbox_done(&inbox);
        close(fds[0]);
}

static void the_end_follows_the_last_byte(void) {
        static uint8_t bytes[STDIN_WINDOW_BYTES];
        static Inbox inbox;
        size_t seen = 0;
        ssize_t n;
        int fds[2];

        pipe_nonblocking(fds);
        fcntl(fds[1], F_SETPIPE_SZ, 4096);
        inbox_init(&inbox, fds[1]);
        assert(inbox_put(&inbox, bytes, sizeof(bytes)) == 0);
        assert(inbox_put_eof(&inbox) == 0);
        while ((inbox_flush(&inbox), n = read(fds[0], bytes, 4096)) != 0) {
                assert(n > 0);
                seen += (size_t) n;
        }
        assert(seen == sizeof(bytes));
        assert(inbox.fd < 0);
        close(fds[0]);
}

static void input_that_nobody_reads_gives_its_window_back(void) {
        static Inbox inbox;
        int fds[2];

        pipe_nonblocking(fds);
        inbox_init(&inbox, fds[1]);
        close(fds[0]);
        assert(inbox_put(&inbox, (const uint8_t *) "abc", 3) == 0);
        inbox_flush(&inbox);
        assert(inbox_take_credit(&inbox) == 3);
        assert(inbox_put(&inbox, (const uint8_t *) "de", 2) == 0);
        assert(inbox_take_credit(&inbox) == 2);
        inbox_done(&inbox);
}

static void a_full_outbox_refuses_and_keeps_what_it_has(void) {
        static Outbox outbox;
        static uint8_t frame[1000];
        FrameReader reader;
        Frame got;
        size_t n_put = 0, n_got = 0;
        int fds[2];

        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        outbox_init(&outbox, fds[0]);
        frame_encode_header(frame, FRAME_STDOUT, sizeof(frame) - FRAME_HEADER_SIZE);
        frame_reader_init(&reader);
        for (unsigned round = 0; round < 50; round++) {
                while (outbox_put(&outbox, frame, sizeof(frame)) == 0)
                        n_put++;
                assert(outbox_put(&outbox, frame, sizeof(frame)) == -ENOBUFS);
                assert(outbox_flush(&outbox) >= 0);
                if (round % 3 == 0)
                        while (frame_reader_fill(&reader, fds[1]) > 0)
                                while (frame_reader_next(&reader, &got) == 1)
                                        n_got += got.size == sizeof(frame) - FRAME_HEADER_SIZE;
        }
        while (n_got < n_put) {
                assert(outbox_flush(&outbox) >= 0);
                assert(frame_reader_fill(&reader, fds[1]) > 0);
                while (frame_reader_next(&reader, &got) == 1)
                        n_got++;
        }
        assert(outbox_is_empty(&outbox) && frame_reader_pending(&reader) == 0);
        assert(n_put == n_got);
        frame_reader_done(&reader);
        close(fds[0]);
        close(fds[1]);
}

static void output_is_read_into_one_frame(void) {
        static Outbox outbox;
        static uint8_t bytes[100000];
        int fds[2];

        pipe_nonblocking(fds);
        outbox_init(&outbox, -EBADF);
        assert(outbox_put_from(&outbox, FRAME_STDERR, fds[0]) == -EAGAIN);
        assert(write(fds[1], bytes, sizeof(bytes)) == 65536);
        assert(outbox_put_from(&outbox, FRAME_STDERR, fds[0]) == OUTBOX_CHUNK_SIZE_MAX - FRAME_HEADER_SIZE);
        assert(outbox.end - outbox.start == OUTBOX_CHUNK_SIZE_MAX);
        assert(outbox.buffer[4] == FRAME_STDERR);
        close(fds[0]);
        close(fds[1]);
}

static int add_env(Command *command, const char *entry) {
        return command_add_environment(command, (const uint8_t *) entry, strlen(entry));
}

static void of_one_variable_the_last_one_wins(void) {
        Command command;

        command_init(&command);
        assert(add_env(&command, "A=1") == 0 && add_env(&command, "AB=2") == 0 && add_env(&command, "A=3=4") == 0);
        assert(command.n_env == 2);
        assert(strcmp(command_getenv(&command, "A"), "3=4") == 0);
        assert(strcmp(command_getenv(&command, "AB"), "2") == 0);
        assert(!command_getenv(&command, "B"));

        assert(add_env(&command, "HOME=/elsewhere") == 0);
        assert(command_add_defaults(&command, 1000) == 0);
        assert(strcmp(command_getenv(&command, "HOME"), "/elsewhere") == 0);
        assert(strcmp(command_getenv(&command, "USER"), "user") == 0);
        assert(strcmp(command_getenv(&command, "LANG"), "C.UTF-8") == 0);
        assert(strcmp(command_getenv(&command, "TERM"), "dumb") == 0);
        assert(command_getenv(&command, "PATH"));
        command_done(&command);

        assert(command_add_defaults(&command, 0) == 0);
        assert(strcmp(command_getenv(&command, "HOME"), "/root") == 0);
        command_done(&command);
}

static void arguments_have_a_bound(void) {
        static const uint8_t big[ARGUMENT_SIZE_MAX] = "x";
        Command command;
        size_t n = 0;

        command_init(&command);
        while (n < ARGUMENTS_MAX && command_add_argument(&command, (const uint8_t *) "a", 1) == 0)
                n++;
        assert(n == ARGUMENTS_MAX && command.n_argv == n && !command.argv[n]);
        assert(command_add_argument(&command, (const uint8_t *) "a", 1) == -E2BIG);
        assert(add_env(&command, "A=1") == -E2BIG);
        command_done(&command);

        for (n = 0; command_add_argument(&command, big, sizeof(big)) == 0; n++)
                assert(n < 8);
        assert(n == ARGUMENTS_BYTES_MAX / (ARGUMENT_SIZE_MAX + 1));
        command_done(&command);
}

static void a_script_grows_by_pieces_and_has_a_bound(void) {
        static const uint8_t piece[1024 * 1024] = {0};
        char directory[] = "/tmp/test-script-XXXXXX", path[64];
        Command command;
        struct stat st;

        assert(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/script", directory);
        command_init(&command);
        for (unsigned i = 0; i < SCRIPT_BYTES_MAX / sizeof(piece); i++)
                assert(command_add_script(&command, path, piece, sizeof(piece)) == 0);
        assert(command_add_script(&command, path, piece, 1) == -E2BIG);
        command_close_script(&command);
        assert(stat(path, &st) == 0 && st.st_size == SCRIPT_BYTES_MAX && (st.st_mode & 07777) == 0555);
        command_done(&command);

        command_init(&command);
        assert(command_add_script(&command, path, piece, 1) == -EEXIST);
        command_done(&command);
        unlink(path);
        rmdir(directory);
}

static void limits_follow_the_memory(void) {
        assert(limit_disk_mib(0, 256) == 128);
        assert(limit_disk_mib(64, 256) == 64);
        assert(limit_disk_mib(4096, 256) == 192);
        assert(limit_processes(16) == 128);
        assert(limit_processes(256) == 512);
        assert(limit_processes(1U << 20) == 4096);
}

static void the_command_line_is_read_word_by_word(void) {
        assert(cmdline_disk_mib("quiet ephemeral.disk_mib=77 x") == 77);
        assert(cmdline_disk_mib("ephemeral.disk_mib=77\n") == 77);
        assert(cmdline_disk_mib("notephemeral.disk_mib=1 ephemeral.disk_mib=2") == 2);
        assert(cmdline_disk_mib("ephemeral.disk_mib=7x") == 0);
        assert(cmdline_disk_mib("ephemeral.disk_mib=-7") == 0);
        assert(cmdline_disk_mib("ephemeral.disk_mib=") == 0);
        assert(cmdline_disk_mib("quiet") == 0);
}

int main(void) {
        signal(SIGPIPE, SIG_IGN);
        the_window_wraps_and_loses_nothing();
        more_than_the_window_is_refused();
        the_end_follows_the_last_byte();
        input_that_nobody_reads_gives_its_window_back();
        a_full_outbox_refuses_and_keeps_what_it_has();
        output_is_read_into_one_frame();
        of_one_variable_the_last_one_wins();
        arguments_have_a_bound();
        a_script_grows_by_pieces_and_has_a_bound();
        limits_follow_the_memory();
        the_command_line_is_read_word_by_word();
        return 0;
}
