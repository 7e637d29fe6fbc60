/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scripted runs, for the tests of ephemeralctl: each writes to OpenOutput's fd what its first word says.
 */
#include "ctl/fake-run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "protocol/message.h"

#define FIRST_USEC 1700000000000000ULL
#define BIG_PIECES 48
#define BIG_SIZE   65521 /* a prime: no boundary of anything */

typedef struct Writer {
        int fd, input_fd, cancel_fd;
        uint64_t seq, after_seq;
        char **argv;
} Writer;

static void write_or_die(int fd, const void *data, size_t size) {
        if (fd_write_all(fd, data, size) < 0)
                _exit(EXIT_SUCCESS); /* the reader has gone */
}

static void write_event(Writer *w, const char *type, const char *json) {
        EventMessage m = {.seq = ++w->seq, .json = json, .json_size = strlen(json)};
        uint8_t head[FRAME_HEADER_SIZE + EVENT_HEAD_SIZE_MAX];
        ssize_t n;

        if (w->seq <= w->after_seq)
                return;
        m.realtime_usec = FIRST_USEC + w->seq * 10000;
        snprintf(m.type, sizeof(m.type), "%s", type);
        n = message_encode_event_head(head, &m);
        if (n < 0)
                abort();
        write_or_die(w->fd, head, (size_t) n);
        write_or_die(w->fd, json, m.json_size);
}

static void write_output(Writer *w, uint8_t stream, const void *data, size_t size) {
        OutputMessage m = {.seq = ++w->seq, .stream = stream, .data = data, .size = size};
        uint8_t head[FRAME_HEADER_SIZE + OUTPUT_HEAD_SIZE];
        ssize_t n;

        if (w->seq <= w->after_seq || size == 0)
                return;
        m.realtime_usec = FIRST_USEC + w->seq * 10000;
        n = message_encode_output_head(head, &m);
        if (n < 0)
                abort();
        write_or_die(w->fd, head, (size_t) n);
        write_or_die(w->fd, data, size);
}

static void write_text(Writer *w, uint8_t stream, const char *text) {
        write_output(w, stream, text, strlen(text));
}

static void script_echo(Writer *w) {
        for (size_t i = 1; w->argv[i]; i++) {
                if (i > 1)
                        write_text(w, 1, " ");
                write_text(w, 1, w->argv[i]);
        }
        write_text(w, 1, "\n");
}

static void script_both(Writer *w) {
        write_text(w, 1, "out\n");
        write_text(w, 2, "err\n");
}

static void script_cat(Writer *w) {
        char data[8192];
        ssize_t n;

        while ((n = read(w->input_fd, data, sizeof(data))) > 0)
                write_output(w, 1, data, (size_t) n);
}

static void script_sleep(Writer *w) {
        char c;

        write_text(w, 1, "asleep\n");
        while (read(w->cancel_fd, &c, 1) > 0)
                ;
        write_event(w, "run.cancelled", "{\"by\":\"uid:0\"}");
}

static void script_big(Writer *w) {
        char *data = malloc(BIG_SIZE);

        for (int i = 0; i < BIG_PIECES; i++) {
                memset(data, 'a' + i % 26, BIG_SIZE);
                data[BIG_SIZE - 1] = '\n';
                write_output(w, 1, data, BIG_SIZE);
        }
        free(data);
}

/* Never ends by itself: until the reader goes or it is cancelled. */
static void script_yes(Writer *w) {
        struct pollfd p = {.fd = w->cancel_fd, .events = POLLIN};

        while (poll(&p, 1, 0) == 0)
                write_text(w, 1, "yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes\n");
}

/* SECURITY: a clipboard write, a title, an 8-bit CSI, a bidi override, a character split between two pieces. */
static void script_controls(Writer *w) {
        write_text(w, 1, "a\033]52;c;Zm9v\ab\n");
        write_text(w, 1, "\302\2332J\n");
        write_text(w, 1, "\342\200\256cba\n");
        write_text(w, 1, "\303");
        write_text(w, 1, "\274ber\033");
        write_text(w, 2, "\033[31mred\n");
}

static void script_restart(Writer *w) {
        write_text(w, 1, "one\n");
        if (w->after_seq == 0)
                _exit(EXIT_SUCCESS);
        write_text(w, 1, "two\n");
}

static void script_gone(Writer *w) {
        _exit(EXIT_SUCCESS);
}

static void script_lost(Writer *w) {
        uint8_t frame[LOST_FRAME_SIZE];

        write_text(w, 1, "before\n");
        message_encode_lost(frame, 4711);
        write_or_die(w->fd, frame, sizeof(frame));
        write_text(w, 1, "after\n");
}

