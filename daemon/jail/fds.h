/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "jail/failure.h"
#include "jail/options.h"

/* Checks that go and status are what they should be and that nothing kept is a directory (a way out), points standard input and
 * output to /dev/null (and standard error, should it be closed), and closes everything that is not named. */
int fds_prepare(const Options *options, Failure *reterr);

/* In the inner half: only the standard streams and --keep-fd survive execve. */
int fds_close_on_exec(const Options *options, Failure *reterr);

/* In the outer half: everything but one fd is closed, the standard streams too. */
int fds_close_all_but(int fd, Failure *reterr);
