/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/errors.h"
#include "common/fd.h"
#include "manager/workflow.h"

static char directory[] = "/tmp/test-workflow-XXXXXX";

static void put(const char *name, const char *text) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert(fd >= 0);
        assert(fd_write_all(fd, text, strlen(text)) == 0);
}

static void drop(const char *name) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        assert(unlink(path) == 0);
}

#define LIMITS "\"limits\":{\"timeout_seconds\":9,\"vcpus\":2,\"memory_mib\":128,\"disk_mib\":64,\"output_bytes\":99}"
#define DEFAULTS                                                                                                      \
        "\"defaults\":{\"timeout_seconds\":3,\"vcpus\":1,\"memory_mib\":64,\"disk_mib\":32,\"output_bytes\":9}"

static void refused(const char *text, const char *expected) {
        _cleanup_(workflow_freep) Workflow *w = NULL;
        _cleanup_(freep) char *error = NULL;

        assert(workflow_parse("/w/x.json", "x", text, strlen(text), &w, &error) == -EBADMSG);
        if (strcmp(error, expected) != 0)
                fprintf(stderr, "expected: %s\ngot:      %s\n", expected, error);
        assert(strcmp(error, expected) == 0);
        assert(!w);
}

static void a_document_is_read(void) {
        static const char text[] =
                "{\"name\":\"x\",\"description\":\"d\"," LIMITS "," DEFAULTS ",\"grants\":{\"root\":true}}";
        _cleanup_(workflow_freep) Workflow *w = NULL;
        _cleanup_(freep) char *error = NULL;

        assert(workflow_parse("/w/x.json", "x", text, strlen(text), &w, &error) == 0);
        assert(strcmp(w->name, "x") == 0 && strcmp(w->description, "d") == 0 && strcmp(w->document, text) == 0);
        assert(w->limits.timeout_seconds == 9 && w->limits.vcpus == 2 && w->limits.memory_mib == 128);
        assert(w->limits.disk_mib == 64 && w->limits.output_bytes == 99);
        assert(w->defaults.timeout_seconds == 3 && w->defaults.vcpus == 1 && w->defaults.memory_mib == 64);
        assert(w->defaults.disk_mib == 32 && w->defaults.output_bytes == 9);
        assert(w->grant_root);
}

static void what_is_not_granted_is_not_granted(void) {
        static const char text[] = "{\"name\":\"x\",\"description\":\"d\"," LIMITS "," DEFAULTS "}";
        _cleanup_(workflow_freep) Workflow *w = NULL;
        _cleanup_(freep) char *error = NULL;

        assert(workflow_parse("/w/x.json", "x", text, strlen(text), &w, &error) == 0);
        assert(!w->grant_root);
}

static void errors_name_file_line_and_key(void) {
        refused("{\"name\":\"x\",\n}", "/w/x.json: line 2, column 1: expected a key in double quotes");
        refused("[]", "/w/x.json:1: expected an object, got an array");
        refused("{\"nam\":\"x\"}", "/w/x.json:1: key 'nam': no such key; did you mean 'name'? "
                                   "(There are: name, description, limits, defaults, grants)");
        refused("{\n\"name\":\n\"y\"}", "/w/x.json:3: key 'name': expected \"x\", as the file is called");
        refused("{\"description\":\"d\"}", "/w/x.json:1: key 'name': missing");
        refused("{\"name\":\"x\"}", "/w/x.json:1: key 'description': missing");
        refused("{\"name\":\"x\",\"description\":\"d\"}", "/w/x.json:1: key 'limits': missing");
        refused("{\"name\":\"x\",\"description\":\"d\"," LIMITS "}", "/w/x.json:1: key 'defaults': missing");
        refused("{\"name\":\"x\",\"description\":\"d\",\n\"limits\":{\"timeout_seconds\":0}}",
                "/w/x.json:2: key 'limits.timeout_seconds': expected a whole number from 1 to 604800, got 0");
        refused("{\"name\":\"x\",\"description\":\"d\",\"limits\":{\"timeout_seconds\":1}}",
                "/w/x.json:1: key 'limits.vcpus': missing");
        refused("{\"name\":\"x\",\"description\":\"d\"," LIMITS ",\n\"defaults\":{\"timeout_seconds\":10}}",
                "/w/x.json:2: key 'defaults.timeout_seconds': expected a whole number from 1 to 9 (within its "
                "limits), "
                "got 10");
        refused("{\"name\":\"x\",\"description\":\"d\"," LIMITS "," DEFAULTS ",\"grants\":{\"web\":true}}",
                "/w/x.json:1: key 'grants.web': no such key; there are: root");
        refused("{\"name\":\"x\",\"description\":\"d\"," LIMITS "," DEFAULTS ",\"grants\":{\"root\":1}}",
                "/w/x.json:1: key 'grants.root': expected true or false, got 1");
}

