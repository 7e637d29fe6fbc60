/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `ephemeralctl run` from StartRun to the exit code: StartRun, OpenOutput, then frames until the end, the result among
 * them. One event loop; the only thing that may block is writing to our own stdout and stderr, which is how a slow reader slows the run,
 * and even then signals are heard. The first Ctrl-C cancels the run, the second leaves it alone with that.
 */
#include "ctl/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "common/events.h"
#include "common/fd.h"
#include "common/json.h"
#include "common/neutral.h"
#include "ctl/exit-code.h"
#include "ctl/follow.h"
#include "ctl/input.h"
#include "ctl/output.h"
#include "ctl/progress.h"
#include "ctl/terminal.h"
#include "ctl/text.h"

typedef struct Session {
        Ctl *ctl;
        const RunOptions *options;
        sd_event *event;
        char *id, *path;
        int signal_fd;
        unsigned interrupts;
        bool leaving;      /* write nothing more */
        int own_exit_code; /* when not 0: instead of the run's */

        Follow *follow;
        Input *input;
        Progress progress;
        Neutraliser neutraliser[3]; /* by stream */
        bool escapes[3];            /* its text is neutralised */
        bool on_terminal[3];
        bool closed[3];
        char *no_exec;       /* what command.finished said when it could not be executed */
        json_object *result; /* of run.result */
} Session;

static void session_done(Session *s) {
        follow_free(s->follow);
        input_free(s->input);
        progress_done(&s->progress);
        fd_close(s->signal_fd);
        sd_bus_detach_event(s->ctl->bus);
        sd_event_unref(s->event);
        free(s->id);
        free(s->path);
        free(s->no_exec);
        json_object_put(s->result);
}

static void session_exit(Session *s, int exit_code) {
        s->leaving = true;
        progress_clear(&s->progress);
        sd_event_exit(s->event, s->own_exit_code != 0 ? s->own_exit_code : exit_code);
}

static int on_cancelled(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        if (error && !sd_bus_error_has_name(error, "org.ephemeral1.Error.RunEnded"))
                client_failed(error, -EIO);
        return 0;
}

static void session_cancel(Session *s) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = client_message(s->ctl, RUN_METHOD(s->path, "Cancel"), &m);
        if (r >= 0)
                r = sd_bus_call_async(s->ctl->bus, NULL, m, on_cancelled, s, UINT64_MAX);
        if (r >= 0)
                r = sd_bus_flush(s->ctl->bus);
        if (r < 0)
                client_failed(NULL, r);
}

/* Ctrl-C and its like. */
static void session_interrupt(Session *s) {
        struct signalfd_siginfo info;

        if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t) sizeof(info))
                return;
        s->interrupts++;
        progress_clear(&s->progress);
        if (s->path && s->interrupts == 1) {
                if (!s->options->quiet)
                        fprintf(stderr, "ephemeralctl: cancelling %s; once more leaves without waiting for its end.\n",
                                s->id);
                session_cancel(s);
                return;
        }
        session_exit(s, EXIT_CODE_CANCELLED);
}

static int on_signal(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        session_interrupt(userdata);
        return 0;
}

/* Nobody reads stdout any more: as a command in a pipe would end then, so does the run. */
static void session_output_failed(Session *s, int fd, int error) {
        s->closed[fd] = true;
        if (fd != STDOUT_FILENO || s->own_exit_code)
                return;
        s->own_exit_code = error == EPIPE ? EXIT_CODE_SIGNAL(SIGPIPE) : EXIT_CODE_OURS;
        if (error != EPIPE)
                print_error("Cannot write to standard output: %s. The run is cancelled.", strerror(error));
        session_cancel(s);
}

