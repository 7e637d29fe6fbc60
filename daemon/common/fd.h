/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/cleanup.h"

/* Writes all of it to a blocking fd. 0, or -errno. */
int fd_write_all(int fd, const void *data, size_t size);

/* Reads a whole regular file of at most max bytes; adds a NUL behind it that is not counted. The caller frees *ret_data.
 * 0, -EFBIG when it is larger, or -errno. ret_size may be NULL. */
int fd_read_file(int fd, size_t max, char **ret_data, size_t *ret_size);
int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size);

int fd_set_nonblocking(int fd, bool on);
