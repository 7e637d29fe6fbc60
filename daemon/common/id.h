/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

/* "run-" and a ULID (https://github.com/ulid/spec) in lower-case Crockford base32: ids sort by the time they were made. */
#define RUN_ID_PREFIX "run-"
#define RUN_ID_LENGTH 30U

/* A new id, always greater than the one before it in this process, even within a millisecond or when the clock was set
 * back. 0, or -errno when the kernel gives no random bytes. */
int run_id_new(char ret[static RUN_ID_LENGTH + 1]);

/* NULL is no id. */
bool run_id_is_valid(const char *id);
