/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Both ends in one thread: the event loop runs the feed, the test reads when it likes.
 */
#include "manager/feed.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/json.h"
#include "protocol/message.h"

typedef struct World {
        sd_event *event;
        Timeline *timeline;
        Feed *feed;
        int fd; /* the reader's */
        FrameReader reader;
        bool end_of_file;

        /* what the reader got */
        uint64_t last_seq;
        size_t json_bytes; /* of the last event, all pieces */
        uint64_t kept_bytes;
        uint64_t live_bytes;
        uint64_t lost_bytes;
        size_t n_frames;
        uint8_t last_type;

        unsigned n_gone;
        unsigned n_congested;
        unsigned n_relieved;
} World;

static void on_gone(Feed *feed, void *userdata) {
        World *w = userdata;

        assert(feed == w->feed);
        w->n_gone++;
        w->feed = feed_free(feed);
}

static void on_congestion(Feed *feed, bool congested, void *userdata) {
        World *w = userdata;

        assert(feed_is_congested(feed) == congested);
        if (congested)
                w->n_congested++;
        else
                w->n_relieved++;
}

static void world_init(World *w, uint64_t output_max_bytes) {
        *w = (World){.fd = -EBADF};
        assert(sd_event_new(&w->event) >= 0);
        assert(timeline_new(output_max_bytes, &w->timeline) == 0);
        frame_reader_init(&w->reader);
}

static void world_connect(World *w, FeedOptions options) {
        int fds[2], small = 4608;

        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        /* Short writes, many of them. */
        assert(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
        assert(fd_set_nonblocking(fds[1], true) == 0);
        options.on_gone = on_gone;
        options.on_congestion = on_congestion;
        options.userdata = w;
        assert(feed_new(w->event, fds[0], w->timeline, &options, &w->feed) == 0);
        w->fd = fds[1];
        w->last_seq = options.after_seq;
}

static void world_done(World *w) {
        feed_free(w->feed);
        frame_reader_done(&w->reader);
        fd_close(w->fd);
        timeline_free(w->timeline);
        sd_event_unref(w->event);
}

static void take_event(World *w, const Frame *frame) {
        EventMessage m;

        assert(message_decode_event(frame, &m) == 0);
        if (m.seq == w->last_seq) {
                assert(w->json_bytes % EVENT_JSON_SIZE_MAX == 0 && w->json_bytes > 0);
                w->json_bytes += m.json_size;
                return;
        }
        w->last_seq++;
        assert(m.seq == w->last_seq);
        w->json_bytes = m.json_size;
}

static void take_output(World *w, const Frame *frame) {
        OutputMessage m;

        assert(message_decode_output(frame, &m) == 0);
        if (m.seq == 0) {
                w->live_bytes += m.size;
                return;
        }
        w->last_seq++;
        assert(m.seq == w->last_seq);
        w->kept_bytes += m.size;
}

static void take_frame(World *w, const Frame *frame) {
        uint64_t lost;

        assert(message_check(frame) == 0);
        w->n_frames++;
        w->last_type = frame->type;
        if (frame->type == FRAME_EVENT)
                take_event(w, frame);
        else if (frame->type == FRAME_OUTPUT)
                take_output(w, frame);
        else {
                assert(message_decode_lost(frame, &lost) == 0);
                w->lost_bytes += lost;
        }
}

/* Reads what is there now. */
static void read_some(World *w) {
        for (;;) {
                ssize_t n = frame_reader_fill(&w->reader, w->fd);
                Frame frame;

                if (n == -EAGAIN)
                        return;
                assert(n >= 0);
                if (n == 0) {
                        w->end_of_file = true;
                        assert(frame_reader_pending(&w->reader) == 0);
                        return;
                }
                while (frame_reader_next(&w->reader, &frame) == 1)
                        take_frame(w, &frame);
        }
}

/* Runs the loop until nothing happens without the reader. */
static void run(World *w) {
        while (sd_event_run(w->event, 0) > 0)
                ;
}

static void run_and_read_all(World *w) {
        size_t before;

        do {
                before = w->n_frames;
                for (int i = 0; i < 64; i++) {
                        run(w);
                        read_some(w);
                }
        } while (w->n_frames != before);
}

static void append(World *w, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                assert(timeline_append(w->timeline, EVENT_PROCESS_EXEC, NULL) == 0);
}

static void output(World *w, unsigned n, size_t size) {
        char *data = calloc(1, size);

        assert(data);
        for (unsigned i = 0; i < n; i++)
                assert(timeline_output(w->timeline, STREAM_STDOUT, data, size) >= 0);
        free(data);
}

static void test_replay_and_live_without_gap_or_repeat(void) {
        World w;

        world_init(&w, 64 << 20);
        append(&w, 50);
        output(&w, 50, 1000);
        world_connect(&w, (FeedOptions){.after_seq = 30});
        for (int i = 0; i < 200; i++) {
                append(&w, 3);
                output(&w, 2, 300);
                if (i % 3 == 0)
                        run(&w);
                if (i % 7 == 0)
                        read_some(&w);
        }
        run_and_read_all(&w);
        assert(w.last_seq == 100 + 200 * 5 && w.last_seq == timeline_last_seq(w.timeline));
        assert(w.kept_bytes == 50 * 1000 + 200 * 2 * 300);
        assert(feed_finish(w.feed) == 0);
        run_and_read_all(&w);
        assert(w.end_of_file && w.n_gone == 1 && !w.feed);
        assert(w.lost_bytes == 0 && w.live_bytes == 0);
        world_done(&w);
}

static void test_a_slow_reader_loses_nothing_that_is_kept(void) {
        World w;

        world_init(&w, 64 << 20);
        world_connect(&w, (FeedOptions){.after_seq = 0});
        for (int i = 0; i < 100; i++) {
                append(&w, 1000);
                output(&w, 1, 200000);
                run(&w); /* the reader sleeps */
        }
        run_and_read_all(&w);
        assert(w.last_seq == 100 * 1004);
        assert(w.kept_bytes == 100 * 200000 && w.lost_bytes == 0);
        world_done(&w);
}

static void test_live_output_is_bounded_and_the_loss_exact(void) {
        World w;
        uint64_t total = 100;

        world_init(&w, 100);
        world_connect(&w, (FeedOptions){.after_seq = 0});
        output(&w, 1, 100);
        for (int i = 0; i < 200; i++) {
                output(&w, 1, 65000);
                total += 65000;
                run(&w);
        }
        assert(feed_lost_bytes(w.feed) > 0);
        run_and_read_all(&w);
        append(&w, 1);
        output(&w, 1, 7);
        total += 7;
        run_and_read_all(&w);
        assert(w.kept_bytes == 100);
        assert(w.live_bytes <= FEED_QUEUE_MAX + 2 * 65536 + 65000);
        assert(w.lost_bytes == feed_lost_bytes(w.feed));
        assert(w.kept_bytes + w.live_bytes + w.lost_bytes == total);
        assert(w.last_seq == 2 && w.last_type == FRAME_OUTPUT);
        world_done(&w);
}

static void test_a_lossless_reader_makes_the_run_wait(void) {
        World w;
        uint64_t total = 0;

        world_init(&w, 0);
        world_connect(&w, (FeedOptions){.lossless = true});
        while (total < 50 << 20) {
                if (feed_is_congested(w.feed)) {
                        run(&w);
                        read_some(&w);
                        continue;
                }
                output(&w, 1, 65536);
                total += 65536;
        }
        run_and_read_all(&w);
        assert(w.n_congested > 10 && w.n_congested == w.n_relieved);
        assert(w.live_bytes == total && w.lost_bytes == 0);
        world_done(&w);
}

static void test_a_large_event_goes_in_pieces(void) {
        static const size_t sizes[] = {EVENT_JSON_SIZE_MAX - 1, EVENT_JSON_SIZE_MAX, EVENT_JSON_SIZE_MAX + 1,
                                       2 * EVENT_JSON_SIZE_MAX, 1000000};
        World w;

        world_init(&w, 0);
        world_connect(&w, (FeedOptions){.after_seq = 0});
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                size_t n = sizes[i] - strlen("{\"x\":\"\"}");
                char *text = malloc(n);
                json_object *object = json_object_new_object();

                assert(text);
                memset(text, 'x', n);
                assert(json_object_object_add(object, "x", json_object_new_string_len(text, (int) n)) == 0);
                free(text);
                w.n_frames = 0;
                assert(timeline_append(w.timeline, EVENT_REQUEST_ACCEPTED, object) == 0);
                run_and_read_all(&w);
                assert(w.json_bytes == sizes[i] && w.last_seq == i + 1);
                assert(w.n_frames == sizes[i] / EVENT_JSON_SIZE_MAX + 1);
        }
        world_done(&w);
}

