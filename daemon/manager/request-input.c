/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `input` of the workflow `command`: what is executed, with which environment and standard input. The limits are those of
 * execve(2) in the guest and of the frames that carry it there, told here, before anything is started.
 *
 * All of argv together needs no limit of its own: decoded, it is never longer than the request.
 */
#include "manager/request-input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/strv.h"

static const char *const input_keys[] = {"argv", "script", "interpreter", "stdin", "env", NULL};

/* An array of strings, the first of which is a program. */
static int read_command(JsonReader *reader, json_object *input, const char *path, size_t max, char ***ret) {
        _cleanup_(strv_freep) char **argv = NULL;
        json_object *array;
        size_t n;
        int r;

        r = json_read_array(reader, input, path, max, &array);
        if (r <= 0)
                return r;
        n = json_object_array_length(array);
        argv = calloc(n + 1, sizeof(char *));
        if (!argv)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                json_object *value = json_object_array_get_idx(array, i);
                const char *text;
                char where[64];

                (void) snprintf(where, sizeof(where), "%s[%zu]", path, i);
                r = json_as_string(reader, value, where, REQUEST_ARG_SIZE_MAX, &text);
                if (r < 0)
                        return r;
                if (i == 0 && !*text)
                        return json_read_fail(reader, value, where, "expected a program, got an empty string");
                argv[i] = strdup(text);
                if (!argv[i])
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(argv);
        return 1;
}

/* A path, or an array with arguments; /bin/sh without. */
static int read_interpreter(JsonReader *reader, json_object *input, char ***ret) {
        const char *path = "/bin/sh";
        json_object *value;
        int r;

        if (json_object_object_get_ex(input, "interpreter", &value)) {
                if (json_object_is_type(value, json_type_array)) {
                        r = read_command(reader, input, "input.interpreter", REQUEST_ARGV_MAX - 1, ret);
                        return r < 0 ? r : 0;
                }
                if (!json_object_is_type(value, json_type_string))
                        return json_read_fail(
                                reader, value, "input.interpreter",
                                "expected a path such as \"/usr/bin/python3\", or an array: the path and "
                                "its arguments");
                r = json_as_string(reader, value, "input.interpreter", REQUEST_ARG_SIZE_MAX, &path);
                if (r < 0)
                        return r;
                if (!*path)
                        return json_read_fail(reader, value, "input.interpreter",
                                              "expected a path such as \"/usr/bin/python3\", got an empty string");
        }
        return strv_add(ret, path);
}

static int copy_bytes(const char *data, size_t size, char **ret, size_t *ret_size) {
        char *copy = malloc(size + 1);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, data, size);
        copy[size] = 0;
        *ret = copy;
        *ret_size = size;
        return 0;
}

static int read_script(JsonReader *reader, json_object *input, Request *request) {
        const char *script;
        size_t size;
        int r;

        r = json_read_bytes(reader, input, "input.script", REQUEST_SCRIPT_SIZE_MAX, &script, &size);
        if (r < 0)
                return r;
        if (size == 0)
                return json_read_fail(reader, json_object_object_get(input, "script"), "input.script",
                                      "expected a script, got an empty string");
        r = copy_bytes(script, size, &request->script, &request->script_size);
        if (r < 0)
                return r;
        r = read_interpreter(reader, input, &request->argv);
        return r < 0 ? r : strv_add(&request->argv, REQUEST_SCRIPT_PATH);
}

static int read_what(JsonReader *reader, json_object *input, Request *request) {
        bool argv = json_object_object_get_ex(input, "argv", NULL), script;
        json_object *interpreter;
        int r;

        script = json_object_object_get_ex(input, "script", NULL);
        if (argv && script)
                return json_read_fail(reader, input, "input", "expected either 'argv' or 'script', got both");
        if (script)
                return read_script(reader, input, request);
        if (json_object_object_get_ex(input, "interpreter", &interpreter))
                return json_read_fail(reader, interpreter, "input.interpreter",
                                      "is for a 'script', and there is none");
        if (!argv)
                return json_read_fail(reader, input, "input",
                                      "expected 'argv', such as [\"uname\", \"-a\"], or 'script', got neither");
        r = read_command(reader, input, "input.argv", REQUEST_ARGV_MAX, &request->argv);
        return r < 0 ? r : 0;
}

static int read_stdin(JsonReader *reader, json_object *input, Request *request) {
        const char *data = "";
        size_t size = 0;
        int r;

        r = json_read_bytes(reader, input, "input.stdin", REQUEST_SIZE_MAX, &data, &size);
        return r < 0 ? r : copy_bytes(data, size, &request->stdin_data, &request->stdin_size);
}