static void a_default_disk_fits_into_the_default_memory(void) {
        refused("{\"name\":\"x\",\"description\":\"d\",\"limits\":{\"timeout_seconds\":9,\"vcpus\":2,\"memory_mib\":"
                "128,"
                "\"disk_mib\":128,\"output_bytes\":99},\"defaults\":{\"timeout_seconds\":3,\"vcpus\":1,\"memory_mib\":"
                "64,"
                "\"disk_mib\":65,\"output_bytes\":9}}",
                "/w/x.json:1: key 'defaults.disk_mib': expected at most memory_mib (64): what a run writes is in its "
                "memory");
}

static void names_are_bounded(void) {
        char name[WORKFLOW_NAME_MAX + 2];

        memset(name, 'a', sizeof(name));
        name[WORKFLOW_NAME_MAX] = 0;
        assert(workflow_name_is_valid(name));
        name[WORKFLOW_NAME_MAX] = 'a';
        name[WORKFLOW_NAME_MAX + 1] = 0;
        assert(!workflow_name_is_valid(name));
        assert(workflow_name_is_valid("a-b_c.9"));
        assert(!workflow_name_is_valid(NULL));
        assert(!workflow_name_is_valid(""));
        assert(!workflow_name_is_valid(".."));
        assert(!workflow_name_is_valid("../x"));
        assert(!workflow_name_is_valid("A"));
}

static void not_found(const WorkflowSet *set, const char *name, const char *error_name, const char *expected) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        const Workflow *w;

        assert(workflow_set_get(set, name, &w, &e) < 0);
        if (strcmp(e.name, error_name) != 0 || !strstr(e.message, expected))
                fprintf(stderr, "expected: %s\ngot:      %s: %s\n", expected, e.name, e.message);
        assert(strcmp(e.name, error_name) == 0);
        assert(strstr(e.message, expected));
}

static void a_wrong_document_costs_only_itself(void) {
        _cleanup_(workflow_set_freep) WorkflowSet *set = NULL;
        const Workflow *w;

        put("b.json", "{\"name\":\"b\",\"description\":\"d\"," LIMITS "," DEFAULTS "}");
        put("a.json", "{\"name\":\"a\",\"description\":\"d\"," LIMITS "," DEFAULTS "}");
        put("bad.json", "{\"name\":\n1}");
        put("Bad Name.json", "{}");
        put("c.txt", "no");
        assert(workflow_set_load(directory, &set) == 0);
        assert(workflow_set_get(set, "a", &w, NULL) == 0 && strcmp(w->name, "a") == 0);
        assert(workflow_set_at(set, 0) == w);
        assert(workflow_set_get(set, "b", &w, NULL) == 0);
        assert(workflow_set_at(set, 1) == w);
        assert(!workflow_set_at(set, 2));
        not_found(set, "bad", ERROR_PREFIX "WorkflowUnreadable", "/bad.json:2: key 'name': expected a string, got 1");
        not_found(set, "command", ERROR_PREFIX "UnknownWorkflow", "there are: a, b");
        not_found(set, "../a", ERROR_PREFIX "UnknownWorkflow", "not a name of a workflow");
        drop("a.json");
        drop("b.json");
        drop("bad.json");
        drop("Bad Name.json");
        drop("c.txt");
}

static void files_that_are_none_are_told(void) {
        _cleanup_(workflow_set_freep) WorkflowSet *set = NULL;
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/fifo.json", directory);
        assert(mkfifo(path, 0644) == 0);
        (void) snprintf(path, sizeof(path), "%s/big.json", directory);
        put("big.json", "");
        assert(truncate(path, WORKFLOW_SIZE_MAX + 1) == 0);
        assert(workflow_set_load(directory, &set) == 0);
        not_found(set, "fifo", ERROR_PREFIX "WorkflowUnreadable", "/fifo.json: not a regular file");
        not_found(set, "big", ERROR_PREFIX "WorkflowUnreadable", "/big.json: larger than 256 KiB");
        drop("fifo.json");
        drop("big.json");
}

static void a_missing_directory_is_told_when_asked(void) {
        _cleanup_(workflow_set_freep) WorkflowSet *set = NULL;

        assert(workflow_set_load("/nonexistent/w", &set) == 0);
        assert(!workflow_set_at(set, 0));
        not_found(set, "command", ERROR_PREFIX "WorkflowUnreadable",
                  "workflow 'command' cannot be read: /nonexistent/w: No such file or directory");
}

static void the_workflows_that_are_shipped_are_right(void) {
        _cleanup_(workflow_set_freep) WorkflowSet *set = NULL;
        const Workflow *w;

        assert(workflow_set_load(WORKFLOWS_SOURCE, &set) == 0);
        assert(workflow_set_get(set, "command", &w, NULL) == 0);
        assert(w->limits.timeout_seconds == 3600 && w->defaults.memory_mib == 256 && w->grant_root);
}

int main(void) {
        assert(mkdtemp(directory));
        a_document_is_read();
        what_is_not_granted_is_not_granted();
        errors_name_file_line_and_key();
        a_default_disk_fits_into_the_default_memory();
        names_are_bounded();
        a_wrong_document_costs_only_itself();
        files_that_are_none_are_told();
        a_missing_directory_is_told_when_asked();
        the_workflows_that_are_shipped_are_right();
        assert(rmdir(directory) == 0);
        return 0;
}
