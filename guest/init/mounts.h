/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

#define RUNTIME_DIRECTORY "/run/ephemeral"

/* All: 0, or -errno with the reason logged. */

/* /proc, /sys and /dev in the initrd. */
int mounts_early(void);

/* The image on /dev/vda, read-only, under a tmpfs of at most disk_mib, becomes the root, with all the usual mounts. */
int mounts_switch_root(uint64_t disk_mib);

/* RUNTIME_DIRECTORY and the small things that programs expect of a machine. */
int mounts_late(void);
