/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What all verbs of ephemeralctl share: one Ctl per call of the program, one Verb per file verb-*.c. */

#include <stdbool.h>

#include <systemd/sd-bus.h>

#include "common/cleanup.h"

/* docs/design.md, section 17.5 */
#define EXIT_CODE_USAGE     2 /* verbs other than run */
#define EXIT_CODE_TIMED_OUT 124
#define EXIT_CODE_OURS      125
#define EXIT_CODE_REFUSED   126
#define EXIT_CODE_NO_EXEC   127
#define EXIT_CODE_CANCELLED 130
#define EXIT_CODE_OOM       137
#define EXIT_CODE_SIGNAL(n) (128 + (n))

typedef struct Option {
        int id;     /* what options_next() returns for it, > 0; 0 ends a table */
        int letter; /* its short form, or 0 */
        const char *name;
        const char *argument; /* how the help calls its value; NULL: it takes none */
        const char *help;
} Option;

typedef struct Ctl Ctl;

typedef struct Verb {
        const char *name;
        const char *arguments;
        const char *summary;   /* one line, for the list of verbs */
        const char *more;      /* sentences for its own help, or NULL */
        const Option *options; /* or NULL */
        bool command_follows;  /* the first operand ends the options: what follows is someone else's */
        int usage_exit_code;
        /* argv[0] is the verb. Returns the exit code of the program. */
        int (*run)(Ctl *ctl, int argc, char *argv[]);
} Verb;

struct Ctl {
        const Verb *verb;
        bool json;
        bool ask_password;
        sd_bus *bus; /* client_open() */
};

extern const Verb verb_run, verb_list, verb_status, verb_timeline, verb_cancel, verb_kill, verb_console, verb_result,
        verb_request, verb_validate, verb_image, verb_template, verb_workflows, verb_info, verb_version;
