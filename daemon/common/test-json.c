/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"

static void refused_as(const char *text, size_t size, const char *expected) {
        _cleanup_(freep) char *error = NULL;
        json_object *o = NULL;
        int r = json_parse(text, size, &o, &error);

        if (r != -EBADMSG || strcmp(error, expected) != 0) {
                fprintf(stderr, "%.*s\n expected: %s\n got:      %s\n", (int) size, text, expected,
                        error ? error : "-");
                assert(false);
        }
        assert(!o);
}

static void refused(const char *text, const char *expected) {
        refused_as(text, strlen(text), expected);
}

static json_object *parsed(const char *text) {
        _cleanup_(freep) char *error = NULL;
        json_object *o = NULL;
        int r = json_parse(text, strlen(text), &o, &error);

        if (r != 0)
                fprintf(stderr, "%s: %s\n", text, error);
        assert(r == 0);
        return o;
}

static void same(const char *text, const char *expected) {
        _cleanup_(json_putp) json_object *o = parsed(text);

        assert(strcmp(o ? json_text(o) : "null", expected) == 0);
}

static void valid_json_is_read(void) {
        same("null", "null");
        same(" true ", "true");
        same("[]", "[]");
        same("{}", "{}");
        same("[[],{},[{}]]", "[[],{},[{}]]");
        same("{\"a\":1,\"b\":[1,2.50,-3e2,\"x\"],\"c\":{\"d\":null,\"e\":false}}\r\n\t",
             "{\"a\":1,\"b\":[1,2.50,-3e2,\"x\"],\"c\":{\"d\":null,\"e\":false}}");
        same("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\n\\/\"", "\"Aé€😀\\n/\"");
        same("\"\"", "\"\"");
        same("0", "0");
        same("-0", "0");
        same("9223372036854775807", "9223372036854775807");
        same("-9223372036854775808", "-9223372036854775808");
        same("18446744073709551615", "18446744073709551615");
}

static void errors_say_line_and_column(void) {
        refused("{\"a\": 1\n \"b\": 2}", "line 2, column 2: expected ',' or '}' after a value");
        refused("{\"é\": x}", "line 1, column 7: expected a value");
        refused("", "line 1, column 1: expected a value, but the text ends here");
        refused("[1,\n2", "line 2, column 2: expected ',' or ']' after a value, but the text ends here");
        refused("[1,]", "line 1, column 4: expected a value");
        refused("{\"a\":1,}", "line 1, column 8: expected a key in double quotes");
        refused("{\"a\" 1}", "line 1, column 6: expected ':' after a key");
        refused("{a:1}", "line 1, column 2: expected a key in double quotes");
        refused("['a']", "line 1, column 2: expected a value; strings are in double quotes");
        refused("[1} ", "line 1, column 3: expected ',' or ']' after a value");
        refused("{}\n{}", "line 2, column 1: expected nothing more after the value");
        refused("truex", "line 1, column 5: expected nothing more after the value");
        refused("// c\n1", "line 1, column 1: expected a value");
        refused("\xef\xbb\xbf{}", "line 1, column 1: expected a value");
}

static void keys_are_there_once(void) {
        refused("{\"a\":1,\"b\":2,\"a\":3}", "line 1, column 14: key 'a' is there twice");
        refused("{\"a\":1,\"\\u0061\":3}", "line 1, column 8: key 'a' is there twice");
        refused("{\"a\":null,\"a\":null}", "line 1, column 11: key 'a' is there twice");
        refused("{\"a\\u0000b\":1}", "line 1, column 2: a key may not hold a NUL character");
        same("{\"a\":{\"a\":1},\"b\":{\"a\":1}}", "{\"a\":{\"a\":1},\"b\":{\"a\":1}}");
}