static void script_garbage(Writer *w) {
        write_or_die(w->fd, "this is not a frame", 19);
        _exit(EXIT_SUCCESS);
}

static void script_nothing(Writer *w) {
}

static const struct {
        const char *name;
        void (*write)(Writer *w);
        const char *outcome;
        const char *result;   /* members of the result beside the outcome */
        const char *finished; /* of command.finished; NULL: the command did not end by itself */
} scripts[] = {
        {"echo",     script_echo,     "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"both",     script_both,     "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"cat",      script_cat,      "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"big",      script_big,      "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"yes",      script_yes,      "cancelled",     "\"by\":\"uid:0\"",          NULL                      },
        {"controls", script_controls, "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"restart",  script_restart,  "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"gone",     script_gone,     "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"lost",     script_lost,     "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"garbage",  script_garbage,  "succeeded",     "\"exit_status\":0",         "{\"exit_status\":0}"     },
        {"sleep",    script_sleep,    "cancelled",     "\"by\":\"uid:0\"",          NULL                      },
        {"exit7",    script_nothing,  "failed",        "\"exit_status\":7",         "{\"exit_status\":7}"     },
        {"signal",   script_nothing,  "failed",        "\"signal\":\"SIGTERM\"",    "{\"signal\":\"SIGTERM\"}"},
        {"noexec",   script_nothing,  "failed",        "\"exit_status\":127",
         "{\"errno\":\"ENOENT\",\"error\":\"No such file or directory\"}"                                     },
        {"timeout",  script_nothing,  "timed-out",     "\"signal\":\"SIGKILL\"",    NULL                      },
        {"oom",      script_nothing,  "out-of-memory", "\"signal\":\"SIGKILL\"",    NULL                      },
        {"vmfail",   script_nothing,  "vm-failed",     "\"reason\":\"QEMU ended\"", NULL                      },
};

static size_t script_find(const FakeRun *run) {
        for (size_t i = 0; i < ELEMENTSOF(scripts); i++)
                if (run->argv && run->argv[0] && strcmp(scripts[i].name, run->argv[0]) == 0)
                        return i;
        return 0;
}

const char *fake_run_outcome(const FakeRun *run) {
        return run->cancelled ? "cancelled" : scripts[script_find(run)].outcome;
}

char *fake_run_result(const FakeRun *run) {
        char *text;

        if (asprintf(&text, "{\"id\":\"%s\",\"state\":\"ended\",\"outcome\":\"%s\",%s}", run->id,
                     fake_run_outcome(run), scripts[script_find(run)].result) < 0)
                return NULL;
        return text;
}

static void fake_run_write(const FakeRun *run, Writer *w) {
        size_t script = script_find(run);
        char *result = fake_run_result(run);

        write_event(w, "request.accepted", "{\"request\":{\"workflow\":\"command\"}}");
        write_event(w, "vm.starting", "{\"path\":\"cold\",\"accelerator\":\"tcg\",\"image\":\"debian\"}");
        write_event(w, "vm.ready", "{\"kernel\":\"6.1.0\",\"boot_usec\":2000000}");
        write_event(w, "command.started", "{\"argv\":[\"echo\"],\"pid\":7,\"uid\":1000}");
        scripts[script].write(w);
        if (scripts[script].finished)
                write_event(w, "command.finished", scripts[script].finished);
        write_event(w, "run.result", result);
        write_event(w, "vm.destroyed", "{\"processes\":0}");
        _exit(EXIT_SUCCESS);
}

void fake_run_init(FakeRun *run) {
        char id[RUN_ID_LENGTH + 1];

        run_id_new(id);
        snprintf(run->id, sizeof(run->id), "%s", id);
        snprintf(run->path, sizeof(run->path), "/org/ephemeral1/run/run_2d%s", id + strlen(RUN_ID_PREFIX));
}

int fake_run_open(FakeRun *run, uint64_t after_seq, int *ret_fd) {
        int output[2], input[2], cancel[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, output) < 0 || pipe2(input, O_CLOEXEC) < 0 ||
            pipe2(cancel, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                Writer w = {.fd = output[1], .input_fd = input[0], .cancel_fd = cancel[0], .after_seq = after_seq};

                close(output[0]);
                close(input[1]);
                close(cancel[1]);
                fd_close(run->input_fd);
                fd_close(run->cancel_fd);
                w.argv = run->argv ? run->argv : (char *[]){(char[]){""}, NULL};
                fake_run_write(run, &w);
        }
        close(output[1]);
        close(input[0]);
        close(cancel[0]);
        fd_close(run->input_fd);
        fd_close(run->cancel_fd);
        run->input_fd = input[1];
        run->cancel_fd = cancel[1];
        *ret_fd = output[0];
        return 0;
}
