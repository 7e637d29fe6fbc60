/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of ephemeral-jail (docs/design.md, section 17.2), checked. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "jail/failure.h"

#define OPTIONS_KEEP_MAX  64
#define OPTIONS_BINDS_MAX 256
#define OPTIONS_UID_MIN   65536 /* below are the machine's own users */

typedef struct Options {
        uid_t uid;
        gid_t gid;
        int go_fd;
        int status_fd;
        int keep_fds[OPTIONS_KEEP_MAX]; /* ascending once parsed */
        bool held[OPTIONS_KEEP_MAX];    /* that one was --hold-fd: for the outer half alone, QEMU does not get it */
        size_t n_keep_fds;
        const char *binds[OPTIONS_BINDS_MAX];
        size_t n_binds;
        bool kvm;
        char **argv; /* of QEMU; argv[0] is one of the binds */
        char *line;  /* where our own command line begins in memory; QEMU's arguments are its end */
} Options;

/* Strings stay in argv. status_fd is set whenever it could be understood, so that what is wrong can be told there. */
int options_parse(int argc, char **argv, Options *ret, Failure *reterr);
