/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl: finds the verb and hands over. Each verb is a file verb-*.c; what they share is below them.
 */
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/help.h"
#include "ctl/options.h"

static int unknown_verb(const char *name) {
        const Verb *near = verb_suggest(name);

        fprintf(stderr, "ephemeralctl: there is no command '");
        for (const char *p = name; *p; p++)
                fputc(*p >= ' ' && *p <= '~' ? *p : '?', stderr);
        if (near)
                fprintf(stderr, "'. Did you mean '%s'?\n", near->name);
        else
                fprintf(stderr, "'. 'ephemeralctl --help' lists them.\n");
        return EXIT_CODE_USAGE;
}

static int run_verb(Ctl *ctl, int argc, char *argv[]) {
        char name[64];
        int r;

        ctl->verb = verb_find(argv[0]);
        if (!ctl->verb)
                return unknown_verb(argv[0]);
        snprintf(name, sizeof(name), "ephemeralctl %s", ctl->verb->name); /* for messages of getopt_long() */
        argv[0] = name;
        optind = 0; /* begin anew */
        r = ctl->verb->run(ctl, argc, argv);
        client_close(ctl);
        return r;
}

int main(int argc, char *argv[]) {
        static char program[] = "ephemeralctl";
        Ctl ctl = {.ask_password = true};
        int r;

        setlocale(LC_ALL, "");
        signal(SIGPIPE, SIG_DFL); /* may have been inherited as ignored */
        if (argc > 0)
                argv[0] = program;
        r = options_global(&ctl, argc, argv);
        if (r < 0)
                return options_exit_code(&ctl, r);
        if (optind >= argc) {
                help_program();
                return EXIT_CODE_USAGE;
        }
        r = run_verb(&ctl, argc - optind, argv + optind);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                perror("ephemeralctl: cannot write to standard output");
                return r != 0 ? r : EXIT_FAILURE;
        }
        return r;
}
