/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A manager's side of one jail, for tests.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define HARNESS_UID       0x6ECF1000U /* a block beside the manager's own */
#define HARNESS_TEXT_MAX  1024
#define HARNESS_BINDS_MAX 8
#define HARNESS_ARGS_MAX  8

typedef struct HarnessJail {
        const char *binds[HARNESS_BINDS_MAX]; /* NULL-terminated; without any: the program of harness_init() */
        const char *argv[HARNESS_ARGS_MAX];   /* of what is executed inside; argv[0] NULL: that program */
        const char *uid;                      /* NULL: HARNESS_UID */
        int keep_fd;                          /* 0: none */
        /* from here on filled in by harness_start() */
        pid_t pid;
        int status_fd;
        int go_fd;
} HarnessJail;

/* Copies the program that stands in QEMU's place to a directory of its own, which harness_done() removes. */
void harness_init(const char *jail, const char *inside);
void harness_done(void);

const char *harness_inside(void);    /* its path */
const char *harness_directory(void); /* writable by root alone */

void harness_start(HarnessJail *j);
void harness_go(HarnessJail *j);

/* The next message within 10 s; empty at the end of file. */
const char *harness_receive(HarnessJail *j);
/* The next message begins with this; returns it. */
const char *harness_expect(HarnessJail *j, const char *beginning);

/* After the last message: the end of file and of the process, with this exit status, or (negative) by this signal. */
void harness_finish(HarnessJail *j, int status);

/* Both together: starts, says go, expects started and this message, then the end. */
void harness_run(HarnessJail *j, const char *last_message);

/* Is there any process of the test's uids? */
bool harness_uid_lives(void);
