/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/errors.h"
#include "common/json.h"
#include "common/strv.h"
#include "manager/request.h"

static WorkflowSet *workflows;

#define INVALID ERROR_PREFIX "InvalidRequest"

static Request *parsed(const char *text) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        Request *request = NULL;

        if (request_parse(text, strlen(text), workflows, "default", &request, &e) != 0)
                fprintf(stderr, "%.200s\n%s: %s\n", text, e.name, e.message);
        assert(request);
        return request;
}

static void refused(const char *text, const char *error_name, const char *expected) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        Request *request = NULL;

        assert(request_parse(text, strlen(text), workflows, "default", &request, &e) < 0);
        if (strcmp(e.name, error_name) != 0 || strcmp(e.message, expected) != 0)
                fprintf(stderr, "expected: %s: %s\ngot:      %s: %s\n", error_name, expected, e.name, e.message);
        assert(strcmp(e.name, error_name) == 0);
        assert(strcmp(e.message, expected) == 0);
        assert(!request);
}

/* A whole request around more keys of the top. */
static void more_refused(const char *more, const char *error_name, const char *expected) {
        _cleanup_(freep) char *text = NULL;

        assert(asprintf(&text, "{\"workflow\":\"command\",\"input\":{\"argv\":[\"true\"]},%s}", more) > 0);
        refused(text, error_name, expected);
}

static Request *more_parsed(const char *more) {
        _cleanup_(freep) char *text = NULL;

        assert(asprintf(&text, "{\"workflow\":\"command\",\"input\":{\"argv\":[\"true\"]},%s}", more) > 0);
        return parsed(text);
}

static void input_refused(const char *input, const char *expected) {
        _cleanup_(freep) char *text = NULL;

        assert(asprintf(&text, "{\"workflow\":\"command\",\"input\":%s}", input) > 0);
        refused(text, INVALID, expected);
}

static Request *input_parsed(const char *input) {
        _cleanup_(freep) char *text = NULL;

        assert(asprintf(&text, "{\"workflow\":\"command\",\"input\":%s}", input) > 0);
        return parsed(text);
}

/* `before`, then n times `unit`, then `after`; the caller frees it. */
static char *repeated(const char *before, const char *unit, size_t n, const char *after) {
        size_t size = strlen(before) + strlen(unit) * n + strlen(after) + 1;
        char *text = malloc(size), *at;

        assert(text);
        at = stpcpy(text, before);
        for (size_t i = 0; i < n; i++)
                at = stpcpy(at, unit);
        strcpy(at, after);
        return text;
}

static void the_smallest_request_gets_every_default(void) {
        _cleanup_(request_freep) Request *r = input_parsed("{\"argv\":[\"uname\",\"-a\",\"\"]}");

        assert(strcmp(r->workflow, "command") == 0);
        assert(strv_length(r->argv) == 3 && strcmp(r->argv[0], "uname") == 0 && strcmp(r->argv[2], "") == 0);
        assert(r->env && !r->env[0] && r->labels && !r->labels[0]);
        assert(!r->script && r->stdin_data && r->stdin_size == 0);
        assert(r->timeout_usec == 300000000 && r->output_max_bytes == 1048576);
        assert(strcmp(r->image, "default") == 0 && r->vcpus == 1 && r->memory_mib == 256 && r->disk_mib == 64);
        assert(!r->root);
        assert(strcmp(request_to_json(r),
                      "{\"workflow\":\"command\",\"input\":{\"argv\":[\"uname\",\"-a\",\"\"],\"stdin\":\"\",\"env\":{}"
                      "},"
                      "\"timeout_seconds\":300,\"vm\":{\"image\":\"default\",\"vcpus\":1,\"memory_mib\":256,"
                      "\"disk_mib\":64,\"root\":false},\"output\":{\"max_bytes\":1048576},\"labels\":{}}") == 0);
}

