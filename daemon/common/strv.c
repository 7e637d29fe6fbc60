/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Arrays of strings: command lines and environments. Nothing here knows what the strings mean.
 */
#include "common/strv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t strv_length(char *const *v) {
        size_t n = 0;

        while (v && v[n])
                n++;
        return n;
}

/* Takes s over, also when it fails. */
static int strv_consume(char ***v, char *s) {
        size_t n = strv_length(*v);
        char **grown;

        if (!s)
                return -ENOMEM;
        grown = reallocarray(*v, n + 2, sizeof(char *));
        if (!grown) {
                free(s);
                return -ENOMEM;
        }
        grown[n] = s;
        grown[n + 1] = NULL;
        *v = grown;
        return 0;
}

int strv_add(char ***v, const char *s) {
        return strv_consume(v, strdup(s));
}

int strv_addf(char ***v, const char *format, ...) {
        char *s = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&s, format, ap);
        va_end(ap);
        return strv_consume(v, r < 0 ? NULL : s);
}

int strv_add_all(char ***v, char *const *more) {
        for (size_t i = 0; more && more[i]; i++) {
                int r = strv_add(v, more[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

char **strv_free(char **v) {
        for (size_t i = 0; v && v[i]; i++)
                free(v[i]);
        free(v);
        return NULL;
}