static void strings_are_utf8_without_half_characters(void) {
        refused("\"\\ud800\"",
                "line 1, column 2: half of a surrogate pair; expected \\uD800-\\uDBFF, then \\uDC00-\\uDFFF");
        refused("\"\\udc00\"",
                "line 1, column 2: half of a surrogate pair; expected \\uD800-\\uDBFF, then \\uDC00-\\uDFFF");
        refused("\"\\ud800\\u0041\"",
                "line 1, column 2: half of a surrogate pair; expected \\uD800-\\uDBFF, then \\uDC00-\\uDFFF");
        refused("\"\\ud800",
                "line 1, column 2: half of a surrogate pair; expected \\uD800-\\uDBFF, then \\uDC00-\\uDFFF");
        refused("\"a\xff\"", "line 1, column 3: byte 0xff is not valid UTF-8 here");
        refused("\"\xed\xa0\x80\"", "line 1, column 2: byte 0xed is not valid UTF-8 here");
        refused("\"\xc0\x80\"", "line 1, column 2: byte 0xc0 is not valid UTF-8 here");
        refused("\"\xf4\x90\x80\x80\"", "line 1, column 2: byte 0xf4 is not valid UTF-8 here");
        refused("\"\xe2\x82\"", "line 1, column 2: byte 0xe2 is not valid UTF-8 here");
        refused("\"a\nb\"", "line 1, column 3: a control character in a string; written as \\u000a it is right");
        refused_as("\"a\0\"", 4, "line 1, column 3: a control character in a string; written as \\u0000 it is right");
        refused("\"\\x\"", "line 1, column 3: expected one of \" \\ / b f n r t u after a backslash");
        refused_as("\"\\\0\"", 4, "line 1, column 3: expected one of \" \\ / b f n r t u after a backslash");
        refused("\"\\u00g0\"", "line 1, column 6: expected four hexadecimal digits after \\u");
        refused("\"abc", "line 1, column 5: expected '\"' at the end of a string, but the text ends here");
        refused("\"\\",
                "line 1, column 3: expected one of \" \\ / b f n r t u after a backslash, but the text ends here");
}

static void numbers_are_those_of_the_rfc_and_fit(void) {
        refused("01", "line 1, column 1: a number may not begin with 0");
        refused("-", "line 1, column 2: expected a digit after '-', but the text ends here");
        refused("+1", "line 1, column 1: expected a value");
        refused(".5", "line 1, column 1: expected a value");
        refused("[1.]", "line 1, column 4: expected a digit after '.'");
        refused("[1e]", "line 1, column 4: expected a digit in the exponent");
        refused("NaN", "line 1, column 1: expected a value");
        refused("-Infinity", "line 1, column 2: expected a digit after '-'");
        refused("0x10", "line 1, column 2: expected nothing more after the value");
        refused("18446744073709551616", "line 1, column 1: a number too large for 64 bits");
        refused("-9223372036854775809", "line 1, column 1: a number too large for 64 bits");
        refused("1e999", "line 1, column 1: a number too large for 64 bits");
        refused("1.00000000000000000000000000000000000000000000000000000000000000000",
                "line 1, column 1: a number of more than 64 characters");
}

static void depth_is_bounded(void) {
        char text[2 * JSON_DEPTH_MAX + 3] = "";

        memset(text, '[', JSON_DEPTH_MAX);
        memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
        same(text, text);
        memset(text, '[', JSON_DEPTH_MAX + 1);
        memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
        refused(text, "line 1, column 33: nested deeper than 32 levels");
}

static void values_know_their_line(void) {
        _cleanup_(json_putp) json_object *o = parsed("{\n\"a\":\n \"x\", \"b\": [\n1,\n2.5]}");
        json_object *b = json_object_object_get(o, "b");

        assert(json_line(o) == 1);
        assert(json_line(json_object_object_get(o, "a")) == 3);
        assert(json_line(b) == 3);
        assert(json_line(json_object_array_get_idx(b, 0)) == 4);
        assert(json_line(json_object_array_get_idx(b, 1)) == 0);
        assert(json_line(NULL) == 0);
        assert(strcmp(json_text(o), "{\"a\":\"x\",\"b\":[1,2.5]}") == 0);
}

/* Reads vm.n from 64 to 128. */
static void number_refused(const char *text, const char *file, const char *expected) {
        _cleanup_(json_putp) json_object *o = parsed(text);
        JsonReader reader = {.what = "request key", .file = file};
        uint64_t n = 7;

        assert(json_read_u64(&reader, json_object_object_get(o, "vm"), "vm.n", 64, 128, &n) == -EBADMSG);
        if (strcmp(reader.error, expected) != 0)
                fprintf(stderr, "expected: %s\ngot:      %s\n", expected, reader.error);
        assert(strcmp(reader.error, expected) == 0);
        assert(n == 7);
        json_reader_done(&reader);
}

