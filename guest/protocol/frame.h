/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one codec of the suite (docs/design.md, section 17.1). Header, 8 bytes, little endian:
 * u32 size of the payload, u8 type, u8 version, u16 zero. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FRAME_HEADER_SIZE 8U
#define FRAME_VERSION     1U
#define FRAME_PAYLOAD_MAX 131072U

typedef struct Frame {
        uint8_t type;
        const uint8_t *data; /* size bytes; in the reader, until its next fill */
        size_t size;
} Frame;

/* Embedded; its buffer grows to what the frames at hand need, never past one largest frame. */
typedef struct FrameReader {
        uint8_t *buffer;
        size_t capacity;
        size_t start; /* first byte not yet handed out */
        size_t end;   /* one past the last byte read */
        int error;    /* a stream that was refused once stays refused */
} FrameReader;

void frame_reader_init(FrameReader *reader);
void frame_reader_done(FrameReader *reader);

/* Reads once from fd. >0: bytes read; 0: end of file; -EAGAIN; -ENOBUFS: take what is there with frame_reader_next() first;
 * what frame_reader_next() refused with; or -errno of read(2) or of the allocation. Frames handed out before are gone. */
ssize_t frame_reader_fill(FrameReader *reader, int fd);

/* 1: *ret is the next frame; 0: more bytes are needed; refused at the header, for good: -EBADMSG (the zero is none),
 * -EMSGSIZE (too large), -EPROTONOSUPPORT (version). */
int frame_reader_next(FrameReader *reader, Frame *ret);

/* Bytes read and not handed out: after the end of file, anything but 0 is a frame cut short. */
size_t frame_reader_pending(const FrameReader *reader);

/* The caller keeps size within FRAME_PAYLOAD_MAX. */
void frame_encode_header(uint8_t ret[FRAME_HEADER_SIZE], uint8_t type, size_t size);
