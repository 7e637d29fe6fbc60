/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The parts of ephemeralctl that need no bus: numbers in and out, exit codes, suggestions, keys, images.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "ctl/exit-code.h"
#include "ctl/help.h"
#include "ctl/images.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/permissions.h"
#include "ctl/text.h"

static int64_t seconds(const char *text) {
        int64_t v = INT64_MIN;

        return parse_seconds(text, &v) < 0 ? INT64_MIN : v;
}

static int64_t mebibytes(const char *text) {
        int64_t v = INT64_MIN;

        return parse_mebibytes(text, &v) < 0 ? INT64_MIN : v;
}

static void test_numbers_take_units(void) {
        assert(seconds("90") == 90 && seconds("90s") == 90 && seconds("5min") == 300 && seconds("1h") == 3600);
        assert(mebibytes("512") == 512 && mebibytes("512M") == 512 && mebibytes("2GiB") == 2048);
        assert(seconds("-1") == -1 && seconds("0") == 0); /* for the service to refuse */
}

static void test_what_is_no_number_is_refused(void) {
        static const char *const bad[] = {
                "", "s", "1x", "1.5", "0x10", "1 min ", "1mins", "9223372036854775808", "9223372036854775807h"};

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert(seconds(bad[i]) == INT64_MIN);
}

static int exit_code(const char *json) {
        _cleanup_(json_putp) json_object *o = parse_object(json, strlen(json));

        assert(o);
        return exit_code_of_result(o);
}

static void test_exit_codes_are_those_of_the_contract(void) {
        assert(exit_code("{\"outcome\":\"succeeded\",\"exit_status\":0}") == 0);
        assert(exit_code("{\"outcome\":\"failed\",\"exit_status\":3}") == 3);
        assert(exit_code("{\"outcome\":\"failed\",\"signal\":\"SIGKILL\"}") == 128 + 9);
        assert(exit_code("{\"outcome\":\"failed\",\"signal\":\"SIGRTMIN+3\"}") == 128 + SIGRTMIN + 3);
        assert(exit_code("{\"outcome\":\"failed\",\"errno\":\"ENOENT\"}") == 127);
        assert(exit_code("{\"outcome\":\"timed-out\"}") == 124);
        assert(exit_code("{\"outcome\":\"cancelled\"}") == 130);
        assert(exit_code("{\"outcome\":\"out-of-memory\"}") == 137);
        assert(exit_code("{\"outcome\":\"vm-failed\",\"reason\":\"x\"}") == 125);
}

static void test_a_failure_is_never_zero(void) {
        static const char *const odd[] = {
                "{}",
                "{\"outcome\":\"new\"}",
                "{\"outcome\":7}",
                "{\"outcome\":\"failed\"}",
                "{\"outcome\":\"failed\",\"exit_status\":0}",
                "{\"outcome\":\"failed\",\"exit_status\":256}",
                "{\"outcome\":\"failed\",\"exit_status\":\"0\"}",
                "{\"outcome\":\"failed\",\"signal\":\"SIGWHAT\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(odd); i++)
                assert(exit_code(odd[i]) != 0);
}

static void test_suggestions_are_near(void) {
        static const struct {
                const char *typed, *meant;
        } table[] = {
                {"lst",                                                               "list"    },
                {"stauts",                                                            "status"  },
                {"time",                                                              "timeline"},
                {"RUN",                                                               NULL      },
                {"xyzzy",                                                             NULL      },
                {"",                                                                  NULL      },
                {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL      },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const Verb *verb = verb_suggest(table[i].typed);

                assert(table[i].meant ? verb && strcmp(verb->name, table[i].meant) == 0 : !verb);
        }
}

static void test_every_verb_is_complete(void) {
        for (size_t i = 0; verbs[i]; i++) {
                unsigned n = 0;

                assert(verb_find(verbs[i]->name) == verbs[i]);
                assert(verbs[i]->summary && verbs[i]->run && verbs[i]->usage_exit_code > 0);
                for (const Option *o = verbs[i]->options; o && o->id > 0; o++, n++)
                        assert(o->id < ' ' && o->help); /* ids and letters must not meet */
                assert(n + 4 < OPTIONS_PER_VERB_MAX);
        }
}

static void test_properties_have_the_keys_of_the_wire(void) {
        static const struct {
                const char *property, *key;
        } table[] = {
                {"Id",                "id"                },
                {"ExitStatus",        "exit_status"       },
                {"TimeoutUSec",       "timeout_usec"      },
                {"AcceleratorReason", "accelerator_reason"},
                {"MaxCostMicros",     "max_cost_micros"   },
        };
        char key[64];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                property_to_key(table[i].property, key, sizeof(key));
                assert(strcmp(key, table[i].key) == 0);
        }
        property_to_key("AVeryLongNameIndeed", key, 8);
        assert(strlen(key) < 8);
}

