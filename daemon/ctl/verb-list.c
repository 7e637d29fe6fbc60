/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl list: the runs that the caller may read, newest first. ListRuns does not tell outcomes, so those of the
 * ended runs that are shown are asked for one by one.
 */
#include <errno.h>
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

#define LIMIT_DEFAULT 100

enum {
        LIST_ALL = 1,
        LIST_STATE,
        LIST_LIMIT,
};

static const Option list_options[] = {
        {LIST_ALL,   'a', "all",   NULL,    "Also runs of other accounts"                           },
        {LIST_STATE, 's', "state", "STATE", "Only queued, starting, running, stopping or ended ones"},
        {LIST_LIMIT, 'n', "limit", "N",     "At most so many (default: 100)"                        },
        {0,          0,   NULL,    NULL,    NULL                                                    },
};

/* "" when there is none, or when the run has gone in the meantime. */
static char *get_outcome(Ctl *ctl, const RunRow *row) {
        char *outcome = NULL;

        if (strcmp(row->state, "ended") != 0 ||
            sd_bus_get_property_string(ctl->bus, CLIENT_SERVICE, row->path, CLIENT_RUN_INTERFACE, "Outcome", NULL,
                                       &outcome) < 0)
                return strdup("");
        return outcome;
}

static void print_row_json(const RunRow *row, const char *outcome) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();

        if (!o || json_add_string(o, "id", row->id) < 0 || json_add_string(o, "path", row->path) < 0 ||
            json_add_string(o, "workflow", row->workflow) < 0 || json_add_string(o, "state", row->state) < 0 ||
            json_add_string(o, "outcome", outcome) < 0 || json_add_u64(o, "started_usec", row->started_usec) < 0 ||
            json_add_u64(o, "cost_micros", row->cost_micros) < 0)
                return;
        print_json(o);
}

static Colour colour_of_state(const char *state) {
        return strcmp(state, "running") == 0 ? COLOUR_BOLD : COLOUR_NONE;
}

static void add_row(Table *table, const RunRow *row, const char *outcome, uint64_t now_usec) {
        char started[TEXT_SIZE];

        table_add(table, row->id, COLOUR_NONE);
        table_add(table, row->workflow, COLOUR_NONE);
        table_add(table, row->state, colour_of_state(row->state));
        table_add(table, outcome, colour_of_outcome(outcome));
        table_add(table, text_ago(started, now_usec, row->started_usec), COLOUR_DIM);
}

static int list_print(Ctl *ctl, const RunRow *rows, size_t n) {
        static const char *const header[] = {"RUN", "WORKFLOW", "STATE", "OUTCOME", "STARTED", NULL};
        _cleanup_(table_freep) Table *table = table_new(header);
        uint64_t now_usec = clock_realtime_usec();

        if (!table)
                return client_bad_answer(-ENOMEM);
        for (size_t i = 0; i < n; i++) {
                _cleanup_(freep) char *outcome = get_outcome(ctl, &rows[i]);

                if (ctl->json)
                        print_row_json(&rows[i], text_or(outcome, ""));
                else
                        add_row(table, &rows[i], text_or(outcome, ""), now_usec);
        }
        if (ctl->json)
                return EXIT_SUCCESS;
        if (n > 0)
                table_print(table);
        else
                puts("No runs.");
        return EXIT_SUCCESS;
}

static int list(Ctl *ctl, int argc, char *argv[]) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(freep) RunRow *rows = NULL;
        RunFilter filter = {.limit = LIMIT_DEFAULT};
        const char *value;
        int64_t limit;
        int option, r;
        size_t n;

        while ((option = options_next(ctl, argc, argv, &value)) > 0)
                switch (option) {
                case LIST_ALL:
                        filter.all = true;
                        break;
                case LIST_STATE:
                        filter.state = value;
                        break;
                case LIST_LIMIT:
                        if (parse_number(value, &limit) < 0 || limit < 1 || limit > CLIENT_RUNS_MAX)
                                return usage_error(ctl, "--limit is a number from 1 to %u, not '%s'.", CLIENT_RUNS_MAX,
                                                   value);
                        filter.limit = (uint32_t) limit;
                        break;
                }
        if (option < 0)
                return options_exit_code(ctl, option);
        if (optind < argc)
                return usage_error(ctl, "It takes no arguments; 'ephemeralctl status RUN' shows one run.");
        r = client_open(ctl);
        if (r == 0)
                r = client_list_runs(ctl, &filter, &reply, &rows, &n);
        return r != 0 ? r : list_print(ctl, rows, n);
}

const Verb verb_list = {
        .name = "list",
        .arguments = "",
        .summary = "List runs, newest first",
        .options = list_options,
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = list,
};