static void every_key_is_taken(void) {
        _cleanup_(request_freep) Request *r = parsed(
                "{\"labels\":{\"b\":\"2\",\"a/x\":\"1 é\"},\"output\":{\"max_bytes\":0},\"vm\":{\"root\":true,"
                "\"disk_mib\":8,\"memory_mib\":64,\"vcpus\":4,\"image\":\"py\"},\"timeout_seconds\":3600,"
                "\"input\":{\"env\":{\"Z\":\"\",\"A_1\":\"=x y\"},\"stdin\":\"a\\u0000b\",\"script\":\"print(1)\\n\","
                "\"interpreter\":[\"/usr/bin/python3\",\"-u\"]},\"workflow\":\"command\"}");

        assert(strv_length(r->argv) == 3 && strcmp(r->argv[1], "-u") == 0);
        assert(strcmp(r->argv[2], "/run/ephemeral/script") == 0);
        assert(r->script_size == 9 && strcmp(r->script, "print(1)\n") == 0);
        assert(r->stdin_size == 3 && memcmp(r->stdin_data, "a\0b", 3) == 0);
        assert(strcmp(r->env[0], "A_1==x y") == 0 && strcmp(r->env[1], "Z=") == 0 && !r->env[2]);
        assert(strcmp(r->labels[0], "a/x") == 0 && strcmp(r->labels[1], "1 é") == 0);
        assert(strcmp(r->labels[2], "b") == 0 && strcmp(r->labels[3], "2") == 0 && !r->labels[4]);
        assert(r->timeout_usec == 3600000000 && r->vcpus == 4 && r->memory_mib == 64 && r->disk_mib == 8);
        assert(r->root && r->output_max_bytes == 0 && strcmp(r->image, "py") == 0);
}

static void an_accepted_request_asks_for_the_same(void) {
        static const char *const inputs[] = {
                "{\"argv\":[\"a\",\"\\u001f é/\"],\"env\":{\"B\":\"1\",\"A\":\"2\"}}",
                "{\"script\":\"x\\u0000\",\"interpreter\":\"/bin/bash\",\"stdin\":\"i\"}"};

        for (size_t i = 0; i < ELEMENTSOF(inputs); i++) {
                _cleanup_(request_freep) Request *first = input_parsed(inputs[i]);
                _cleanup_(request_freep) Request *again = parsed(request_to_json(first));

                assert(strcmp(request_to_json(first), request_to_json(again)) == 0);
        }
}

static void an_interpreter_may_be_left_out_or_be_a_path(void) {
        _cleanup_(request_freep) Request *none = input_parsed("{\"script\":\"x\"}");
        _cleanup_(request_freep) Request *path = input_parsed("{\"script\":\"x\",\"interpreter\":\"/bin/bash\"}");

        assert(strv_length(none->argv) == 2 && strcmp(none->argv[0], "/bin/sh") == 0);
        assert(strv_length(path->argv) == 2 && strcmp(path->argv[0], "/bin/bash") == 0);
}

static void text_that_is_no_request_is_refused(void) {
        refused("", INVALID, "the request is not JSON: line 1, column 1: expected a value, but the text ends here");
        refused("{\"workflow\":\"command\",\n \"input\" 1}", INVALID,
                "the request is not JSON: line 2, column 10: expected ':' after a key");
        refused("[]", INVALID, "top level: expected an object, got an array");
        refused("null", INVALID, "top level: expected an object, got null");
        refused("{}", INVALID, "request key 'workflow': missing; expected a name such as \"command\"");
        refused("{\"workflow\":1}", INVALID, "request key 'workflow': expected a string, got 1");
        refused("{\"workflow\":\"nope\"}", ERROR_PREFIX "UnknownWorkflow",
                "no workflow 'nope' in " WORKFLOWS_SOURCE "; there are: command");
        refused("{\"workflow\":\"command\"}", INVALID,
                "request key 'input': missing; expected an object such as {\"argv\": [\"uname\", \"-a\"]}");
}

