/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager/timeline.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

static json_object *object_with(const char *key, int64_t value) {
        json_object *object = json_object_new_object();

        assert(json_object_object_add(object, key, json_object_new_int64(value)) == 0);
        return object;
}

typedef struct Log {
        uint64_t last_seq;
        size_t n_events;
        uint64_t live_bytes;
        TimelineListener *listener;
        TimelineListener **victim; /* freed at the first event */
} Log;

static void on_event(Timeline *timeline, const Event *event, void *userdata) {
        Log *log = userdata;

        log->n_events++;
        if (event->seq == 0)
                log->live_bytes += event->data_size;
        else {
                log->last_seq++;
                assert(event->seq == log->last_seq);
        }
        if (log->victim)
                *log->victim = timeline_listener_free(*log->victim);
        log->victim = NULL;
}

static int on_read(const Event *event, void *userdata) {
        uint64_t *last = userdata;

        (*last)++;
        assert(event->seq == *last);
        return 0;
}

static int on_read_stop(const Event *event, void *userdata) {
        return event->seq == 5 ? -ECANCELED : 0;
}

static void test_seq_has_no_gap_over_many_events(void) {
        _cleanup_(timeline_freep) Timeline *t = NULL;
        uint64_t last = 0;
        Log log = {0};

        assert(timeline_new(1 << 20, &t) == 0);
        assert(timeline_listen(t, on_event, &log, &log.listener) == 0);
        for (int64_t i = 1; i <= 100000; i++) {
                Event event;

                assert(timeline_append(t, EVENT_PROCESS_EXEC, object_with("pid", i)) == 0);
                assert(timeline_last_seq(t) == (uint64_t) i);
                assert(timeline_get(t, (uint64_t) i, &event) == 0 && event.usec > 0);
        }
        assert(log.n_events == 100000 && log.last_seq == 100000);
        assert(timeline_read(t, 0, SIZE_MAX, on_read, &last) == 0 && last == 100000);
        last = 99990;
        assert(timeline_read(t, 99990, 5, on_read, &last) == 0 && last == 99995);
        assert(timeline_read(t, 100000, SIZE_MAX, on_read, &last) == 0 && last == 99995);
        assert(timeline_read(t, UINT64_MAX, SIZE_MAX, on_read, &last) == 0 && last == 99995);
        assert(timeline_read(t, 0, 100, on_read_stop, NULL) == -ECANCELED);
        timeline_listener_free(log.listener);
}

static void test_json_is_the_same_live_and_later(void) {
        _cleanup_(timeline_freep) Timeline *t = NULL;
        Event event;

        assert(timeline_new(0, &t) == 0);
        assert(timeline_append(t, EVENT_RUN_CANCELLED, json_tokener_parse("{ \"by\": \"a/b\\u009b\" }")) == 0);
        assert(timeline_append(t, EVENT_BUDGET_EXHAUSTED, NULL) == 0);
        assert(timeline_get(t, 1, &event) == 0);
        assert(event.type == EVENT_RUN_CANCELLED && !event.object);
        assert(strcmp(event.json, "{\"by\":\"a/b\\u009b\"}") == 0 && event.json_size == strlen(event.json));
        assert(timeline_get(t, 2, &event) == 0 && strcmp(event.json, "{}") == 0);
        assert(timeline_get(t, 0, &event) == -ENOENT && timeline_get(t, 3, &event) == -ENOENT);
}

static void test_output_is_kept_to_the_byte(void) {
        _cleanup_(timeline_freep) Timeline *t = NULL;
        TimelineCounts counts;
        Log log = {0};
        Event event;

        assert(timeline_new(10, &t) == 0);
        assert(timeline_append_truncated(t) == 0 && timeline_last_seq(t) == 0);
        assert(timeline_listen(t, on_event, &log, &log.listener) == 0);
        assert(timeline_output(t, STREAM_STDOUT, "\0abc", 4) == 1);
        assert(timeline_output(t, STREAM_STDERR, "defghijk", 8) == 0);
        assert(timeline_output(t, STREAM_STDOUT, "lm", 2) == 0);
        timeline_get_counts(t, &counts);
        assert(counts.kept_bytes[STREAM_STDOUT] == 4 && counts.kept_bytes[STREAM_STDERR] == 6);
        assert(counts.dropped_bytes[STREAM_STDOUT] == 2 && counts.dropped_bytes[STREAM_STDERR] == 2);
        assert(log.live_bytes == 4 && log.last_seq == 2 && log.n_events == 4);

        assert(timeline_get(t, 2, &event) == 0);
        assert(event.type == EVENT_OUTPUT && event.stream == STREAM_STDERR && event.data_size == 6);
        assert(memcmp(event.data, "defghi", 6) == 0);
        assert(timeline_append_truncated(t) == 0);
        assert(timeline_get(t, 3, &event) == 0 && event.type == EVENT_OUTPUT_TRUNCATED);
        assert(strcmp(event.json, "{\"kept_bytes\":10,\"dropped_bytes\":4}") == 0);
        timeline_listener_free(log.listener);
}

