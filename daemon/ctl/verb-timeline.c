/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl timeline: a run's events, page by page (GetTimeline), or as they come (OpenOutput) with --follow.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/events.h"
#include "common/json.h"
#include "ctl/client.h"
#include "ctl/follow.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/progress.h"
#include "ctl/terminal.h"
#include "ctl/text.h"

#define PAGE 512U

enum { TIMELINE_FOLLOW = 1 };

static const Option timeline_options[] = {
        {TIMELINE_FOLLOW, 'f', "follow", NULL, "Go on until the run has ended"},
        {0,               0,   NULL,     NULL, NULL                           },
};

typedef struct TimelineView {
        Ctl *ctl;
        const char *id;
        uint64_t first_usec;
        sd_event *event;
} TimelineView;

static void view_event(TimelineView *view, const EventMessage *event) {
        _cleanup_(json_putp) json_object *o = NULL;

        if (view->first_usec == 0)
                view->first_usec = event->realtime_usec;
        if (!view->ctl->json) {
                print_event(stdout, view->first_usec, event);
                return;
        }
        o = event_to_json(view->id, event->seq, event->realtime_usec, event->type, event->json, event->json_size);
        print_json(o);
}

/* One page; *after_seq moves on. >0: there may be more; 0: that was all; or -errno. */
static int read_page(TimelineView *view, sd_bus_message *reply, uint64_t *after_seq) {
        EventMessage event = {0};
        const char *type;
        unsigned n = 0;
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "(ttss)");
        while (r >= 0 &&
               (r = sd_bus_message_read(reply, "(ttss)", &event.seq, &event.realtime_usec, &type, &event.json)) > 0) {
                snprintf(event.type, sizeof(event.type), "%s", type);
                event.json_size = strlen(event.json);
                if (event.seq <= *after_seq)
                        return -EBADMSG;
                *after_seq = event.seq;
                view_event(view, &event);
                n++;
        }
        return r < 0 ? r : n > 0;
}

static int timeline_read_all(TimelineView *view, const char *path) {
        uint64_t after_seq = 0;
        int r = 1;

        while (r > 0) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

                r = client_call(view->ctl, RUN_METHOD(path, "GetTimeline"), &reply, "tu", after_seq, PAGE);
                if (r != 0)
                        return r;
                r = read_page(view, reply, &after_seq);
        }
        return r < 0 ? client_bad_answer(r) : EXIT_SUCCESS;
}

static void on_event(const EventMessage *event, void *userdata) {
        view_event(userdata, event);
        fflush(stdout);
}

/* On a timeline, output is an event like the others; what is not kept is not on it. */
static void on_output(const OutputMessage *output, void *userdata) {
        _cleanup_(freep) char *json = NULL;
        EventMessage event = {.seq = output->seq, .realtime_usec = output->realtime_usec, .type = "output"};

        if (output->seq == 0)
                return;
        json = event_output_json((OutputStream) output->stream, output->data, output->size);
        event.json = text_or(json, "{}");
        event.json_size = strlen(event.json);
        on_event(&event, userdata);
}

static void on_lost(uint64_t bytes, void *userdata) {
}

static void on_end(int exit_code, void *userdata) {
        TimelineView *view = userdata;

        sd_event_exit(view->event, exit_code);
}

static int timeline_follow(TimelineView *view, const char *path) {
        _cleanup_(follow_freep) Follow *follow = NULL;
        int r;

        r = sd_event_new(&view->event);
        if (r >= 0)
                r = sd_bus_attach_event(view->ctl->bus, view->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = follow_new(view->ctl, view->event,
                               &(const FollowOptions){.id = view->id,
                                                      .path = path,
                                                      .on_event = on_event,
                                                      .on_output = on_output,
                                                      .on_lost = on_lost,
                                                      .on_end = on_end,
                                                      .userdata = view},
                               &follow);
        if (r >= 0)
                r = sd_event_loop(view->event);
        sd_bus_detach_event(view->ctl->bus);
        follow = follow_free(follow);
        view->event = sd_event_unref(view->event);
        return r < 0 ? client_failed(NULL, r) : r;
}

static int timeline(Ctl *ctl, int argc, char *argv[]) {
        _cleanup_(freep) char *id = NULL, *path = NULL;
        TimelineView view = {.ctl = ctl};
        bool follow = false;
        const char *value;
        int option, r;

        while ((option = options_next(ctl, argc, argv, &value)) > 0)
                follow = true;
        if (option < 0)
                return options_exit_code(ctl, option);
        if (argc - optind != 1)
                return usage_error(ctl, "It takes one run.");
        r = client_open(ctl);
        if (r == 0)
                r = client_resolve_run(ctl, argv[optind], &id, &path);
        if (r != 0)
                return r;
        view.id = id;
        return follow ? timeline_follow(&view, path) : timeline_read_all(&view, path);
}

const Verb verb_timeline = {
        .name = "timeline",
        .arguments = "RUN",
        .summary = "Show what happened in a run",
        .more = "Each line is one event: the time since the first one, its type, and what it says.",
        .options = timeline_options,
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = timeline,
};