static void unknown_keys_are_refused_by_name(void) {
        more_refused(
                "\"timeout\":3", INVALID,
                "request key 'timeout': no such key; did you mean 'timeout_seconds'? (There are: workflow, input, "
                "timeout_seconds, vm, output, labels)");
        more_refused("\"vm\":{\"memory\":3}", INVALID,
                     "request key 'vm.memory': no such key; did you mean 'memory_mib'? (There are: image, vcpus, "
                     "memory_mib, disk_mib, root)");
        more_refused("\"output\":{\"x\":3}", INVALID, "request key 'output.x': no such key; there are: max_bytes");
        input_refused("{\"cmd\":[]}",
                      "request key 'input.cmd': no such key; there are: argv, script, interpreter, stdin, env");
}

static void keys_of_later_versions_are_refused_honestly(void) {
        static const char *const keys[] = {"max_cost_micros", "files",    "connections",     "web",
                                           "shell",           "callback", "idempotency_key", "output.artifacts"};

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                _cleanup_(freep) char *more = NULL, *expected = NULL;
                const char *dot = strchr(keys[i], '.');

                assert(asprintf(&more, dot ? "\"output\":{\"%s\":null}" : "\"%s\":null", dot ? dot + 1 : keys[i]) > 0);
                assert(asprintf(&expected, "request key '%s': not offered by this version", keys[i]) > 0);
                more_refused(more, ERROR_PREFIX "NotSupported", expected);
        }
}

static void a_request_only_narrows(void) {
        more_refused("\"timeout_seconds\":3601", INVALID,
                     "request key 'timeout_seconds': expected a whole number from 1 to 3600 (limits of workflow "
                     "'command'), got 3601");
        more_refused(
                "\"vm\":{\"vcpus\":5}", INVALID,
                "request key 'vm.vcpus': expected a whole number from 1 to 4 (limits of workflow 'command'), got 5");
        more_refused("\"vm\":{\"memory_mib\":4097}", INVALID,
                     "request key 'vm.memory_mib': expected a whole number from 64 to 4096 (limits of workflow "
                     "'command'), got 4097");
        more_refused("\"vm\":{\"memory_mib\":63}", INVALID,
                     "request key 'vm.memory_mib': expected a whole number from 64 to 4096 (limits of workflow "
                     "'command'), got 63");
        more_refused(
                "\"vm\":{\"disk_mib\":3}", INVALID,
                "request key 'vm.disk_mib': expected a whole number from 4 to 4096 (limits of workflow 'command'), "
                "got 3");
        more_refused("\"output\":{\"max_bytes\":67108865}", INVALID,
                     "request key 'output.max_bytes': expected a whole number from 0 to 67108864 (limits of workflow "
                     "'command'), got 67108865");
}

static void the_limits_themselves_are_allowed(void) {
        _cleanup_(request_freep) Request *most =
                more_parsed("\"timeout_seconds\":3600,\"output\":{\"max_bytes\":67108864},"
                            "\"vm\":{\"vcpus\":4,\"memory_mib\":4096,\"disk_mib\":4096}");
        _cleanup_(request_freep) Request *least =
                more_parsed("\"timeout_seconds\":1,\"vm\":{\"vcpus\":1,\"memory_mib\":64,\"disk_mib\":4}");

        assert(most->disk_mib == 4096 && least->disk_mib == 4);
}

static void a_timeout_is_whole_seconds(void) {
        static const char *const wrong[][2] = {
                {"0",                    "0"                   },
                {"-1",                   "-1"                  },
                {"1.5",                  "1.5"                 },
                {"\"3s\"",               "\"3s\""              },
                {"null",                 "null"                },
                {"1e3",                  "1e3"                 },
                {"18446744073709551615", "18446744073709551615"}
        };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                _cleanup_(freep) char *more = NULL, *expected = NULL;

                assert(asprintf(&more, "\"timeout_seconds\":%s", wrong[i][0]) > 0);
                assert(asprintf(&expected,
                                "request key 'timeout_seconds': expected a whole number from 1 to 3600 (limits of "
                                "workflow 'command'), got %s",
                                wrong[i][1]) > 0);
                more_refused(more, INVALID, expected);
        }
}

