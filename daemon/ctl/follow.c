/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The reader of OpenOutput's fd. The run has ended when `run.result` was seen and the fd is at its end; an end before
 * that means that the service went away, and it is asked again: D-Bus starts it when it is not there. Reading stops
 * while a callback writes, so a slow terminal slows the run, and nothing is kept here.
 */
#include "ctl/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/clock.h"
#include "common/fd.h"
#include "ctl/terminal.h"

#define RETRY_FIRST_USEC (100 * USEC_PER_MSEC)
#define RETRY_MAX_USEC   (2 * USEC_PER_SEC)

struct Follow {
        Ctl *ctl;
        FollowOptions options;
        char *id, *path;
        sd_event *event;
        sd_event_source *source; /* the fd's */
        sd_event_source *retry;
        sd_bus_slot *call;
        int fd;
        FrameReader reader;
        uint64_t last_seq;
        bool seen_result;
        bool stopped;
        unsigned attempts;

        /* An event that comes in several frames. */
        EventMessage partial;
        char *partial_json;
        size_t partial_size;
};

static void follow_close(Follow *f) {
        f->source = sd_event_source_unref(f->source);
        f->call = sd_bus_slot_unref(f->call);
        f->fd = fd_close(f->fd);
        frame_reader_done(&f->reader);
        frame_reader_init(&f->reader);
        free(f->partial_json);
        f->partial_json = NULL;
        f->partial_size = 0;
}

void follow_stop(Follow *f) {
        f->stopped = true;
        f->retry = sd_event_source_unref(f->retry);
        follow_close(f);
}

static void follow_end(Follow *f, int exit_code) {
        if (f->stopped)
                return;
        follow_stop(f);
        f->options.on_end(exit_code, f->options.userdata);
}

static int follow_open(Follow *f);

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata) {
        Follow *f = userdata;
        int r = follow_open(f);

        if (r < 0)
                follow_end(f, client_failed(NULL, r));
        return 0;
}

static int retry_later(Follow *f) {
        uint64_t wait = RETRY_FIRST_USEC << f->attempts;

        f->retry = sd_event_source_unref(f->retry);
        return sd_event_add_time_relative(f->event, &f->retry, CLOCK_MONOTONIC,
                                          wait < RETRY_MAX_USEC ? wait : RETRY_MAX_USEC, 0, on_retry, f);
}

/* The fd ended, or could not be had, before the run ended. */
static void follow_again(Follow *f, const sd_bus_error *error) {
        int r;

        follow_close(f);
        if (f->attempts >= FOLLOW_ATTEMPTS_MAX) {
                if (error)
                        client_failed(error, -EIO);
                print_error("Lost contact with the run: the service ended or was restarted and does not come back. "
                            "See 'journalctl -u ephemerald'.");
                follow_end(f, EXIT_CODE_OURS);
                return;
        }
        r = retry_later(f);
        if (r < 0)
                follow_end(f, client_failed(NULL, r));
        f->attempts++;
}

static void take_event(Follow *f, const EventMessage *event) {
        if (event->seq <= f->last_seq)
                return;
        f->last_seq = event->seq;
        f->attempts = 0;
        if (strcmp(event->type, "run.result") == 0)
                f->seen_result = true;
        f->options.on_event(event, f->options.userdata);
}

/* An event too large for one frame: a piece of the largest size is continued by the next. */
static int gather_event(Follow *f, const EventMessage *part, bool continues) {
        _cleanup_(freep) char *whole = NULL;
        char *grown;

        if (f->partial_size + part->json_size > FOLLOW_EVENT_SIZE_MAX)
                return -EMSGSIZE;
        grown = realloc(f->partial_json, f->partial_size + part->json_size + 1);
        if (!grown)
                return -ENOMEM;
        f->partial_json = grown;
        memcpy(grown + f->partial_size, part->json, part->json_size);
        f->partial_size += part->json_size;
        if (continues)
                return 0;

        whole = TAKE_PTR(f->partial_json);
        f->partial.json = whole;
        f->partial.json_size = f->partial_size;
        f->partial_size = 0;
        take_event(f, &f->partial);
        return 0;
}

static int take_event_frame(Follow *f, const Frame *frame) {
        EventMessage event;
        bool continues;
        int r;

        r = message_decode_event(frame, &event);
        if (r < 0)
                return r;
        continues = event.json_size == EVENT_JSON_SIZE_MAX;
        if (!f->partial_json && !continues) {
                take_event(f, &event);
                return 0;
        }
        if (!f->partial_json)
                f->partial = event;
        else if (event.seq != f->partial.seq)
                return -EBADMSG;
        return gather_event(f, &event, continues);
}

