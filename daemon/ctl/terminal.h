/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is shown to people: colours where they are wanted, and bytes of guests made harmless. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum Colour {
        COLOUR_NONE, /* as the terminal has it */
        COLOUR_BOLD,
        COLOUR_DIM,
        COLOUR_RED,
        COLOUR_GREEN,
        COLOUR_YELLOW,
} Colour;

/* The sequences that begin and end it, or "" unless f is a terminal that may be coloured (NO_COLOR, TERM=dumb). */
const char *colour(FILE *f, Colour c);
const char *colour_end(FILE *f, Colour c);

/* Green for what went well, red for what did not, yellow for what somebody ended, nothing for what goes on. */
Colour colour_of_outcome(const char *outcome);

/* Text that came from elsewhere, printed so that it can neither move a cursor nor pretend. NULL prints as "-". */
void print_neutral(FILE *f, const char *text);

/* "ephemeralctl: " and a sentence, neutralised, on stderr. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
