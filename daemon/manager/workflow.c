/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One workflow: its document, checked key by key. Every size is named in the document, nothing is filled in: who writes a
 * workflow decides what strangers may use, and should see the whole of it on one page.
 */
#include "manager/workflow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"

#define DESCRIPTION_MAX 1024U

bool workflow_name_is_valid(const char *name) {
        static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        size_t n = name ? strnlen(name, WORKFLOW_NAME_MAX + 1) : 0;

        return n > 0 && n <= WORKFLOW_NAME_MAX && strchr(first, name[0]) &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

Workflow *workflow_free(Workflow *workflow) {
        if (!workflow)
                return NULL;
        free(workflow->name);
        free(workflow->description);
        free(workflow->document);
        free(workflow);
        return NULL;
}

/* What must be there; 0 instead of a reader's 1. */
static int required(JsonReader *reader, json_object *object, const char *path, int r) {
        return r > 0 ? 0 : r < 0 ? r : json_read_fail(reader, object, path, "missing");
}

static int read_size(JsonReader *reader, json_object *o, const char *path, const uint64_t range[2], uint64_t *ret) {
        return required(reader, o, path, json_read_u64(reader, o, path, range[0], range[1], ret));
}

/* most holds the upper ends. */
static int read_sizes(
        JsonReader *reader, json_object *root, const char *key, const WorkflowSizes *most, WorkflowSizes *ret) {
        static const char *const allowed[] = {"timeout_seconds", "vcpus",        "memory_mib",
                                              "disk_mib",        "output_bytes", NULL};
        const uint64_t ranges[][2] = {
                {1,                   most->timeout_seconds},
                {1,                   most->vcpus          },
                {WORKFLOW_MEMORY_MIN, most->memory_mib     },
                {WORKFLOW_DISK_MIN,   most->disk_mib       },
                {0,                   most->output_bytes   }
        };
        uint64_t *const members[] = {&ret->timeout_seconds, &ret->vcpus, &ret->memory_mib, &ret->disk_mib,
                                     &ret->output_bytes};
        json_object *o;
        int r;

        r = required(reader, root, key, json_read_object(reader, root, key, &o));
        if (r < 0)
                return r;
        r = json_read_only(reader, o, key, allowed);
        for (size_t i = 0; r >= 0 && allowed[i]; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "%s.%s", key, allowed[i]);
                r = read_size(reader, o, path, ranges[i], members[i]);
        }
        return r;
}

static int read_grants(JsonReader *reader, json_object *root, Workflow *workflow) {
        static const char *const allowed[] = {"root", NULL};
        json_object *o;
        int r;

        r = json_read_object(reader, root, "grants", &o);
        if (r <= 0)
                return r;
        r = json_read_only(reader, o, "grants", allowed);
        if (r < 0)
                return r;
        r = json_read_bool(reader, o, "grants.root", &workflow->grant_root);
        return r < 0 ? r : 0;
}

static int read_names(JsonReader *reader, json_object *root, const char *name, Workflow *workflow) {
        const char *own, *description;
        int r;

        r = required(reader, root, "name", json_read_string(reader, root, "name", WORKFLOW_NAME_MAX, &own));
        if (r < 0)
                return r;
        if (strcmp(own, name) != 0)
                return json_read_fail(reader, json_object_object_get(root, "name"), "name",
                                      "expected \"%s\", as the file is called", name);
        r = required(reader, root, "description",
                     json_read_string(reader, root, "description", DESCRIPTION_MAX, &description));
        if (r < 0)
                return r;
        workflow->name = strdup(own);
        workflow->description = strdup(description);
        return workflow->name && workflow->description ? 0 : -ENOMEM;
}

static int read_document(JsonReader *reader, json_object *root, const char *name, Workflow *workflow) {
        static const char *const allowed[] = {"name", "description", "limits", "defaults", "grants", NULL};
        static const WorkflowSizes most = {.timeout_seconds = WORKFLOW_TIMEOUT_MAX,
                                           .vcpus = WORKFLOW_VCPUS_MAX,
                                           .memory_mib = WORKFLOW_MEMORY_MAX,
                                           .disk_mib = WORKFLOW_MEMORY_MAX,
                                           .output_bytes = WORKFLOW_OUTPUT_MAX};
        int r;

        r = json_read_root(reader, root);
        if (r < 0)
                return r;
        r = json_read_only(reader, root, "", allowed);
        if (r < 0)
                return r;
        r = read_names(reader, root, name, workflow);
        if (r < 0)
                return r;
        r = read_sizes(reader, root, "limits", &most, &workflow->limits);
        if (r < 0)
                return r;
        reader->bounds = "within its limits";
        r = read_sizes(reader, root, "defaults", &workflow->limits, &workflow->defaults);
        reader->bounds = NULL;
        if (r < 0)
                return r;
        if (workflow->defaults.disk_mib > workflow->defaults.memory_mib)
                return json_read_fail(reader, json_object_object_get(root, "defaults"), "defaults.disk_mib",
                                      "expected at most memory_mib (%" PRIu64 "): what a run writes is in its memory",
                                      workflow->defaults.memory_mib);
        return read_grants(reader, root, workflow);
}

int workflow_parse(
        const char *file, const char *name, const char *text, size_t size, Workflow **ret, char **reterr_text) {
        _cleanup_(json_reader_done) JsonReader reader = {.what = "key", .file = file};
        _cleanup_(workflow_freep) Workflow *workflow = NULL;
        _cleanup_(freep) char *error = NULL;
        _cleanup_(json_putp) json_object *root = NULL;
        int r;

        r = json_parse(text, size, &root, &error);
        if (r < 0) {
                if (error && asprintf(reterr_text, "%s: %s", file, error) < 0)
                        *reterr_text = NULL;
                return r;
        }
        workflow = calloc(1, sizeof(Workflow));
        if (!workflow)
                return -ENOMEM;
        workflow->document = strndup(text, size);
        if (!workflow->document)
                return -ENOMEM;
        r = read_document(&reader, root, name, workflow);
        if (r < 0) {
                *reterr_text = TAKE_PTR(reader.error);
                return r;
        }
        *ret = TAKE_PTR(workflow);
        return 0;
}
