/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* NULL-terminated arrays of strings, as execve(2) takes them. NULL is the empty array. */

#include <stddef.h>

#include "common/cleanup.h"

size_t strv_length(char *const *v);

/* Append; on -ENOMEM the array is as before. */
int strv_add(char ***v, const char *s);
int strv_addf(char ***v, const char *format, ...) __attribute__((format(printf, 2, 3)));
int strv_add_all(char ***v, char *const *more);

char **strv_free(char **v);

static inline void strv_freep(char ***v) {
        *v = strv_free(*v);
}
