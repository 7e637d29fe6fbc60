/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Status messages. write(2), not send(2): the outer half's system call filter then needs one call less.
 */
#include "jail/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int status_send(int fd, const char *format, ...) {
        char text[STATUS_TEXT_MAX];
        ssize_t sent;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (n < 0)
                return -EINVAL;
        if (n >= (int) sizeof(text))
                n = sizeof(text) - 1;
        do
                sent = write(fd, text, (size_t) n);
        while (sent < 0 && errno == EINTR);
        return sent < 0 ? -errno : 0;
}
