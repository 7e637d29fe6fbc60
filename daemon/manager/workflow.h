/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Workflows: documents NAME.json that say what a request may ask for at most, and what it gets when it asks for nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "common/cleanup.h"

#define WORKFLOWS_MAX        256U
#define WORKFLOW_SIZE_MAX    (256U * 1024U)
#define WORKFLOW_NAME_MAX    64U
#define WORKFLOW_TIMEOUT_MAX (7U * 24U * 3600U) /* seconds */
#define WORKFLOW_VCPUS_MAX   64U
#define WORKFLOW_MEMORY_MIN  64U /* MiB; less does not boot */
#define WORKFLOW_MEMORY_MAX  (1024U * 1024U)
#define WORKFLOW_DISK_MIN    4U /* MiB */
#define WORKFLOW_OUTPUT_MAX  (1024ULL * 1024ULL * 1024ULL)

typedef struct WorkflowSizes {
        uint64_t timeout_seconds;
        uint64_t vcpus;
        uint64_t memory_mib;
        uint64_t disk_mib;
        uint64_t output_bytes;
} WorkflowSizes;

typedef struct Workflow {
        char *name;
        char *description;
        WorkflowSizes limits;   /* the most a request may ask for */
        WorkflowSizes defaults; /* within the limits */
        bool grant_root;
        char *document; /* the text of the file, for GetWorkflow */
} Workflow;

typedef struct WorkflowSet WorkflowSet;

/* Letters a-z, digits, '-', '_' and '.', begins with a letter or digit, at most WORKFLOW_NAME_MAX. */
bool workflow_name_is_valid(const char *name);

/* Parses one document; file is what errors call it, name what it must call itself. 0; -EBADMSG with a text the caller frees. */
int workflow_parse(
        const char *file, const char *name, const char *text, size_t size, Workflow **ret, char **reterr_text);
Workflow *workflow_free(Workflow *workflow);
DEFINE_CLEANUP(Workflow *, workflow_free);

/* Reads all of dir. Documents that are wrong are logged, and asking for one says what is wrong with it; so does asking for
 * anything when dir cannot be read: the service starts, and tells. 0 or -ENOMEM. */
int workflow_set_load(const char *dir, WorkflowSet **ret);
WorkflowSet *workflow_set_free(WorkflowSet *set);
DEFINE_CLEANUP(WorkflowSet *, workflow_set_free);

/* Borrowed from the set. 0, or -errno with UnknownWorkflow (names the known ones) or WorkflowUnreadable. */
int workflow_set_get(const WorkflowSet *set, const char *name, const Workflow **ret, sd_bus_error *reterr_error);

/* The good ones, sorted by name: i from 0 until NULL. */
const Workflow *workflow_set_at(const WorkflowSet *set, size_t i);
