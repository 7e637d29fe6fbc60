/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Why the jail refuses: one sentence that names what failed, on what, and the kernel's word for it. Nothing is allocated, so that
 * it can be told in any state of the process. */

#define FAILURE_TEXT_MAX 512

typedef struct Failure {
        char text[FAILURE_TEXT_MAX];
} Failure;

/* Sets the text and returns error (a negative errno), whose description is added behind the text. */
int failure_set(Failure *f, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
