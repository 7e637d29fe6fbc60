/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The first thing that happens to a request: text of a stranger becomes a bounded Request within the limits of its workflow,
 * or one sentence that says what was wrong, where, and what would be right. Nothing is kept of what is refused.
 *
 * `accepted` names every default, so that the record tells the whole of what a run may touch even when the defaults change
 * later; it is written from the typed fields, not copied from the text, so it cannot say anything else than what is done.
 */
#include "manager/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/errors.h"
#include "common/strv.h"
#include "manager/image.h"
#include "manager/request-input.h"

static const char *const request_keys[] = {"workflow", "input", "timeout_seconds", "vm", "output", "labels", NULL};
static const char *const vm_keys[] = {"image", "vcpus", "memory_mib", "disk_mib", "root", NULL};
static const char *const output_keys[] = {"max_bytes", NULL};

/* Keys of design section 4 that this version does not offer: better refused than taken and not done. */
static const struct {
        const char *object; /* NULL: the top */
        const char *key;
} later_keys[] = {
        {NULL,     "max_cost_micros"},
        {NULL,     "files"          },
        {NULL,     "connections"    },
        {NULL,     "web"            },
        {NULL,     "shell"          },
        {NULL,     "callback"       },
        {NULL,     "idempotency_key"},
        {"output", "artifacts"      },
};

Request *request_free(Request *request) {
        if (!request)
                return NULL;
        free(request->workflow);
        strv_free(request->argv);
        strv_free(request->env);
        free(request->script);
        free(request->stdin_data);
        free(request->image);
        strv_free(request->labels);
        json_object_put(request->accepted);
        free(request);
        return NULL;
}

const char *request_to_json(const Request *request) {
        return json_text(request->accepted);
}

static int refuse_later_keys(json_object *root, sd_bus_error *reterr_error) {
        for (size_t i = 0; i < ELEMENTSOF(later_keys); i++) {
                const char *inside = later_keys[i].object;
                json_object *object = inside ? json_object_object_get(root, inside) : root;

                if (json_object_is_type(object, json_type_object) &&
                    json_object_object_get_ex(object, later_keys[i].key, NULL))
                        return error_set(reterr_error, ERROR_NOT_SUPPORTED,
                                         "request key '%s%s%s': not offered by this version", inside ? inside : "",
                                         inside ? "." : "", later_keys[i].key);
        }
        return 0;
}

static int read_image(JsonReader *reader, json_object *vm, const char *default_image, Request *request) {
        const char *image = default_image;
        int r;

        r = json_read_string(reader, vm, "vm.image", IMAGE_NAME_MAX, &image);
        if (r < 0)
                return r;
        if (r > 0 && !image_name_is_valid(image))
                return json_read_fail(
                        reader, json_object_object_get(vm, "image"), "vm.image",
                        "not a name of an image; expected letters a-z, digits, '.', '_' and '-', a letter "
                        "or digit first");
        request->image = strdup(image);
        return request->image ? 0 : -ENOMEM;
}

static int read_u32(JsonReader *reader, json_object *o, const char *path, const uint64_t range[2], uint32_t *ret) {
        uint64_t u;
        int r;

        r = json_read_u64(reader, o, path, range[0], range[1], &u);
        if (r > 0)
                *ret = (uint32_t) u;
        return r;
}

/* What a run writes lives in its memory. So a disk that was not asked for shrinks with a memory that was. */
static int read_disk(JsonReader *reader, json_object *vm, const Workflow *workflow, Request *request) {
        uint32_t half = request->memory_mib / 2;
        int r;

        request->disk_mib = (uint32_t) workflow->defaults.disk_mib;
        r = read_u32(reader, vm, "vm.disk_mib", (uint64_t[2]){WORKFLOW_DISK_MIN, workflow->limits.disk_mib},
                     &request->disk_mib);
        if (r < 0)
                return r;
        if (r == 0 && request->disk_mib > half)
                request->disk_mib = half;
        if (request->disk_mib > request->memory_mib)
                return json_read_fail(
                        reader, json_object_object_get(vm, "disk_mib"), "vm.disk_mib",
                        "expected at most vm.memory_mib (%u), got %u: what a run writes is in its memory",
                        request->memory_mib, request->disk_mib);
        return 0;
}

