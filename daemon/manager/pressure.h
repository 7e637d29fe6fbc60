/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-event.h>

/* Calls the handler whenever somebody on this host waited for memory for a tenth of two seconds (pressure stall information,
 * https://docs.kernel.org/accounting/psi.html). path may also be a FIFO, to which whoever sees it coming writes a byte, as in
 * https://systemd.io/MEMORY_PRESSURE. 0 or -errno. */
int pressure_watch(
        sd_event *event, const char *path, sd_event_io_handler_t handler, void *userdata, sd_event_source **ret);

/* What the handler does at its end: takes what has come, so that it is called for the next. */
int pressure_read(sd_event_source *source, int fd, uint32_t revents);
