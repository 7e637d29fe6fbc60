/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The workflows of this machine, read once at the start of the manager. A document that is wrong costs only itself: it is
 * kept with its error, so that who asks for it is told what the log said.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "common/errors.h"
#include "common/fd.h"
#include "common/strv.h"
#include "manager/workflow.h"

#define SUFFIX ".json"

typedef struct WorkflowEntry {
        char *name;
        Workflow *workflow; /* NULL: wrong */
        char *error;        /* then says why */
} WorkflowEntry;

struct WorkflowSet {
        char *dir;
        int dir_error; /* negative errno of reading it */
        WorkflowEntry *entries;
        size_t n_entries;
};

WorkflowSet *workflow_set_free(WorkflowSet *set) {
        if (!set)
                return NULL;
        for (size_t i = 0; i < set->n_entries; i++) {
                free(set->entries[i].name);
                workflow_free(set->entries[i].workflow);
                free(set->entries[i].error);
        }
        free(set->entries);
        free(set->dir);
        free(set);
        return NULL;
}

static int load_text(int dir_fd, const char *path, const char *name, WorkflowEntry *entry) {
        _cleanup_(freep) char *file = NULL, *text = NULL;
        size_t size;
        int r;

        if (asprintf(&file, "%s/%s" SUFFIX, path, name) < 0) {
                file = NULL;
                return -ENOMEM;
        }
        r = fd_read_file_at(dir_fd, strrchr(file, '/') + 1, WORKFLOW_SIZE_MAX, &text, &size);
        if (r >= 0)
                return workflow_parse(file, name, text, size, &entry->workflow, &entry->error);
        if (asprintf(&entry->error, "%s: %s", file,
                     r == -EFBIG    ? "larger than 256 KiB"
                     : r == -EBADFD ? "not a regular file"
                                    : strerror(-r)) < 0)
                entry->error = NULL;
        return r;
}

/* Reads one document; only a lack of memory is a failure. */
static int load_entry(WorkflowSet *set, int dir_fd, const char *name) {
        WorkflowEntry *entry = &set->entries[set->n_entries];

        entry->name = strdup(name);
        if (!entry->name)
                return -ENOMEM;
        set->n_entries++;
        if (load_text(dir_fd, set->dir, name, entry) >= 0)
                return 0;
        if (!entry->error)
                return -ENOMEM;
        fprintf(stderr, SD_WARNING "workflow '%s' is left out: %s\n", name, entry->error);
        return 0;
}

/* The NAMEs of NAME.json. */
static int list_names(DIR *dir, const char *path, char ***ret) {
        _cleanup_(strv_freep) char **names = NULL;
        struct dirent *entry;

        for (size_t n = 0; (entry = readdir(dir));) {
                size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);
                int r;

                if (length <= suffix || strcmp(entry->d_name + length - suffix, SUFFIX) != 0)
                        continue;
                entry->d_name[length - suffix] = 0;
                if (!workflow_name_is_valid(entry->d_name) || n == WORKFLOWS_MAX) {
                        fprintf(stderr, SD_WARNING "%s/%s" SUFFIX ": %s, ignored\n", path, entry->d_name,
                                n == WORKFLOWS_MAX ? "one workflow too many" : "not a name for a workflow");
                        continue;
                }
                r = strv_add(&names, entry->d_name);
                if (r < 0)
                        return r;
                n++;
        }
        *ret = TAKE_PTR(names);
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int load_directory(WorkflowSet *set, DIR *dir) {
        _cleanup_(strv_freep) char **names = NULL;
        size_t n;
        int r;

        r = list_names(dir, set->dir, &names);
        n = strv_length(names);
        if (r < 0 || n == 0)
                return r;
        qsort(names, n, sizeof(char *), compare_names);
        set->entries = calloc(n, sizeof(WorkflowEntry));
        if (!set->entries)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = load_entry(set, dirfd(dir), names[i]);
        return r;
}

int workflow_set_load(const char *path, WorkflowSet **ret) {
        _cleanup_(workflow_set_freep) WorkflowSet *set = calloc(1, sizeof(WorkflowSet));
        DIR *dir;
        int r;

        if (!set)
                return -ENOMEM;
        set->dir = strdup(path);
        if (!set->dir)
                return -ENOMEM;
        dir = opendir(path);
        if (!dir) {
                set->dir_error = -errno;
                fprintf(stderr, SD_WARNING "%s: %s: there are no workflows\n", path, strerror(errno));
        } else {
                r = load_directory(set, dir);
                closedir(dir);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(set);
        return 0;
}

const Workflow *workflow_set_at(const WorkflowSet *set, size_t i) {
        for (size_t at = 0; at < set->n_entries; at++)
                if (set->entries[at].workflow && i-- == 0)
                        return set->entries[at].workflow;
        return NULL;
}

/* No such name: says which there are, or why there are none. */
static int fail_unknown(const WorkflowSet *set, const char *name, sd_bus_error *reterr_error) {
        _cleanup_(freep) char *all = NULL;
        const Workflow *w;
        size_t size;
        FILE *f;

        if (set->dir_error < 0)
                return error_set(reterr_error, ERROR_WORKFLOW_UNREADABLE,
                                 "workflow '%s' cannot be read: %s: %s; is the package installed completely?", name,
                                 set->dir, strerror(-set->dir_error));
        f = open_memstream(&all, &size);
        if (!f)
                return -ENOMEM;
        for (size_t i = 0; (w = workflow_set_at(set, i)); i++)
                (void) fprintf(f, "%s%s", i > 0 ? ", " : "", w->name);
        if (fclose(f) != 0)
                return -ENOMEM;
        return error_set(reterr_error, ERROR_UNKNOWN_WORKFLOW, "no workflow '%s' in %s; there are: %s", name, set->dir,
                         *all ? all : "none");
}

int workflow_set_get(const WorkflowSet *set, const char *name, const Workflow **ret, sd_bus_error *reterr_error) {
        if (!workflow_name_is_valid(name))
                return error_set(
                        reterr_error, ERROR_UNKNOWN_WORKFLOW,
                        "not a name of a workflow; expected letters a-z, digits, '-', '_' and '.', at most %u",
                        WORKFLOW_NAME_MAX);
        for (size_t i = 0; i < set->n_entries; i++) {
                const WorkflowEntry *entry = &set->entries[i];

                if (strcmp(entry->name, name) != 0)
                        continue;
                if (!entry->workflow)
                        return error_set(reterr_error, ERROR_WORKFLOW_UNREADABLE, "workflow '%s' is unusable: %s",
                                         name, entry->error);
                *ret = entry->workflow;
                return 0;
        }
        return fail_unknown(set, name, reterr_error);
}