static void accessors_say_key_range_and_what_they_got(void) {
        number_refused("{\"vm\":{\"n\":\"big\"}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got \"big\"");
        number_refused("{\"vm\":{\"n\":63}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got 63");
        number_refused("{\"vm\":{\"n\":129}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got 129");
        number_refused("{\"vm\":{\"n\":-64}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got -64");
        number_refused("{\"vm\":{\"n\":64.0}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got 64.0");
        number_refused("{\"vm\":{\"n\":18446744073709551615}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got 18446744073709551615");
        number_refused("{\"vm\":{\"n\":null}}", NULL,
                       "request key 'vm.n': expected a whole number from 64 to 128, got null");
        number_refused("{\"vm\":{\n\"n\":[]}}", NULL,
                       "request key 'vm.n' on line 2: expected a whole number from 64 to 128, got an array");
        number_refused("{\"vm\":{\n\"n\":{}}}", "/x.json",
                       "/x.json:2: request key 'vm.n': expected a whole number from 64 to 128, got an object");
        number_refused(
                "{\"vm\":{\"n\":\"\\u001b[2Jéééééééééééééééééééééééééééééééééé\"}}", NULL,
                "request key 'vm.n': expected a whole number from 64 to 128, got \"^[[2Jéééééééééééééééééééééé…\"");
}

static void accessors_take_what_is_right(void) {
        _cleanup_(json_putp) json_object *o =
                parsed("{\"a\":64,\"b\":128,\"t\":true,\"s\":\"abc\",\"z\":\"a\\u0000b\",\"l\":[1],\"o\":{}}");
        JsonReader reader = {.what = "key"};
        json_object *found = NULL;
        const char *s = NULL;
        bool yes = false;
        uint64_t n;
        size_t size;

        assert(json_read_u64(&reader, o, "a", 64, 128, &n) == 1 && n == 64);
        assert(json_read_u64(&reader, o, "b", 64, 128, &n) == 1 && n == 128);
        assert(json_read_u64(&reader, o, "none", 64, 128, &n) == 0 && n == 128);
        assert(json_read_bool(&reader, o, "t", &yes) == 1 && yes);
        assert(json_read_string(&reader, o, "s", 3, &s) == 1 && strcmp(s, "abc") == 0);
        assert(json_read_bytes(&reader, o, "z", 3, &s, &size) == 1 && size == 3 && memcmp(s, "a\0b", 3) == 0);
        assert(json_read_array(&reader, o, "l", 1, &found) == 1 && json_object_array_length(found) == 1);
        assert(json_read_object(&reader, o, "o", &found) == 1 && json_object_object_length(found) == 0);
        assert(json_read_root(&reader, o) == 0);
        assert(!reader.error);
}

static void wrong(int r, JsonReader *reader, const char *expected) {
        assert(r == -EBADMSG);
        if (strcmp(reader->error, expected) != 0)
                fprintf(stderr, "expected: %s\ngot:      %s\n", expected, reader->error);
        assert(strcmp(reader->error, expected) == 0);
        json_reader_done(reader);
}

static void accessors_refuse_what_is_wrong(void) {
        _cleanup_(json_putp) json_object *o =
                parsed("{\"n\":1,\"s\":\"abcd\",\"z\":\"a\\u0000b\",\"e\":[],\"l\":[1,2]}");
        JsonReader reader = {.what = "key"};
        json_object *found;
        const char *s;
        bool yes;

        wrong(json_read_bool(&reader, o, "n", &yes), &reader, "key 'n': expected true or false, got 1");
        wrong(json_read_string(&reader, o, "n", 3, &s), &reader, "key 'n': expected a string, got 1");
        wrong(json_read_string(&reader, o, "s", 3, &s), &reader, "key 's': expected at most 3 bytes, got 4");
        wrong(json_read_string(&reader, o, "z", 3, &s), &reader,
              "key 'z': expected a string without NUL characters, got one after 1 bytes");
        wrong(json_read_array(&reader, o, "e", 1, &found), &reader, "key 'e': expected 1 to 1 entries, got 0");
        wrong(json_read_array(&reader, o, "l", 1, &found), &reader, "key 'l': expected 1 to 1 entries, got 2");
        wrong(json_read_object(&reader, o, "l", &found), &reader, "key 'l': expected an object, got an array");
        wrong(json_read_array(&reader, o, "s", 1, &found), &reader, "key 's': expected an array, got \"abcd\"");
        wrong(json_read_root(&reader, NULL), &reader, "top level: expected an object, got null");
}

