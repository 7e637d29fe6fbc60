/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is to be known of this host, once, at the start. */

#include <stdint.h>

typedef struct Host {
        unsigned cpus;
        uint64_t memory_bytes;
        uint64_t tsc_khz; /* 0: the processor has no steady time stamp counter */
        char processor
                [192]; /* who made it and what it can, as CPUID says: for -cpu host a part of what a guest has seen */
} Host;

int host_probe(Host *ret);

/* How many machines of this much memory may run at once: four fifths of the memory is theirs, and a processor serves so many. */
unsigned host_runs_max(const Host *host, uint64_t memory_max_bytes);

/* The memory that all machines together may be given. */
uint64_t host_memory_budget(const Host *host);
