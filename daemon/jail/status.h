/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the manager is told: one text message each on a SOCK_SEQPACKET socket (docs/design.md, section 17.2). */

#define STATUS_TEXT_MAX 1024

/* 0 or -errno; -EPIPE and -ECONNRESET when nobody holds the other end any more. */
int status_send(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