static int take_frame(Follow *f, const Frame *frame) {
        OutputMessage output;
        uint64_t lost;
        int r;

        if (frame->type == FRAME_EVENT)
                return take_event_frame(f, frame);
        if (frame->type == FRAME_LOST) {
                r = message_decode_lost(frame, &lost);
                if (r >= 0)
                        f->options.on_lost(lost, f->options.userdata);
                return r;
        }
        r = message_decode_output(frame, &output);
        if (r < 0)
                return r;
        if (output.seq > 0 && output.seq <= f->last_seq)
                return 0;
        if (output.seq > 0)
                f->last_seq = output.seq;
        f->attempts = 0;
        f->options.on_output(&output, f->options.userdata);
        return 0;
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Follow *f = userdata;
        ssize_t n = frame_reader_fill(&f->reader, fd);
        Frame frame;
        int r = 0;

        if (n == -EAGAIN || n == -EINTR)
                return 0;
        if (n == 0 || n == -ECONNRESET) {
                if (f->seen_result)
                        follow_end(f, 0);
                else
                        follow_again(f, NULL);
                return 0;
        }
        while (n > 0 && !f->stopped && (r = frame_reader_next(&f->reader, &frame)) > 0) {
                r = take_frame(f, &frame);
                if (r < 0)
                        break;
        }
        if (n < 0 || r < 0)
                follow_end(f, client_bad_answer(n < 0 ? (int) n : r));
        return 0;
}

static int follow_take_fd(Follow *f, sd_bus_message *reply) {
        int fd, r;

        r = sd_bus_message_read(reply, "h", &fd);
        if (r < 0)
                return r;
        f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (f->fd < 0)
                return -errno;
        r = fd_set_nonblocking(f->fd, true);
        if (r < 0)
                return r;
        return sd_event_add_io(f->event, &f->source, f->fd, EPOLLIN, on_readable, f);
}

/* Worth another try: the service was on its way out or in. */
static bool is_passing(const sd_bus_error *e) {
        return sd_bus_error_has_names(e, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                                      SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_DISCONNECTED);
}

static int follow_refused(const Follow *f, const sd_bus_error *error) {
        if (!sd_bus_error_has_names(error, SD_BUS_ERROR_UNKNOWN_OBJECT, SD_BUS_ERROR_UNKNOWN_METHOD))
                return client_failed(error, -EIO);
        print_error(
                "The service was restarted and does not know %s any more. 'journalctl EPHEMERAL_RUN=%s' tells what is "
                "known of it; 'systemctl stop ephemeral-%s.scope' ends it, if its time does not before.",
                f->id, f->id, f->id);
        return EXIT_CODE_OURS;
}

static int on_opened(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Follow *f = userdata;
        int r;

        f->call = sd_bus_slot_unref(f->call);
        if (error && is_passing(error)) {
                follow_again(f, error);
                return 0;
        }
        if (error) {
                follow_end(f, follow_refused(f, error));
                return 0;
        }
        r = follow_take_fd(f, reply);
        if (r < 0)
                follow_end(f, client_bad_answer(r));
        return 0;
}

static int follow_open(Follow *f) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = client_message(f->ctl, RUN_METHOD(f->path, "OpenOutput"), &m);
        if (r >= 0)
                r = sd_bus_message_append(m, "a{sv}", 2, "after-seq", "t", f->last_seq, "lossless", "b",
                                          (int) f->options.lossless);
        return r < 0 ? r : sd_bus_call_async(f->ctl->bus, &f->call, m, on_opened, f, UINT64_MAX);
}

int follow_new(Ctl *ctl, sd_event *event, const FollowOptions *options, Follow **ret) {
        _cleanup_(follow_freep) Follow *f = malloc(sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        *f = (Follow){
                .ctl = ctl,
                .options = *options,
                .id = strdup(options->id),
                .path = strdup(options->path),
                .event = sd_event_ref(event),
                .fd = -EBADF,
                .last_seq = options->after_seq,
        };
        frame_reader_init(&f->reader);
        if (!f->id || !f->path)
                return -ENOMEM;
        r = follow_open(f);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(f);
        return 0;
}

Follow *follow_free(Follow *f) {
        if (!f)
                return NULL;
        follow_stop(f);
        frame_reader_done(&f->reader);
        sd_event_unref(f->event);
        free(f->id);
        free(f->path);
        free(f);
        return NULL;
}
