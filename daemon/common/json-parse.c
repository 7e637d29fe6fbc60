/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * JSON text into json-c objects. json-c has a parser, but it takes the last of two equal keys without a word, knows NaN and
 * control characters in strings, and cannot say on which line an error is; a request is read by people and decides what a run
 * may touch, so it must mean one thing only. The text comes from any client: no recursion, every step is bounded by size and
 * JSON_DEPTH_MAX, and a fuzz target compares what is accepted here with what json-c makes of it.
 *
 * A container is put into its parent as soon as it opens; so the root owns everything at all times.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json-parser.h"
#include "common/neutral.h"

#define NUMBER_LENGTH_MAX 64U
#define KEY_SHOWN_MAX     64U

static void parser_done(JsonParser *p) {
        json_object_put(p->root);
        free(p->key);
        free(p->scratch);
        free(p->error);
}

/* Columns count characters, as an editor does. */
static unsigned column(const JsonParser *p, size_t at) {
        unsigned n = 1;

        for (size_t i = p->line_start; i < at; i++)
                if (((unsigned char) p->text[i] & 0xc0) != 0x80)
                        n++;
        return n;
}

int json_parser_fail(JsonParser *p, size_t at, const char *format, ...) {
        _cleanup_(freep) char *what = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&what, format, ap);
        va_end(ap);
        if (r < 0) {
                what = NULL;
                return -ENOMEM;
        }
        if (asprintf(&p->error, "line %u, column %u: %s%s", p->line, column(p, at), what,
                     at == p->size ? ", but the text ends here" : "") < 0) {
                p->error = NULL;
                return -ENOMEM;
        }
        return -EBADMSG;
}

static void skip_blank(JsonParser *p) {
        for (int c; (c = json_parser_peek(p)) == ' ' || c == '\t' || c == '\r' || c == '\n'; p->at++)
                if (c == '\n') {
                        p->line++;
                        p->line_start = p->at + 1;
                }
}

static json_object *innermost(const JsonParser *p) {
        return p->depth > 0 ? p->open[p->depth - 1] : NULL;
}

/* Puts value (NULL is `null`) where it belongs and takes it, also when it fails. */
static int attach(JsonParser *p, json_object *value) {
        json_object *parent = innermost(p);
        int r;

        /* A fraction keeps its text where the others keep their line. */
        if (value && !json_object_is_type(value, json_type_double))
                json_object_set_userdata(value, (void *) (uintptr_t) p->line, NULL);
        if (!parent) {
                p->root = value;
                return 0;
        }
        if (json_object_is_type(parent, json_type_object))
                r = json_object_object_add(parent, p->key, value);
        else
                r = json_object_array_add(parent, value);
        if (r < 0) {
                json_object_put(value);
                return -ENOMEM;
        }
        return 0;
}

static size_t skip_digits(JsonParser *p) {
        size_t start = p->at;

        for (int c; (c = json_parser_peek(p)) >= '0' && c <= '9';)
                p->at++;
        return p->at - start;
}

/* Walks over a number as RFC 8259 writes it. */
static int scan_number(JsonParser *p, bool *ret_fraction) {
        size_t start;

        if (json_parser_peek(p) == '-')
                p->at++;
        start = p->at;
        if (skip_digits(p) == 0)
                return json_parser_fail(p, p->at, "expected a digit after '-'");
        if (p->text[start] == '0' && p->at - start > 1)
                return json_parser_fail(p, start, "a number may not begin with 0");
        if (json_parser_peek(p) == '.') {
                *ret_fraction = true;
                p->at++;
                if (skip_digits(p) == 0)
                        return json_parser_fail(p, p->at, "expected a digit after '.'");
        }
        if (json_parser_peek(p) == 'e' || json_parser_peek(p) == 'E') {
                *ret_fraction = true;
                p->at++;
                if (json_parser_peek(p) == '+' || json_parser_peek(p) == '-')
                        p->at++;
                if (skip_digits(p) == 0)
                        return json_parser_fail(p, p->at, "expected a digit in the exponent");
        }
        return 0;
}

static json_object *number_new(const char *text, bool fraction) {
        errno = 0;
        if (fraction) {
                double d = strtod(text, NULL); /* no program of the suite sets LC_NUMERIC */

                if (!isfinite(d))
                        errno = ERANGE;
                return isfinite(d) ? json_object_new_double_s(d, text) : NULL;
        }
        if (text[0] == '-') {
                int64_t i = strtoll(text, NULL, 10);

                return errno == 0 ? json_object_new_int64(i) : NULL;
        } else {
                uint64_t u = strtoull(text, NULL, 10);

                if (errno != 0)
                        return NULL;
                return u <= INT64_MAX ? json_object_new_int64((int64_t) u) : json_object_new_uint64(u);
        }
}

static int parse_number(JsonParser *p) {
        char text[NUMBER_LENGTH_MAX + 1];
        size_t start = p->at;
        json_object *number;
        bool fraction = false;
        int r;

        r = scan_number(p, &fraction);
        if (r < 0)
                return r;
        if (p->at - start > NUMBER_LENGTH_MAX)
                return json_parser_fail(p, start, "a number of more than %u characters", NUMBER_LENGTH_MAX);
        memcpy(text, p->text + start, p->at - start);
        text[p->at - start] = 0;
        number = number_new(text, fraction);
        if (!number)
                return errno == ERANGE ? json_parser_fail(p, start, "a number too large for 64 bits") : -ENOMEM;
        return attach(p, number);
}

