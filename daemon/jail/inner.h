/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "jail/failure.h"
#include "jail/filter.h"
#include "jail/identity.h"
#include "jail/options.h"

typedef struct Inner {
        const Options *options;
        Identity identity;
        char *exec_path;           /* of QEMU, at a place that the filter allows to execute */
        struct sock_fprog program; /* QEMU's filter */
        int outer_pidfd;
        int failure_fd; /* pipe: a failure's text is written here; end of file means that QEMU runs */
} Inner;

/* Places a copy of path where nobody can guess. 0 or -errno; it is never freed. */
int inner_place_path(const char *path, char **ret, Failure *reterr);

/* The child, process 1 of the new PID namespace: becomes QEMU or exits. */
_Noreturn void inner_run(const Inner *inner);