static void test_a_reader_that_hangs_up_is_noticed(void) {
        World w;

        world_init(&w, 1 << 20);
        world_connect(&w, (FeedOptions){.lossless = true});
        append(&w, 1000);
        run(&w);
        w.fd = fd_close(w.fd);
        run(&w);
        assert(w.n_gone == 1 && !w.feed);
        append(&w, 1);
        world_done(&w);
}

static void test_a_reader_that_never_reads_is_left(void) {
        World w;

        world_init(&w, 1 << 20);
        append(&w, 1000);
        world_connect(&w, (FeedOptions){.finish_idle_usec = 20000});
        assert(feed_finish(w.feed) == 0);
        while (w.n_gone == 0)
                assert(sd_event_run(w.event, UINT64_MAX) >= 0);
        assert(!w.feed);
        world_done(&w);
}

static void test_a_reader_cannot_fill_us(void) {
        World w;

        world_init(&w, 0);
        world_connect(&w, (FeedOptions){.after_seq = 0});
        assert(send(w.fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
        world_done(&w);
}

static void test_an_idle_feed_is_silent(void) {
        World w;

        world_init(&w, 0);
        world_connect(&w, (FeedOptions){.after_seq = 0});
        append(&w, 1);
        run_and_read_all(&w);
        assert(sd_event_run(w.event, 0) == 0);
        assert(feed_finish(w.feed) == 0);
        run_and_read_all(&w);
        assert(w.end_of_file && w.n_gone == 1);
        world_done(&w);
}

int main(void) {
        test_replay_and_live_without_gap_or_repeat();
        test_a_slow_reader_loses_nothing_that_is_kept();
        test_live_output_is_bounded_and_the_loss_exact();
        test_a_lossless_reader_makes_the_run_wait();
        test_a_large_event_goes_in_pieces();
        test_a_reader_that_hangs_up_is_noticed();
        test_a_reader_that_never_reads_is_left();
        test_a_reader_cannot_fill_us();
        test_an_idle_feed_is_silent();
        return 0;
}
