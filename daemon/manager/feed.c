/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Made by OpenOutput for each reader. The frames at hand are encoded into a buffer of about FILL_BYTES, which goes
 * out as the socket takes it; then the next are encoded, from the timeline or from the queue of output that it does
 * not keep.
 *
 * The reader is not trusted: it may stop, hang up, or read a byte at a time. None of that may cost more than the
 * queue and the buffer, nor wake the event loop without need.
 */
#include "manager/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "common/fd.h"
#include "protocol/message.h"

enum { FILL_BYTES = 65536, SENDS_AT_ONCE = 16 };

/* Output that the timeline does not keep. */
typedef struct Chunk {
        STAILQ_ENTRY(Chunk) next;
        uint64_t after_seq;   /* its place: behind this event */
        uint64_t lost_before; /* bytes that should have been queued between the last one and this */
        uint64_t usec;
        OutputStream stream;
        size_t size;
        uint8_t data[];
} Chunk;

struct Feed {
        sd_event *event;
        int fd;
        Timeline *timeline;
        TimelineListener *listener;
        FeedOptions options;
        sd_event_source *io_source;
        sd_event_source *idle_source; /* both when finishing only */
        sd_event_source *max_source;

        uint64_t seq;       /* the last event that is encoded whole */
        size_t json_offset; /* what is encoded of the next */
        uint8_t *buffer;
        size_t capacity;
        size_t start; /* first byte not sent */
        size_t end;

        STAILQ_HEAD(, Chunk) queue;
        size_t queue_bytes;
        uint64_t untold_bytes; /* lost, and no chunk was queued since */
        uint64_t lost_bytes;
        bool congested;
        bool finishing;
        bool gone;
};

static void release(Feed *f) {
        Chunk *chunk;

        f->listener = timeline_listener_free(f->listener);
        f->io_source = sd_event_source_disable_unref(f->io_source);
        f->idle_source = sd_event_source_disable_unref(f->idle_source);
        f->max_source = sd_event_source_disable_unref(f->max_source);
        f->fd = fd_close(f->fd);
        while ((chunk = STAILQ_FIRST(&f->queue))) {
                STAILQ_REMOVE_HEAD(&f->queue, next);
                free(chunk);
        }
        f->queue_bytes = 0;
        free(f->buffer);
        f->buffer = NULL;
        f->capacity = f->start = f->end = 0;
        f->congested = false;
}

Feed *feed_free(Feed *f) {
        if (!f)
                return NULL;
        release(f);
        sd_event_unref(f->event);
        free(f);
        return NULL;
}

/* The last thing a handler does: the owner may free the feed. */
static void become_gone(Feed *f) {
        release(f);
        f->gone = true;
        if (f->options.on_gone)
                f->options.on_gone(f, f->options.userdata);
}

static int want_to_send(Feed *f) {
        return sd_event_source_set_io_events(f->io_source, EPOLLOUT);
}

static void update_congestion(Feed *f) {
        bool congested;

        if (!f->options.lossless)
                return;
        congested = f->queue_bytes >= (f->congested ? FEED_QUEUE_LOW + 1 : FEED_QUEUE_HIGH);
        if (congested == f->congested)
                return;
        f->congested = congested;
        if (f->options.on_congestion)
                f->options.on_congestion(f, congested, f->options.userdata);
}

static void enqueue(Feed *f, const Event *event) {
        Chunk *chunk = NULL;

        if (event->data_size <= FEED_QUEUE_MAX - f->queue_bytes)
                chunk = malloc(sizeof(*chunk) + event->data_size);
        if (!chunk) {
                f->untold_bytes += event->data_size;
                f->lost_bytes += event->data_size;
                return;
        }
        *chunk = (Chunk){
                .after_seq = timeline_last_seq(f->timeline),
                .lost_before = f->untold_bytes,
                .usec = event->usec,
                .stream = event->stream,
                .size = event->data_size,
        };
        memcpy(chunk->data, event->data, event->data_size);
        STAILQ_INSERT_TAIL(&f->queue, chunk, next);
        f->queue_bytes += event->data_size;
        f->untold_bytes = 0;
}

static void on_event(Timeline *timeline, const Event *event, void *userdata) {
        Feed *f = userdata;

        if (event->seq == 0)
                enqueue(f, event);
        want_to_send(f);
        update_congestion(f);
}

/* Room for size more bytes at the end of the buffer. */
static int reserve(Feed *f, size_t size) {
        size_t needed = f->end + size;
        uint8_t *buffer;

        if (needed <= f->capacity)
                return 0;
        buffer = realloc(f->buffer, needed);
        if (!buffer)
                return -ENOMEM;
        f->buffer = buffer;
        f->capacity = needed;
        return 0;
}

static int put_lost(Feed *f, uint64_t bytes) {
        ssize_t n;

        if (bytes == 0)
                return 0;
        if (reserve(f, LOST_FRAME_SIZE) < 0)
                return -ENOMEM;
        n = message_encode_lost(f->buffer + f->end, bytes);
        if (n < 0)
                return (int) n;
        f->end += (size_t) n;
        return 0;
}

static int put_output(Feed *f, const OutputMessage *output) {
        ssize_t n;

        if (reserve(f, FRAME_HEADER_SIZE + OUTPUT_HEAD_SIZE + output->size) < 0)
                return -ENOMEM;
        n = message_encode_output_head(f->buffer + f->end, output);
        if (n < 0)
                return (int) n;
        f->end += (size_t) n;
        memcpy(f->buffer + f->end, output->data, output->size);
        f->end += output->size;
        return 0;
}