static int parse_literal(JsonParser *p) {
        static const char *const words[] = {"null", "false", "true"};

        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                size_t n = strlen(words[i]);
                json_object *o = NULL;

                if (p->size - p->at < n || memcmp(p->text + p->at, words[i], n) != 0)
                        continue;
                p->at += n;
                if (i > 0) {
                        o = json_object_new_boolean(i == 2);
                        if (!o)
                                return -ENOMEM;
                }
                return attach(p, o);
        }
        if (json_parser_peek(p) == '\'')
                return json_parser_fail(p, p->at, "expected a value; strings are in double quotes");
        return json_parser_fail(p, p->at, "expected a value");
}

static int parse_scalar(JsonParser *p) {
        int c = json_parser_peek(p), r;
        json_object *o;

        if (c == '-' || (c >= '0' && c <= '9'))
                return parse_number(p);
        if (c != '"')
                return parse_literal(p);
        r = json_parser_string(p);
        if (r < 0)
                return r;
        o = json_object_new_string_len(p->scratch, (int) p->scratch_size);
        return o ? attach(p, o) : -ENOMEM;
}

/* The key of a member and its colon. */
static int parse_key(JsonParser *p) {
        size_t start;
        int r;

        skip_blank(p);
        start = p->at;
        if (json_parser_peek(p) != '"')
                return json_parser_fail(p, p->at, "expected a key in double quotes");
        r = json_parser_string(p);
        if (r < 0)
                return r;
        if (memchr(p->scratch, 0, p->scratch_size))
                return json_parser_fail(p, start, "a key may not hold a NUL character");
        if (json_object_object_get_ex(innermost(p), p->scratch, NULL)) {
                size_t shown = p->scratch_size < KEY_SHOWN_MAX ? p->scratch_size : KEY_SHOWN_MAX;
                _cleanup_(freep) char *safe = neutralise_line(p->scratch, shown);

                return safe ? json_parser_fail(p, start, "key '%s' is there twice", safe) : -ENOMEM;
        }
        free(p->key);
        p->key = strdup(p->scratch);
        if (!p->key)
                return -ENOMEM;
        skip_blank(p);
        if (json_parser_peek(p) != ':')
                return json_parser_fail(p, p->at, "expected ':' after a key");
        p->at++;
        return 0;
}

static int open_container(JsonParser *p, bool object) {
        json_object *o;
        int r;

        if (p->depth == JSON_DEPTH_MAX)
                return json_parser_fail(p, p->at, "nested deeper than %u levels", JSON_DEPTH_MAX);
        o = object ? json_object_new_object() : json_object_new_array();
        if (!o)
                return -ENOMEM;
        r = attach(p, o);
        if (r < 0)
                return r;
        p->open[p->depth++] = o;
        p->at++;
        return 0;
}

static char closer(const JsonParser *p) {
        return json_object_is_type(innermost(p), json_type_object) ? '}' : ']';
}

/* Up to the next scalar or empty container; a container that is not empty opens and its first value follows. */
static int parse_value(JsonParser *p) {
        for (;;) {
                bool object;
                int r;

                skip_blank(p);
                if (json_parser_peek(p) != '{' && json_parser_peek(p) != '[')
                        return parse_scalar(p);
                object = json_parser_peek(p) == '{';
                r = open_container(p, object);
                if (r < 0)
                        return r;
                skip_blank(p);
                if (json_parser_peek(p) == closer(p))
                        return 0;
                r = object ? parse_key(p) : 0;
                if (r < 0)
                        return r;
        }
}

/* Closes what is complete. 1 when another value follows, 0 when the document is whole. */
static int after_value(JsonParser *p) {
        for (;;) {
                char close;

                skip_blank(p);
                if (p->depth == 0)
                        break;
                close = closer(p);
                if (json_parser_peek(p) == ',') {
                        int r;

                        p->at++;
                        r = close == '}' ? parse_key(p) : 0;
                        return r < 0 ? r : 1;
                }
                if (json_parser_peek(p) != close)
                        return json_parser_fail(p, p->at, "expected ',' or '%c' after a value", close);
                p->at++;
                p->depth--;
        }
        return p->at == p->size ? 0 : json_parser_fail(p, p->at, "expected nothing more after the value");
}

int json_parse(const char *text, size_t size, json_object **ret, char **reterr_text) {
        _cleanup_(parser_done) JsonParser p = {.text = text, .size = size, .line = 1};
        int r;

        if (size >= INT_MAX)
                return -ENOMEM;
        p.scratch = malloc(size + 1);
        if (!p.scratch)
                return -ENOMEM;
        do {
                r = parse_value(&p);
                if (r >= 0)
                        r = after_value(&p);
        } while (r > 0);
        if (r < 0) {
                *reterr_text = TAKE_PTR(p.error);
                return r;
        }
        *ret = TAKE_PTR(p.root);
        return 0;
}
