/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "init/inbox.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

void inbox_init(Inbox *inbox, int fd) {
        inbox->fd = fd;
        inbox->eof = false;
        inbox->start = inbox->size = 0;
        inbox->credit = 0;
}

void inbox_done(Inbox *inbox) {
        inbox->fd = fd_close(inbox->fd);
}

int inbox_put(Inbox *inbox, const uint8_t *data, size_t size) {
        size_t at, first;

        if (inbox->eof || size > STDIN_WINDOW_BYTES - inbox->size - inbox->credit)
                return -EPROTO;
        if (inbox->fd < 0) { /* closed by the workload */
                inbox->credit += (uint32_t) size;
                return 0;
        }

        at = (inbox->start + inbox->size) % STDIN_WINDOW_BYTES;
        first = STDIN_WINDOW_BYTES - at < size ? STDIN_WINDOW_BYTES - at : size;
        memcpy(inbox->ring + at, data, first);
        memcpy(inbox->ring, data + first, size - first);
        inbox->size += size;
        return 0;
}

int inbox_put_eof(Inbox *inbox) {
        if (inbox->eof)
                return -EPROTO;
        inbox->eof = true;
        return 0;
}

static void inbox_take(Inbox *inbox, size_t size) {
        inbox->start = (inbox->start + size) % STDIN_WINDOW_BYTES;
        inbox->size -= size;
        inbox->credit += (uint32_t) size;
}

void inbox_flush(Inbox *inbox) {
        while (inbox_wants_to_write(inbox)) {
                size_t size = STDIN_WINDOW_BYTES - inbox->start;
                ssize_t n;

                if (size > inbox->size)
                        size = inbox->size;
                n = write(inbox->fd, inbox->ring + inbox->start, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n < 0) { /* EPIPE: nobody will read it */
                        inbox->fd = fd_close(inbox->fd);
                        inbox_take(inbox, inbox->size);
                        return;
                }
                inbox_take(inbox, (size_t) n);
        }
        if (inbox->eof && inbox->size == 0)
                inbox->fd = fd_close(inbox->fd);
}

uint32_t inbox_take_credit(Inbox *inbox) {
        uint32_t credit = inbox->credit;

        inbox->credit = 0;
        return credit;
}
