/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What init has to say goes to the kernel's console, and to the sink once there is one (the control port). */

typedef void (*LogSink)(const char *text, void *userdata);

/* /dev/kmsg from here on; before, and where it cannot be opened, standard error. */
void log_open(void);
void log_set_sink(LogSink sink, void *userdata);

/* One line without its end. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Logs "WHAT: text of errno" and returns the -errno it was given. */
int log_errno(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
