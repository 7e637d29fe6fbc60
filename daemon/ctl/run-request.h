/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From the options of `ephemeralctl run` to the JSON of a request. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_REQUEST_FILE_MAX                                                                                          \
        (16U << 20) /* what is read at all; the service's own limits are lower, and it says them */

typedef struct RunOptions {
        char *const *command; /* the operands */
        const char *request;  /* file, "-" for stdin */
        const char *script;   /* file, "-" for stdin */
        const char *interpreter;
        const char *image;
        char **environment; /* "K=V", or "K": as it is here */
        char **labels;      /* "K=V" */
        int64_t timeout_seconds, memory_mib, vcpus, disk_mib;
        bool has_timeout, has_memory, has_vcpus, has_disk;
        bool root;
        bool stdin_open;
        bool quiet, verbose, raw;
} RunOptions;

void run_options_done(RunOptions *options);

/* *ret is to be freed. 0; -EINVAL, -EIO, -ENOMEM with a sentence that is to be freed. */
int run_request_make(const RunOptions *options, char **ret, char **reterr_text);

/* Reads a whole file, or stdin for "-". As above. */
int read_text(const char *path, char **ret, size_t *ret_size, char **reterr_text);
