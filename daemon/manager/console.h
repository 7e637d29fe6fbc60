/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What kernel and init of a guest print, kept apart from the output of its command: the last CONSOLE_KEPT bytes, and any number of
 * readers (up to CONSOLE_READERS_MAX) that get all from then on. A reader that is too slow loses bytes and is told how many. */

#include <stddef.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"

enum {
        CONSOLE_KEPT = 64 * 1024,
        CONSOLE_READERS_MAX = 16,
};

typedef struct Console Console;

int console_new(Console **ret);
Console *console_free(Console *c); /* readers see the end of file */

void console_write(Console *c, const void *data, size_t size);

/* A new reader: what is kept, then what comes. The fd is the reader's end, for the caller. -EUSERS: too many. */
int console_attach(Console *c, int *ret_fd);

/* No more will come: readers get the end of file, later ones what is kept. */
void console_finish(Console *c);

/* The last bytes as text, at most size-1 and a NUL; for an error message. */
void console_tail(const Console *c, char *ret, size_t size);

/* A guest that never became ready often says why in its last line: "REASON; the console's last line is …". The caller frees; NULL
 * when out of memory. */
char *console_explain(const Console *c, const char *reason);

DEFINE_CLEANUP(Console *, console_free);
