/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every run has one. Items are allocated once, never move and never change, so that readers may point into them; an
 * item's index is its seq - 1. Output is kept as bytes alone: its JSON is made when somebody asks for it.
 *
 * Room is counted before anything is kept: events and their JSON against TIMELINE_EVENTS_MAX and TIMELINE_JSON_MAX,
 * with the reserve for the events that tell how the run ended; output against the run's cap.
 */
#include "manager/timeline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/journal-run.h"
#include "common/json.h"

typedef struct Item {
        uint64_t usec;
        uint8_t type;
        uint8_t stream;
        uint32_t size;
        char data[]; /* JSON with a NUL behind, or output */
} Item;

struct TimelineListener {
        TAILQ_ENTRY(TimelineListener) link;
        Timeline *timeline; /* NULL: detached */
        TimelineCallback callback;
        void *userdata;
};

struct Timeline {
        Item **items;
        size_t n_items;
        size_t n_allocated;
        size_t json_bytes;
        uint64_t output_max_bytes;
        TimelineCounts counts;

        TAILQ_HEAD(TimelineListeners, TimelineListener) listeners;
        TimelineListener *next_listener; /* while dispatching: whose turn it is after the current one */
        bool dispatching;
};

int timeline_new(uint64_t output_max_bytes, Timeline **ret) {
        Timeline *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->output_max_bytes = output_max_bytes < TIMELINE_OUTPUT_MAX ? output_max_bytes : TIMELINE_OUTPUT_MAX;
        TAILQ_INIT(&t->listeners);
        *ret = t;
        return 0;
}

static void detach(TimelineListener *listener) {
        Timeline *t = listener->timeline;

        if (t->next_listener == listener)
                t->next_listener = TAILQ_NEXT(listener, link);
        TAILQ_REMOVE(&t->listeners, listener, link);
        listener->timeline = NULL;
}

Timeline *timeline_free(Timeline *t) {
        if (!t)
                return NULL;
        assert(!t->dispatching);
        while (!TAILQ_EMPTY(&t->listeners))
                detach(TAILQ_FIRST(&t->listeners));
        for (size_t i = 0; i < t->n_items; i++)
                free(t->items[i]);
        free(t->items);
        free(t);
        return NULL;
}

static void dispatch(Timeline *t, const Event *event) {
        TimelineListener *listener = TAILQ_FIRST(&t->listeners);

        t->dispatching = true;
        while (listener) {
                t->next_listener = TAILQ_NEXT(listener, link);
                listener->callback(t, event, listener->userdata);
                listener = t->next_listener;
        }
        t->next_listener = NULL;
        t->dispatching = false;
}

/* Makes room in the array of items for one more. */
static int grow(Timeline *t) {
        size_t n = t->n_allocated ? t->n_allocated * 2 : 32;
        Item **items;

        if (t->n_items < t->n_allocated)
                return 0;
        items = reallocarray(t->items, n, sizeof(*items)); /* NOLINT(bugprone-sizeof-expression): of pointers */
        if (!items)
                return -ENOMEM;
        t->items = items;
        t->n_allocated = n;
        return 0;
}

static Item *keep(Timeline *t, EventType type, OutputStream stream, const void *data, size_t size) {
        Item *item;

        if (grow(t) < 0)
                return NULL;
        item = malloc(sizeof(*item) + size + 1);
        if (!item)
                return NULL;
        *item = (Item){
                .usec = clock_realtime_usec(),
                .type = (uint8_t) type,
                .stream = (uint8_t) stream,
                .size = (uint32_t) size,
        };
        memcpy(item->data, data, size);
        item->data[size] = 0;
        t->items[t->n_items++] = item;
        return item;
}

static Event item_event(const Item *item, uint64_t seq) {
        Event event = {.seq = seq, .usec = item->usec, .type = (EventType) item->type};

        if (event.type == EVENT_OUTPUT) {
                event.stream = (OutputStream) item->stream;
                event.data = item->data;
                event.data_size = item->size;
        } else {
                event.json = item->data;
                event.json_size = item->size;
        }
        return event;
}

static bool has_room(const Timeline *t, EventType type, size_t json_size) {
        bool final = event_type_is_final(type);
        size_t events_max = TIMELINE_EVENTS_MAX - (final ? 0 : TIMELINE_EVENTS_RESERVE);
        size_t json_max = TIMELINE_JSON_MAX - (final ? 0 : TIMELINE_JSON_RESERVE);

        return t->n_items < events_max && json_size <= json_max && t->json_bytes <= json_max - json_size;
}

static int append_event(Timeline *t, EventType type, json_object *object) {
        _cleanup_(freep) char *json = object ? event_json(object) : strdup("{}");
        size_t size = json ? strlen(json) : 0;
        Item *item;
        Event event;

        if (!json)
                return -ENOMEM;
        if (size > TIMELINE_EVENT_JSON_MAX)
                return -E2BIG;
        if (!has_room(t, type, size))
                return -ENOBUFS;
        item = keep(t, type, 0, json, size);
        if (!item)
                return -ENOMEM;
        t->json_bytes += size;
        event = item_event(item, t->n_items);
        event.object = object;
        dispatch(t, &event);
        return 0;
}