/* Waits as long as it takes, but hears signals. What poll(2) calls writable takes PIPE_BUF bytes without blocking. */
static void session_write(Session *s, int fd, const char *data, size_t size) {
        struct pollfd p[] = {
                {.fd = fd,           .events = POLLOUT},
                {.fd = s->signal_fd, .events = POLLIN },
        };

        while (size > 0 && !s->leaving && !s->closed[fd]) {
                ssize_t n;

                if (poll(p, ELEMENTSOF(p), -1) < 0)
                        continue;
                if (p[1].revents)
                        session_interrupt(s);
                if (!p[0].revents || s->leaving)
                        continue;
                n = write(fd, data, size < PIPE_BUF ? size : PIPE_BUF);
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        session_output_failed(s, fd, errno);
                if (n > 0) {
                        data += n;
                        size -= (size_t) n;
                }
        }
}

static void session_write_json(Session *s, json_object *object) {
        _cleanup_(json_putp) json_object *o = object;
        _cleanup_(freep) char *line = event_line(o);

        if (line)
                session_write(s, STDOUT_FILENO, line, strlen(line));
}

static void session_write_text(Session *s, int stream, char *text) {
        _cleanup_(freep) char *owned = text;

        if (!owned)
                return;
        progress_output(&s->progress, owned, strlen(owned));
        session_write(s, stream, owned, strlen(owned));
}

static void on_output(const OutputMessage *output, void *userdata) {
        Session *s = userdata;
        int stream = output->stream; /* their numbers are those of the fds */

        if (s->ctl->json) {
                _cleanup_(freep) char *json =
                        event_output_json((OutputStream) output->stream, output->data, output->size);

                session_write_json(s, event_to_json(s->id, output->seq, output->realtime_usec, "output",
                                                    text_or(json, "{}"), json ? strlen(json) : 2));
                return;
        }
        progress_clear(&s->progress);
        if (s->escapes[stream]) {
                session_write_text(
                        s, stream,
                        neutraliser_feed(&s->neutraliser[stream], (const char *) output->data, output->size));
                return;
        }
        if (s->on_terminal[stream])
                progress_output(&s->progress, output->data, output->size);
        session_write(s, stream, (const char *) output->data, output->size);
}

static void on_lost(uint64_t bytes, void *userdata) {
        Session *s = userdata;

        progress_clear(&s->progress);
        print_error("%" PRIu64 " bytes of output were lost here: they came faster than they were read.", bytes);
}

static void session_command_started(Session *s) {
        int r;

        if (!s->options->stdin_open || s->input)
                return;
        r = input_new(s->ctl, s->event, s->path, &s->input);
        if (r < 0)
                print_error("Cannot read standard input: %s.", strerror(-r));
}

/* Remembers why a command could not be executed: the shell would say it, too. */
static void session_command_finished(Session *s, const EventMessage *event) {
        _cleanup_(json_putp) json_object *o = parse_object(event->json, event->json_size);
        const char *name = o ? get_string(o, "errno", NULL) : NULL;

        if (name && !s->no_exec)
                s->no_exec = strdup(get_string(o, "error", name));
}

static void on_event(const EventMessage *event, void *userdata) {
        Session *s = userdata;

        if (strcmp(event->type, "command.started") == 0)
                session_command_started(s);
        else if (strcmp(event->type, "command.finished") == 0)
                session_command_finished(s, event);
        else if (strcmp(event->type, "run.result") == 0 && !s->result)
                s->result = parse_object(event->json, event->json_size);
        if (s->ctl->json)
                session_write_json(s, event_to_json(s->id, event->seq, event->realtime_usec, event->type, event->json,
                                                    event->json_size));
        else
                progress_event(&s->progress, event);
}

/* One sentence for an end that the command's own output does not explain. */
static void session_explain(Session *s) {
        const char *outcome = get_string(s->result, "outcome", "");

        if (strcmp(outcome, "vm-failed") == 0)
                print_error("%s: the microVM failed: %s", s->id,
                            get_string(s->result, "reason", "no reason is known"));
        else if (s->options->quiet || s->progress.lines || s->ctl->json)
                return;
        else if (s->no_exec)
                print_error("%s: the command could not be executed: %s", s->id, s->no_exec);
        else if (strcmp(outcome, "timed-out") == 0)
                print_error("%s: ended by its timeout", s->id);
        else if (strcmp(outcome, "out-of-memory") == 0)
                print_error("%s: ended because it used up its memory", s->id);
        else if (strcmp(outcome, "cancelled") == 0 && s->interrupts == 0 && s->own_exit_code == 0)
                print_error("%s: cancelled", s->id);
}

