/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The part of `ephemeralctl run` that is for eyes only. The counting line ticks only until the command has started:
 * afterwards the program sleeps until something comes.
 */
#include "ctl/progress.h"

#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/events.h"
#include "common/json.h"
#include "common/neutral.h"
#include "ctl/output.h"
#include "ctl/terminal.h"
#include "ctl/text.h"

#define TICK_USEC      (100 * USEC_PER_MSEC)
#define EXCERPT_SIZE   100
#define SHOW_FROM_USEC (300 * USEC_PER_MSEC) /* what is quicker needs no progress */

static void draw(Progress *p) {
        uint64_t waited = clock_monotonic_usec() - p->begin_usec;

        if (waited < SHOW_FROM_USEC || p->mid_line)
                return;
        fprintf(stderr, "\r\033[K%s%s … %.1fs%s", colour(stderr, COLOUR_DIM), p->what, (double) waited / 1e6,
                colour_end(stderr, COLOUR_DIM));
        fflush(stderr);
        p->drawn = true;
}

static int on_tick(sd_event_source *s, uint64_t usec, void *userdata) {
        Progress *p = userdata;
        int r;

        draw(p);
        r = sd_event_source_set_time_relative(s, TICK_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int progress_init(Progress *p, sd_event *event, bool lines, bool live) {
        const char *term = getenv("TERM");

        *p = (Progress){.lines = lines, .live = live && isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0)};
        p->begin_usec = clock_monotonic_usec();
        if (!p->live)
                return 0;
        return sd_event_add_time_relative(event, &p->tick, CLOCK_MONOTONIC, TICK_USEC, 0, on_tick, p);
}

void progress_done(Progress *p) {
        progress_clear(p);
        p->tick = sd_event_source_unref(p->tick);
}

void progress_clear(Progress *p) {
        if (p->drawn) {
                fputs("\r\033[K", stderr);
                fflush(stderr);
        }
        p->drawn = false;
}

void progress_waits(Progress *p, const char *what) {
        if (what)
                snprintf(p->what, sizeof(p->what), "%s", what);
        else
                progress_clear(p);
        if (p->tick)
                sd_event_source_set_enabled(p->tick, what ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

void progress_output(Progress *p, const void *data, size_t size) {
        if (size > 0)
                p->mid_line = ((const char *) data)[size - 1] != '\n';
}

static const char *waiting_after(const char *type) {
        static const struct {
                const char *type, *what;
        } table[] = {
                {"request.accepted",  "Waiting for a place"                    },
                {"template.building", "Booting a machine once, as the template"},
                {"vm.starting",       "Starting the microVM"                   },
                {"vm.ready",          "Starting the command"                   },
                {"run.result",        "Destroying the microVM"                 },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (strcmp(type, table[i].type) == 0)
                        return table[i].what;
        return NULL;
}

static Colour colour_of_event(int type, json_object *object) {
        int priority = type < 0 ? LOG_INFO : event_priority((EventType) type, object);

        if (priority <= LOG_ERR)
                return COLOUR_RED;
        if (priority == LOG_WARNING)
                return COLOUR_YELLOW;
        return priority == LOG_NOTICE ? COLOUR_BOLD : COLOUR_NONE;
}

/* The beginning of what was written, on one line. */
static char *describe_output(json_object *object) {
        const char *data = get_string(object, "data", NULL), *stream = get_string(object, "stream", "?");
        _cleanup_(freep) char *text = NULL;
        size_t size = data ? strlen(data) : 0;
        bool cut = size > EXCERPT_SIZE;
        char *line;

        if (!data)
                return event_message(EVENT_OUTPUT, object);
        if (cut)
                size = utf8_valid_prefix(data, EXCERPT_SIZE);
        else if (size > 0 && data[size - 1] == '\n')
                size--;
        text = neutralise_line(data, size);
        return text && asprintf(&line, "%s: %s%s", stream, text, cut ? " …" : "") >= 0 ? line : NULL;
}

static char *describe_event(int type, const EventMessage *event, json_object *object) {
        if (type < 0)
                return neutralise_line(event->json, event->json_size); /* newer than this program */
        if (type == EVENT_OUTPUT && object)
                return describe_output(object);
        return event_message((EventType) type, object);
}

void print_event(FILE *f, uint64_t first_usec, const EventMessage *event) {
        _cleanup_(json_putp) json_object *o = parse_object(event->json, event->json_size);
        int type = event_type_from_name(event->type);
        _cleanup_(freep) char *message = describe_event(type, event, o);
        Colour c = colour_of_event(type, o);
        char offset[TEXT_SIZE];

        fprintf(f, "%s%11s%s %s%-18s%s %s\n", colour(f, COLOUR_DIM),
                text_offset(offset, first_usec, event->realtime_usec), colour_end(f, COLOUR_DIM), colour(f, c),
                event->type, colour_end(f, c), text_or(message, "(out of memory)"));
}

void progress_event(Progress *p, const EventMessage *event) {
        if (p->first_usec == 0)
                p->first_usec = event->realtime_usec;
        progress_clear(p);
        if (p->lines) {
                if (p->mid_line)
                        fputc('\n', stderr);
                p->mid_line = false;
                print_event(stderr, p->first_usec, event);
        }
        progress_waits(p, waiting_after(event->type));
}
