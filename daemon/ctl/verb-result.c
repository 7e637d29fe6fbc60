/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl result and request: the two documents of a run's record.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/permissions.h"
#include "ctl/table.h"

/* Fetches a run's document by a method that answers JSON. */
static int get_document(Ctl *ctl, const char *name, const char *member, bool add_id, json_object **ret) {
        _cleanup_(freep) char *id = NULL, *path = NULL, *text = NULL;
        int r;

        r = client_resolve_run(ctl, name, &id, &path);
        if (r == 0)
                r = client_call_string(ctl, RUN_METHOD(path, member), NULL, &text);
        if (r != 0)
                return r;
        *ret = parse_object(text, strlen(text));
        if (!*ret)
                return client_bad_answer(0);
        if (!add_id || json_object_object_get_ex(*ret, "id", NULL))
                return 0;
        r = json_add_string(*ret, "id", id);
        return r < 0 ? client_bad_answer(r) : 0;
}

/* Keys that this program does not know are shown all the same. */
static void print_document(json_object *o) {
        json_object_object_foreach (o, key, value) {
                const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value)
                                                                                : json_text(value);

                if (strcmp(key, "outcome") == 0)
                        print_field_coloured(key, text, colour_of_outcome(text));
                else
                        print_field(key, text);
        }
}

static int document(Ctl *ctl, int argc, char *argv[], const char *member, void (*print)(json_object *o)) {
        bool add_id = strcmp(member, "GetResult") == 0; /* a request has to stay one that can be sent again */
        _cleanup_(json_putp) json_object *o = NULL;
        int r;

        r = options_only_operands(ctl, argc, argv, 1, 1);
        if (r < 0)
                return options_exit_code(ctl, r);
        r = client_open(ctl);
        if (r == 0)
                r = get_document(ctl, argv[optind], member, add_id, &o);
        if (r != 0)
                return r;
        if (ctl->json)
                print_json(o);
        else
                print(o);
        return EXIT_SUCCESS;
}

static int result(Ctl *ctl, int argc, char *argv[]) {
        return document(ctl, argc, argv, "GetResult", print_document);
}

static int request(Ctl *ctl, int argc, char *argv[]) {
        return document(ctl, argc, argv, "GetRequest", print_permissions);
}

const Verb verb_result = {
        .name = "result",
        .arguments = "RUN",
        .summary = "Show how a run ended",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = result,
};

const Verb verb_request = {
        .name = "request",
        .arguments = "RUN",
        .summary = "Show what a run was allowed",
        .more = "The accepted request, with every default filled in, as the table of what the run can touch; --json\n"
                "prints it whole, ready for 'ephemeralctl run --request=-'.",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = request,
};
