/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl run: the options. What they mean is in run-request.c, what then happens in session.c.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "common/strv.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/session.h"
#include "ctl/terminal.h"

enum {
        RUN_TIMEOUT = 1,
        RUN_MEMORY,
        RUN_CPUS,
        RUN_DISK,
        RUN_IMAGE,
        RUN_ROOT,
        RUN_ENV,
        RUN_LABEL,
        RUN_STDIN,
        RUN_SCRIPT,
        RUN_INTERPRETER,
        RUN_REQUEST,
        RUN_QUIET,
        RUN_VERBOSE,
        RUN_RAW,
};

static const Option run_options[] = {
        {RUN_TIMEOUT,     't', "timeout",     "SECONDS",    "End the run after this long (also 90s, 5min, 1h)"       },
        {RUN_MEMORY,      'm', "memory",      "MIB",        "Memory of the microVM (also 512M, 1G)"                  },
        {RUN_CPUS,        'c', "cpus",        "N",          "Processors of the microVM"                              },
        {RUN_DISK,        0,   "disk",        "MIB",        "How much the run may write, in its memory (also 64M)"   },
        {RUN_IMAGE,       0,   "image",       "NAME",       "Image to boot, see 'ephemeralctl image list'"           },
        {RUN_ROOT,        0,   "root",        NULL,         "Run as root inside the microVM"                         },
        {RUN_ENV,         'e', "env",         "NAME=VALUE", "Set a variable; NAME alone passes on the one here"      },
        {RUN_LABEL,       'l', "label",       "NAME=VALUE", "Attach a label to the run"                              },
        {RUN_STDIN,       'i', "stdin",       NULL,         "Pass standard input on"                                 },
        {RUN_SCRIPT,      0,   "script",      "FILE",       "Run a script; - reads it from standard input"           },
        {RUN_INTERPRETER, 0,   "interpreter", "COMMAND",    "What runs the script (default: its #! line, or a shell)"},
        {RUN_REQUEST,     0,   "request",     "FILE",       "Send this request (JSON); options change it"            },
        {RUN_QUIET,       'q', "quiet",       NULL,         "No timeline on the terminal"                            },
        {RUN_VERBOSE,     'v', "verbose",     NULL,         "The timeline on stderr, also when it is no terminal"    },
        {RUN_RAW,         0,   "raw",         NULL,         "Control characters reach the terminal as they are"      },
        {0,               0,   NULL,          NULL,         NULL                                                     },
};

/* 0, -EINVAL (no number), -ENOMEM */
static int take_option(RunOptions *o, int option, const char *value) {
        switch (option) {
        case RUN_TIMEOUT:
                o->has_timeout = true;
                return parse_seconds(value, &o->timeout_seconds);
        case RUN_MEMORY:
                o->has_memory = true;
                return parse_mebibytes(value, &o->memory_mib);
        case RUN_CPUS:
                o->has_vcpus = true;
                return parse_number(value, &o->vcpus);
        case RUN_DISK:
                o->has_disk = true;
                return parse_mebibytes(value, &o->disk_mib);
        case RUN_IMAGE:
                o->image = value;
                return 0;
        case RUN_ROOT:
                o->root = true;
                return 0;
        case RUN_ENV:
                return strv_add(&o->environment, value);
        case RUN_LABEL:
                return strv_add(&o->labels, value);
        case RUN_STDIN:
                o->stdin_open = true;
                return 0;
        case RUN_SCRIPT:
                o->script = value;
                return 0;
        case RUN_INTERPRETER:
                o->interpreter = value;
                return 0;
        case RUN_REQUEST:
                o->request = value;
                return 0;
        case RUN_QUIET:
                o->quiet = true;
                return 0;
        case RUN_VERBOSE:
                o->verbose = true;
                return 0;
        default: /* RUN_RAW */
                o->raw = true;
                return 0;
        }
}

/* What contradicts itself, as a sentence; NULL: all is well. */
static const char *find_contradiction(const RunOptions *o) {
        bool reads_stdin = (o->script && strcmp(o->script, "-") == 0) || (o->request && strcmp(o->request, "-") == 0);
        int n = (o->command != NULL) + (o->script != NULL) + (o->request != NULL);

        if (n == 0)
                return "What shall run? Give a command after '--', or --script=FILE, or --request=FILE.";
        if (n > 1)
                return "A command, --script and --request exclude each other.";
        if (o->interpreter && !o->script)
                return "--interpreter goes with --script.";
        if (o->stdin_open && reads_stdin)
                return "Standard input cannot be both the file and the run's input.";
        if (o->quiet && o->verbose)
                return "--quiet and --verbose exclude each other.";
        return NULL;
}

static int run_with(Ctl *ctl, const RunOptions *options) {
        _cleanup_(freep) char *request = NULL, *error = NULL;
        int r;

        r = run_request_make(options, &request, &error);
        if (r < 0) {
                print_error("%s", error ? error : strerror(-r));
                return EXIT_CODE_REFUSED;
        }
        r = client_open(ctl);
        return r != 0 ? r : session_run(ctl, options, request);
}

static int run(Ctl *ctl, int argc, char *argv[]) {
        _cleanup_(run_options_done) RunOptions options = {0};
        const char *value, *contradiction;
        int option, r;

        while ((option = options_next(ctl, argc, argv, &value)) > 0) {
                r = take_option(&options, option, value);
                if (r == -EINVAL)
                        return usage_error(ctl, "'%s' is no number that --%s understands.", value,
                                           run_options[option - 1].name);
                if (r < 0)
                        return client_failed(NULL, r);
        }
        if (option < 0)
                return options_exit_code(ctl, option);
        if (optind < argc)
                options.command = argv + optind;
        contradiction = find_contradiction(&options);
        if (contradiction)
                return usage_error(ctl, "%s", contradiction);
        return run_with(ctl, &options);
}

const Verb verb_run = {
        .name = "run",
        .arguments = "[--] COMMAND...",
        .summary = "Run a command or a script in a fresh microVM",
        .more = "The command's output goes to stdout and stderr as it comes. On a terminal, control characters of it\n"
                "are shown instead of obeyed, and the run's timeline appears on stderr. With --json the events, "
                "output\n"
                "included, are what stdout gets. Ctrl-C cancels the run, a second one leaves without waiting.\n\n"
                "Exit code: the command's own; 128+N if signal N ended it; 124 timed out; 125 the microVM or the\n"
                "service failed; 126 request refused; 127 the command could not be executed; 130 cancelled;\n"
                "137 out of memory.",
        .options = run_options,
        .command_follows = true,
        .usage_exit_code = EXIT_CODE_REFUSED,
        .run = run,
};
