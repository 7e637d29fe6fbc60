/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/neutral.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "common/cleanup.h"

/* The control sequences that terminals obey, and what else must not pass as it is. */
static const char *const hostile[] = {
        "\033[2J\033[H",                                /* CSI */
        "\033]52;c;ZXZpbA==\007",                       /* OSC 52: clipboard */
        "\033]8;;http://x\033\\y",                      /* OSC 8: link */
        "\033P$qm\033\\\033_apc\033\\",                 /* DCS, APC */
        "\302\2336n\2335n",                             /* C1, in UTF-8 and as a byte */
        "\342\200\256evil\342\201\246\330\234",         /* bidi */
        "\363\240\201\241tag",                          /* tag characters */
        "\377\376\300\257\355\240\200\364\220\200\200", /* not UTF-8 */
        "\r\n\b\177\016",
        "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
        "grün 中文 \U0001f600 \ufe0f",
        "cut \342\202",
        "lone \033",
};

static void expect(char *got, const char *wanted) {
        _cleanup_(freep) char *text = got;

        assert(text);
        if (strcmp(text, wanted) != 0) {
                fprintf(stderr, "got    <%s>\nwanted <%s>\n", text, wanted);
                abort();
        }
}

static void test_controls_are_shown(void) {
        expect(neutralise("\x1b[31mred\x07", 9), "^[[31mred^G");
        expect(neutralise("a\0b", 3), "a^@b");
        expect(neutralise("x\x7f\r", 3), "x^?^M");
        expect(neutralise("lone \x1b", 6), "lone ^[");
        expect(neutralise("\x9b\xc2\x9b", 3), "\\x9b\\x9b");
        expect(neutralise(NULL, 0), "");
}

static void test_newline_and_tab_are_kept_in_text_only(void) {
        expect(neutralise("a\n\tb", 4), "a\n\tb");
        expect(neutralise_line("a\n\tb", 4), "a^J\tb");
}

static void test_what_cannot_be_seen_is_shown(void) {
        expect(neutralise("\xe2\x80\xae", 3), "\\u202e");
        expect(neutralise("\xe2\x80\x8f\xd8\x9c\xe2\x81\xa9", 8), "\\u200f\\u061c\\u2069");
        expect(neutralise("\xf3\xa0\x81\xa1", 4), "\\U000e0061");
        expect(neutralise("\xef\xbb\xbf\xe2\x80\xa8", 6), "\\ufeff\\u2028");
}

static void test_invalid_utf8_is_shown_byte_by_byte(void) {
        expect(neutralise("\xff", 1), "\\xff");
        expect(neutralise("\xc0\xaf", 2), "\\xc0\\xaf");
        expect(neutralise("\xed\xa0\x80", 3), "\\xed\\xa0\\x80");
        expect(neutralise("\xf4\x90\x80\x80", 4), "\\xf4\\x90\\x80\\x80");
        expect(neutralise("\xe2\x82", 2), "\\xe2\\x82");
        expect(neutralise("\xe2\x28\xa1", 3), "\\xe2(\\xa1");
}

static void test_living_text_is_kept(void) {
        static const char text[] = "grün, 中文, é, \U0001f600, สวัสดีครับ, e\xcc\x81";

        expect(neutralise(text, strlen(text)), text);
}

static void test_a_heap_of_marks_is_cut(void) {
        enum { N = 1000000 };
        char *data = malloc(1 + 2 * N), *text;

        assert(data);
        data[0] = 'a';
        for (size_t i = 0; i < N; i++) {
                data[1 + 2 * i] = (char) 0xcc;
                data[2 + 2 * i] = (char) 0x81;
        }
        text = neutralise(data, 1 + 2 * N);
        assert(text);
        assert(strncmp(text + 1 + 2 * NEUTRAL_MARKS_MAX, "\\u0301\\u0301", 12) == 0);
        assert(strlen(text) == 1 + 2 * NEUTRAL_MARKS_MAX + 6 * (N - NEUTRAL_MARKS_MAX));
        free(text);
        free(data);
}

static void test_a_cut_anywhere_changes_nothing(void) {
        for (size_t i = 0; i < ELEMENTSOF(hostile); i++) {
                size_t size = strlen(hostile[i]);
                _cleanup_(freep) char *whole = neutralise(hostile[i], size);

                for (size_t a = 0; a <= size; a++)
                        for (size_t b = a; b <= size; b++) {
                                Neutraliser n = {0};
                                _cleanup_(freep) char *first = neutraliser_feed(&n, hostile[i], a);
                                _cleanup_(freep) char *second = neutraliser_feed(&n, hostile[i] + a, b - a);
                                _cleanup_(freep) char *third = neutraliser_feed(&n, hostile[i] + b, size - b);
                                _cleanup_(freep) char *rest = neutraliser_finish(&n);
                                _cleanup_(freep) char *joined = NULL;

                                assert(asprintf(&joined, "%s%s%s%s", first, second, third, rest) >= 0);
                                assert(strcmp(joined, whole) == 0);
                        }
        }
}

static void test_json_is_the_same_for_a_parser(void) {
        for (size_t i = 0; i < ELEMENTSOF(hostile); i++) {
                struct json_object *object = json_object_new_string(hostile[i]), *parsed;
                const char *json = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
                _cleanup_(freep) char *safe = neutralise_json(json, strlen(json));
                _cleanup_(freep) char *again = NULL;

                assert(safe);
                again = neutralise(safe, strlen(safe));
                assert(strcmp(safe, again) == 0);
                parsed = json_tokener_parse(safe);
                assert(parsed);
                if (!strchr(hostile[i], '\xff') && !strstr(hostile[i], "\x9b\x35") && !strstr(hostile[i], "cut"))
                        assert(strcmp(json_object_get_string(parsed), hostile[i]) == 0);
                json_object_put(parsed);
                json_object_put(object);
        }
        expect(neutralise_json("\"\xf3\xa0\x81\xa1\xff\"", 7), "\"\\udb40\\udc61\\ufffd\"");
}

int main(void) {
        test_controls_are_shown();
        test_newline_and_tab_are_kept_in_text_only();
        test_what_cannot_be_seen_is_shown();
        test_invalid_utf8_is_shown_byte_by_byte();
        test_living_text_is_kept();
        test_a_heap_of_marks_is_cut();
        test_a_cut_anywhere_changes_nothing();
        test_json_is_the_same_for_a_parser();
        return 0;
}
