/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The runs of the fake manager (fake-manager.c): what each writes is scripted by the first word of its command. */

#include <stdbool.h>
#include <stdint.h>

#include "common/id.h"

typedef struct FakeRun {
        char id[RUN_ID_LENGTH + 1];
        char path[128];
        char *request; /* as it was sent */
        char **argv;   /* ends with NULL; argv[0] is the script */
        bool ended;
        bool cancelled;
        int input_fd;  /* what is written here is its standard input; closing it is the end of file */
        int cancel_fd; /* closing it cancels */
} FakeRun;

void fake_run_init(FakeRun *run); /* gives it an id and a path */

/* Forks a process that writes the frames behind after_seq to the other end of *ret_fd. 0 or -errno. */
int fake_run_open(FakeRun *run, uint64_t after_seq, int *ret_fd);

/* The document of GetResult, to be freed. */
char *fake_run_result(const FakeRun *run);
const char *fake_run_outcome(const FakeRun *run);
