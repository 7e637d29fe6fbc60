/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tables and lists of fields for people.
 */
#include "ctl/table.h"
#include "ctl/text.h"

#include <errno.h>
#include <string.h>

#include "common/neutral.h"

#define COLUMNS_MAX 8
#define FIELD_WIDTH 12

typedef struct Cell {
        char *text;
        Colour colour;
} Cell;

struct Table {
        Cell *cells; /* row after row */
        size_t n, room;
        size_t n_columns;
        size_t widths[COLUMNS_MAX];
};

/* Columns on a terminal, as far as that can be told without a table of characters: no UTF-8 continuation bytes. */
static size_t text_width(const char *text) {
        size_t n = 0;

        for (; *text; text++)
                n += ((unsigned char) *text & 0xc0) != 0x80;
        return n;
}

Table *table_new(const char *const *header) {
        _cleanup_(table_freep) Table *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        while (t->n_columns < COLUMNS_MAX && header[t->n_columns])
                t->n_columns++;
        for (size_t i = 0; i < t->n_columns; i++)
                if (table_add(t, header[i], COLOUR_BOLD) < 0)
                        return NULL;
        return TAKE_PTR(t);
}

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < t->n; i++)
                free(t->cells[i].text);
        free(t->cells);
        free(t);
        return NULL;
}

int table_add(Table *t, const char *text, Colour c) {
        size_t column = t->n % t->n_columns, width;
        char *neutral;

        if (t->n == t->room) {
                Cell *grown = reallocarray(t->cells, 2 * t->room + 64, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                t->cells = grown;
                t->room = 2 * t->room + 64;
        }
        if (!text || text[0] == 0)
                text = "-";
        neutral = neutralise_line(text, strlen(text));
        if (!neutral)
                return -ENOMEM;
        width = text_width(neutral);
        if (width > t->widths[column])
                t->widths[column] = width;
        t->cells[t->n++] = (Cell){neutral, c};
        return 0;
}

void table_print(const Table *t) {
        for (size_t i = 0; i < t->n; i++) {
                size_t column = i % t->n_columns;
                bool last = column + 1 == t->n_columns;

                printf("%s%s%s", colour(stdout, t->cells[i].colour), t->cells[i].text,
                       colour_end(stdout, t->cells[i].colour));
                if (last)
                        putchar('\n');
                else
                        printf("%*s", (int) (t->widths[column] - text_width(t->cells[i].text)) + 2, "");
        }
}

void print_field_coloured(const char *name, const char *value, Colour c) {
        _cleanup_(freep) char *neutral = NULL;

        if (!value || value[0] == 0)
                return;
        neutral = neutralise(value, strlen(value));
        printf("%*s: %s", FIELD_WIDTH, name, colour(stdout, c));
        for (const char *p = text_or(neutral, "(out of memory)"); *p; p++) {
                putchar(*p);
                if (*p == '\n')
                        printf("%*s", FIELD_WIDTH + 2, "");
        }
        printf("%s\n", colour_end(stdout, c));
}

void print_field(const char *name, const char *value) {
        print_field_coloured(name, value, COLOUR_NONE);
}
