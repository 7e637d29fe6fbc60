/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How a run ended, as the one number that a shell gets. A command that failed is never 0, whatever the result says.
 */
#include "ctl/exit-code.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/output.h"

int signal_from_name(const char *name) {
        if (strncmp(name, "SIG", 3) == 0)
                name += 3;
        for (int n = 1; n < SIGRTMIN; n++) {
                const char *abbreviation = sigabbrev_np(n);

                if (abbreviation && strcmp(abbreviation, name) == 0)
                        return n;
        }
        if (strncmp(name, "RTMIN+", 6) == 0) {
                int offset;
                char end;

                if (sscanf(name + 6, "%2d%c", &offset, &end) == 1 && offset >= 0 && offset <= SIGRTMAX - SIGRTMIN)
                        return SIGRTMIN + offset;
        }
        return 0;
}

static int exit_code_of_failure(json_object *result) {
        const char *signal_name = get_string(result, "signal", NULL);
        int64_t status;

        if (get_string(result, "errno", NULL))
                return EXIT_CODE_NO_EXEC;
        if (signal_name) {
                int n = signal_from_name(signal_name);

                return n > 0 ? EXIT_CODE_SIGNAL(n) : EXIT_CODE_OURS;
        }
        status = get_int(result, "exit_status", 1);
        return status >= 1 && status <= 255 ? (int) status : EXIT_FAILURE;
}

int exit_code_of_result(json_object *result) {
        static const struct {
                const char *outcome;
                int exit_code;
        } table[] = {
                {"succeeded",        EXIT_SUCCESS       },
                {"timed-out",        EXIT_CODE_TIMED_OUT},
                {"budget-exhausted", EXIT_CODE_TIMED_OUT},
                {"cancelled",        EXIT_CODE_CANCELLED},
                {"out-of-memory",    EXIT_CODE_OOM      },
                {"vm-failed",        EXIT_CODE_OURS     },
        };
        const char *outcome = get_string(result, "outcome", "");

        if (strcmp(outcome, "failed") == 0)
                return exit_code_of_failure(result);
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (strcmp(outcome, table[i].outcome) == 0)
                        return table[i].exit_code;
        return EXIT_CODE_OURS;
}
