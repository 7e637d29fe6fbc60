/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The list of verbs and everything that prints it: --help of the program and of each verb, and "did you mean".
 */
#include "ctl/help.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ctl/terminal.h"
#include "ctl/text.h"

#define NAME_SIZE_MAX 32
#define OPTION_COLUMN 30
#define SUGGEST_EDITS 3

const Verb *const verbs[] = {
        &verb_run,      &verb_list,   &verb_status,  &verb_timeline, &verb_result,    &verb_request,
        &verb_console,  &verb_cancel, &verb_kill,    &verb_validate, &verb_workflows, &verb_image,
        &verb_template, &verb_info,   &verb_version, NULL,
};

const Verb *verb_find(const char *name) {
        for (size_t i = 0; verbs[i]; i++)
                if (strcmp(verbs[i]->name, name) == 0)
                        return verbs[i];
        return NULL;
}

/* Levenshtein's distance, row by row. */
static size_t edit_distance(const char *a, const char *b) {
        size_t row[NAME_SIZE_MAX + 1], n = strlen(b);

        if (n > NAME_SIZE_MAX)
                return NAME_SIZE_MAX;
        for (size_t j = 0; j <= n; j++)
                row[j] = j;
        for (size_t i = 0; a[i]; i++) {
                size_t diagonal = row[0]++;

                for (size_t j = 1; j <= n; j++) {
                        size_t changed = diagonal + (a[i] != b[j - 1]);

                        diagonal = row[j];
                        if (row[j - 1] + 1 < changed)
                                changed = row[j - 1] + 1;
                        row[j] = row[j] + 1 < changed ? row[j] + 1 : changed;
                }
        }
        return row[n];
}

const Verb *verb_suggest(const char *name) {
        const Verb *best = NULL;
        size_t distance = SUGGEST_EDITS;

        if (name[0] == 0 || strlen(name) > NAME_SIZE_MAX)
                return NULL;
        for (size_t i = 0; verbs[i]; i++) {
                size_t d = edit_distance(name, verbs[i]->name);

                if (strncmp(verbs[i]->name, name, strlen(name)) == 0)
                        d = 1; /* the beginning of it */
                if (d < distance && d < strlen(verbs[i]->name)) {
                        best = verbs[i];
                        distance = d;
                }
        }
        return best;
}

static void help_options(const Option *options) {
        for (; options && options->id > 0; options++) {
                char left[64], letter[8] = "    ";

                if (options->letter)
                        snprintf(letter, sizeof(letter), "-%c, ", options->letter);
                snprintf(left, sizeof(left), "%s--%s%s%s", letter, options->name, options->argument ? "=" : "",
                         text_or(options->argument, ""));
                printf("  %-*s %s\n", OPTION_COLUMN, left, options->help);
        }
}

static void help_man_page(void) {
        puts("\nSee ephemeralctl(1) for details.");
}

void help_program(void) {
        printf("ephemeralctl [OPTIONS...] COMMAND ...\n\n"
               "%sRun code you do not trust in a microVM that exists for one run.%s\n\n%sCommands:%s\n",
               colour(stdout, COLOUR_BOLD), colour_end(stdout, COLOUR_BOLD), colour(stdout, COLOUR_BOLD),
               colour_end(stdout, COLOUR_BOLD));
        for (size_t i = 0; verbs[i]; i++) {
                char left[64];

                snprintf(left, sizeof(left), "%s %s", verbs[i]->name, verbs[i]->arguments);
                printf("  %-*s %s\n", OPTION_COLUMN, left, verbs[i]->summary);
        }
        printf("\n%sOptions:%s\n", colour(stdout, COLOUR_BOLD), colour_end(stdout, COLOUR_BOLD));
        help_options(options_common);
        help_options(options_global_only);
        puts("\nA run may be named by the beginning or the end of its id, as long as only one fits.\n"
             "'ephemeralctl COMMAND --help' tells more about each command.");
        help_man_page();
}

void help_verb(const Verb *verb) {
        printf("ephemeralctl %s [OPTIONS...]%s%s\n\n%s%s.%s\n", verb->name, verb->arguments[0] ? " " : "",
               verb->arguments, colour(stdout, COLOUR_BOLD), verb->summary, colour_end(stdout, COLOUR_BOLD));
        if (verb->more)
                printf("\n%s\n", verb->more);
        printf("\n%sOptions:%s\n", colour(stdout, COLOUR_BOLD), colour_end(stdout, COLOUR_BOLD));
        help_options(verb->options);
        help_options(options_common);
        help_man_page();
}

void help_version(void) {
        puts("ephemeralctl " EPHEMERAL_VERSION);
}
