/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Frames on their way to the host, over a file descriptor that does not block. One frame of output at a time and room for
 * the small ones; whoever has more to say waits until it is empty, which is how back-pressure reaches the workload. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/message.h"

#define OUTBOX_CHUNK_SIZE_MAX 32768U /* with its header: what virtio_console takes in one write */
#define OUTBOX_CAPACITY       (OUTBOX_CHUNK_SIZE_MAX + 16384U)

typedef struct Outbox {
        int fd; /* not owned */
        size_t start;
        size_t end;
        uint8_t buffer[OUTBOX_CAPACITY];
} Outbox;

void outbox_init(Outbox *outbox, int fd);

static inline bool outbox_is_empty(const Outbox *outbox) {
        return outbox->start == outbox->end;
}

/* A whole frame, as an encoder wrote it. 0, or -ENOBUFS while there is no room. */
int outbox_put(Outbox *outbox, const uint8_t *frame, size_t size);
int outbox_put_text(Outbox *outbox, FrameType type, const char *text);

/* Reads once from fd into a frame of that type. Only for an empty outbox. As read(2): >0, 0 at the end, or -errno. */
ssize_t outbox_put_from(Outbox *outbox, FrameType type, int fd);

/* 1: all is written; 0: the rest would block; -errno. */
int outbox_flush(Outbox *outbox);

/* The same, waiting for the host at most timeout_ms. 0, -ETIMEDOUT, or -errno. */
int outbox_flush_wait(Outbox *outbox, int timeout_ms);
