/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which system calls a jailed process may make. The default is death (SECCOMP_RET_KILL_PROCESS); the kernel logs the number. */

#include <linux/filter.h>
#include <seccomp.h>
#include <stddef.h>

#include "jail/failure.h"

#define FILTER_ARGUMENTS_MAX 3

typedef enum FilterProfile {
        FILTER_TCG,
        FILTER_KVM,
        FILTER_OUTER, /* the half that waits for QEMU */
} FilterProfile;

/* One way in which a system call is allowed: all of its conditions hold. Several rules of one call are alternatives. */
typedef struct FilterRule {
        int number;
        unsigned profiles; /* 1 << FilterProfile, or-ed */
        int error;         /* fails with this errno instead of being allowed; 0 allows */
        size_t n_arguments;
        struct scmp_arg_cmp arguments[FILTER_ARGUMENTS_MAX];
} FilterRule;

extern const FilterRule filter_rules[];
extern const size_t filter_n_rules;

/* The program, ready for filter_load(); filter_done() frees it. execve is allowed with exactly this pointer as its path (0: never),
 * which must be one that cannot be guessed: it does not exist any more once the program runs. */
int filter_compile(FilterProfile profile, const char *exec_path, struct sock_fprog *ret, Failure *reterr);
void filter_done(struct sock_fprog *program);

/* For this thread; needs no_new_privs. */
int filter_load(const struct sock_fprog *program, Failure *reterr);
