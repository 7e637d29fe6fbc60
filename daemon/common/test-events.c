/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/events.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/neutral.h"

static void expect_message(EventType type, const char *json, const char *wanted) {
        _cleanup_(json_putp) json_object *object = json ? json_tokener_parse(json) : NULL;
        _cleanup_(freep) char *message = event_message(type, object);

        assert(message);
        if (strcmp(message, wanted) != 0) {
                fprintf(stderr, "got    <%s>\nwanted <%s>\n", message, wanted);
                abort();
        }
}

static void test_each_type_has_a_name_an_id_and_a_sentence(void) {
        for (EventType type = 0; type < EVENT_TYPE_COUNT; type++) {
                _cleanup_(freep) char *message = event_message(type, NULL);

                assert(event_type_from_name(event_type_name(type)) == (int) type);
                assert(message && *message);
                assert(!sd_id128_is_null(event_type_message_id(type)));
                assert(event_priority(type, NULL) >= LOG_ERR && event_priority(type, NULL) <= LOG_INFO);
                for (EventType other = 0; other < type; other++)
                        assert(!sd_id128_equal(event_type_message_id(type), event_type_message_id(other)));
        }
        assert(event_type_from_name("vm.exploded") == -EINVAL);
}

static void test_sentences_are_made_from_the_json(void) {
        expect_message(EVENT_COMMAND_FINISHED, "{\"exit_status\":3,\"duration_usec\":1234567}",
                       "Command finished with exit status 3 after 1.2 s");
        expect_message(EVENT_COMMAND_FINISHED, "{\"signal\":\"SIGKILL\",\"duration_usec\":125000000}",
                       "Command ended by signal SIGKILL after 2 min 5 s");
        expect_message(EVENT_COMMAND_FINISHED, "{\"errno\":\"ENOENT\",\"error\":\"No such file or directory\"}",
                       "Command could not be executed: No such file or directory, ENOENT");
        expect_message(EVENT_COMMAND_STARTED, "{\"argv\":[\"sh\",\"-c\",\"echo it's\",\"\"],\"pid\":7,\"uid\":1000}",
                       "Command started as pid 7: sh -c 'echo it'\\''s' ''");
        expect_message(
                EVENT_VM_STARTING,
                "{\"path\":\"cold\",\"accelerator\":\"tcg\",\"image\":\"default\",\"vcpus\":1,\"memory_mib\":256}",
                "Starting the microVM, start path cold, accelerator tcg, image default, 1 vCPU, 256 MiB");
        expect_message(EVENT_TEMPLATE_BUILDING,
                       "{\"template\":\"ab\",\"image\":\"default\",\"vcpus\":2,\"memory_mib\":256}",
                       "Booting a machine once, as the template of those to come, image default, 2 vCPU, 256 MiB");
        expect_message(EVENT_TEMPLATE_READY,
                       "{\"template\":\"ab\",\"image\":\"default\",\"from\":\"disk\",\"duration_usec\":135000}",
                       "The template is ready, from disk after 135 ms");
        expect_message(EVENT_ISOLATION_VERIFIED,
                       "{\"namespace\":{\"links\":[{\"name\":\"lo\",\"up\":false}],\"addresses\":0,\"routes\":0},"
                       "\"devices\":[\"virtio-rng\",\"pl011\"],\"guest\":{\"links\":[{\"name\":\"lo\",\"up\":true}]}}",
                       "Isolation verified: links of QEMU's network namespace lo (down), addresses 0, routes 0; "
                       "devices of the microVM 2, all planned; links in the guest lo (up)");
        expect_message(EVENT_RUN_RESULT, "{\"outcome\":\"vm-failed\",\"reason\":\"no image\"}",
                       "Run ended: vm-failed, no image");
        expect_message(EVENT_MEMORY_EXHAUSTED, "{\"memory_max_bytes\":268435456}",
                       "Memory exhausted: the run may use 256 MiB");
        expect_message(EVENT_TIMEOUT_REACHED, "{\"timeout_usec\":3000000}", "Timeout reached: the run may last 3.0 s");
        expect_message(EVENT_RUN_CANCELLED, "{\"by\":\"systemd\"}", "Run cancelled by systemd");
        expect_message(EVENT_VM_DESTROYED,
                       "{\"unit\":\"x\",\"processes\":0,\"cgroup\":\"gone\",\"uid_free\":true,\"directory\":\"gone\","
                       "\"qemu\":\"exited 0\",\"duration_usec\":90000}",
                       "The microVM is destroyed: processes 0, cgroup gone, uid free yes, directory gone, "
                       "QEMU exited 0, in 90 ms");
        expect_message(EVENT_OUTPUT_TRUNCATED, "{\"kept_bytes\":1048576,\"dropped_bytes\":1}",
                       "Output was not kept whole: kept 1 MiB, not kept 1 byte");
}

static void test_a_failure_of_ours_is_an_error(void) {
        _cleanup_(json_putp) json_object *ours = json_tokener_parse("{\"outcome\":\"vm-failed\"}");
        _cleanup_(json_putp) json_object *theirs = json_tokener_parse("{\"outcome\":\"failed\"}");

        assert(event_priority(EVENT_RUN_RESULT, ours) == LOG_ERR);
        assert(event_priority(EVENT_RUN_RESULT, theirs) == LOG_NOTICE);
}

