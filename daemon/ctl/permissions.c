/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The permission table. What a request does not grant is said, too: "none" and "off" are what a reader looks for.
 */
#include "ctl/permissions.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "ctl/output.h"
#include "ctl/table.h"
#include "ctl/text.h"

static json_object *get(json_object *object, const char *key) {
        json_object *v = NULL;

        json_object_object_get_ex(object, key, &v);
        return v;
}

static json_object *get_array(json_object *object, const char *key) {
        json_object *v = get(object, key);

        return json_object_is_type(v, json_type_array) ? v : NULL;
}

/* Appends to a string on the heap; NULL stays NULL once memory is short. */
static char *append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static char *append(char *text, const char *format, ...) {
        _cleanup_(freep) char *old = text, *more = NULL;
        char *both;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&more, format, ap);
        va_end(ap);
        if (r < 0) {
                more = NULL;
                return NULL;
        }
        return old && asprintf(&both, "%s%s", old, more) >= 0 ? both : NULL;
}

/* As one would type it into a shell, when it needs quotes. */
static char *append_word(char *text, const char *word) {
        const char *blank = text && text[0] ? " " : "";

        if (word[0] &&
            strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == strlen(word))
                return append(text, "%s%s", blank, word);
        text = append(text, "%s'", blank);
        for (const char *p = word; *p; p++)
                text = *p == '\'' ? append(text, "'\\''") : append(text, "%c", *p);
        return append(text, "'");
}

static char *append_words(char *text, json_object *array) {
        for (size_t i = 0; i < json_object_array_length(array); i++)
                text = append_word(text, text_or(json_object_get_string(json_object_array_get_idx(array, i)), ""));
        return text;
}

char *describe_command(json_object *request) {
        json_object *input = get(request, "input"), *argv = get_array(input, "argv"), *script = get(input, "script"),
                    *interpreter = get(input, "interpreter");
        char *text = strdup("");

        if (argv)
                return append_words(text, argv);
        if (!json_object_is_type(script, json_type_string))
                return text;
        text = append(text, "script of %d bytes", json_object_get_string_len(script));
        if (!interpreter)
                return text;
        text = append(text, " for");
        if (json_object_is_type(interpreter, json_type_array))
                return append_words(text, interpreter);
        return append(text, " %s", json_object_get_string(interpreter));
}

static void print_list(const char *name, json_object *array, const char *key, const char *none) {
        _cleanup_(freep) char *text = NULL;
        size_t n = array ? json_object_array_length(array) : 0;

        if (n == 0) {
                print_field(name, none);
                return;
        }
        text = strdup("");
        for (size_t i = 0; i < n; i++) {
                json_object *entry = json_object_array_get_idx(array, i);
                const char *s = key ? get_string(entry, key, "?") : json_object_get_string(entry);

                text = append(text, "%s%s", i > 0 ? "\n" : "", text_or(s, "?"));
        }
        print_field(name, text);
}

static void print_connections(json_object *array) {
        _cleanup_(freep) char *text = NULL;

        if (!array || json_object_array_length(array) == 0) {
                print_field("Connections", "none");
                return;
        }
        text = strdup("");
        for (size_t i = 0; i < json_object_array_length(array); i++) {
                json_object *entry = json_object_array_get_idx(array, i), *methods = get_array(entry, "methods");

                text = append(text, "%s%s:", i > 0 ? "\n" : "", get_string(entry, "name", "?"));
                for (size_t j = 0; methods && j < json_object_array_length(methods); j++)
                        text = append(text, "%s %s", j > 0 ? "," : "",
                                      text_or(json_object_get_string(json_object_array_get_idx(methods, j)), "?"));
        }
        print_field("Connections", text);
}

static void print_vm(json_object *vm) {
        char text[256];

        if (!json_object_is_type(vm, json_type_object))
                return;
        print_field("Image", get_string(vm, "image", NULL));
        snprintf(text, sizeof(text), "%" PRId64 " vCPU, %" PRId64 " MiB memory, %" PRId64 " MiB disk",
                 get_int(vm, "vcpus", 1), get_int(vm, "memory_mib", 0), get_int(vm, "disk_mib", 0));
        print_field("VM", text);
        print_field("Guest user", json_object_get_boolean(get(vm, "root")) ? "root" : "uid 1000");
}

static void print_labels(json_object *labels) {
        _cleanup_(freep) char *text = strdup("");

        if (!json_object_is_type(labels, json_type_object))
                return;
        json_object_object_foreach (labels, key, value) {
                text = append(text, "%s%s=%s", text && text[0] ? "\n" : "", key,
                              text_or(json_object_get_string(value), ""));
        }
        print_field("Labels", text);
}

void print_permissions(json_object *request) {
        _cleanup_(freep) char *command = describe_command(request);
        int64_t timeout = get_int(request, "timeout_seconds", 0), budget = get_int(request, "max_cost_micros", -1);
        char text[TEXT_SIZE];

        print_field("Workflow", get_string(request, "workflow", NULL));
        print_field("Command", command);
        print_list("Files", get_array(request, "files"), "path", "none");
        print_connections(get_array(request, "connections"));
        print_list("Web access", get_array(get(request, "web"), "domains"), NULL, "off");
        /* A command of the caller's is at liberty to start others; only an agent can be denied the shell. */
        if (get(request, "shell"))
                print_field("Shell", json_object_get_boolean(get(request, "shell")) ? "yes" : "no");
        print_field("Budget", budget < 0 ? "not limited" : text_micros(text, (uint64_t) budget));
        print_field("Timeout", timeout > 0 ? text_duration(text, (uint64_t) timeout * USEC_PER_SEC) : "-");
        print_vm(get(request, "vm"));
        print_labels(get(request, "labels"));
}
