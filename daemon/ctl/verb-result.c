/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl result and request: the two documents of a run's record.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/permissions.h"
#include "ctl/table.h"

/* So that a line says of what it is. Takes and replaces *o. */
static int put_id_first(json_object **o, const char *id) {
        _cleanup_(json_putp) json_object *with_id = json_object_new_object();
        int r = with_id ? json_add_string(with_id, "id", id) : -ENOMEM;

        json_object_object_foreach (*o, key, value) {
                if (r >= 0 && strcmp(key, "id") != 0)
                        r = json_object_object_add(with_id, key, json_object_get(value));
        }
        if (r < 0)
                return client_bad_answer(-ENOMEM);
        json_object_put(*o);
        *o = TAKE_PTR(with_id);
        return 0;
}

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
        return add_id ? put_id_first(ret, id) : 0;
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