/* The next piece of the event's JSON. 1 when it was the last, 0 when another follows. */
static int put_event(Feed *f, const Event *event) {
        size_t size = event->json_size - f->json_offset;
        EventMessage message = {.seq = event->seq, .realtime_usec = event->usec};
        ssize_t n;

        size = size < EVENT_JSON_SIZE_MAX ? size : EVENT_JSON_SIZE_MAX;
        strncpy(message.type, event_type_name(event->type), sizeof(message.type) - 1);
        message.json = event->json + f->json_offset;
        message.json_size = size;
        if (reserve(f, FRAME_HEADER_SIZE + EVENT_HEAD_SIZE_MAX + size) < 0)
                return -ENOMEM;
        n = message_encode_event_head(f->buffer + f->end, &message);
        if (n < 0)
                return (int) n;
        f->end += (size_t) n;
        memcpy(f->buffer + f->end, message.json, size);
        f->end += size;
        f->json_offset += size;
        return size < EVENT_JSON_SIZE_MAX;
}

static int put_next_event(Feed *f, const Event *event) {
        int r;

        if (event->type == EVENT_OUTPUT)
                r = put_output(f, &(OutputMessage){
                                          .seq = event->seq,
                                          .realtime_usec = event->usec,
                                          .stream = (uint8_t) event->stream,
                                          .data = event->data,
                                          .size = event->data_size,
                                  });
        else {
                r = put_event(f, event);
                if (r == 0)
                        return 0;
        }
        if (r < 0)
                return r;
        f->seq++;
        f->json_offset = 0;
        return 0;
}

static int put_chunk(Feed *f, Chunk *chunk) {
        int r = put_lost(f, chunk->lost_before);

        if (r < 0)
                return r;
        chunk->lost_before = 0;
        r = put_output(f, &(OutputMessage){
                                  .realtime_usec = chunk->usec,
                                  .stream = (uint8_t) chunk->stream,
                                  .data = chunk->data,
                                  .size = chunk->size,
                          });
        if (r < 0)
                return r;
        STAILQ_REMOVE_HEAD(&f->queue, next);
        f->queue_bytes -= chunk->size;
        free(chunk);
        return 0;
}

/* Encodes what comes next, until the buffer holds enough. 0 or -errno. */
static int fill(Feed *f) {
        int r = 0;

        while (r == 0 && f->end - f->start < FILL_BYTES) {
                Chunk *chunk = STAILQ_FIRST(&f->queue);
                Event event;

                if (chunk && chunk->after_seq <= f->seq)
                        r = put_chunk(f, chunk);
                else if (timeline_get(f->timeline, f->seq + 1, &event) == 0)
                        r = put_next_event(f, &event);
                else if (f->untold_bytes > 0) {
                        r = put_lost(f, f->untold_bytes);
                        f->untold_bytes = 0;
                } else
                        break;
        }
        return r;
}

/* 1: the socket or the turn is full; 0: all is sent; or -errno. */
static int send_some(Feed *f) {
        for (int i = 0; i < SENDS_AT_ONCE; i++) {
                ssize_t n;
                int r;

                if (f->start == f->end) {
                        f->start = f->end = 0;
                        r = fill(f);
                        if (r < 0)
                                return r;
                        if (f->end == 0)
                                return 0;
                }
                n = send(f->fd, f->buffer + f->start, f->end - f->start, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
                f->start += (size_t) n;
                if (f->idle_source)
                        sd_event_source_set_time_relative(f->idle_source, f->options.finish_idle_usec);
        }
        return 1;
}

/* Idle: no memory, no wake-ups. */
static int rest(Feed *f) {
        free(f->buffer);
        f->buffer = NULL;
        f->capacity = 0;
        return sd_event_source_set_io_events(f->io_source, 0);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Feed *f = userdata;
        int r;

        if (revents & (EPOLLHUP | EPOLLERR)) {
                become_gone(f);
                return 0;
        }
        r = send_some(f);
        if (r == 0 && !f->finishing)
                r = rest(f);
        else if (r == 0)
                r = -ESHUTDOWN;
        if (r >= 0)
                update_congestion(f);
        else
                become_gone(f);
        return 0;
}

static int on_finish_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        become_gone(userdata);
        return 0;
}

int feed_new(sd_event *event, int fd, Timeline *timeline, const FeedOptions *options, Feed **ret) {
        _cleanup_(feed_freep) Feed *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        STAILQ_INIT(&f->queue);
        f->fd = -EBADF;
        f->event = sd_event_ref(event);
        f->timeline = timeline;
        f->options = *options;
        f->seq = options->after_seq;
        if (f->options.finish_idle_usec == 0)
                f->options.finish_idle_usec = FEED_FINISH_IDLE_USEC;
        r = fd_set_nonblocking(fd, true);
        if (r < 0)
                return r;
        if (shutdown(fd, SHUT_RD) < 0)
                return -errno;
        r = timeline_listen(timeline, on_event, f, &f->listener);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &f->io_source, fd, EPOLLOUT, on_io, f);
        if (r < 0)
                return r;
        f->fd = fd;
        *ret = TAKE_PTR(f);
        return 0;
}

bool feed_is_congested(const Feed *f) {
        return f->congested;
}

int feed_finish(Feed *f) {
        int r;

        if (f->gone || f->finishing)
                return 0;
        r = sd_event_add_time_relative(f->event, &f->idle_source, CLOCK_MONOTONIC, f->options.finish_idle_usec, 0,
                                       on_finish_timeout, f);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(f->event, &f->max_source, CLOCK_MONOTONIC, FEED_FINISH_MAX_USEC, 0,
                                       on_finish_timeout, f);
        if (r < 0)
                return r;
        f->finishing = true;
        return want_to_send(f);
}

uint64_t feed_lost_bytes(const Feed *f) {
        return f->lost_bytes;
}
