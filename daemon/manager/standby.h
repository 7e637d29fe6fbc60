/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Machines that wait for a run: clones of the templates in recent use, warmed up and asleep, each in a scope of its own with the least
 * weight that there is. One is used once, ever: whoever takes it owns it, and it ends with its run.
 *
 *   MAKING (clone, warm-up) ──► READY ── standby_take ──► a run's
 *        └──────────────────────────┴── not wanted any more, or no room ──► DROPPED ──► gone */

#include "common/cleanup.h"
#include "manager/template.h"
#include "manager/vm.h"

typedef struct StandbySet StandbySet;

typedef struct StandbySettings {
        const VmEnvironment *environment;   /* outlives the set */
        const TemplateSet *templates;       /* outlives the set */
        unsigned per_template;              /* how many are to wait */
        uint64_t idle_usec;                 /* since its template was used last; 0: for ever */
        void (*on_changed)(void *userdata); /* standby_tend() is wanted */
        void *userdata;
} StandbySettings;

int standby_set_new(const StandbySettings *settings, StandbySet **ret);
StandbySet *standby_set_free(StandbySet *set); /* and ends them all */

typedef struct StandbyRoom {
        bool calm;             /* a new one is in nobody's way */
        uint64_t memory_bytes; /* that all may take together */
        uint64_t boot_usec;    /* for each step of a new one */
} StandbyRoom;

/* Drops what is not wanted or has no room, and makes one that is missing, one at a time. */
void standby_tend(StandbySet *set, const StandbyRoom *room);

/* One that is ready, for vm_wake(); NULL: none. */
Vm *standby_take(StandbySet *set, const char *template_key);

unsigned standby_count(const StandbySet *set);       /* those that wait, and the one in the making */
unsigned standby_count_ready(const StandbySet *set); /* those that wait */

DEFINE_CLEANUP(StandbySet *, standby_set_free);
