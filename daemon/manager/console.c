/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One ring, many readers. Nothing here waits: a reader's socket takes the bytes or they are counted as lost for it.
 */
#include "manager/console.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/neutral.h"

typedef struct ConsoleReader {
        int fd; /* -EBADF: free */
        uint64_t lost;
} ConsoleReader;

struct Console {
        char *ring; /* grows up to CONSOLE_KEPT, and only then wraps: most consoles hold a line or two */
        size_t room;
        uint64_t
                written; /* all bytes ever; the last CONSOLE_KEPT of them are in the ring, at written % CONSOLE_KEPT and before */
        ConsoleReader readers[CONSOLE_READERS_MAX];
        bool finished;
};

int console_new(Console **ret) {
        Console *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        for (size_t i = 0; i < CONSOLE_READERS_MAX; i++)
                c->readers[i].fd = -EBADF;
        *ret = c;
        return 0;
}

Console *console_free(Console *c) {
        if (!c)
                return NULL;
        console_finish(c);
        free(c->ring);
        free(c);
        return NULL;
}

/* Hands over what the socket takes; the rest is lost. False: the reader has hung up. */
static bool reader_send(ConsoleReader *reader, const char *data, size_t size) {
        ssize_t n;

        if (reader->lost > 0) {
                char note[64];
                int length = snprintf(note, sizeof(note), "\n[%llu bytes lost]\n", (unsigned long long) reader->lost);

                n = send(reader->fd, note, (size_t) length, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n == length)
                        reader->lost = 0;
                else if (n < 0 && errno != EAGAIN)
                        return false;
                else {
                        reader->lost += size;
                        return true;
                }
        }
        n = send(reader->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
                return false;
        reader->lost += size - (n < 0 ? 0 : (size_t) n);
        return true;
}

/* Room for so many bytes more, as far as CONSOLE_KEPT. Without memory the ring stays as large as it is; false: there is none. */
static bool ring_grow(Console *c, size_t size) {
        size_t wanted = c->written + size < CONSOLE_KEPT ? (size_t) c->written + size : CONSOLE_KEPT, room = 1024;
        char *grown;

        if (c->room >= wanted)
                return true;
        while (room < wanted)
                room *= 2;
        grown = realloc(c->ring, room);
        if (!grown)
                return false;
        c->ring = grown;
        c->room = room;
        return true;
}

static void ring_write(Console *c, const char *data, size_t size) {
        if (!ring_grow(c, size))
                return;
        if (size > CONSOLE_KEPT) {
                c->written += size - CONSOLE_KEPT;
                data += size - CONSOLE_KEPT;
                size = CONSOLE_KEPT;
        }
        while (size > 0) {
                size_t at = (size_t) (c->written % CONSOLE_KEPT), n = CONSOLE_KEPT - at;

                if (n > size)
                        n = size;
                memcpy(c->ring + at, data, n);
                c->written += n;
                data += n;
                size -= n;
        }
}

void console_write(Console *c, const void *data, size_t size) {
        ring_write(c, data, size);
        for (size_t i = 0; i < CONSOLE_READERS_MAX; i++)
                if (c->readers[i].fd >= 0 && !reader_send(&c->readers[i], data, size))
                        c->readers[i] = (ConsoleReader){.fd = fd_close(c->readers[i].fd)};
}

/* Copies the last bytes in order, at most size of them. */
static size_t ring_read(const Console *c, char *ret, size_t size) {
        size_t kept = c->written < CONSOLE_KEPT ? (size_t) c->written : CONSOLE_KEPT;

        if (size > kept)
                size = kept;
        for (size_t i = 0; i < size; i++)
                ret[i] = c->ring[(c->written - size + i) % CONSOLE_KEPT];
        return size;
}

int console_attach(Console *c, int *ret_fd) {
        _cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
        _cleanup_(freep) char *kept = malloc(CONSOLE_KEPT);
        ConsoleReader *reader = NULL;
        int pair[2];

        if (!kept)
                return -ENOMEM;
        for (size_t i = 0; i < CONSOLE_READERS_MAX && !reader; i++)
                if (c->readers[i].fd < 0)
                        reader = &c->readers[i];
        if (!reader)
                return -EUSERS;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        if (shutdown(ours, SHUT_RD) < 0)
                return -errno;
        *reader = (ConsoleReader){.fd = TAKE_FD(ours)};
        if (!reader_send(reader, kept, ring_read(c, kept, CONSOLE_KEPT)) || c->finished)
                reader->fd = fd_close(reader->fd);
        *ret_fd = TAKE_FD(theirs);
        return 0;
}

void console_finish(Console *c) {
        c->finished = true;
        for (size_t i = 0; i < CONSOLE_READERS_MAX; i++)
                c->readers[i].fd = fd_close(c->readers[i].fd);
}

void console_tail(const Console *c, char *ret, size_t size) {
        ret[ring_read(c, ret, size - 1)] = 0;
}

char *console_explain(const Console *c, const char *reason) {
        char tail[512], *line, *text;
        _cleanup_(freep) char *safe = NULL;
        size_t size;

        console_tail(c, tail, sizeof(tail));
        size = strlen(tail);
        while (size > 0 && (tail[size - 1] == '\n' || tail[size - 1] == '\r'))
                tail[--size] = 0;
        line = strrchr(tail, '\n');
        line = line ? line + 1 : tail;
        safe = neutralise_line(line, strlen(line));
        if (!safe || !safe[0])
                return strdup(reason);
        return asprintf(&text, "%s; the console's last line is \"%s\"", reason, safe) < 0 ? NULL : text;
}
