/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl cancel and kill: both end runs; they differ in the method that is called.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/terminal.h"

static int end_one(Ctl *ctl, const char *name, const char *member, const char *done) {
        _cleanup_(freep) char *id = NULL, *path = NULL, *state = NULL;
        _cleanup_(json_putp) json_object *o = NULL;
        int r;

        r = client_resolve_run(ctl, name, &id, &path);
        if (r == 0)
                r = client_call(ctl, RUN_METHOD(path, member), NULL, NULL);
        if (r != 0)
                return r;
        if (!ctl->json) {
                printf("%s ", done);
                print_neutral(stdout, id);
                putchar('\n');
                return EXIT_SUCCESS;
        }
        r = sd_bus_get_property_string(ctl->bus, CLIENT_SERVICE, path, CLIENT_RUN_INTERFACE, "State", NULL, &state);
        o = json_object_new_object();
        if (r < 0 || !o || json_add_string(o, "id", id) < 0 || json_add_string(o, "state", state) < 0)
                return client_bad_answer(r < 0 ? r : -ENOMEM);
        print_json(o);
        return EXIT_SUCCESS;
}

static int end_all(Ctl *ctl, int argc, char *argv[], const char *member, const char *done) {
        int r, exit_code = EXIT_SUCCESS;

        r = options_only_operands(ctl, argc, argv, 1, argc);
        if (r < 0)
                return options_exit_code(ctl, r);
        r = client_open(ctl);
        if (r != 0)
                return r;
        for (int i = optind; i < argc; i++) {
                r = end_one(ctl, argv[i], member, done);
                if (r != 0)
                        exit_code = r;
        }
        return exit_code;
}

static int cancel(Ctl *ctl, int argc, char *argv[]) {
        return end_all(ctl, argc, argv, "Cancel", "Cancelled");
}

static int kill_runs(Ctl *ctl, int argc, char *argv[]) {
        return end_all(ctl, argc, argv, "Kill", "Killed");
}

const Verb verb_cancel = {
        .name = "cancel",
        .arguments = "RUN...",
        .summary = "End runs",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = cancel,
};

const Verb verb_kill = {
        .name = "kill",
        .arguments = "RUN...",
        .summary = "End runs, by the bus method Kill",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = kill_runs,
};
