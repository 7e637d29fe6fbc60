/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Text from a guest made safe for a person's terminal and for the journal (`journalctl -o cat` writes bytes raw).
 *
 * What comes out is valid UTF-8 without a NUL in which these are written visibly: C0 as `^[` (DEL as `^?`), C1 as
 * `\x9b` (as one byte and in UTF-8), invalid UTF-8 byte by byte as `\xff`, bidi controls, invisible format
 * characters, line separators and noncharacters as `\u202e`, and combining marks from the NEUTRAL_MARKS_MAX + 1st of
 * a run on. Tabs are kept, newlines in all but the line form. A person reads it; it is not meant to be turned back
 * (a literal `^[` looks the same).
 *
 * The functions are pure, need O(size) time and at most NEUTRAL_EXPANSION bytes for one. Two calls may run at once. */

#include <stddef.h>
#include <stdint.h>

#define NEUTRAL_MARKS_MAX 8 /* combining marks kept in a row: enough for any living script */
#define NEUTRAL_EXPANSION 4 /* the most bytes that one byte may become */

/* malloc'd; NULL only when out of memory. data may be NULL when size is 0. */
char *neutralise(const char *data, size_t size);
char *neutralise_line(const char *data, size_t size); /* one line: newline is `^J` */

/* JSON text with the same characters escaped as JSON (`\u202e`, an invalid byte as `\ufffd`): equal for a parser,
 * safe for a terminal, valid UTF-8 as D-Bus wants it. `json` must be what json-c wrote without pretty printing. */
char *neutralise_json(const char *json, size_t size);

/* For a stream in chunks: a character split between two chunks is held back and comes out, whole, with the next.
 * Start from zeroes. */
typedef struct Neutraliser {
        uint8_t held[4];
        uint8_t n_held;
        uint8_t n_marks;
} Neutraliser;

/* Text for this chunk (newlines kept), malloc'd; NULL only when out of memory, the state is then as before. */
char *neutraliser_feed(Neutraliser *n, const char *data, size_t size);

/* What is still held back, as text; often empty. The state is as new afterwards. */
char *neutraliser_finish(Neutraliser *n);
