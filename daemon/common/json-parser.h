/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What json-parse.c and json-string.c share; nobody else needs it. */

#include "common/json.h"

#define JSON_END (-1)

typedef struct JsonParser {
        const char *text;
        size_t size;
        size_t at;
        unsigned line;
        size_t line_start;
        json_object *root;
        json_object *open[JSON_DEPTH_MAX]; /* borrowed from the root */
        size_t depth;
        char *key;     /* of the next value, when open[depth - 1] is an object */
        char *scratch; /* the string being decoded; never longer than the text */
        size_t scratch_size;
        char *error;
} JsonParser;

/* The next byte, or JSON_END. */
static inline int json_parser_peek(const JsonParser *p) {
        return p->at < p->size ? (unsigned char) p->text[p->at] : JSON_END;
}

/* Notes the error at an offset of the current line. -EBADMSG or -ENOMEM. */
int json_parser_fail(JsonParser *p, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* At the opening quote; leaves the text in scratch, with a NUL behind it. */
int json_parser_string(JsonParser *p);
