/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Writing JSON: what json-c lacks. Bytes that come from a guest are text when they are UTF-8 and base64 when not, so that the
 * document is valid JSON and no byte is lost either way.
 */
#include "common/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

size_t utf8_character_size(const void *data, size_t size) {
        const uint8_t *p = data;
        size_t n;

        if (size == 0)
                return 0;
        if (p[0] < 0x80)
                return 1;
        n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : p[0] >= 0xe0 && p[0] <= 0xef ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
        if (n == 0 || size < n)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90)) /* overlong */
                return 0;
        if ((p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f)) /* surrogate, beyond U+10FFFF */
                return 0;
        return n;
}

size_t utf8_valid_prefix(const void *data, size_t size) {
        const uint8_t *p = data;
        size_t at = 0, n;

        while ((n = utf8_character_size(p + at, size - at)) > 0)
                at += n;
        return at;
}

void base64_encode(const void *data, size_t size, char *ret) {
        static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const uint8_t *p = data;

        for (size_t i = 0; i < size; i += 3) {
                uint32_t three = (uint32_t) p[i] << 16 | (i + 1 < size ? (uint32_t) p[i + 1] << 8 : 0) |
                                 (i + 2 < size ? p[i + 2] : 0);

                *ret++ = alphabet[three >> 18];
                *ret++ = alphabet[three >> 12 & 63];
                *ret++ = i + 1 < size ? alphabet[three >> 6 & 63] : '=';
                *ret++ = i + 2 < size ? alphabet[three & 63] : '=';
        }
        *ret = 0;
}

int json_add(json_object *object, const char *key, json_object *value) {
        if (!value)
                return -ENOMEM;
        if (json_object_object_add(object, key, value) < 0) {
                json_object_put(value);
                return -ENOMEM;
        }
        return 0;
}

int json_add_string(json_object *object, const char *key, const char *value) {
        return json_add(object, key, json_object_new_string(value));
}

int json_add_u64(json_object *object, const char *key, uint64_t value) {
        return json_add(object, key, json_object_new_uint64(value));
}

int json_add_bool(json_object *object, const char *key, bool value) {
        return json_add(object, key, json_object_new_boolean(value));
}

static int add_base64(json_object *object, const char *key, const void *data, size_t size) {
        _cleanup_(freep) char *long_key = NULL, *text = NULL;

        if (size > INT_MAX / 2)
                return -ENOMEM;
        text = malloc(BASE64_SIZE(size));
        if (!text)
                return -ENOMEM;
        if (asprintf(&long_key, "%s_base64", key) < 0) {
                long_key = NULL;
                return -ENOMEM;
        }
        base64_encode(data, size, text);
        return json_add_string(object, long_key, text);
}

int json_add_bytes(json_object *object, const char *key, const void *data, size_t size) {
        bool is_text =
                size <= INT_MAX && utf8_valid_prefix(data, size) == size && (size == 0 || !memchr(data, 0, size));

        if (!is_text)
                return add_base64(object, key, data, size);
        return json_add(object, key, json_object_new_string_len(size > 0 ? data : "", (int) size));
}

const char *json_text(json_object *object) {
        return json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
}