static void on_end(int exit_code, void *userdata) {
        Session *s = userdata;

        progress_clear(&s->progress);
        if (exit_code != 0) {
                session_exit(s, exit_code);
                return;
        }
        for (int stream = STREAM_STDOUT; stream <= STREAM_STDERR; stream++)
                if (s->escapes[stream])
                        session_write_text(s, stream, neutraliser_finish(&s->neutraliser[stream]));
        if (!s->result) {
                session_exit(s, client_bad_answer(-EBADMSG));
                return;
        }
        session_explain(s);
        exit_code = exit_code_of_result(s->result);
        session_exit(s, s->no_exec && exit_code == EXIT_FAILURE ? EXIT_CODE_NO_EXEC : exit_code);
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Session *s = userdata;
        const char *id, *path;
        int r;

        progress_clear(&s->progress);
        if (error) {
                session_exit(s, client_failed(error, -EIO));
                return 0;
        }
        r = sd_bus_message_read(reply, "so", &id, &path);
        if (r < 0) {
                session_exit(s, client_bad_answer(r));
                return 0;
        }
        s->id = strdup(id);
        s->path = strdup(path);
        r = s->id && s->path ? 0 : -ENOMEM;
        if (r >= 0)
                r = follow_new(s->ctl, s->event,
                               &(const FollowOptions){.id = s->id,
                                                      .path = s->path,
                                                      .lossless = true,
                                                      .on_event = on_event,
                                                      .on_output = on_output,
                                                      .on_lost = on_lost,
                                                      .on_end = on_end,
                                                      .userdata = s},
                               &s->follow);
        if (r < 0)
                session_exit(s, client_failed(NULL, r));
        return 0;
}

static int session_start(Session *s, const char *request) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = client_message(s->ctl, MANAGER_METHOD("StartRun"), &m);
        if (r >= 0)
                r = sd_bus_message_append(m, "sa{sh}", request, 0);
        if (r >= 0)
                r = sd_bus_message_append(m, "a{sv}", 2, "stdin", "b", (int) s->options->stdin_open, "signals", "b",
                                          0);
        return r < 0 ? r : sd_bus_call_async(s->ctl->bus, NULL, m, on_started, s, UINT64_MAX);
}

static int session_init_signals(Session *s) {
        sigset_t set;

        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (s->signal_fd < 0)
                return -errno;
        return sd_event_add_io(s->event, NULL, s->signal_fd, EPOLLIN, on_signal, s);
}

static int session_init(Session *s) {
        bool lines = !s->ctl->json && !s->options->quiet;
        int r;

        for (int stream = STREAM_STDOUT; stream <= STREAM_STDERR; stream++) {
                s->on_terminal[stream] = isatty(stream);
                s->escapes[stream] = s->on_terminal[stream] && !s->options->raw;
        }
        r = sd_event_new(&s->event);
        if (r >= 0)
                r = session_init_signals(s);
        if (r >= 0)
                r = sd_bus_attach_event(s->ctl->bus, s->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = progress_init(&s->progress, s->event,
                                  lines && (s->on_terminal[STREAM_STDERR] || s->options->verbose), lines);
        return r;
}

int session_run(Ctl *ctl, const RunOptions *options, const char *request) {
        _cleanup_(session_done) Session s = {.ctl = ctl, .options = options, .signal_fd = -EBADF};
        int r;

        r = session_init(&s);
        if (r >= 0)
                progress_waits(&s.progress, "Asking the service");
        if (r >= 0)
                r = session_start(&s, request);
        if (r >= 0)
                r = sd_event_loop(s.event);
        return r < 0 ? client_failed(NULL, r) : r;
}