static int compare_pairs(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static int read_members(JsonReader *reader, json_object *object, const RequestPairs *pairs, const char **ret) {
        struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
        int r;

        for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
                const char *name = json_object_iter_peek_name(&at), *text;
                json_object *value = json_object_iter_peek_value(&at);
                _cleanup_(freep) char *path = NULL;

                if (asprintf(&path, "%s.%s", pairs->path, name) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                r = json_as_string(reader, value, path, pairs->size_max, &text);
                if (r < 0)
                        return r;
                r = pairs->check(reader, value, path, name, text);
                if (r < 0)
                        return r;
                *ret++ = name;
                *ret++ = text;
        }
        return 0;
}

int request_read_pairs(JsonReader *reader, json_object *root, const RequestPairs *pairs, const char ***ret) {
        _cleanup_(freep) const char **all = NULL;
        json_object *object = NULL;
        size_t n;
        int r;

        r = json_read_object(reader, root, pairs->path, &object);
        if (r < 0)
                return r;
        n = r > 0 ? (size_t) json_object_object_length(object) : 0;
        if (n > pairs->max)
                return json_read_fail(reader, object, pairs->path, "expected at most %zu entries, got %zu; %s",
                                      pairs->max, n, pairs->cure);
        all = calloc(2 * n + 1, sizeof(char *));
        if (!all)
                return -ENOMEM;
        if (n > 0) {
                r = read_members(reader, object, pairs, all);
                if (r < 0)
                        return r;
                qsort(all, n, 2 * sizeof(char *), compare_pairs);
        }
        *ret = TAKE_PTR(all);
        return 0;
}

static int check_variable(
        JsonReader *reader, json_object *value, const char *path, const char *name, const char *text) {
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

        if (!*name || strspn(name, allowed) != strlen(name) || (*name >= '0' && *name <= '9'))
                return json_read_fail(reader, value, path,
                                      "not a name of a variable; expected letters, digits and '_', no digit first");
        if (strlen(name) + 1 + strlen(text) > REQUEST_ARG_SIZE_MAX)
                return json_read_fail(reader, value, path, "expected at most %u bytes with its name, got %zu",
                                      REQUEST_ARG_SIZE_MAX, strlen(name) + 1 + strlen(text));
        return 0;
}

static int read_env(JsonReader *reader, json_object *input, Request *request) {
        static const RequestPairs pairs = {.path = "input.env",
                                           .max = REQUEST_ENV_MAX,
                                           .size_max = REQUEST_ARG_SIZE_MAX,
                                           .cure = "the rest can be read from standard input",
                                           .check = check_variable};
        _cleanup_(freep) const char **all = NULL;
        size_t size = 0, n = 0;
        int r;

        r = request_read_pairs(reader, input, &pairs, &all);
        if (r < 0)
                return r;
        for (; all[2 * n]; n++)
                size += strlen(all[2 * n]) + strlen(all[2 * n + 1]) + 2;
        if (size > REQUEST_ENV_SIZE_MAX)
                return json_read_fail(reader, json_object_object_get(input, "env"), "input.env",
                                      "expected at most %u bytes in all, got %zu; the rest can be read from standard "
                                      "input",
                                      REQUEST_ENV_SIZE_MAX, size);
        request->env = calloc(n + 1, sizeof(char *));
        if (!request->env)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (asprintf(&request->env[i], "%s=%s", all[2 * i], all[2 * i + 1]) < 0) {
                        request->env[i] = NULL;
                        return -ENOMEM;
                }
        return 0;
}

int request_read_input(JsonReader *reader, json_object *root, Request *request) {
        json_object *input;
        int r;

        r = json_read_object(reader, root, "input", &input);
        if (r < 0)
                return r;
        if (r == 0)
                return json_read_fail(reader, root, "input",
                                      "missing; expected an object such as {\"argv\": [\"uname\", \"-a\"]}");
        r = json_read_only(reader, input, "input", input_keys);
        if (r < 0)
                return r;
        r = read_what(reader, input, request);
        if (r < 0)
                return r;
        r = read_stdin(reader, input, request);
        return r < 0 ? r : read_env(reader, input, request);
}

static json_object *strings_new(char *const *v, size_t n) {
        _cleanup_(json_putp) json_object *array = json_object_new_array();

        for (size_t i = 0; array && i < n; i++) {
                json_object *s = json_object_new_string(v[i]);

                if (!s || json_object_array_add(array, s) < 0) {
                        json_object_put(s);
                        return NULL;
                }
        }
        return TAKE_PTR(array);
}

static json_object *env_new(char *const *env) {
        _cleanup_(json_putp) json_object *object = json_object_new_object();

        for (size_t i = 0; object && env[i]; i++) {
                size_t n = strcspn(env[i], "=");
                _cleanup_(freep) char *name = strndup(env[i], n);

                if (!name || json_add_string(object, name, env[i] + n + 1) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

int request_add_input(const Request *request, json_object *accepted) {
        json_object *input = json_object_new_object();
        size_t n = strv_length(request->argv);
        int r;

        r = json_add(accepted, "input", input); /* which owns it from here on */
        if (r < 0)
                return r;
        if (request->script) {
                r = json_add(input, "script", json_object_new_string_len(request->script, (int) request->script_size));
                if (r < 0)
                        return r;
                r = json_add(input, "interpreter", strings_new(request->argv, n - 1));
        } else
                r = json_add(input, "argv", strings_new(request->argv, n));
        if (r < 0)
                return r;
        r = json_add(input, "stdin", json_object_new_string_len(request->stdin_data, (int) request->stdin_size));
        return r < 0 ? r : json_add(input, "env", env_new(request->env));
}
