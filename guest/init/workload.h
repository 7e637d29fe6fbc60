/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The main process of the run and the pipes to it. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "init/command.h"
#include "protocol/message.h"

typedef struct Workload {
        pid_t pid;
        int stdin_fd; /* write end; -EBADF when it reads /dev/null. These three do not block */
        int stdout_fd;
        int stderr_fd;
        int exec_fd; /* holds the errno of an execve(2) that failed */
        uint64_t started_usec;
        struct rusage usage; /* of every process reaped since it started: sums, and the largest ru_maxrss */
} Workload;

void workload_init(Workload *workload);
void workload_done(Workload *workload);

/* Forks; what goes wrong from then on is seen when the child has ended. The child has a session of its own, the credentials
 * of start and no way to more, no fd but its three streams, and stands in $HOME. 0, or -errno. */
int workload_spawn(Workload *workload, const Command *command, const StartMessage *start);

/* A process of it was reaped: wait4(2). */
void workload_add_usage(Workload *workload, const struct rusage *usage);

/* How the reaped main process ended: wait_status is from wait4(2). */
void workload_result(const Workload *workload, int wait_status, ExitedMessage *ret);

uint64_t monotonic_usec(void);
