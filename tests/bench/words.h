/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

enum { WORDS_MAX = 64 };

/* The next line of standard input, split at blanks; quotes are not known. False: there is none. ret ends with NULL, and is good until the
 * next call. */
bool words_read(char *ret[WORDS_MAX + 1]);