int timeline_append(Timeline *t, EventType type, json_object *object) {
        int r;

        assert(!t->dispatching);
        assert(type != EVENT_OUTPUT);
        r = append_event(t, type, object);
        if (r < 0)
                t->counts.dropped_events++;
        json_object_put(object);
        return r;
}

static void deliver_unkept(Timeline *t, OutputStream stream, const char *data, size_t size) {
        Event event = {
                .usec = clock_realtime_usec(),
                .type = EVENT_OUTPUT,
                .stream = stream,
                .data = data,
                .data_size = size,
        };

        t->counts.dropped_bytes[stream] += size;
        dispatch(t, &event);
}

static int append_output(Timeline *t, OutputStream stream, const char *data, size_t size) {
        Item *item = keep(t, EVENT_OUTPUT, stream, data, size);
        Event event;

        if (!item)
                return -ENOMEM;
        t->counts.kept_bytes[stream] += size;
        event = item_event(item, t->n_items);
        dispatch(t, &event);
        return 0;
}

int timeline_output(Timeline *t, OutputStream stream, const void *data, size_t size) {
        const char *p = data, *end = p + size;
        bool whole = true;

        assert(!t->dispatching);
        assert(stream == STREAM_STDOUT || stream == STREAM_STDERR);
        while (p < end) {
                uint64_t kept = t->counts.kept_bytes[STREAM_STDOUT] + t->counts.kept_bytes[STREAM_STDERR];
                uint64_t room = has_room(t, EVENT_OUTPUT, 0) ? t->output_max_bytes - kept : 0;
                size_t n = (size_t) (end - p) < TIMELINE_CHUNK_MAX ? (size_t) (end - p) : TIMELINE_CHUNK_MAX;

                if (room == 0) {
                        deliver_unkept(t, stream, p, n);
                        p += n;
                        whole = false;
                        continue;
                }
                n = n < room ? n : (size_t) room;
                if (append_output(t, stream, p, n) < 0) {
                        t->counts.dropped_bytes[stream] += (uint64_t) (end - p);
                        return -ENOMEM;
                }
                p += n;
        }
        return whole;
}

int timeline_append_truncated(Timeline *t) {
        const TimelineCounts *c = &t->counts;
        uint64_t dropped = c->dropped_bytes[STREAM_STDOUT] + c->dropped_bytes[STREAM_STDERR];
        _cleanup_(json_putp) json_object *object = NULL;

        if (dropped == 0 && c->dropped_events == 0)
                return 0;
        object = json_object_new_object();
        if (!object ||
            json_add_u64(object, "kept_bytes", c->kept_bytes[STREAM_STDOUT] + c->kept_bytes[STREAM_STDERR]) < 0 ||
            json_add_u64(object, "dropped_bytes", dropped) < 0)
                return -ENOMEM;
        if (c->dropped_events > 0 && json_add_u64(object, "dropped_events", c->dropped_events) < 0)
                return -ENOMEM;
        return timeline_append(t, EVENT_OUTPUT_TRUNCATED, TAKE_PTR(object));
}

void timeline_get_counts(const Timeline *t, TimelineCounts *ret) {
        *ret = t->counts;
}

uint64_t timeline_bytes(const Timeline *t) {
        return t->json_bytes + t->counts.kept_bytes[STREAM_STDOUT] + t->counts.kept_bytes[STREAM_STDERR];
}

uint64_t timeline_last_seq(const Timeline *t) {
        return t->n_items;
}

int timeline_get(const Timeline *t, uint64_t seq, Event *ret) {
        if (seq == 0 || seq > t->n_items)
                return -ENOENT;
        *ret = item_event(t->items[seq - 1], seq);
        return 0;
}

int timeline_read(const Timeline *t, uint64_t after_seq, size_t max, TimelineReadCallback callback, void *userdata) {
        for (uint64_t seq = after_seq; seq < t->n_items && seq - after_seq < max; seq++) {
                Event event = item_event(t->items[seq], seq + 1);
                int r = callback(&event, userdata);

                if (r != 0)
                        return r;
        }
        return 0;
}

int timeline_listen(Timeline *t, TimelineCallback callback, void *userdata, TimelineListener **ret) {
        TimelineListener *listener = malloc(sizeof(*listener));

        if (!listener)
                return -ENOMEM;
        *listener = (TimelineListener){.timeline = t, .callback = callback, .userdata = userdata};
        TAILQ_INSERT_TAIL(&t->listeners, listener, link);
        *ret = listener;
        return 0;
}

TimelineListener *timeline_listener_free(TimelineListener *listener) {
        if (!listener)
                return NULL;
        if (listener->timeline)
                detach(listener);
        free(listener);
        return NULL;
}

static void on_event_journal(Timeline *t, const Event *event, void *userdata) {
        journal_run_event(userdata, event);
}

int timeline_listen_journal(Timeline *t, JournalRun *run, TimelineListener **ret) {
        return timeline_listen(t, on_event_journal, run, ret);
}