static void test_events_keep_their_keys(void) {
        static const char keys[] = "{\"kernel\":\"6.1/x\",\"boot_usec\":18446744073709551615}",
                          bad[] = "not \xff json";
        _cleanup_(json_putp) json_object *o = event_to_json("run-x", 3, 5, "vm.ready", keys, strlen(keys));
        _cleanup_(json_putp) json_object *odd = event_to_json("run-x", 4, 5, "vm.ready", bad, strlen(bad));
        _cleanup_(freep) char *line = event_line(o);

        assert(strcmp(line, "{\"id\":\"run-x\",\"seq\":3,\"usec\":5,\"type\":\"vm.ready\",\"kernel\":\"6.1/x\","
                            "\"boot_usec\":18446744073709551615}\n") == 0);
        assert(odd && json_object_object_get_ex(odd, "json_base64", NULL));
}

static void test_numbers_are_written_for_people(void) {
        char t[TEXT_SIZE];

        assert(strcmp(text_duration(t, 999999), "999ms") == 0);
        assert(strcmp(text_duration(t, 2310000), "2.31s") == 0);
        assert(strcmp(text_duration(t, 184000000), "3min 4s") == 0);
        assert(strcmp(text_duration(t, 7500000000ULL), "2h 5min") == 0);
        assert(strlen(text_duration(t, UINT64_MAX)) < TEXT_SIZE);
        assert(strcmp(text_offset(t, 1000000, 3310000), "+2.310s") == 0);
        assert(strcmp(text_offset(t, 3310000, 1000000), "-2.310s") == 0);
        assert(strcmp(text_ago(t, 100000000, 40000000), "1min ago") == 0);
        assert(strcmp(text_ago(t, 0, 40000000), "now") == 0);
        assert(strcmp(text_bytes(t, 1023), "1023 B") == 0 && strcmp(text_bytes(t, 1536), "1.5 KiB") == 0);
        assert(strlen(text_bytes(t, UINT64_MAX)) < TEXT_SIZE);
        assert(strcmp(text_micros(t, 40000), "$0.040000") == 0);
        assert(strcmp(text_time(t, 0), "-") == 0 && strlen(text_time(t, UINT64_MAX)) < TEXT_SIZE);
}

static void expect_command(const char *request, const char *wanted) {
        _cleanup_(json_putp) json_object *o = parse_object(request, strlen(request));
        _cleanup_(freep) char *text = describe_command(o);

        if (!text || strcmp(text, wanted) != 0)
                fprintf(stderr, "got <%s>, wanted <%s>\n", text ? text : "NULL", wanted);
        assert(text && strcmp(text, wanted) == 0);
}

static void test_commands_are_shown_as_a_shell_takes_them(void) {
        expect_command("{\"input\":{\"argv\":[\"ls\",\"-l\",\"a b\",\"it's\",\"\"]}}", "ls -l 'a b' 'it'\\''s' ''");
        expect_command("{\"input\":{\"script\":\"echo\",\"interpreter\":[\"/bin/bash\",\"-e\"]}}",
                       "script of 4 bytes for /bin/bash -e");
        expect_command("{\"input\":{\"script\":\"echo\"}}", "script of 4 bytes");
        expect_command("{}", "");
        expect_command("{\"input\":{\"argv\":\"ls\"}}", "");
}

static void write_manifest(const char *directory, const char *image, const char *text) {
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", directory, image);
        assert(mkdir(path, 0700) == 0);
        if (!text)
                return;
        snprintf(path, sizeof(path), "%s/%s/manifest.json", directory, image);
        f = fopen(path, "we");
        assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void test_the_first_image_of_a_name_wins(void) {
        char first[] = "/tmp/test-ctl-XXXXXX", second[] = "/tmp/test-ctl-XXXXXX", remove[128];
        const char *directories[] = {first, "/nonexistent", second, NULL};
        _cleanup_(image_list_done) ImageList list = {0};

        assert(mkdtemp(first) && mkdtemp(second));
        write_manifest(first, "debian", "{\"suite\":\"trixie\"}");
        write_manifest(second, "debian", "{\"suite\":\"bookworm\"}");
        write_manifest(second, "half", NULL);
        write_manifest(second, "broken", "[]");
        write_manifest(second, ".tmp-new", "{}");
        assert(image_list_read(directories, &list) == 0);
        assert(list.n == 3);
        assert(strcmp(list.entries[0].name, "broken") == 0 && list.entries[0].error);
        assert(strcmp(list.entries[1].name, "debian") == 0);
        assert(strcmp(get_string(list.entries[1].manifest, "suite", ""), "trixie") == 0);
        assert(strstr(image_list_find(&list, "half")->error, "did not finish"));
        assert(!image_list_find(&list, ".tmp-new"));
        snprintf(remove, sizeof(remove), "rm -r %s %s", first, second);
        assert(system(remove) == 0);
}

int main(void) {
        test_numbers_take_units();
        test_what_is_no_number_is_refused();
        test_exit_codes_are_those_of_the_contract();
        test_a_failure_is_never_zero();
        test_suggestions_are_near();
        test_every_verb_is_complete();
        test_properties_have_the_keys_of_the_wire();
        test_events_keep_their_keys();
        test_numbers_are_written_for_people();
        test_commands_are_shown_as_a_shell_takes_them();
        test_the_first_image_of_a_name_wins();
        return 0;
}