static void a_disk_fits_into_the_memory(void) {
        _cleanup_(request_freep) Request *small = more_parsed("\"vm\":{\"memory_mib\":64}");
        _cleanup_(request_freep) Request *equal = more_parsed("\"vm\":{\"memory_mib\":64,\"disk_mib\":64}");

        assert(small->disk_mib == 32);
        assert(equal->disk_mib == 64);
        more_refused("\"vm\":{\"memory_mib\":64,\"disk_mib\":65}", INVALID,
                     "request key 'vm.disk_mib': expected at most vm.memory_mib (64), got 65: what a run writes is in "
                     "its memory");
}

static void images_are_names(void) {
        more_refused(
                "\"vm\":{\"image\":\"../x\"}", INVALID,
                "request key 'vm.image': not a name of an image; expected letters a-z, digits, '.', '_' and '-', a "
                "letter or digit first");
        more_refused("\"vm\":{\"image\":\"x\\u0000y\"}", INVALID,
                     "request key 'vm.image': expected a string without NUL characters, got one after 1 bytes");
}

static void root_is_a_grant(void) {
        _cleanup_(workflow_set_freep) WorkflowSet *set = NULL;

        more_refused("\"vm\":{\"root\":1}", INVALID, "request key 'vm.root': expected true or false, got 1");
        set = workflows;
        assert(workflow_set_load(WORKFLOWS_SOURCE, &workflows) == 0);
        ((Workflow *) workflow_set_at(workflows, 0))->grant_root = false;
        more_refused("\"vm\":{\"root\":true}", ERROR_PREFIX "NotPermitted",
                     "request key 'vm.root': workflow 'command' does not grant root in the guest");
        workflow_set_free(workflows);
        workflows = TAKE_PTR(set);
}

static void a_command_is_argv_or_a_script(void) {
        input_refused("[]", "request key 'input': expected an object, got an array");
        input_refused("{}",
                      "request key 'input': expected 'argv', such as [\"uname\", \"-a\"], or 'script', got neither");
        input_refused("{\"argv\":[\"a\"],\"script\":\"b\"}",
                      "request key 'input': expected either 'argv' or 'script', got both");
        input_refused("{\"argv\":[\"a\"],\"interpreter\":\"b\"}",
                      "request key 'input.interpreter': is for a 'script', and there is none");
        input_refused("{\"argv\":\"uname -a\"}", "request key 'input.argv': expected an array, got \"uname -a\"");
        input_refused("{\"argv\":[]}", "request key 'input.argv': expected 1 to 4096 entries, got 0");
        input_refused("{\"argv\":[\"\"]}", "request key 'input.argv[0]': expected a program, got an empty string");
        input_refused("{\"argv\":[\"a\",1]}", "request key 'input.argv[1]': expected a string, got 1");
        input_refused("{\"argv\":[\"a\",null]}", "request key 'input.argv[1]': expected a string, got null");
        input_refused("{\"argv\":[\"a\",\"b\\u0000c\"]}",
                      "request key 'input.argv[1]': expected a string without NUL characters, got one after 1 bytes");
        input_refused("{\"script\":\"\"}", "request key 'input.script': expected a script, got an empty string");
        input_refused(
                "{\"script\":\"a\",\"interpreter\":1}",
                "request key 'input.interpreter': expected a path such as \"/usr/bin/python3\", or an array: the "
                "path and its arguments");
        input_refused("{\"script\":\"a\",\"interpreter\":\"\"}",
                      "request key 'input.interpreter': expected a path such as \"/usr/bin/python3\", got an empty "
                      "string");
        input_refused("{\"script\":\"a\",\"interpreter\":[]}",
                      "request key 'input.interpreter': expected 1 to 4095 entries, got 0");
        input_refused("{\"argv\":[\"a\"],\"stdin\":[]}", "request key 'input.stdin': expected a string, got an array");
}

