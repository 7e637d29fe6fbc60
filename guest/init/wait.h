/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The kernel finds devices in its own time and there is no udev to tell: looks again every other millisecond.
 * 0, or -ETIMEDOUT. */
int wait_for_path(const char *path, unsigned timeout_ms);

/* The control port, by the name that the host gave it: opened, connected at the other end, not blocking. An fd, or -errno. */
int wait_for_port(const char *name, unsigned timeout_ms);
