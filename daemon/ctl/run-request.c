/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Makes the request that `ephemeralctl run` sends. Only what cannot be written as JSON is refused here (bytes that are no
 * UTF-8, files that cannot be read); whether values are right is said by the service, in the same words to everybody.
 */
#include "ctl/run-request.h"
#include "ctl/text.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/strv.h"

#define READ_SIZE 65536

void run_options_done(RunOptions *options) {
        options->environment = strv_free(options->environment);
        options->labels = strv_free(options->labels);
}

static int fail(int r, char **reterr_text, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(int r, char **reterr_text, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (vasprintf(reterr_text, format, ap) < 0) {
                *reterr_text = NULL;
                r = -ENOMEM;
        }
        va_end(ap);
        return r;
}

static int read_stream(int fd, char **ret, size_t *ret_size) {
        _cleanup_(freep) char *data = NULL;
        size_t size = 0;

        for (;;) {
                char *grown = realloc(data, size + READ_SIZE + 1);
                ssize_t n;

                if (!grown)
                        return -ENOMEM;
                data = grown;
                n = read(fd, data + size, READ_SIZE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                size += (size_t) n;
                if (size > RUN_REQUEST_FILE_MAX)
                        return -EFBIG;
        }
        data[size] = 0;
        *ret = TAKE_PTR(data);
        *ret_size = size;
        return 0;
}

int read_text(const char *path, char **ret, size_t *ret_size, char **reterr_text) {
        _cleanup_(freep) char *data = NULL;
        _cleanup_(fd_closep) int fd = -EBADF;
        const char *name = path;
        size_t size;
        int r;

        if (strcmp(path, "-") == 0) {
                name = "standard input";
                r = read_stream(STDIN_FILENO, &data, &size);
        } else {
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                r = fd < 0 ? -errno : read_stream(fd, &data, &size);
        }
        if (r == -EFBIG)
                return fail(-EINVAL, reterr_text, "%s is larger than %u MiB.", name, RUN_REQUEST_FILE_MAX >> 20);
        if (r < 0)
                return fail(-EIO, reterr_text, "Cannot read %s: %s.", name, strerror(-r));
        if (memchr(data, 0, size) || utf8_valid_prefix(data, size) < size)
                return fail(-EINVAL, reterr_text, "%s is not UTF-8 text: byte %zu.", name,
                            utf8_valid_prefix(data, size) < size ? utf8_valid_prefix(data, size) : strlen(data));
        *ret = TAKE_PTR(data);
        *ret_size = size;
        return 0;
}

/* The object's member that is an object itself; made when it is not there. Borrowed; NULL: no memory, or it is something
 * else. */
static json_object *member(json_object *object, const char *key) {
        json_object *m = NULL;

        if (json_object_object_get_ex(object, key, &m))
                return json_object_is_type(m, json_type_object) ? m : NULL;
        m = json_object_new_object();
        return m && json_add(object, key, m) >= 0 ? m : NULL;
}

static int check_utf8(const char *what, const char *text, char **reterr_text) {
        size_t size = strlen(text), good = utf8_valid_prefix(text, size);

        if (good == size)
                return 0;
        return fail(-EINVAL, reterr_text,
                    "%s is not UTF-8 from byte %zu on, and a request is JSON. Pass such bytes on standard input.",
                    what, good);
}

static int array_add_string(json_object *array, const char *text) {
        _cleanup_(json_putp) json_object *s = json_object_new_string(text);

        if (!s || json_object_array_add(array, s) < 0)
                return -ENOMEM;
        TAKE_PTR(s);
        return 0;
}

static int add_argv(json_object *input, char *const *argv, char **reterr_text) {
        json_object *array = json_object_new_array();
        int r = json_add(input, "argv", array);

        for (size_t i = 0; r >= 0 && argv[i]; i++) {
                char what[32];

                snprintf(what, sizeof(what), "Argument %zu", i);
                r = check_utf8(what, argv[i], reterr_text);
                if (r < 0)
                        return r;
                r = array_add_string(array, argv[i]);
        }
        return r;
}

/* The first line of a script that begins with "#!", read as execve(2) does: a path and at most one argument. Without such a
 * line nothing is added, and the service takes its default. */
static int add_interpreter_of_script(json_object *array, const char *script) {
        _cleanup_(freep) char *line = NULL;
        char *path, *argument, *end;
        int r;

        line = strndup(script + 2, strcspn(script + 2, "\r\n"));
        if (!line)
                return -ENOMEM;
        path = line + strspn(line, " \t");
        argument = path + strcspn(path, " \t");
        if (*argument)
                *argument++ = 0;
        argument += strspn(argument, " \t");
        for (end = argument + strlen(argument); end > argument && strchr(" \t", end[-1]);)
                *--end = 0;
        r = *path ? array_add_string(array, path) : 0;
        return r < 0 || !*argument ? r : array_add_string(array, argument);
}

/* A command line, split at blanks. */
static int add_interpreter_words(json_object *array, const char *command) {
        _cleanup_(freep) char *copy = strdup(command);
        char *word, *rest = copy;
        int r = copy ? 0 : -ENOMEM;

        while (r >= 0 && (word = strsep(&rest, " \t")))
                if (*word)
                        r = array_add_string(array, word);
        return r;
}

static int add_interpreter(json_object *input, const char *command, const char *script, char **reterr_text) {
        _cleanup_(json_putp) json_object *array = json_object_new_array();
        int r = 0;

        if (!array)
                return -ENOMEM;
        if (command) {
                r = check_utf8("--interpreter", command, reterr_text);
                if (r >= 0)
                        r = add_interpreter_words(array, command);
        } else if (strncmp(script, "#!", 2) == 0)
                r = add_interpreter_of_script(array, script);
        if (r < 0 || json_object_array_length(array) == 0)
                return r;
        return json_add(input, "interpreter", TAKE_PTR(array));
}

static int add_script(json_object *input, const RunOptions *options, char **reterr_text) {
        _cleanup_(freep) char *text = NULL;
        size_t size;
        int r;

        r = read_text(options->script, &text, &size, reterr_text);
        if (r < 0)
                return r;
        r = json_add(input, "script", json_object_new_string_len(text, (int) size));
        return r < 0 ? r : add_interpreter(input, options->interpreter, text, reterr_text);
}

static int add_pair(json_object *object, const char *what, const char *pair, bool from_here, char **reterr_text) {
        const char *equals = strchr(pair, '='), *value = equals ? equals + 1 : NULL;
        _cleanup_(freep) char *key = strndup(pair, equals ? (size_t) (equals - pair) : strlen(pair));
        int r;

        if (!key)
                return -ENOMEM;
        if (key[0] == 0)
                return fail(-EINVAL, reterr_text, "--%s needs NAME=VALUE, not '%s'.", what, pair);
        if (!value && from_here)
                value = getenv(key);
        if (!value)
                return from_here ? fail(-EINVAL, reterr_text, "There is no variable %s here to pass on.", key)
                                 : fail(-EINVAL, reterr_text, "--%s needs NAME=VALUE, not '%s'.", what, pair);
        r = check_utf8(what, pair, reterr_text);
        if (r >= 0)
                r = check_utf8(key, value, reterr_text);
        return r < 0 ? r : json_add_string(object, key, value);
}

static int add_pairs(json_object *parent, const char *key, const char *what, char *const *pairs, char **reterr_text) {
        json_object *object;
        int r = 0;

        if (!pairs)
                return 0;
        object = member(parent, key);
        if (!object)
                return fail(-EINVAL, reterr_text, "'%s' of the request is no object.", key);
        for (size_t i = 0; r >= 0 && pairs[i]; i++)
                r = add_pair(object, what, pairs[i], strcmp(key, "env") == 0, reterr_text);
        return r;
}

static int add_input(json_object *request, const RunOptions *options, char **reterr_text) {
        json_object *input;
        int r = 0;

        if (!options->command && !options->script && !options->environment)
                return 0;
        input = member(request, "input");
        if (!input)
                return fail(-EINVAL, reterr_text, "'input' of the request is no object.");
        if (options->command)
                r = add_argv(input, options->command, reterr_text);
        if (r >= 0 && options->script)
                r = add_script(input, options, reterr_text);
        return r < 0 ? r : add_pairs(input, "env", "env", options->environment, reterr_text);
}

static int add_vm(json_object *request, const RunOptions *options, char **reterr_text) {
        json_object *vm;
        int r = 0;

        if (!options->image && !options->has_vcpus && !options->has_memory && !options->has_disk && !options->root)
                return 0;
        vm = member(request, "vm");
        if (!vm)
                return fail(-EINVAL, reterr_text, "'vm' of the request is no object.");
        if (options->image) {
                r = check_utf8("image", options->image, reterr_text);
                if (r >= 0)
                        r = json_add_string(vm, "image", options->image);
        }
        if (r >= 0 && options->has_vcpus)
                r = json_add(vm, "vcpus", json_object_new_int64(options->vcpus));
        if (r >= 0 && options->has_memory)
                r = json_add(vm, "memory_mib", json_object_new_int64(options->memory_mib));
        if (r >= 0 && options->has_disk)
                r = json_add(vm, "disk_mib", json_object_new_int64(options->disk_mib));
        if (r >= 0 && options->root)
                r = json_add_bool(vm, "root", true);
        return r;
}

static int fill(json_object *request, const RunOptions *options, char **reterr_text) {
        int r = 0;

        if (!json_object_object_get_ex(request, "workflow", NULL))
                r = json_add_string(request, "workflow", "command");
        if (r >= 0)
                r = add_input(request, options, reterr_text);
        if (r >= 0 && options->has_timeout)
                r = json_add(request, "timeout_seconds", json_object_new_int64(options->timeout_seconds));
        if (r >= 0)
                r = add_vm(request, options, reterr_text);
        return r < 0 ? r : add_pairs(request, "labels", "label", options->labels, reterr_text);
}

static bool changes_request(const RunOptions *o) {
        return o->command || o->script || o->environment || o->labels || o->image || o->has_timeout || o->has_memory ||
               o->has_vcpus || o->has_disk || o->root;
}

int run_request_make(const RunOptions *options, char **ret, char **reterr_text) {
        _cleanup_(json_putp) json_object *request = NULL;
        _cleanup_(freep) char *text = NULL, *error = NULL;
        size_t size;
        int r;

        if (options->request) {
                r = read_text(options->request, &text, &size, reterr_text);
                if (r < 0)
                        return r;
                /* As it is, also when it is no JSON: the service tells line and column. */
                if (!changes_request(options) || json_parse(text, size, &request, &error) < 0 ||
                    !json_object_is_type(request, json_type_object)) {
                        *ret = TAKE_PTR(text);
                        return 0;
                }
        } else {
                request = json_object_new_object();
                if (!request)
                        return -ENOMEM;
        }
        r = fill(request, options, reterr_text);
        if (r < 0)
                return r;
        *ret = strdup(text_or(json_text(request), ""));
        return *ret ? 0 : -ENOMEM;
}
