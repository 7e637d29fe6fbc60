/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "init/outbox.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void outbox_init(Outbox *outbox, int fd) {
        outbox->fd = fd;
        outbox->start = outbox->end = 0;
}

/* A place for size bytes behind what waits, or NULL. */
static uint8_t *outbox_reserve(Outbox *outbox, size_t size) {
        size_t waiting = outbox->end - outbox->start;

        if (size > OUTBOX_CAPACITY - waiting)
                return NULL;
        if (size > OUTBOX_CAPACITY - outbox->end) {
                memmove(outbox->buffer, outbox->buffer + outbox->start, waiting);
                outbox->start = 0;
                outbox->end = waiting;
        }
        return outbox->buffer + outbox->end;
}

int outbox_put(Outbox *outbox, const uint8_t *frame, size_t size) {
        uint8_t *p = outbox_reserve(outbox, size);

        if (!p)
                return -ENOBUFS;
        memcpy(p, frame, size);
        outbox->end += size;
        return 0;
}

int outbox_put_text(Outbox *outbox, FrameType type, const char *text) {
        size_t size = strnlen(text, TEXT_SIZE_MAX);
        uint8_t *p;

        if (size == 0)
                return 0;
        p = outbox_reserve(outbox, FRAME_HEADER_SIZE + size);
        if (!p)
                return -ENOBUFS;

        frame_encode_header(p, (uint8_t) type, size);
        memcpy(p + FRAME_HEADER_SIZE, text, size);
        outbox->end += FRAME_HEADER_SIZE + size;
        return 0;
}

ssize_t outbox_put_from(Outbox *outbox, FrameType type, int fd) {
        ssize_t n;

        assert(outbox_is_empty(outbox));
        outbox->start = outbox->end = 0;

        do
                n = read(fd, outbox->buffer + FRAME_HEADER_SIZE, OUTBOX_CHUNK_SIZE_MAX - FRAME_HEADER_SIZE);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if (n == 0)
                return 0;

        frame_encode_header(outbox->buffer, (uint8_t) type, (size_t) n);
        outbox->end = FRAME_HEADER_SIZE + (size_t) n;
        return n;
}

int outbox_flush(Outbox *outbox) {
        while (!outbox_is_empty(outbox)) {
                size_t size = outbox->end - outbox->start;
                ssize_t n;

                if (size > OUTBOX_CHUNK_SIZE_MAX)
                        size = OUTBOX_CHUNK_SIZE_MAX;
                n = write(outbox->fd, outbox->buffer + outbox->start, size);
                if (n < 0 && errno == EINTR)
                        continue;
                /* virtio_console answers 0 when its queue has no room left after all. */
                if (n == 0 || (n < 0 && errno == EAGAIN))
                        return 0;
                if (n < 0)
                        return -errno;
                outbox->start += (size_t) n;
        }
        return 1;
}

int outbox_flush_wait(Outbox *outbox, int timeout_ms) {
        struct pollfd p = {.fd = outbox->fd, .events = POLLOUT};

        for (;;) {
                int r = outbox_flush(outbox);

                if (r != 0)
                        return r < 0 ? r : 0;
                r = poll(&p, 1, timeout_ms);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r == 0)
                        return -ETIMEDOUT;
        }
}
