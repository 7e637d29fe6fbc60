/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The two clocks in microseconds, the unit of systemd and of every timestamp on the suite's wires.
 */
#include "common/clock.h"

#include <time.h>

static uint64_t clock_usec(clockid_t id) {
        struct timespec t = {0};

        (void) clock_gettime(id, &t); /* cannot fail for these clocks */
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

uint64_t clock_realtime_usec(void) {
        return clock_usec(CLOCK_REALTIME);
}

uint64_t clock_monotonic_usec(void) {
        return clock_usec(CLOCK_MONOTONIC);
}