static void the_first_error_is_the_one_that_is_told(void) {
        _cleanup_(json_putp) json_object *o = parsed("{\"n\":1,\"m\":2}");
        JsonReader reader = {.what = "key"};
        uint64_t n;
        bool yes;

        assert(json_read_bool(&reader, o, "n", &yes) == -EBADMSG);
        assert(json_read_u64(&reader, o, "m", 0, 9, &n) == -EBADMSG);
        wrong(json_read_bool(&reader, o, "m", &yes), &reader, "key 'n': expected true or false, got 1");
}

static void unknown_keys_are_named_with_what_was_meant(void) {
        static const char *const allowed[] = {"memory_mib", "vcpus", NULL};
        _cleanup_(json_putp) json_object *typo = parsed("{\"vcpu\":1}"), *part = parsed("{\"memory\":1}"),
                                         *far = parsed("{\"net\\u001b\":1}"), *good = parsed("{\"vcpus\":1}");
        JsonReader reader = {.what = "key"};

        wrong(json_read_only(&reader, typo, "vm", allowed), &reader,
              "key 'vm.vcpu': no such key; did you mean 'vcpus'? (There are: memory_mib, vcpus)");
        wrong(json_read_only(&reader, part, "", allowed), &reader,
              "key 'memory': no such key; did you mean 'memory_mib'? (There are: memory_mib, vcpus)");
        wrong(json_read_only(&reader, far, "vm", allowed), &reader,
              "key 'vm.net^[': no such key; there are: memory_mib, vcpus");
        assert(json_read_only(&reader, good, "vm", allowed) == 0);
}

static void bytes_become_text_or_base64(void) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();

        assert(json_add_bytes(o, "a", "x/é\n", 5) == 0);
        assert(json_add_bytes(o, "b", "\xff", 1) == 0);
        assert(json_add_bytes(o, "c", "a\0", 2) == 0);
        assert(json_add_bytes(o, "d", NULL, 0) == 0);
        assert(json_add_bytes(o, "e", "\xc3", 1) == 0);
        assert(strcmp(json_text(o), "{\"a\":\"x/é\\n\",\"b_base64\":\"/w==\",\"c_base64\":\"YQA=\",\"d\":\"\","
                                    "\"e_base64\":\"ww==\"}") == 0);
}

static void base64_is_that_of_rfc_4648(void) {
        static const char *const vectors[][2] = {
                {"",       ""        },
                {"f",      "Zg=="    },
                {"fo",     "Zm8="    },
                {"foo",    "Zm9v"    },
                {"foob",   "Zm9vYg=="},
                {"fooba",  "Zm9vYmE="},
                {"foobar", "Zm9vYmFy"}
        };
        char text[BASE64_SIZE(6)];

        for (size_t i = 0; i < ELEMENTSOF(vectors); i++) {
                base64_encode(vectors[i][0], strlen(vectors[i][0]), text);
                assert(strcmp(text, vectors[i][1]) == 0);
                assert(strlen(text) + 1 == BASE64_SIZE(strlen(vectors[i][0])));
        }
}

static void adding_says_when_memory_was_short(void) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();

        assert(json_add(o, "a", NULL) == -ENOMEM);
        assert(json_add_u64(o, "n", UINT64_MAX) == 0);
        assert(json_add_bool(o, "b", true) == 0);
        assert(json_add_string(o, "s", "x") == 0);
        assert(strcmp(json_text(o), "{\"n\":18446744073709551615,\"b\":true,\"s\":\"x\"}") == 0);
}

int main(void) {
        valid_json_is_read();
        errors_say_line_and_column();
        keys_are_there_once();
        strings_are_utf8_without_half_characters();
        numbers_are_those_of_the_rfc_and_fit();
        depth_is_bounded();
        values_know_their_line();
        accessors_say_key_range_and_what_they_got();
        accessors_take_what_is_right();
        accessors_refuse_what_is_wrong();
        the_first_error_is_the_one_that_is_told();
        unknown_keys_are_named_with_what_was_meant();
        bytes_become_text_or_base64();
        base64_is_that_of_rfc_4648();
        adding_says_when_memory_was_short();
        return 0;
}
