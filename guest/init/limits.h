/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* Bounds of a machine by its RAM: pure. */
uint64_t limit_disk_mib(uint64_t asked_mib, uint64_t ram_mib);
uint64_t limit_processes(uint64_t ram_mib);

/* `ephemeral.disk_mib=N` of a kernel command line; 0 when it is not there or not a number. */
uint64_t cmdline_disk_mib(const char *cmdline);

uint64_t ram_mib(void);

/* Init is the last to be killed for memory; rlimits for all that it starts. 0, or -errno with the reason logged. */
int limits_apply(void);