static void test_hostile_json_gives_a_harmless_bounded_line(void) {
        static const char *const documents[] = {
                "[]",
                "7",
                "{\"argv\":{\"0\":\"x\"},\"exit_status\":\"3\",\"signal\":9,\"request\":[],\"devices\":{}}",
                "{\"namespace\":7}",
                "{\"argv\":[\"\\u001b]0;x\\u0007\",1,null,[],\"\\u202e\",\"a\\u0000b\"],\"by\":\"\\u009b\\n\"}",
                "{\"duration_usec\":-5,\"exit_status\":-9223372036854775808,\"bytes\":9223372036854775807}",
                "{\"namespace\":{\"links\":[null,{},{\"name\":7},{\"name\":\"\\u001b\",\"up\":1}]}}",
        };

        for (size_t i = 0; i < ELEMENTSOF(documents); i++) {
                _cleanup_(json_putp) json_object *object = json_tokener_parse(documents[i]);

                for (EventType type = 0; type < EVENT_TYPE_COUNT; type++) {
                        _cleanup_(freep) char *message = event_message(type, object);
                        _cleanup_(freep) char *again = neutralise_line(message, strlen(message));

                        assert(strlen(message) <= EVENT_MESSAGE_MAX);
                        assert(strcmp(message, again) == 0);
                }
        }
        expect_message(EVENT_RUN_CANCELLED, "{\"by\":\"\\u001b[2J\\u202e\\n\"}", "Run cancelled by ^[[2J\\u202e^J");
}

static void test_a_long_argv_is_cut(void) {
        _cleanup_(json_putp) json_object *object = json_object_new_object();
        _cleanup_(freep) char *message = NULL;
        json_object *argv = json_object_new_array();

        for (int i = 0; i < 4096; i++)
                json_object_array_add(argv, json_object_new_string("\x1b\x1b\x1b\x1b\x1b\x1b ü ü ü ü ü ü"));
        assert(json_object_object_add(object, "argv", argv) == 0);
        message = event_message(EVENT_COMMAND_STARTED, object);
        assert(message && strlen(message) <= EVENT_MESSAGE_MAX);
        assert(strcmp(message + strlen(message) - strlen("…"), "…") == 0);
        assert(!strstr(message, "\\x"));
}

static void test_json_is_plain_and_safe(void) {
        _cleanup_(json_putp) json_object *object = json_object_new_object();
        _cleanup_(freep) char *json = NULL;

        assert(json_object_object_add(object, "a/b", json_object_new_string("/\x1b\x7f\xc2\x9b\xe2\x80\xae")) == 0);
        json = event_json(object);
        assert(json && strcmp(json, "{\"a/b\":\"/\\u001b\\u007f\\u009b\\u202e\"}") == 0);
}

static void test_output_is_text_or_base64(void) {
        _cleanup_(freep) char *text = event_output_json(STREAM_STDOUT, "hé\n", 4);
        _cleanup_(freep) char *bytes = event_output_json(STREAM_STDERR, "\xff\x00\x01", 3);

        assert(text && strcmp(text, "{\"stream\":\"stdout\",\"bytes\":4,\"data\":\"hé\\n\"}") == 0);
        assert(bytes && strcmp(bytes, "{\"stream\":\"stderr\",\"bytes\":3,\"data_base64\":\"/wAB\"}") == 0);
}

/* Each id of ours but that of output stands in the catalog, and the catalog knows no other. */
static void test_the_catalog_has_the_same_ids(const char *path) {
        const sd_id128_t others[] = {JOURNAL_ID_DROPPED, JOURNAL_ID_OUTPUT_LIMIT, JOURNAL_ID_OUTPUT_SKIPPED};
        _cleanup_(freep) char *catalog = NULL;
        size_t n_found = 0;

        assert(fd_read_file_at(AT_FDCWD, path, 1 << 20, &catalog, NULL) == 0);
        for (size_t i = 0; i < EVENT_TYPE_COUNT + ELEMENTSOF(others); i++) {
                char line[64];

                snprintf(line, sizeof(line), "\n-- " SD_ID128_FORMAT_STR "\nSubject: ",
                         SD_ID128_FORMAT_VAL(i < EVENT_TYPE_COUNT ? event_type_message_id((EventType) i)
                                                                  : others[i - EVENT_TYPE_COUNT]));
                assert(!strstr(catalog, line) == (i == EVENT_OUTPUT));
        }
        for (const char *p = catalog; (p = strstr(p, "\n-- ")); p++)
                n_found++;
        assert(n_found == EVENT_TYPE_COUNT - 1 + ELEMENTSOF(others));
}

int main(int argc, char **argv) {
        assert(argc == 2);
        test_each_type_has_a_name_an_id_and_a_sentence();
        test_sentences_are_made_from_the_json();
        test_a_failure_of_ours_is_an_error();
        test_hostile_json_gives_a_harmless_bounded_line();
        test_a_long_argv_is_cut();
        test_json_is_plain_and_safe();
        test_output_is_text_or_base64();
        test_the_catalog_has_the_same_ids(argv[1]);
        return 0;
}
