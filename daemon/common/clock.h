/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Not "time.h": Meson puts this folder on the include path, where it would hide the system's. */

#include <stdint.h>

#define USEC_PER_MSEC 1000ULL
#define USEC_PER_SEC  1000000ULL
#define NSEC_PER_USEC 1000ULL

uint64_t clock_realtime_usec(void);
uint64_t clock_monotonic_usec(void);
