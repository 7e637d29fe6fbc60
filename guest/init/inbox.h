/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Standard input on its way to the workload: the window of STDIN_WINDOW_BYTES that the host may fill, and the pipe it is
 * poured into. A workload that closed its end has its input thrown away, and the window stays open. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/message.h"

typedef struct Inbox {
        int fd; /* owned, does not block; -EBADF: nothing to pour into */
        bool eof;
        size_t start;
        size_t size;
        uint32_t credit; /* bytes poured out and not yet told to the host */
        uint8_t ring[STDIN_WINDOW_BYTES];
} Inbox;

void inbox_init(Inbox *inbox, int fd);
void inbox_done(Inbox *inbox);

/* 0, or -EPROTO: more than the window holds, or after the end. */
int inbox_put(Inbox *inbox, const uint8_t *data, size_t size);
int inbox_put_eof(Inbox *inbox);

static inline bool inbox_wants_to_write(const Inbox *inbox) {
        return inbox->fd >= 0 && inbox->size > 0;
}

/* Writes what the pipe takes, and closes it behind the last byte. */
void inbox_flush(Inbox *inbox);

/* Bytes to give back to the host; 0 from then on until more is poured out. */
uint32_t inbox_take_credit(Inbox *inbox);