static void arguments_are_bounded_in_number_and_size(void) {
        _cleanup_(freep) char *most = repeated("{\"argv\":[\"a\"", ",\"\"", REQUEST_ARGV_MAX - 1, "]}"),
                              *more = repeated("{\"argv\":[\"a\"", ",\"\"", REQUEST_ARGV_MAX, "]}"),
                              *largest = repeated("{\"argv\":[\"a\",\"", "x", REQUEST_ARG_SIZE_MAX, "\"]}"),
                              *larger = repeated("{\"argv\":[\"a\",\"", "x", REQUEST_ARG_SIZE_MAX + 1, "\"]}");
        _cleanup_(request_freep) Request *a = input_parsed(most), *b = input_parsed(largest);

        assert(strv_length(a->argv) == REQUEST_ARGV_MAX);
        assert(strlen(b->argv[1]) == REQUEST_ARG_SIZE_MAX);
        input_refused(more, "request key 'input.argv': expected 1 to 4096 entries, got 4097");
        input_refused(larger, "request key 'input.argv[1]': expected at most 131071 bytes, got 131072");
}

static void scripts_are_bounded(void) {
        _cleanup_(freep) char *most = repeated("{\"script\":\"", "x", REQUEST_SCRIPT_SIZE_MAX, "\"}"),
                              *more = repeated("{\"script\":\"", "x", REQUEST_SCRIPT_SIZE_MAX + 1, "\"}");
        _cleanup_(request_freep) Request *r = input_parsed(most);

        assert(r->script_size == REQUEST_SCRIPT_SIZE_MAX);
        input_refused(more, "request key 'input.script': expected at most 524288 bytes, got 524289");
}

/* n variables of `size` bytes each with name, '=' and NUL. */
static char *variables(size_t n, size_t size) {
        char *text = malloc(64 + n * (size + 16)), *at;

        assert(text && size >= 8);
        at = text + sprintf(text, "{\"argv\":[\"a\"],\"env\":{");
        for (size_t i = 0; i < n; i++)
                at += sprintf(at, "%s\"V%05zu\":\"%0*d\"", i > 0 ? "," : "", i, (int) size - 8, 0);
        strcpy(at, "}}");
        return text;
}

static void variables_are_bounded_in_number_and_size(void) {
        _cleanup_(freep) char *most = variables(1024, 128), *more = variables(1025, 16), *many = variables(10000, 16),
                              *large = variables(1024, 129), *huge = variables(1, 131073);
        _cleanup_(request_freep) Request *r = input_parsed(most);

        assert(strv_length(r->env) == 1024);
        input_refused(more,
                      "request key 'input.env': expected at most 1024 entries, got 1025; the rest can be read from "
                      "standard input");
        input_refused(many, "request key 'input.env': expected at most 1024 entries, got 10000; the rest can be read "
                            "from standard input");
        input_refused(large,
                      "request key 'input.env': expected at most 131072 bytes in all, got 132096; the rest can be "
                      "read from standard input");
        input_refused(huge, "request key 'input.env.V00000': expected at most 131071 bytes with its name, got 131072");
}

static void variables_have_names_a_shell_can_read(void) {
        static const char *const wrong[] = {"", "1A", "A-B", "A=B", "A B", "é"};

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                _cleanup_(freep) char *input = NULL, *expected = NULL;

                assert(asprintf(&input, "{\"argv\":[\"a\"],\"env\":{\"%s\":\"\"}}", wrong[i]) > 0);
                assert(asprintf(&expected,
                                "request key 'input.env.%s': not a name of a variable; expected letters, digits and "
                                "'_', no digit first",
                                wrong[i]) > 0);
                input_refused(input, expected);
        }
        input_refused("{\"argv\":[\"a\"],\"env\":{\"A\":1}}", "request key 'input.env.A': expected a string, got 1");
        input_refused("{\"argv\":[\"a\"],\"env\":{\"A\":\"\\u0000\"}}",
                      "request key 'input.env.A': expected a string without NUL characters, got one after 0 bytes");
        input_refused("{\"argv\":[\"a\"],\"env\":[\"A=1\"]}",
                      "request key 'input.env': expected an object, got an array");
}

