/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cuts a byte stream into frames. Read by the manager (bytes of a hostile guest), by the guest's init and by clients of
 * OpenOutput. A header is judged before its payload is waited for or allocated; what comes out is bounded by
 * FRAME_PAYLOAD_MAX, but its content is not judged here: that is message.c's. */

#include "protocol/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/wire.h"

#define CAPACITY_MIN (16U * 1024U)
#define CAPACITY_MAX (FRAME_HEADER_SIZE + FRAME_PAYLOAD_MAX)

void frame_reader_init(FrameReader *reader) {
        *reader = (FrameReader){0};
}

void frame_reader_done(FrameReader *reader) {
        free(reader->buffer);
        *reader = (FrameReader){0};
}

size_t frame_reader_pending(const FrameReader *reader) {
        return reader->end - reader->start;
}

void frame_encode_header(uint8_t ret[FRAME_HEADER_SIZE], uint8_t type, size_t size) {
        assert(size <= FRAME_PAYLOAD_MAX);

        wire_put_u32(ret, (uint32_t) size);
        ret[4] = type;
        ret[5] = FRAME_VERSION;
        ret[6] = 0;
        ret[7] = 0;
}

/* Of the frame at the front: 1 and its whole size, 0 while its header is incomplete, or the refusal. */
static int front_size(const FrameReader *reader, size_t *ret) {
        const uint8_t *header;
        uint32_t size;

        if (reader->error < 0)
                return reader->error;
        if (frame_reader_pending(reader) < FRAME_HEADER_SIZE)
                return 0;

        header = reader->buffer + reader->start;
        if (header[5] != FRAME_VERSION)
                return -EPROTONOSUPPORT;
        if (header[6] != 0 || header[7] != 0)
                return -EBADMSG;
        size = wire_get_u32(header);
        if (size > FRAME_PAYLOAD_MAX)
                return -EMSGSIZE;

        *ret = FRAME_HEADER_SIZE + (size_t) size;
        return 1;
}

/* Makes room behind the bytes at hand: all of the frame at the front, and never nothing. */
static int make_room(FrameReader *reader) {
        size_t pending = frame_reader_pending(reader), need = CAPACITY_MIN, front;
        uint8_t *p;
        int r;

        r = front_size(reader, &front);
        if (r < 0)
                return r;
        if (r > 0 && pending >= front && pending >= reader->capacity)
                return -ENOBUFS;
        if (r > 0 && front > need)
                need = front;

        if (reader->start > 0) {
                memmove(reader->buffer, reader->buffer + reader->start, pending);
                reader->start = 0;
                reader->end = pending;
        }
        if (reader->capacity >= need)
                return 0;

        assert(need <= CAPACITY_MAX);
        p = realloc(reader->buffer, need);
        if (!p)
                return -ENOMEM;
        reader->buffer = p;
        reader->capacity = need;
        return 0;
}

ssize_t frame_reader_fill(FrameReader *reader, int fd) {
        ssize_t n;
        int r;

        r = make_room(reader);
        if (r < 0)
                return r;

        do
                n = read(fd, reader->buffer + reader->end, reader->capacity - reader->end);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        reader->end += (size_t) n;
        return n;
}

int frame_reader_next(FrameReader *reader, Frame *ret) {
        size_t size;
        int r;

        r = front_size(reader, &size);
        if (r < 0) {
                reader->error = r;
                return r;
        }
        if (r == 0 || frame_reader_pending(reader) < size)
                return 0;

        *ret = (Frame){
                .type = reader->buffer[reader->start + 4],
                .data = reader->buffer + reader->start + FRAME_HEADER_SIZE,
                .size = size - FRAME_HEADER_SIZE,
        };
        reader->start += size;
        return 1;
}
