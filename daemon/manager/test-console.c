/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "manager/console.h"

static char big[CONSOLE_KEPT * 2];

static size_t read_all(int fd, char *ret, size_t size) {
        size_t total = 0;
        ssize_t n;

        while ((n = recv(fd, ret + total, size - total, MSG_DONTWAIT)) > 0)
                total += (size_t) n;
        return total;
}

static void a_reader_gets_what_was_and_what_comes(void) {
        _cleanup_(console_freep) Console *c = NULL;
        _cleanup_(fd_closep) int fd = -EBADF;
        char text[64];

        assert(console_new(&c) == 0);
        console_write(c, "one\n", 4);
        assert(console_attach(c, &fd) == 0);
        console_write(c, "two\n", 4);
        assert(read_all(fd, text, sizeof(text)) == 8 && memcmp(text, "one\ntwo\n", 8) == 0);
        console_finish(c);
        assert(recv(fd, text, sizeof(text), 0) == 0);
}

static void the_ring_keeps_the_last_bytes_over_a_wrap(void) {
        _cleanup_(console_freep) Console *c = NULL;
        char tail[9];

        assert(console_new(&c) == 0);
        for (unsigned i = 0; i < 20001; i++)
                console_write(c, "abcdefg", 7);
        console_write(c, "the end!", 8);
        console_tail(c, tail, sizeof(tail));
        assert(strcmp(tail, "the end!") == 0);
        memset(big, 'x', sizeof(big));
        big[sizeof(big) - 1] = 'y';
        console_write(c, big, sizeof(big));
        console_tail(c, tail, sizeof(tail));
        assert(strcmp(tail, "xxxxxxxy") == 0);
}

static void a_reader_that_does_not_read_loses_bytes_and_learns_how_many(void) {
        _cleanup_(console_freep) Console *c = NULL;
        _cleanup_(fd_closep) int fd = -EBADF;
        static char text[8 * 1024 * 1024];
        size_t n, written = 0, said;
        char *note;

        assert(console_new(&c) == 0);
        assert(console_attach(c, &fd) == 0);
        memset(big, 'x', sizeof(big));
        for (unsigned i = 0; i < 32; i++, written += sizeof(big))
                console_write(c, big, sizeof(big));
        n = read_all(fd, text, sizeof(text));
        assert(n < written);
        console_write(c, "more", 4);
        said = read_all(fd, text, sizeof(text) - 1);
        text[said] = 0;
        note = strstr(text, "[");
        assert(note && strtoull(note + 1, NULL, 10) == written - n && strstr(note, " bytes lost]\nmore"));
}

static void readers_are_bounded_and_a_hang_up_makes_room(void) {
        _cleanup_(console_freep) Console *c = NULL;
        int fds[CONSOLE_READERS_MAX], more;

        assert(console_new(&c) == 0);
        for (size_t i = 0; i < CONSOLE_READERS_MAX; i++)
                assert(console_attach(c, &fds[i]) == 0);
        assert(console_attach(c, &more) == -EUSERS);
        fd_close(fds[3]);
        console_write(c, "x", 1);
        assert(console_attach(c, &fds[3]) == 0);
        for (size_t i = 0; i < CONSOLE_READERS_MAX; i++)
                fd_close(fds[i]);
}

int main(void) {
        a_reader_gets_what_was_and_what_comes();
        the_ring_keeps_the_last_bytes_over_a_wrap();
        a_reader_that_does_not_read_loses_bytes_and_learns_how_many();
        readers_are_bounded_and_a_hang_up_makes_room();
        return 0;
}
