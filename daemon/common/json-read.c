/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Reading a parsed document: each accessor checks type and range and, when it is wrong, writes the one sentence that the
 * person who wrote the document needs: which key, on which line, what was expected, what was found. Used for requests,
 * workflows and manifests.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/neutral.h"

#define SHOWN_MAX 48U /* bytes of a value or key that a message repeats */

unsigned json_line(json_object *o) {
        if (!o || json_object_is_type(o, json_type_double)) /* its userdata is its text */
                return 0;
        return (unsigned) (uintptr_t) json_object_get_userdata(o);
}

void json_reader_done(JsonReader *reader) {
        free(reader->error);
        reader->error = NULL;
}

/* At most SHOWN_MAX bytes of text that may be anything, fit for a message. */
static char *show_text(const char *text, size_t size) {
        size_t n = 0, step;
        _cleanup_(freep) char *safe = NULL;
        char *shown;

        while (n < size && (step = utf8_character_size(text + n, size - n)) > 0 && n + step <= SHOWN_MAX)
                n += step;
        safe = neutralise_line(text, n);
        if (!safe || asprintf(&shown, "%s%s", safe, n < size ? "…" : "") < 0)
                return NULL;
        return shown;
}

/* What was found instead, for ", got %s". */
static char *show_value(json_object *o) {
        _cleanup_(freep) char *text = NULL;
        char *shown;

        switch (json_object_get_type(o)) {
        case json_type_object:
                return strdup("an object");
        case json_type_array:
                return strdup("an array");
        case json_type_string:
                text = show_text(json_object_get_string(o), (size_t) json_object_get_string_len(o));
                return text && asprintf(&shown, "\"%s\"", text) >= 0 ? shown : NULL;
        case json_type_null:
        case json_type_boolean:
        case json_type_double:
        case json_type_int:
        default:
                return strdup(o ? json_object_get_string(o) : "null");
        }
}

/* "FILE:LINE: key 'PATH'", "request key 'PATH'" or, on a later line, "request key 'PATH' on line N". */
static char *place(const JsonReader *reader, unsigned line, const char *path) {
        _cleanup_(freep) char *shown = NULL;
        char at[32] = "", *text;
        int r;

        if (line > 0 && reader->file)
                (void) snprintf(at, sizeof(at), ":%u", line);
        else if (line > 1)
                (void) snprintf(at, sizeof(at), " on line %u", line);
        shown = show_text(path, strlen(path));
        if (!shown)
                return NULL;
        if (reader->file && !*path)
                r = asprintf(&text, "%s%s", reader->file, at);
        else if (reader->file)
                r = asprintf(&text, "%s%s: %s '%s'", reader->file, at, reader->what, shown);
        else if (!*path)
                r = asprintf(&text, "top level%s", at);
        else
                r = asprintf(&text, "%s '%s'%s", reader->what, shown, at);
        return r < 0 ? NULL : text;
}

int json_read_fail(JsonReader *reader, json_object *o, const char *path, const char *format, ...) {
        _cleanup_(freep) char *where = NULL, *what = NULL;
        va_list ap;
        int r;

        if (reader->error)
                return -EBADMSG;
        va_start(ap, format);
        r = vasprintf(&what, format, ap);
        va_end(ap);
        if (r < 0) {
                what = NULL;
                return -ENOMEM;
        }
        where = place(reader, json_line(o), path);
        if (!where || asprintf(&reader->error, "%s: %s", where, what) < 0) {
                reader->error = NULL;
                return -ENOMEM;
        }
        return -EBADMSG;
}

static int fail_expected(JsonReader *reader, json_object *value, const char *path, const char *expected) {
        _cleanup_(freep) char *shown = show_value(value);

        if (!shown)
                return -ENOMEM;
        return json_read_fail(reader, value, path, "expected %s, got %s", expected, shown);
}

/* 1 with the value (NULL is `null`), 0 when the key is absent. */
static int lookup(JsonReader *reader, json_object *object, const char *path, json_object **ret) {
        const char *dot = strrchr(path, '.');

        if (reader->error)
                return -EBADMSG;
        return json_object_object_get_ex(object, dot ? dot + 1 : path, ret) ? 1 : 0;
}

int json_read_bool(JsonReader *reader, json_object *object, const char *path, bool *ret) {
        json_object *o;
        int r;

        r = lookup(reader, object, path, &o);
        if (r <= 0)
                return r;
        if (!json_object_is_type(o, json_type_boolean))
                return fail_expected(reader, o, path, "true or false");
        *ret = json_object_get_boolean(o);
        return 1;
}

int json_read_u64(
        JsonReader *reader, json_object *object, const char *path, uint64_t min, uint64_t max, uint64_t *ret) {
        char expected[256];
        json_object *o;
        uint64_t u;
        int r;

        r = lookup(reader, object, path, &o);
        if (r <= 0)
                return r;
        if (json_object_is_type(o, json_type_int)) {
                u = json_object_get_uint64(o); /* 0 for what is negative */
                if (json_object_get_int64(o) >= 0 && u >= min && u <= max) {
                        *ret = u;
                        return 1;
                }
        }
        (void) snprintf(expected, sizeof(expected), "a whole number from %" PRIu64 " to %" PRIu64 "%s%s%s", min, max,
                        reader->bounds ? " (" : "", reader->bounds ? reader->bounds : "", reader->bounds ? ")" : "");
        return fail_expected(reader, o, path, expected);
}

