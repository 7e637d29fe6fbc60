/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl validate: what a request would be accepted as, without running anything.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/permissions.h"
#include "ctl/run-request.h"
#include "ctl/terminal.h"

static int validate(Ctl *ctl, int argc, char *argv[]) {
        _cleanup_(freep) char *text = NULL, *error = NULL, *accepted = NULL;
        _cleanup_(json_putp) json_object *o = NULL;
        size_t size;
        int r;

        r = options_only_operands(ctl, argc, argv, 1, 1);
        if (r < 0)
                return options_exit_code(ctl, r);
        r = read_text(argv[optind], &text, &size, &error);
        if (r < 0) {
                print_error("%s", error ? error : strerror(-r));
                return EXIT_CODE_REFUSED;
        }
        r = client_open(ctl);
        if (r == 0)
                r = client_call_string(ctl, MANAGER_METHOD("ValidateRequest"), text, &accepted);
        if (r != 0)
                return r;
        o = parse_object(accepted, strlen(accepted));
        if (!o)
                return client_bad_answer(0);
        if (ctl->json)
                print_json(o);
        else
                print_permissions(o);
        return EXIT_SUCCESS;
}

const Verb verb_validate = {
        .name = "validate",
        .arguments = "FILE",
        .summary = "Check a request and show what it would allow",
        .more = "FILE is a request in JSON; - reads it from standard input. Nothing is run.",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = validate,
};
