/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Strings of JSON text: escapes resolved, UTF-8 checked. A part of json-parse.c.
 */
#include <errno.h>
#include <string.h>

#include "common/json-parser.h"

static int parse_hex4(JsonParser *p, unsigned *ret) {
        unsigned value = 0;

        for (size_t i = 0; i < 4; i++, p->at++) {
                int c = json_parser_peek(p);

                if (c >= '0' && c <= '9')
                        value = value << 4 | (unsigned) (c - '0');
                else if ((c | 32) >= 'a' && (c | 32) <= 'f')
                        value = value << 4 | (unsigned) ((c | 32) - 'a' + 10);
                else
                        return json_parser_fail(p, p->at, "expected four hexadecimal digits after \\u");
        }
        *ret = value;
        return 0;
}

static void put_utf8(JsonParser *p, unsigned c) {
        char *s = p->scratch + p->scratch_size;

        if (c < 0x80) {
                s[0] = (char) c;
                p->scratch_size += 1;
        } else if (c < 0x800) {
                s[0] = (char) (0xc0 | c >> 6);
                s[1] = (char) (0x80 | (c & 0x3f));
                p->scratch_size += 2;
        } else if (c < 0x10000) {
                s[0] = (char) (0xe0 | c >> 12);
                s[1] = (char) (0x80 | (c >> 6 & 0x3f));
                s[2] = (char) (0x80 | (c & 0x3f));
                p->scratch_size += 3;
        } else {
                s[0] = (char) (0xf0 | c >> 18);
                s[1] = (char) (0x80 | (c >> 12 & 0x3f));
                s[2] = (char) (0x80 | (c >> 6 & 0x3f));
                s[3] = (char) (0x80 | (c & 0x3f));
                p->scratch_size += 4;
        }
}

/* Behind "\u". */
static int parse_unicode_escape(JsonParser *p) {
        size_t start = p->at - 2;
        unsigned high, low;
        int r;

        r = parse_hex4(p, &high);
        if (r < 0)
                return r;
        if (high < 0xd800 || high > 0xdfff) {
                put_utf8(p, high);
                return 0;
        }
        if (high > 0xdbff || p->size - p->at < 2 || memcmp(p->text + p->at, "\\u", 2) != 0)
                return json_parser_fail(p, start,
                                        "half of a surrogate pair; expected \\uD800-\\uDBFF, then \\uDC00-\\uDFFF");
        p->at += 2;
        r = parse_hex4(p, &low);
        if (r < 0)
                return r;
        if (low < 0xdc00 || low > 0xdfff)
                return json_parser_fail(p, start,
                                        "half of a surrogate pair; expected \\uD800-\\uDBFF, then \\uDC00-\\uDFFF");
        put_utf8(p, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
        return 0;
}

/* At a backslash. */
static int parse_escape(JsonParser *p) {
        static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        const char *found;
        int c;

        p->at++;
        c = json_parser_peek(p);
        if (c == 'u') {
                p->at++;
                return parse_unicode_escape(p);
        }
        found = c > 0 ? strchr(escapes, c) : NULL;
        if (!found)
                return json_parser_fail(p, p->at, "expected one of \" \\ / b f n r t u after a backslash");
        p->at++;
        put_utf8(p, (unsigned char) meanings[found - escapes]);
        return 0;
}

int json_parser_string(JsonParser *p) {
        p->at++;
        p->scratch_size = 0;
        for (;;) {
                int c = json_parser_peek(p), r;
                size_t n;

                if (c == JSON_END)
                        return json_parser_fail(p, p->at, "expected '\"' at the end of a string");
                if (c == '"')
                        break;
                if (c < 0x20)
                        return json_parser_fail(p, p->at,
                                                "a control character in a string; written as \\u%04x it is right",
                                                (unsigned) c);
                if (c == '\\') {
                        r = parse_escape(p);
                        if (r < 0)
                                return r;
                        continue;
                }
                n = utf8_character_size(p->text + p->at, p->size - p->at);
                if (n == 0)
                        return json_parser_fail(p, p->at, "byte 0x%02x is not valid UTF-8 here", (unsigned) c);
                memcpy(p->scratch + p->scratch_size, p->text + p->at, n);
                p->scratch_size += n;
                p->at += n;
        }
        p->at++;
        p->scratch[p->scratch_size] = 0;
        return 0;
}
