/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request, parsed, bounded and merged with its workflow: all that the rest of the manager knows of what was asked. */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "common/cleanup.h"
#include "manager/workflow.h"

#define REQUEST_SIZE_MAX        (1024U * 1024U) /* of the text, as sent and as accepted */
#define REQUEST_ARGV_MAX        4096U
#define REQUEST_ARG_SIZE_MAX    131071U /* Linux: MAX_ARG_STRLEN less the NUL; holds for "NAME=value" too */
#define REQUEST_SCRIPT_SIZE_MAX (512U * 1024U)
#define REQUEST_ENV_MAX         1024U
#define REQUEST_ENV_SIZE_MAX    (128U * 1024U) /* all of "NAME=value" with their NULs */
#define REQUEST_LABELS_MAX      64U
#define REQUEST_LABEL_NAME_MAX  63U
#define REQUEST_LABEL_VALUE_MAX 256U

#define REQUEST_SCRIPT_PATH "/run/ephemeral/script" /* in the guest */

typedef struct Request {
        char *workflow;
        char **argv;  /* ends with NULL; of a script: the interpreter's, then REQUEST_SCRIPT_PATH */
        char **env;   /* "NAME=value", sorted, ends with NULL; never NULL itself */
        char *script; /* NULL: none */
        size_t script_size;
        char *stdin_data; /* never NULL; the size may be 0 */
        size_t stdin_size;
        uint64_t timeout_usec;
        char *image;
        uint32_t vcpus;
        uint32_t memory_mib;
        uint32_t disk_mib;
        bool root; /* the command runs as the guest's root */
        uint64_t output_max_bytes;
        char **labels;         /* name, value, name, value, … sorted by name, ends with NULL; never NULL itself */
        json_object *accepted; /* the complete request, every default filled in; asks for the same when parsed again */
} Request;

/* text is the JSON of design section 4; default_image is what a request without vm.image gets. 0, or -errno with one of
 * InvalidRequest, RequestTooLarge, NotSupported, NotPermitted, UnknownWorkflow, WorkflowUnreadable. */
int request_parse(const char *text,
                  size_t size,
                  const WorkflowSet *workflows,
                  const char *default_image,
                  Request **ret,
                  sd_bus_error *reterr_error);

/* The accepted request on one line; borrowed. NULL when memory is short. */
const char *request_to_json(const Request *request);

Request *request_free(Request *request);
DEFINE_CLEANUP(Request *, request_free);
