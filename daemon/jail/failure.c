/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The text of a failure. It is cut, never refused, when a path in it is too long.
 */
#include "jail/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failure_set(Failure *f, int error, const char *format, ...) {
        size_t used;
        va_list ap;

        va_start(ap, format);
        vsnprintf(f->text, sizeof(f->text), format, ap);
        va_end(ap);
        used = strlen(f->text);
        snprintf(f->text + used, sizeof(f->text) - used, ": %s", strerror(-error));
        return error;
}
