/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* JSON in: a strict, bounded reader that makes json-c objects, and accessors whose errors say where and what would be right.
 * JSON out: json-c itself; json_text() and json_add_bytes() are what it lacks. */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

#define JSON_DEPTH_MAX 32U

static inline void json_put(json_object *o) {
        json_object_put(o);
}

DEFINE_CLEANUP(json_object *, json_put);

/* Parses exactly one value of RFC 8259 JSON. Refused beyond that: duplicate keys, NUL in keys, lone surrogates, nesting deeper
 * than JSON_DEPTH_MAX, whole numbers that do not fit into 64 bits. The caller bounds size. A string may hold NUL ("\u0000"):
 * json_read_string() refuses it, json_read_bytes() does not.
 * 0 (*ret is NULL for `null`); -EBADMSG with a text such as "line 3, column 14: expected ',' or '}' after a value" that the
 * caller frees; -ENOMEM. Every object but `null` and fractions knows its line: json_line(). For that the objects bear json-c
 * "userdata", with which json_object_deep_copy() refuses to work. */
int json_parse(const char *text, size_t size, json_object **ret, char **reterr_text);

/* The line of the document on which a parsed value began; 0 when unknown. */
unsigned json_line(json_object *o);

/* Reads values by key. The first error is kept as text, ready to show; after it every accessor fails. */
typedef struct JsonReader {
        const char *what;   /* how a key is called: "request key" */
        const char *file;   /* put before with the line, "FILE:LINE: "; NULL: the document came without a file */
        const char *bounds; /* what sets the ranges of numbers, "limits of workflow 'x'"; NULL: nothing to say */
        char *error;
} JsonReader;

void json_reader_done(JsonReader *reader);

/* In all of these: object holds the key; path names the key in full from the top ("vm.memory_mib"), its last label is looked
 * up. 1 when it is there and right, 0 when it is absent (*ret untouched), -EBADMSG when it is wrong (reader->error), -ENOMEM. */
int json_read_bool(JsonReader *reader, json_object *object, const char *path, bool *ret);
int json_read_u64(
        JsonReader *reader, json_object *object, const char *path, uint64_t min, uint64_t max, uint64_t *ret);
/* Borrowed from the object; at most max bytes, no NUL. */
int json_read_string(JsonReader *reader, json_object *object, const char *path, size_t max, const char **ret);
/* The same with any byte; *ret_size does not count the NUL behind it. */
int json_read_bytes(
        JsonReader *reader, json_object *object, const char *path, size_t max, const char **ret, size_t *ret_size);
int json_read_object(JsonReader *reader, json_object *object, const char *path, json_object **ret);
/* An array of 1 … max entries. */
int json_read_array(JsonReader *reader, json_object *object, const char *path, size_t max, json_object **ret);
/* The value itself instead of its place: an entry of an array, a member whose key is data. 0 or as above. */
int json_as_string(JsonReader *reader, json_object *value, const char *path, size_t max, const char **ret);
/* 0 when root is an object. */
int json_read_root(JsonReader *reader, json_object *root);

/* Refuses any key of object that is not in allowed (ends with NULL), naming the nearest one and all of them. path "" is the
 * top. 0, or as above. */
int json_read_only(JsonReader *reader, json_object *object, const char *path, const char *const *allowed);

/* Notes an error of the caller's about a key, in the readers' form. o (may be NULL) gives the line. -EBADMSG or -ENOMEM. */
int json_read_fail(JsonReader *reader, json_object *o, const char *path, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Adds KEY with the text when data is UTF-8 without NUL, else KEY_base64. 0 or -ENOMEM. */
int json_add_bytes(json_object *object, const char *key, const void *data, size_t size);

/* Adds and takes value; frees it when the addition fails. NULL for value is what a failed json_object_new_*() left: -ENOMEM.
 * So: `r = json_add(o, "pid", json_object_new_int64(pid));` */
int json_add(json_object *object, const char *key, json_object *value);
int json_add_string(json_object *object, const char *key, const char *value);
int json_add_u64(json_object *object, const char *key, uint64_t value);
int json_add_bool(json_object *object, const char *key, bool value);

/* The text on one line, slashes not escaped; borrowed from the object until it changes. NULL when memory is short. */
const char *json_text(json_object *object);

/* UTF-8 as RFC 3629 has it: no surrogates, nothing overlong. Bytes of the first character (0: invalid, cut short or
 * nothing there), and of all the valid ones at the start. */
size_t utf8_character_size(const void *data, size_t size);
size_t utf8_valid_prefix(const void *data, size_t size);

/* Bytes that base64_encode() writes, with the NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)
void base64_encode(const void *data, size_t size, char *ret);
