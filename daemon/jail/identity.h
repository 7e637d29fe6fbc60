/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/types.h>

#include "jail/failure.h"

typedef struct Identity {
        uid_t uid;
        gid_t gid;
        gid_t extra_gid; /* the one supplementary group; 0 for none */
} Identity;

/* Becomes it for good: no capability in any set, the bounding and ambient ones too, securebits locked, no_new_privs. Refuses the
 * machine's own ids, and asks the kernel afterwards whether all of that is so. Clears PR_SET_PDEATHSIG, as capabilities(7) has it. */
int identity_assume(const Identity *identity, Failure *reterr);

/* Resource limits of QEMU; the scope has the ones on memory, tasks and time. */
int identity_limit(Failure *reterr);
