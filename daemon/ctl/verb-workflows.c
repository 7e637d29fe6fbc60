/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl workflows: what there is to run, or one workflow's document.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/table.h"

static int show_workflow(Ctl *ctl, const char *name) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(json_putp) json_object *o = NULL;
        int r;

        r = client_call_string(ctl, MANAGER_METHOD("GetWorkflow"), name, &text);
        if (r != 0)
                return r;
        o = parse_object(text, strlen(text));
        if (!o)
                return client_bad_answer(0);
        if (ctl->json)
                print_json(o);
        else
                puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                               JSON_C_TO_STRING_NOSLASHESCAPE));
        return EXIT_SUCCESS;
}

static int add_workflow(Ctl *ctl, Table *table, const char *name, const char *description) {
        _cleanup_(json_putp) json_object *o = NULL;
        int r;

        if (!ctl->json) {
                r = table_add(table, name, COLOUR_NONE);
                return r < 0 ? r : table_add(table, description, COLOUR_NONE);
        }
        o = json_object_new_object();
        if (!o || json_add_string(o, "name", name) < 0 || json_add_string(o, "description", description) < 0)
                return -ENOMEM;
        print_json(o);
        return 0;
}

static int list_workflows(Ctl *ctl) {
        static const char *const header[] = {"WORKFLOW", "DESCRIPTION", NULL};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(table_freep) Table *table = table_new(header);
        const char *name, *description;
        int r;

        if (!table)
                return client_bad_answer(-ENOMEM);
        r = client_call(ctl, MANAGER_METHOD("ListWorkflows"), &reply, NULL);
        if (r != 0)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "(ss)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(ss)", &name, &description)) > 0)
                r = add_workflow(ctl, table, name, description);
        if (r < 0)
                return client_bad_answer(r);
        if (!ctl->json)
                table_print(table);
        return EXIT_SUCCESS;
}

static int workflows(Ctl *ctl, int argc, char *argv[]) {
        int r = options_only_operands(ctl, argc, argv, 0, 1);

        if (r < 0)
                return options_exit_code(ctl, r);
        r = client_open(ctl);
        if (r != 0)
                return r;
        return optind < argc ? show_workflow(ctl, argv[optind]) : list_workflows(ctl);
}

const Verb verb_workflows = {
        .name = "workflows",
        .arguments = "[NAME]",
        .summary = "List workflows, or show one",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = workflows,
};
