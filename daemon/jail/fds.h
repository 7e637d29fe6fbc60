/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "jail/failure.h"
#include "jail/options.h"

/* Checks that go and status are what they should be and that nothing kept is a directory (a way out), points standard input and
 * output to /dev/null (and standard error, should it be closed), and closes everything that is not named. */
int fds_prepare(const Options *options, Failure *reterr);

/* In the inner half: only the standard streams and --keep-fd survive execve. */
int fds_close_on_exec(const Options *options, Failure *reterr);

/* In the outer half: everything is closed but the status socket and --hold-fd. */
int fds_close_for_outer(const Options *options, Failure *reterr);