static int read_vm(
        JsonReader *reader, json_object *root, const Workflow *workflow, const char *default_image, Request *request) {
        _cleanup_(json_putp) json_object *nothing = json_object_new_object();
        json_object *vm = nothing;
        int r;

        if (!nothing)
                return -ENOMEM;
        request->vcpus = (uint32_t) workflow->defaults.vcpus;
        request->memory_mib = (uint32_t) workflow->defaults.memory_mib;
        r = json_read_object(reader, root, "vm", &vm);
        if (r < 0)
                return r;
        r = json_read_only(reader, vm, "vm", vm_keys);
        if (r < 0)
                return r;
        r = read_image(reader, vm, default_image, request);
        if (r < 0)
                return r;
        r = read_u32(reader, vm, "vm.vcpus", (uint64_t[2]){1, workflow->limits.vcpus}, &request->vcpus);
        if (r < 0)
                return r;
        r = read_u32(reader, vm, "vm.memory_mib", (uint64_t[2]){WORKFLOW_MEMORY_MIN, workflow->limits.memory_mib},
                     &request->memory_mib);
        if (r < 0)
                return r;
        r = read_disk(reader, vm, workflow, request);
        if (r < 0)
                return r;
        r = json_read_bool(reader, vm, "vm.root", &request->root);
        return r < 0 ? r : 0;
}

static int read_limits(JsonReader *reader, json_object *root, const Workflow *workflow, Request *request) {
        uint64_t timeout_seconds = workflow->defaults.timeout_seconds;
        json_object *output;
        int r;

        r = json_read_u64(reader, root, "timeout_seconds", 1, workflow->limits.timeout_seconds, &timeout_seconds);
        if (r < 0)
                return r;
        request->timeout_usec = timeout_seconds * USEC_PER_SEC;

        request->output_max_bytes = workflow->defaults.output_bytes;
        r = json_read_object(reader, root, "output", &output);
        if (r <= 0)
                return r;
        r = json_read_only(reader, output, "output", output_keys);
        if (r < 0)
                return r;
        r = json_read_u64(reader, output, "output.max_bytes", 0, workflow->limits.output_bytes,
                          &request->output_max_bytes);
        return r < 0 ? r : 0;
}

static int check_label(JsonReader *reader, json_object *value, const char *path, const char *name, const char *text) {
        static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";
        size_t n = strlen(name);

        if (n == 0 || n > REQUEST_LABEL_NAME_MAX || !strchr(first, *name) || strspn(name, allowed) != n)
                return json_read_fail(
                        reader, value, path,
                        "not a name of a label; expected letters, digits, '.', '_', '/' and '-', at most "
                        "%u, a letter or digit first",
                        REQUEST_LABEL_NAME_MAX);
        for (; *text; text++)
                if ((unsigned char) *text < 0x20 || *text == 0x7f)
                        return json_read_fail(reader, value, path, "expected one line without control characters");
        return 0;
}

static int read_labels(JsonReader *reader, json_object *root, Request *request) {
        static const RequestPairs pairs = {.path = "labels",
                                           .max = REQUEST_LABELS_MAX,
                                           .size_max = REQUEST_LABEL_VALUE_MAX,
                                           .cure = "labels are for finding runs, data goes into the input",
                                           .check = check_label};
        _cleanup_(freep) const char **all = NULL;
        int r;

        r = request_read_pairs(reader, root, &pairs, &all);
        if (r < 0)
                return r;
        request->labels = calloc(1, sizeof(char *));
        if (!request->labels)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && all[i]; i++)
                r = strv_add(&request->labels, all[i]);
        return r;
}

static int add_vm(const Request *request, json_object *accepted) {
        json_object *vm = json_object_new_object();
        int r;

        r = json_add(accepted, "vm", vm);
        if (r < 0)
                return r;
        r = json_add_string(vm, "image", request->image);
        if (r < 0)
                return r;
        r = json_add_u64(vm, "vcpus", request->vcpus);
        if (r < 0)
                return r;
        r = json_add_u64(vm, "memory_mib", request->memory_mib);
        if (r < 0)
                return r;
        r = json_add_u64(vm, "disk_mib", request->disk_mib);
        return r < 0 ? r : json_add_bool(vm, "root", request->root);
}

static int add_output_and_labels(const Request *request, json_object *accepted) {
        json_object *output = json_object_new_object(), *labels;
        int r;

        r = json_add(accepted, "output", output);
        if (r < 0)
                return r;
        r = json_add_u64(output, "max_bytes", request->output_max_bytes);
        if (r < 0)
                return r;
        labels = json_object_new_object();
        r = json_add(accepted, "labels", labels);
        for (size_t i = 0; r >= 0 && request->labels[i]; i += 2)
                r = json_add_string(labels, request->labels[i], request->labels[i + 1]);
        return r;
}

