/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/types.h>

#include "jail/failure.h"
#include "jail/options.h"

/* Makes the jail's root in this (private) mount namespace, moves into it and drops the old one. No directory on disk is used or
 * made. *ret_kvm_gid: the group that may open /dev/kvm, when others may not; else 0. */
int root_enter(const Options *options, gid_t *ret_kvm_gid, Failure *reterr);

/* /proc of the PID namespace that the caller is in, with nothing but processes. */
int root_mount_proc(Failure *reterr);
