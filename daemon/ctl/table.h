/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Columns on stdout. Cells are neutralised when they are added, so widths are those of what is shown. */

#include <stddef.h>

#include "common/cleanup.h"
#include "ctl/terminal.h"

typedef struct Table Table;

/* header: names of the columns, ends with NULL. NULL: out of memory. */
Table *table_new(const char *const *header);
Table *table_free(Table *table);
DEFINE_CLEANUP(Table *, table_free);

/* Cells go from left to right, a new row begins when one is full. NULL and "" show as "-". 0 or -ENOMEM. */
int table_add(Table *table, const char *text, Colour colour);

/* The last column is not padded. */
void table_print(const Table *table);

/* "     Name: value", names set to the right, as in `systemctl status`; a value of several lines stays in its column.
 * NULL and "": the line is left out. */
void print_field(const char *name, const char *value);
void print_field_coloured(const char *name, const char *value, Colour colour);