static void test_long_output_comes_in_chunks(void) {
        _cleanup_(timeline_freep) Timeline *t = NULL;
        static char data[2 * TIMELINE_CHUNK_MAX + 1];
        Event event;

        assert(timeline_new(1 << 20, &t) == 0);
        assert(timeline_output(t, STREAM_STDOUT, data, sizeof(data)) == 1);
        assert(timeline_last_seq(t) == 3);
        assert(timeline_get(t, 3, &event) == 0 && event.data_size == 1);
}

static void test_a_full_timeline_keeps_room_for_the_end(void) {
        _cleanup_(timeline_freep) Timeline *t = NULL;
        TimelineCounts counts;
        Event event;

        assert(timeline_new(1 << 20, &t) == 0);
        for (unsigned i = 0; i < TIMELINE_EVENTS_MAX - TIMELINE_EVENTS_RESERVE; i++)
                assert(timeline_output(t, STREAM_STDOUT, "x", 1) == 1);
        assert(timeline_output(t, STREAM_STDOUT, "xyz", 3) == 0);
        assert(timeline_append(t, EVENT_PROCESS_EXEC, NULL) == -ENOBUFS);
        for (unsigned i = 0; i < TIMELINE_EVENTS_RESERVE - 1; i++)
                assert(timeline_append(t, EVENT_RUN_RESULT, NULL) == 0);
        assert(timeline_append_truncated(t) == 0);
        assert(timeline_append(t, EVENT_RUN_RESULT, NULL) == -ENOBUFS);
        assert(timeline_get(t, TIMELINE_EVENTS_MAX, &event) == 0);
        assert(strcmp(event.json, "{\"kept_bytes\":131008,\"dropped_bytes\":3,\"dropped_events\":1}") == 0);
        timeline_get_counts(t, &counts);
        assert(counts.dropped_events == 2);
}

static json_object *large_object(size_t size) {
        char *text = malloc(size);
        json_object *object = json_object_new_object();

        assert(text && object);
        memset(text, 'x', size);
        assert(json_object_object_add(object, "x", json_object_new_string_len(text, (int) size)) == 0);
        free(text);
        return object;
}

static void test_json_is_bounded(void) {
        _cleanup_(timeline_freep) Timeline *t = NULL;

        assert(timeline_new(0, &t) == 0);
        assert(timeline_append(t, EVENT_PROCESS_EXEC, large_object(TIMELINE_EVENT_JSON_MAX)) == -E2BIG);
        for (size_t i = 0; i < TIMELINE_JSON_MAX / (1 << 20) - 1; i++)
                assert(timeline_append(t, EVENT_PROCESS_EXEC, large_object((1 << 20) - 16)) == 0);
        assert(timeline_append(t, EVENT_PROCESS_EXEC, large_object((1 << 20) - 16)) == -ENOBUFS);
        assert(timeline_append(t, EVENT_RUN_RESULT, large_object((1 << 20) - 16)) == 0);
}

static void test_listeners_may_be_freed_while_called(void) {
        Timeline *t = NULL;
        Log first = {0}, second = {0}, third = {0};

        assert(timeline_new(0, &t) == 0);
        assert(timeline_listen(t, on_event, &first, &first.listener) == 0);
        assert(timeline_listen(t, on_event, &second, &second.listener) == 0);
        assert(timeline_listen(t, on_event, &third, &third.listener) == 0);
        first.victim = &second.listener; /* the next */
        third.victim = &third.listener;  /* itself */
        assert(timeline_append(t, EVENT_VM_READY, NULL) == 0);
        assert(timeline_append(t, EVENT_VM_READY, NULL) == 0);
        assert(first.n_events == 2 && second.n_events == 0 && third.n_events == 1);
        timeline_free(t);
        timeline_listener_free(first.listener);
}

int main(void) {
        test_seq_has_no_gap_over_many_events();
        test_json_is_the_same_live_and_later();
        test_output_is_kept_to_the_byte();
        test_long_output_comes_in_chunks();
        test_a_full_timeline_keeps_room_for_the_end();
        test_json_is_bounded();
        test_listeners_may_be_freed_while_called();
        return 0;
}
