/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl status: one run's properties, for people in the manner of `systemctl status`.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/table.h"
#include "ctl/terminal.h"
#include "ctl/text.h"

static void print_state(json_object *p) {
        const char *state = get_string(p, "state", "?"), *outcome = get_string(p, "outcome", "");
        _cleanup_(freep) char *text = NULL;
        int r;

        if (outcome[0] == 0)
                r = asprintf(&text, "%s", state);
        else if (strcmp(outcome, "failed") == 0)
                r = asprintf(&text, "%s (%s, exit status %" PRId64 ")", state, outcome, get_int(p, "exit_status", -1));
        else
                r = asprintf(&text, "%s (%s)", state, outcome);
        if (r < 0)
                text = NULL;
        else
                print_field_coloured("State", text, colour_of_outcome(outcome));
}

static void print_times(json_object *p) {
        uint64_t now = clock_realtime_usec();
        uint64_t started = (uint64_t) get_int(p, "started_usec", 0), ended = (uint64_t) get_int(p, "ended_usec", 0),
                 created = (uint64_t) get_int(p, "created_usec", 0),
                 timeout = (uint64_t) get_int(p, "timeout_usec", 0);
        char text[2 * TEXT_SIZE + 8], a[TEXT_SIZE], b[TEXT_SIZE];

        snprintf(text, sizeof(text), "%s; %s", text_time(a, created), text_ago(b, now, created));
        print_field("Created", created > 0 ? text : NULL);
        snprintf(text, sizeof(text), "%s; %s", text_time(a, started), text_ago(b, now, started));
        print_field("Started", started > 0 ? text : NULL);
        snprintf(text, sizeof(text), "%s; %s", text_time(a, ended), text_ago(b, now, ended));
        print_field("Ended", ended > 0 ? text : NULL);
        if (started > 0)
                print_field("Duration", text_duration(a, (ended > 0 ? ended : now) - started));
        print_field("Timeout", timeout > 0 ? text_duration(a, timeout) : NULL);
}

static void print_isolation(json_object *p) {
        json_object *isolation = NULL, *hardware = NULL;

        if (!json_object_object_get_ex(p, "isolation", &isolation) ||
            !json_object_is_type(isolation, json_type_object))
                return;
        if (!json_object_object_get_ex(isolation, "hardware_virtualization", &hardware))
                return;
        print_field("Isolation", json_object_get_boolean(hardware)
                                         ? "no network device, jailed, hardware virtualization"
                                         : "no network device, jailed, no hardware virtualization (emulated)");
}

static void print_status_labels(json_object *p) {
        json_object *labels = NULL;

        if (!json_object_object_get_ex(p, "labels", &labels) || !json_object_is_type(labels, json_type_object))
                return;
        json_object_object_foreach (labels, key, value) {
                _cleanup_(freep) char *text = NULL;

                if (asprintf(&text, "%s=%s", key, text_or(json_object_get_string(value), "")) < 0)
                        text = NULL;
                else
                        print_field("Label", text);
        }
}

static void print_status(json_object *p) {
        const char *outcome = get_string(p, "outcome", "");

        printf("%s●%s ", colour(stdout, colour_of_outcome(outcome)), colour_end(stdout, colour_of_outcome(outcome)));
        print_neutral(stdout, get_string(p, "id", NULL));
        fputs(" - ", stdout);
        print_neutral(stdout, get_string(p, "workflow", NULL));
        putchar('\n');
        print_state(p);
        print_times(p);
        print_field("Unit", get_string(p, "unit", NULL));
        print_field("Account", get_string(p, "account", NULL));
        print_field("Image", get_string(p, "image", NULL));
        print_field("Accelerator", get_string(p, "accelerator", NULL));
        print_isolation(p);
        print_status_labels(p);
}

static int status_one(Ctl *ctl, const char *name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(json_putp) json_object *properties = NULL;
        _cleanup_(freep) char *id = NULL, *path = NULL;
        int r;

        r = client_resolve_run(ctl, name, &id, &path);
        if (r != 0)
                return r;
        r = client_call(ctl, &(const Method){path, "org.freedesktop.DBus.Properties", "GetAll"}, &reply, "s",
                        CLIENT_RUN_INTERFACE);
        if (r != 0)
                return r;
        r = properties_to_json(reply, &properties);
        if (r < 0)
                return client_bad_answer(r);
        if (ctl->json)
                print_json(properties);
        else
                print_status(properties);
        return EXIT_SUCCESS;
}

static int status(Ctl *ctl, int argc, char *argv[]) {
        int r, exit_code = EXIT_SUCCESS;

        r = options_only_operands(ctl, argc, argv, 1, argc);
        if (r < 0)
                return options_exit_code(ctl, r);
        r = client_open(ctl);
        if (r != 0)
                return r;
        for (int i = optind; i < argc; i++) {
                if (i > optind && !ctl->json)
                        putchar('\n');
                r = status_one(ctl, argv[i]);
                if (r != 0)
                        exit_code = r;
        }
        return exit_code;
}

const Verb verb_status = {
        .name = "status",
        .arguments = "RUN...",
        .summary = "Show the state of runs",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = status,
};
