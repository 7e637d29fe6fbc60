/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Namespaces. No user namespace: the uid is dropped for good instead, and the kernel code that user namespaces open to an attacker
 * stays closed.
 */
#include "jail/namespaces.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>

int namespaces_enter(Failure *reterr) {
        if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID) < 0)
                return failure_set(reterr, -errno, "new mount, net, ipc, uts and pid namespaces");
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return failure_set(reterr, -errno, "making every mount private");
        return 0;
}

int namespaces_enter_cgroup(Failure *reterr) {
        if (unshare(CLONE_NEWCGROUP) < 0)
                return failure_set(reterr, -errno, "new cgroup namespace");
        return 0;
}
