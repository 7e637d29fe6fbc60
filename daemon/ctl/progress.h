/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a terminal shows beside a run's own output, on stderr: a line that counts while the microVM starts, and the
 * timeline. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "protocol/message.h"

typedef struct Progress {
        bool lines;          /* show events */
        bool live;           /* keep a counting line */
        bool mid_line;       /* the output so far does not end with a newline, and shares the terminal with us */
        bool drawn;          /* the counting line stands there */
        uint64_t begin_usec; /* of the waiting, monotonic */
        uint64_t first_usec; /* of the first event, realtime */
        char what[96];       /* "starting microVM" */
        sd_event_source *tick;
} Progress;

/* lines: also where stderr is no terminal. live: only where it is one. */
int progress_init(Progress *p, sd_event *event, bool lines, bool live);
void progress_done(Progress *p);

/* Sets what the counting line says; NULL ends it. */
void progress_waits(Progress *p, const char *what);
void progress_event(Progress *p, const EventMessage *event);

/* To be called before anything else is written to the terminal, and after output was. */
void progress_clear(Progress *p);
void progress_output(Progress *p, const void *data, size_t size);

/* One event as a line: time since the first one, type, sentence. Used by all who show timelines. */
void print_event(FILE *f, uint64_t first_usec, const EventMessage *event);
