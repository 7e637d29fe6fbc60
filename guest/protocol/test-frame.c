/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/frame.h"

static void pipe_nonblocking(int fds[2]) {
        assert(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        assert(fcntl(fds[1], F_SETPIPE_SZ, 1024 * 1024) > 0);
}

/* Appends one frame whose bytes follow from its number. */
static size_t append_frame(uint8_t *stream, size_t at, unsigned number, size_t size) {
        frame_encode_header(stream + at, (uint8_t) number, size);
        for (size_t i = 0; i < size; i++)
                stream[at + FRAME_HEADER_SIZE + i] = (uint8_t) (number * 31 + i);
        return at + FRAME_HEADER_SIZE + size;
}

static void assert_frame(const Frame *frame, unsigned number, size_t size) {
        assert(frame->type == (uint8_t) number);
        assert(frame->size == size);
        for (size_t i = 0; i < size; i++)
                assert(frame->data[i] == (uint8_t) (number * 31 + i));
}

static const size_t sizes[] = {
        0, 1, 7, 8, 4095, 16375, 16376, 16377, 0, 70000, FRAME_PAYLOAD_MAX, 3, FRAME_PAYLOAD_MAX};

#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Writes the stream in pieces of `step` bytes and takes every frame as soon as it is whole. */
static void check_pieces(const uint8_t *stream, size_t total, size_t step) {
        unsigned n_seen = 0;
        FrameReader reader;
        Frame frame;
        int fds[2];

        pipe_nonblocking(fds);
        frame_reader_init(&reader);
        for (size_t at = 0; at < total; at += step) {
                size_t n = total - at < step ? total - at : step;
                ssize_t got;

                assert(write(fds[1], stream + at, n) == (ssize_t) n);
                while ((got = frame_reader_fill(&reader, fds[0])) > 0)
                        while (frame_reader_next(&reader, &frame) == 1) {
                                assert_frame(&frame, n_seen, sizes[n_seen]);
                                n_seen++;
                        }
                assert(got == -EAGAIN);
        }
        assert(n_seen == N_SIZES);
        assert(frame_reader_pending(&reader) == 0);
        assert(frame_reader_next(&reader, &frame) == 0);
        assert(reader.capacity <= FRAME_HEADER_SIZE + FRAME_PAYLOAD_MAX);

        close(fds[1]);
        assert(frame_reader_fill(&reader, fds[0]) == 0);
        close(fds[0]);
        frame_reader_done(&reader);
}

static void frames_come_whole_however_the_bytes_are_cut(void) {
        static const size_t steps[] = {1, 2, 3, 7, 8, 9, 1000, 4096, 16383, 16384, 16385, 65536, 131080, 500000};
        uint8_t *stream = malloc(1024 * 1024);
        size_t total = 0;

        assert(stream);
        for (unsigned i = 0; i < N_SIZES; i++)
                total = append_frame(stream, total, i, sizes[i]);
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                check_pieces(stream, total, steps[i]);
        free(stream);
}

static void a_full_reader_wants_its_frames_taken(void) {
        uint8_t stream[40000];
        FrameReader reader;
        size_t total = 0;
        unsigned n = 0;
        Frame frame;
        int fds[2];

        while (total + 1008 <= sizeof(stream))
                total = append_frame(stream, total, 1, 1000);
        pipe_nonblocking(fds);
        assert(write(fds[1], stream, total) == (ssize_t) total);

        frame_reader_init(&reader);
        assert(frame_reader_fill(&reader, fds[0]) > 0);
        assert(frame_reader_fill(&reader, fds[0]) == -ENOBUFS);
        do
                while (frame_reader_next(&reader, &frame) == 1) {
                        assert_frame(&frame, 1, 1000);
                        n++;
                }
        while (frame_reader_fill(&reader, fds[0]) > 0);
        assert(n == total / 1008);

        frame_reader_done(&reader);
        close(fds[0]);
        close(fds[1]);
}

static void check_refused(const uint8_t header[FRAME_HEADER_SIZE], int error) {
        FrameReader reader;
        Frame frame;
        int fds[2];

        pipe_nonblocking(fds);
        assert(write(fds[1], header, FRAME_HEADER_SIZE) == FRAME_HEADER_SIZE);
        frame_reader_init(&reader);
        assert(frame_reader_fill(&reader, fds[0]) == FRAME_HEADER_SIZE);
        size_t capacity = reader.capacity;
        assert(frame_reader_next(&reader, &frame) == error);

        /* For good, and nothing was allocated for it. */
        assert(write(fds[1], (uint8_t[8]){0, 0, 0, 0, 1, 1, 0, 0}, 8) == 8);
        assert(frame_reader_fill(&reader, fds[0]) == error);
        assert(frame_reader_next(&reader, &frame) == error);
        assert(reader.capacity == capacity);
        frame_reader_done(&reader);
        close(fds[0]);
        close(fds[1]);
}

static void bad_headers_are_refused_before_their_payload(void) {
        check_refused((uint8_t[8]){1, 0, 2, 0, 1, 1, 0, 0}, -EMSGSIZE); /* 131073 */
        check_refused((uint8_t[8]){255, 255, 255, 255, 1, 1, 0, 0}, -EMSGSIZE);
        check_refused((uint8_t[8]){0, 0, 0, 0, 1, 0, 0, 0}, -EPROTONOSUPPORT);
        check_refused((uint8_t[8]){0, 0, 0, 0, 1, 2, 0, 0}, -EPROTONOSUPPORT);
        check_refused((uint8_t[8]){0, 0, 0, 0, 1, 1, 1, 0}, -EBADMSG);
        check_refused((uint8_t[8]){0, 0, 0, 0, 1, 1, 0, 1}, -EBADMSG);
}

static void a_frame_cut_short_is_seen_at_the_end(void) {
        FrameReader reader;
        Frame frame;
        int fds[2];

        pipe_nonblocking(fds);
        assert(write(fds[1], (uint8_t[10]){3, 0, 0, 0, 1, 1, 0, 0, 'a', 'b'}, 10) == 10);
        close(fds[1]);
        frame_reader_init(&reader);
        assert(frame_reader_fill(&reader, fds[0]) == 10);
        assert(frame_reader_next(&reader, &frame) == 0);
        assert(frame_reader_fill(&reader, fds[0]) == 0);
        assert(frame_reader_pending(&reader) == 10);
        frame_reader_done(&reader);
        close(fds[0]);
}

int main(void) {
        frames_come_whole_however_the_bytes_are_cut();
        a_full_reader_wants_its_frames_taken();
        bad_headers_are_refused_before_their_payload();
        a_frame_cut_short_is_seen_at_the_end();
        return 0;
}
