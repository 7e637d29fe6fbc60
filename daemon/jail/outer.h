/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "jail/failure.h"
#include "jail/options.h"

/* The whole life of the outer half. 0: QEMU ran and its end was reported, or the go pipe was closed instead of written; else -errno
 * and nothing is left running. */
int outer_run(const Options *options, Failure *reterr);
