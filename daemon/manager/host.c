/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Facts of the host for plan.c (time stamp counter) and queue.c (capacity).
 */
#include "manager/host.h"

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum {
        RUNS_PER_CPU = 16,
        CALIBRATION_NSEC = 5 * 1000 * 1000,
};

static uint64_t nanoseconds(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
        return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

/* CPUID 80000007H:EDX[8], Intel SDM vol. 3, "Invariant TSC". */
static bool has_invariant_tsc(void) {
        unsigned a, b, c, d;

        return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1U << 8));
}

/* Counts it against the raw clock: what CPUID and /proc/cpuinfo say is nominal, or missing in a virtual machine. */
static uint64_t measure_tsc_khz(void) {
        struct timespec wait = {.tv_nsec = CALIBRATION_NSEC};
        uint64_t t0, t1, c0, c1;

        if (!has_invariant_tsc())
                return 0;
        t0 = nanoseconds();
        c0 = __rdtsc();
        clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
        t1 = nanoseconds();
        c1 = __rdtsc();
        return t1 > t0 ? (c1 - c0) * 1000000 / (t1 - t0) : 0;
}

/* Intel SDM vol. 2, CPUID: signature and features; not leaf 1's EBX, which tells on which processor one runs. */
static void describe_processor(char *ret, size_t size) {
        unsigned a[4] = {0}, b[4] = {0}, c[4] = {0}, d[4] = {0};

        (void) __get_cpuid(0, &a[0], &b[0], &c[0], &d[0]);
        (void) __get_cpuid(1, &a[1], &b[1], &c[1], &d[1]);
        (void) __get_cpuid_count(7, 0, &a[2], &b[2], &c[2], &d[2]);
        (void) __get_cpuid(0x80000001, &a[3], &b[3], &c[3], &d[3]);
        (void) snprintf(ret, size, "%.4s%.4s%.4s %08x %08x-%08x %08x-%08x-%08x %08x-%08x", (char *) &b[0],
                        (char *) &d[0], (char *) &c[0], a[1], c[1], d[1], b[2], c[2], d[2], c[3], d[3]);
}

int host_probe(Host *ret) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

        if (cpus < 1 || pages < 1 || page < 1)
                return -ENODATA;
        *ret = (Host){
                .cpus = (unsigned) cpus,
                .memory_bytes = (uint64_t) pages * (uint64_t) page,
                .tsc_khz = measure_tsc_khz(),
        };
        describe_processor(ret->processor, sizeof(ret->processor));
        return 0;
}

uint64_t host_memory_budget(const Host *host) {
        return host->memory_bytes / 5 * 4;
}

unsigned host_runs_max(const Host *host, uint64_t memory_max_bytes) {
        uint64_t by_memory = host_memory_budget(host) / memory_max_bytes,
                 by_cpu = (uint64_t) host->cpus * RUNS_PER_CPU;
        uint64_t n = by_memory < by_cpu ? by_memory : by_cpu;

        return n < 1 ? 1 : (unsigned) n;
}
