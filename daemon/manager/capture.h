/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

/* Runs a program with an empty environment and takes what it prints on standard output; standard error goes where ours does. Blocks
 * until it ends, for at most 10 s. 0, and the caller frees *ret_text; -EPROTO when it did not exit with 0, -ETIMEDOUT, -EFBIG for
 * more than max bytes, or -errno. */
int capture(char *const argv[], size_t max, char **ret_text);