static void labels_are_bounded(void) {
        _cleanup_(freep) char *name = repeated("\"labels\":{\"", "n", REQUEST_LABEL_NAME_MAX, "\":\"\"}"),
                              *value = repeated("\"labels\":{\"a\":\"", "v", REQUEST_LABEL_VALUE_MAX, "\"}"),
                              *long_name = repeated("\"labels\":{\"", "n", REQUEST_LABEL_NAME_MAX + 1, "\":\"\"}"),
                              *long_value = repeated("\"labels\":{\"a\":\"", "v", REQUEST_LABEL_VALUE_MAX + 1, "\"}");
        _cleanup_(request_freep) Request *a = more_parsed(name), *b = more_parsed(value);
        char many[2048], *at = many;

        assert(strlen(a->labels[0]) == REQUEST_LABEL_NAME_MAX && strlen(b->labels[1]) == REQUEST_LABEL_VALUE_MAX);
        for (unsigned i = 0; i <= REQUEST_LABELS_MAX; i++)
                at += sprintf(at, "%s\"l%u\":\"\"", i > 0 ? "," : "\"labels\":{", i);
        strcpy(at, "}");
        more_refused(
                many, INVALID,
                "request key 'labels': expected at most 64 entries, got 65; labels are for finding runs, data goes "
                "into the input");
        more_refused(
                long_name, INVALID,
                "request key 'labels.nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…': not a name of a label; expected "
                "letters, digits, '.', '_', '/' and '-', at most 63, a letter or digit first");
        more_refused(long_value, INVALID, "request key 'labels.a': expected at most 256 bytes, got 257");
        more_refused("\"labels\":{\"a\":\"x\\ny\"}", INVALID,
                     "request key 'labels.a': expected one line without control characters");
}

static void requests_are_bounded_as_sent_and_as_accepted(void) {
        static const char before[] = "{\"workflow\":\"command\",\"input\":{\"argv\":[\"a\"],\"stdin\":\"",
                          after[] = "\"}}";
        size_t around = strlen(before) + strlen(after), defaults;
        _cleanup_(request_freep) Request *empty = input_parsed("{\"argv\":[\"a\"]}"), *full = NULL;
        _cleanup_(freep) char *most = NULL, *more = NULL, *larger = NULL, *two_mib = NULL, *expected = NULL;

        defaults = strlen(request_to_json(empty));
        most = repeated(before, "x", REQUEST_SIZE_MAX - defaults, after);
        full = parsed(most);
        assert(full->stdin_size == REQUEST_SIZE_MAX - defaults);
        more = repeated(before, "x", REQUEST_SIZE_MAX - defaults + 1, after);
        refused(more, ERROR_PREFIX "RequestTooLarge",
                "the request with its defaults filled in has 1048577 bytes, at most 1048576 are taken");
        larger = repeated(before, "x", REQUEST_SIZE_MAX - around + 1, after);
        refused(larger, ERROR_PREFIX "RequestTooLarge", "the request has 1048577 bytes, at most 1048576 are taken");
        two_mib = repeated(before, "x", 2 * REQUEST_SIZE_MAX - around, after);
        refused(two_mib, ERROR_PREFIX "RequestTooLarge", "the request has 2097152 bytes, at most 1048576 are taken");
}

int main(void) {
        assert(workflow_set_load(WORKFLOWS_SOURCE, &workflows) == 0);
        the_smallest_request_gets_every_default();
        every_key_is_taken();
        an_accepted_request_asks_for_the_same();
        an_interpreter_may_be_left_out_or_be_a_path();
        text_that_is_no_request_is_refused();
        unknown_keys_are_refused_by_name();
        keys_of_later_versions_are_refused_honestly();
        a_request_only_narrows();
        the_limits_themselves_are_allowed();
        a_timeout_is_whole_seconds();
        a_disk_fits_into_the_memory();
        images_are_names();
        root_is_a_grant();
        a_command_is_argv_or_a_script();
        arguments_are_bounded_in_number_and_size();
        scripts_are_bounded();
        variables_are_bounded_in_number_and_size();
        variables_have_names_a_shell_can_read();
        labels_are_bounded();
        requests_are_bounded_as_sent_and_as_accepted();
        workflow_set_free(workflows);
        return 0;
}