static int write_accepted(Request *request) {
        json_object *accepted = request->accepted = json_object_new_object();
        int r;

        if (!accepted)
                return -ENOMEM;
        r = json_add_string(accepted, "workflow", request->workflow);
        if (r < 0)
                return r;
        r = request_add_input(request, accepted);
        if (r < 0)
                return r;
        r = json_add_u64(accepted, "timeout_seconds", request->timeout_usec / USEC_PER_SEC);
        if (r < 0)
                return r;
        r = add_vm(request, accepted);
        return r < 0 ? r : add_output_and_labels(request, accepted);
}

/* Everything that is read against the workflow. */
static int read_rest(
        JsonReader *reader, json_object *root, const Workflow *workflow, const char *default_image, Request *request) {
        int r;

        request->workflow = strdup(workflow->name);
        if (!request->workflow)
                return -ENOMEM;
        r = request_read_input(reader, root, request);
        if (r < 0)
                return r;
        r = read_limits(reader, root, workflow, request);
        if (r < 0)
                return r;
        r = read_vm(reader, root, workflow, default_image, request);
        if (r < 0)
                return r;
        return read_labels(reader, root, request);
}

static int check_size(size_t size, const char *which, sd_bus_error *reterr_error) {
        if (size <= REQUEST_SIZE_MAX)
                return 0;
        return error_set(reterr_error, ERROR_REQUEST_TOO_LARGE, "%s has %zu bytes, at most %u are taken", which, size,
                         REQUEST_SIZE_MAX);
}

static int accept_request(Request *request, sd_bus_error *reterr_error) {
        const char *accepted;
        int r;

        r = write_accepted(request);
        if (r < 0)
                return r;
        accepted = request_to_json(request);
        if (!accepted)
                return -ENOMEM;
        return check_size(strlen(accepted), "the request with its defaults filled in", reterr_error);
}

/* A reader's error becomes the request's. */
static int refuse(const JsonReader *reader, int r, sd_bus_error *reterr_error) {
        return reader->error ? error_set(reterr_error, ERROR_INVALID_REQUEST, "%s", reader->error) : r;
}

static int parse_root(const char *text, size_t size, json_object **ret, sd_bus_error *reterr_error) {
        _cleanup_(freep) char *error = NULL;
        int r;

        r = check_size(size, "the request", reterr_error);
        if (r < 0)
                return r;
        r = json_parse(text, size, ret, &error);
        if (r < 0 && error)
                return error_set(reterr_error, ERROR_INVALID_REQUEST, "the request is not JSON: %s", error);
        return r;
}

static int find_workflow(JsonReader *reader,
                         json_object *root,
                         const WorkflowSet *workflows,
                         const Workflow **ret,
                         sd_bus_error *reterr_error) {
        const char *name;
        int r;

        r = json_read_root(reader, root);
        if (r < 0)
                return refuse(reader, r, reterr_error);
        r = refuse_later_keys(root, reterr_error);
        if (r < 0)
                return r;
        r = json_read_only(reader, root, "", request_keys);
        if (r < 0)
                return refuse(reader, r, reterr_error);
        r = json_read_string(reader, root, "workflow", WORKFLOW_NAME_MAX, &name);
        if (r == 0)
                r = json_read_fail(reader, root, "workflow", "missing; expected a name such as \"command\"");
        if (r < 0)
                return refuse(reader, r, reterr_error);
        return workflow_set_get(workflows, name, ret, reterr_error);
}

int request_parse(const char *text,
                  size_t size,
                  const WorkflowSet *workflows,
                  const char *default_image,
                  Request **ret,
                  sd_bus_error *reterr_error) {
        _cleanup_(json_reader_done) JsonReader reader = {.what = "request key"};
        _cleanup_(json_putp) json_object *root = NULL;
        _cleanup_(request_freep) Request *request = NULL;
        char bounds[WORKFLOW_NAME_MAX + 32];
        const Workflow *workflow;
        int r;

        r = parse_root(text, size, &root, reterr_error);
        if (r < 0)
                return r;
        r = find_workflow(&reader, root, workflows, &workflow, reterr_error);
        if (r < 0)
                return r;
        request = calloc(1, sizeof(Request));
        if (!request)
                return -ENOMEM;
        (void) snprintf(bounds, sizeof(bounds), "limits of workflow '%s'", workflow->name);
        reader.bounds = bounds;
        r = read_rest(&reader, root, workflow, default_image, request);
        if (r < 0)
                return refuse(&reader, r, reterr_error);
        if (request->root && !workflow->grant_root)
                return error_set(reterr_error, ERROR_NOT_PERMITTED,
                                 "request key 'vm.root': workflow '%s' does not grant root in the guest",
                                 workflow->name);
        r = accept_request(request, reterr_error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(request);
        return 0;
}
