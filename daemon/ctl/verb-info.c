/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl info and version: the service's own properties; this program's version needs no service.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/json.h"
#include "ctl/client.h"
#include "ctl/help.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/table.h"

static void print_info(json_object *p) {
        char text[96];

        print_field("Version", get_string(p, "version", NULL));
        print_field("Accelerator", get_string(p, "accelerator", NULL));
        print_field("because", get_string(p, "accelerator_reason", NULL));
        snprintf(text, sizeof(text), "%" PRId64 " active, %" PRId64 " queued, %" PRId64 " at most",
                 get_int(p, "runs_active", 0), get_int(p, "runs_queued", 0), get_int(p, "runs_max", 0));
        print_field("Runs", text);
        snprintf(text, sizeof(text), "%" PRId64 " ready for the next run", get_int(p, "standby_ready", 0));
        print_field("Standby", text);
}

static int info(Ctl *ctl, int argc, char *argv[]) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(json_putp) json_object *properties = NULL;
        int r;

        r = options_only_operands(ctl, argc, argv, 0, 0);
        if (r < 0)
                return options_exit_code(ctl, r);
        r = client_open(ctl);
        if (r == 0)
                r = client_call(ctl, &(const Method){CLIENT_MANAGER_PATH, "org.freedesktop.DBus.Properties", "GetAll"},
                                &reply, "s", CLIENT_MANAGER_INTERFACE);
        if (r != 0)
                return r;
        r = properties_to_json(reply, &properties);
        if (r < 0)
                return client_bad_answer(r);
        if (ctl->json)
                print_json(properties);
        else
                print_info(properties);
        return EXIT_SUCCESS;
}

static int version(Ctl *ctl, int argc, char *argv[]) {
        int r = options_only_operands(ctl, argc, argv, 0, 0);

        if (r < 0)
                return options_exit_code(ctl, r);
        if (ctl->json)
                puts("{\"version\":\"" EPHEMERAL_VERSION "\"}");
        else
                help_version();
        return EXIT_SUCCESS;
}

const Verb verb_info = {
        .name = "info",
        .arguments = "",
        .summary = "Show the service: version, accelerator, load",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = info,
};

const Verb verb_version = {
        .name = "version",
        .arguments = "",
        .summary = "Show the version of this program",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = version,
};
