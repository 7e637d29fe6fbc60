/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The two files of a frozen machine: its memory, and the state of its devices and processors. */

#include <stddef.h>
#include <stdint.h>

#include "manager/digest.h"

/* Sealed memfds (memfd_create(2), F_SEAL_*): nobody can write them, cut them or let them grow. */
typedef struct TemplateFiles {
        int ram_fd, state_fd;
} TemplateFiles;

#define TEMPLATE_NO_FILES ((TemplateFiles){-EBADF, -EBADF})

void template_files_done(TemplateFiles *files);

/* An unsealed memfd of that size; lsof shows it as ephemeral-NAME. */
int template_file_new(const char *name, uint64_t size, int *ret_fd);

/* -EBUSY: somebody still maps it for writing. */
int template_file_seal(int fd);

/* Another fd for the same file, read-only and with an offset of its own. */
int template_file_reopen(int fd, int *ret_fd);

/* Copies what is not zero to `to` (-EBADF: nowhere), which is empty and gets the same size. The digest is of the pages that are not
 * zero, each behind its number; ret_used: their bytes. Blocks. */
int template_file_copy(int from, int to, char ret_digest[static DIGEST_SIZE], uint64_t *ret_used);
