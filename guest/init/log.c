/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Init's voice. A message is an error to the kernel, so that it reaches the console of a quiet boot. */

#include "init/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_LINE_MAX 512U

static int kmsg_fd = -EBADF;
static LogSink log_sink;
static void *log_sink_userdata;

void log_open(void) {
        if (kmsg_fd < 0)
                kmsg_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

void log_set_sink(LogSink sink, void *userdata) {
        log_sink = sink;
        log_sink_userdata = userdata;
}

static void log_text(const char *text) {
        dprintf(kmsg_fd >= 0 ? kmsg_fd : STDERR_FILENO, "%sephemeral-init: %s\n", kmsg_fd >= 0 ? "<3>" : "", text);
        if (log_sink)
                log_sink(text, log_sink_userdata);
}

void log_line(const char *format, ...) {
        char text[LOG_LINE_MAX];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        log_text(text);
}

int log_errno(int error, const char *format, ...) {
        char what[LOG_LINE_MAX / 2], text[LOG_LINE_MAX];
        va_list ap;

        va_start(ap, format);
        vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        snprintf(text, sizeof(text), "%s: %s", what, strerror(error < 0 ? -error : error));
        log_text(text);
        return error;
}
