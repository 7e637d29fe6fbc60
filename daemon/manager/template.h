/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The templates that are at hand: a machine of each recipe that was asked for, frozen after its boot. Who asks for one gets it at once
 * when it is in memory, after a moment when it is on disk, and after one boot when it was never made; whoever else asks meanwhile
 * waits for the same boot.
 *
 *   LOADING ──────────────► READY (and, from a build, saved in the background)
 *      └─ none ─► BUILDING ──► READY
 *                  └─ failed, also a second time ─► forgotten, and those who wait are told why */

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "manager/recipe.h"
#include "manager/template-store.h"
#include "manager/vm.h"

typedef struct Template Template;
typedef struct TemplateSet TemplateSet;
typedef struct TemplateWait TemplateWait;

typedef struct TemplateSetSettings {
        const VmEnvironment *environment; /* outlives the set */
        const char *store;                /* directory; outlives the set */
        unsigned max;                     /* kept in memory, and on disk */
        uint64_t tsc_khz;                 /* of this host now */
} TemplateSetSettings;

int template_set_new(const TemplateSetSettings *settings, TemplateSet **ret);

/* All waits are freed before it. Waits for files that are being written. */
TemplateSet *template_set_free(TemplateSet *set);

/* Something is loaded, built or saved. */
bool template_set_is_busy(const TemplateSet *set);

typedef struct TemplateHandlers {
        void (*on_building)(const Template *t, void *userdata); /* there is none: a machine boots for it */
        void (*on_ready)(const Template *t, void *userdata);    /* the wait is over, and freed */
        void (*on_failed)(const Template *t, const char *text, void *userdata);
        void *userdata;
} TemplateHandlers;

typedef struct TemplatePatience {
        uint64_t boot_usec; /* for each step of a build */
        unsigned attempts;  /* builds, before it has failed */
} TemplatePatience;

/* Takes recipe over, always. 1: *ret is ready, and good until the event loop runs again. 0: *ret_wait, and one of the handlers is
 * called later; on_building, when that is already known, from within. -errno: neither. */
int template_get(TemplateSet *set,
                 Recipe *recipe,
                 const TemplatePatience *patience,
                 const TemplateHandlers *handlers,
                 const Template **ret,
                 TemplateWait **ret_wait);

/* Not interested any more; a build goes on. */
TemplateWait *template_wait_free(TemplateWait *wait);

/* Forgets a ready template, also on disk: somebody has seen that it is no good. */
void template_drop(TemplateSet *set, const char *key);

/* Forgets all that are ready, and all that are on disk. */
void template_drop_all(TemplateSet *set);

typedef enum TemplateWhere {
        TEMPLATE_IN_MAKING, /* loaded or built at the moment */
        TEMPLATE_IN_MEMORY, /* the next run clones it */
        TEMPLATE_ON_DISK,   /* the next run loads it */
} TemplateWhere;

/* All that there are; created_usec is 0 of one in the making. */
void template_set_list(const TemplateSet *set,
                       void (*each)(const TemplateMeta *meta, TemplateWhere where, void *userdata),
                       void *userdata);

/* The ready ones, last used first: the one behind `after`, or (NULL) the first. NULL: that was all. */
const Template *template_set_next(const TemplateSet *set, const Template *after);

const Recipe *template_recipe(const Template *t);
uint64_t template_used_usec(const Template *t);     /* monotonic: when it was asked for last */
bool template_from_disk(const Template *t);         /* not built for the one who asked first */
uint64_t template_duration_usec(const Template *t); /* from the first who asked to ready */

/* The settings of a clone: plan, files, kernel. *ret_state_fd is one of the files: close it after vm_start(). 0 or -errno. */
int template_fill(const Template *t, VmSettings *settings, int *ret_state_fd);

DEFINE_CLEANUP(TemplateSet *, template_set_free);
DEFINE_CLEANUP(TemplateWait *, template_wait_free);