static int as_bytes(
        JsonReader *reader, json_object *o, const char *path, size_t max, const char **ret, size_t *ret_size) {
        size_t size;

        if (!json_object_is_type(o, json_type_string))
                return fail_expected(reader, o, path, "a string");
        size = (size_t) json_object_get_string_len(o);
        if (size > max)
                return json_read_fail(reader, o, path, "expected at most %zu bytes, got %zu", max, size);
        *ret = json_object_get_string(o);
        *ret_size = size;
        return 0;
}

int json_as_string(JsonReader *reader, json_object *value, const char *path, size_t max, const char **ret) {
        const char *text, *nul;
        size_t size;
        int r;

        if (reader->error)
                return -EBADMSG;
        r = as_bytes(reader, value, path, max, &text, &size);
        if (r < 0)
                return r;
        nul = memchr(text, 0, size);
        if (nul)
                return json_read_fail(reader, value, path,
                                      "expected a string without NUL characters, got one after %zu bytes",
                                      (size_t) (nul - text));
        *ret = text;
        return 0;
}

int json_read_string(JsonReader *reader, json_object *object, const char *path, size_t max, const char **ret) {
        json_object *o;
        int r;

        r = lookup(reader, object, path, &o);
        if (r <= 0)
                return r;
        r = json_as_string(reader, o, path, max, ret);
        return r < 0 ? r : 1;
}

int json_read_bytes(
        JsonReader *reader, json_object *object, const char *path, size_t max, const char **ret, size_t *ret_size) {
        json_object *o;
        int r;

        r = lookup(reader, object, path, &o);
        if (r <= 0)
                return r;
        r = as_bytes(reader, o, path, max, ret, ret_size);
        return r < 0 ? r : 1;
}

int json_read_object(JsonReader *reader, json_object *object, const char *path, json_object **ret) {
        json_object *o;
        int r;

        r = lookup(reader, object, path, &o);
        if (r <= 0)
                return r;
        if (!json_object_is_type(o, json_type_object))
                return fail_expected(reader, o, path, "an object");
        *ret = o;
        return 1;
}

int json_read_array(JsonReader *reader, json_object *object, const char *path, size_t max, json_object **ret) {
        json_object *o;
        size_t n;
        int r;

        r = lookup(reader, object, path, &o);
        if (r <= 0)
                return r;
        if (!json_object_is_type(o, json_type_array))
                return fail_expected(reader, o, path, "an array");
        n = json_object_array_length(o);
        if (n == 0 || n > max)
                return json_read_fail(reader, o, path, "expected 1 to %zu entries, got %zu", max, n);
        *ret = o;
        return 1;
}

int json_read_root(JsonReader *reader, json_object *root) {
        if (reader->error)
                return -EBADMSG;
        return json_object_is_type(root, json_type_object) ? 0 : fail_expected(reader, root, "", "an object");
}

/* Levenshtein's distance, for short names; more than SHOWN_MAX characters are far from everything. */
static size_t distance(const char *a, const char *b) {
        size_t row[SHOWN_MAX + 1], n_a = strlen(a), n_b = strlen(b);

        if (n_a > SHOWN_MAX || n_b > SHOWN_MAX)
                return SIZE_MAX;
        for (size_t j = 0; j <= n_b; j++)
                row[j] = j;
        for (size_t i = 1; i <= n_a; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= n_b; j++) {
                        size_t best = diagonal + (a[i - 1] != b[j - 1]);

                        diagonal = row[j];
                        if (row[j] + 1 < best)
                                best = row[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        row[j] = best;
                }
        }
        return row[n_b];
}

static const char *nearest(const char *key, const char *const *allowed) {
        size_t best = strlen(key) / 2 + 1; /* farther is a different word */
        const char *found = NULL;

        for (; *allowed; allowed++) {
                size_t d = distance(key, *allowed);

                /* "memory" means "memory_mib" */
                if (strncmp(key, *allowed, strlen(key)) == 0 && strlen(key) >= 3)
                        d = 0;
                if (d < best) {
                        best = d;
                        found = *allowed;
                }
        }
        return found;
}

static int fail_unknown(
        JsonReader *reader, json_object *o, const char *path, const char *key, const char *const *allowed) {
        _cleanup_(freep) char *full = NULL, *all = NULL;
        const char *near = nearest(key, allowed);
        size_t size;
        FILE *f;

        if (asprintf(&full, "%s%s%s", path, *path ? "." : "", key) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        f = open_memstream(&all, &size);
        if (!f)
                return -ENOMEM;
        for (size_t i = 0; allowed[i]; i++)
                (void) fprintf(f, "%s%s", i > 0 ? ", " : "", allowed[i]);
        if (fclose(f) != 0)
                return -ENOMEM;
        if (near)
                return json_read_fail(reader, o, full, "no such key; did you mean '%s'? (There are: %s)", near, all);
        return json_read_fail(reader, o, full, "no such key; there are: %s", all);
}

int json_read_only(JsonReader *reader, json_object *object, const char *path, const char *const *allowed) {
        struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);

        if (reader->error)
                return -EBADMSG;
        for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
                const char *key = json_object_iter_peek_name(&at);
                size_t i = 0;

                while (allowed[i] && strcmp(allowed[i], key) != 0)
                        i++;
                if (!allowed[i])
                        return fail_unknown(reader, json_object_iter_peek_value(&at), path, key, allowed);
        }
        return 0;
}
