/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What json_parse() takes, json-c's own parser takes too, with the same result; and what it wrote out, it reads back.
 * Texts with surrogate pairs are not compared: json-c 0.16 takes some characters beyond U+FFFF (U+1DA00) for half a pair.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_against_json_c(const char *text, size_t size, json_object *ours) {
        json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX + 1);
        _cleanup_(json_putp) json_object *theirs = NULL;

        assert(tokener);
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
        theirs = json_tokener_parse_ex(tokener, text, (int) size);
        if (json_tokener_get_error(tokener) == json_tokener_continue) /* a number at the end may go on */
                theirs = json_tokener_parse_ex(tokener, "", 1);
        /* json-c 0.18 takes some good characters ("\xda\xa3") for bad ones */
        if (json_tokener_get_error(tokener) != json_tokener_error_parse_utf8_string) {
                assert(json_tokener_get_error(tokener) == json_tokener_success);
                assert(json_object_equal(ours, theirs));
        }
        json_tokener_free(tokener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(json_putp) json_object *o = NULL, *again = NULL;
        _cleanup_(freep) char *error = NULL;
        const char *text;
        int r;

        r = json_parse((const char *) data, size, &o, &error);
        if (r < 0) {
                assert(r == -EBADMSG && error && !o);
                assert(utf8_valid_prefix(error, strlen(error)) == strlen(error));
                return 0;
        }
        assert(!error);
        if (!memmem(data, size, "\\ud", 3) && !memmem(data, size, "\\uD", 3))
                check_against_json_c((const char *) data, size, o);
        text = o ? json_text(o) : "null";
        assert(json_parse(text, strlen(text), &again, &error) == 0);
        assert(json_object_equal(o, again));
        return 0;
}
