/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What people see. Everything that did not grow in this program - names, labels, messages of the bus, text of guests -
 * is printed by print_neutral() and its like, so that nothing of it can steer the terminal.
 */
#include "ctl/terminal.h"
#include "ctl/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/neutral.h"

static bool wants_colours(FILE *f) {
        const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

        return isatty(fileno(f)) && !(no_color && no_color[0]) && !(term && strcmp(term, "dumb") == 0);
}

const char *colour(FILE *f, Colour c) {
        static const char *const sequences[] = {
                [COLOUR_NONE] = "",          [COLOUR_BOLD] = "\033[1m",   [COLOUR_DIM] = "\033[2m",
                [COLOUR_RED] = "\033[1;31m", [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
        };

        return wants_colours(f) ? sequences[c] : "";
}

const char *colour_end(FILE *f, Colour c) {
        return c != COLOUR_NONE && wants_colours(f) ? "\033[0m" : "";
}

Colour colour_of_outcome(const char *outcome) {
        if (outcome[0] == 0)
                return COLOUR_NONE;
        if (strcmp(outcome, "succeeded") == 0)
                return COLOUR_GREEN;
        if (strcmp(outcome, "cancelled") == 0)
                return COLOUR_YELLOW;
        return COLOUR_RED;
}

void print_neutral(FILE *f, const char *text) {
        _cleanup_(freep) char *neutral = NULL;

        if (!text || text[0] == 0) {
                fputc('-', f);
                return;
        }
        neutral = neutralise_line(text, strlen(text));
        fputs(text_or(neutral, "(out of memory)"), f);
}

void print_error(const char *format, ...) {
        _cleanup_(freep) char *text = NULL, *neutral = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                text = NULL;
        else
                neutral = neutralise(text, (size_t) r);
        fflush(stdout);
        fprintf(stderr, "%sephemeralctl: %s%s\n", colour(stderr, COLOUR_RED), text_or(neutral, "out of memory"),
                colour_end(stderr, COLOUR_RED));
}
