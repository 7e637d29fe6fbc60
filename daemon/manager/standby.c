/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What waits is compared with what is wanted, and the difference is made good: standby_tend() is all of the policy, and is called
 * whenever something has changed.
 */
#include "manager/standby.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/clock.h"
#include "common/id.h"
#include "manager/console.h"
#include "manager/warm-up.h"

enum {
        CPU_WEIGHT = 1, /* the least, CPUWeight= in systemd.resource-control(5) */
};

typedef enum StandbyState {
        STANDBY_MAKING,
        STANDBY_READY,
        STANDBY_DROPPED,
} StandbyState;

typedef struct Standby {
        StandbySet *set;
        TAILQ_ENTRY(Standby) standbys;
        StandbyState state;
        char key[RECIPE_KEY_LENGTH + 1];
        uint64_t memory_bytes;
        Console *console;
        Vm *vm;
} Standby;

struct StandbySet {
        StandbySettings settings;
        TAILQ_HEAD(StandbyList, Standby) standbys;
        sd_event_source *expiry; /* of the template that was used least lately */
        char failed_key[RECIPE_KEY_LENGTH + 1];
        uint64_t failed_usec; /* not again before the template was used again */
};

static Standby *standby_free(Standby *s) {
        if (!s)
                return NULL;
        TAILQ_REMOVE(&s->set->standbys, s, standbys);
        vm_free(s->vm);
        console_free(s->console);
        free(s);
        return NULL;
}

DEFINE_CLEANUP(Standby *, standby_free);

static void changed(StandbySet *set) {
        set->settings.on_changed(set->settings.userdata);
}

/* ---- one of them ---- */

static void on_ready(Vm *vm, const char *kernel, uint64_t boot_usec, void *userdata) {
        if (vm_warm_up(vm, warm_up_argv) < 0)
                vm_stop(vm);
}

static void on_warm(Vm *vm, void *userdata) {
        Standby *s = userdata;

        if (s->state == STANDBY_DROPPED)
                return;
        if (vm_sleep(vm) < 0) {
                vm_stop(vm);
                return;
        }
        s->state = STANDBY_READY;
        changed(s->set);
}

static void on_console(Vm *vm, const void *data, size_t size, void *userdata) {
        console_write(((Standby *) userdata)->console, data, size);
}

/* Nobody asked for its end, unless it was us. */
static void tell_why(Standby *s, const VmEnd *end) {
        _cleanup_(freep) char *text = console_explain(s->console, end->reason ? end->reason : "it was ended");

        sd_journal_print(LOG_WARNING, "%s, a machine that waited for a run, is gone: %s", end->unit,
                         text ? text : "out of memory");
        memcpy(s->set->failed_key, s->key, sizeof(s->key));
        s->set->failed_usec = clock_monotonic_usec();
}

static void on_gone(Vm *vm, const VmEnd *end, void *userdata) {
        Standby *s = userdata;
        StandbySet *set = s->set;

        if (s->state != STANDBY_DROPPED)
                tell_why(s, end);
        standby_free(s);
        changed(set);
}

static const VmHandlers vm_handlers = {
        .on_ready = on_ready,
        .on_warm = on_warm,
        .on_console = on_console,
        .on_gone = on_gone,
};

static int launch(Standby *s, const Template *template, uint64_t boot_usec) {
        _cleanup_(freep) char *unit = NULL, *description = NULL, *text = NULL;
        _cleanup_(fd_closep) int state_fd = -EBADF;
        char id[RUN_ID_LENGTH + 1];
        VmHandlers handlers = vm_handlers;
        VmSettings settings = {
                .id = "standby",
                .files = VM_NO_FILES,
                .boot_usec = boot_usec,
                .life_usec = UINT64_MAX,
                .cpu_weight = CPU_WEIGHT,
        };
        int r;

        r = run_id_new(id);
        if (r < 0)
                return r;
        if (asprintf(&unit, "ephemeral-standby-%s.scope", id + strlen(RUN_ID_PREFIX)) < 0 ||
            asprintf(&description, "Standby of image %s for the next run", template_recipe(template)->image->name) < 0)
                return -ENOMEM;
        r = template_fill(template, &settings, &state_fd);
        if (r < 0)
                return r;
        s->memory_bytes = settings.plan->memory_max_bytes;
        settings.unit = unit;
        settings.description = description;
        handlers.userdata = s;
        return vm_start(s->set->settings.environment, &settings, &handlers, &s->vm, &text);
}

static int standby_new(StandbySet *set, const Template *template, uint64_t boot_usec) {
        _cleanup_(standby_freep) Standby *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->set = set;
        TAILQ_INSERT_TAIL(&set->standbys, s, standbys);
        (void) snprintf(s->key, sizeof(s->key), "%s", template_recipe(template)->key);
        r = console_new(&s->console);
        if (r >= 0)
                r = launch(s, template, boot_usec);
        if (r < 0)
                return r;
        TAKE_PTR(s);
        return 0;
}

static void drop(Standby *s) {
        s->state = STANDBY_DROPPED;
        vm_stop(s->vm);
}

/* ---- what is wanted ---- */

static bool is_in_use(const StandbySet *set, const Template *t) {
        return set->settings.idle_usec == 0 ||
               clock_monotonic_usec() - template_used_usec(t) < set->settings.idle_usec;
}

static unsigned count_of(const StandbySet *set, const char *key) {
        const Standby *s;
        unsigned n = 0;

        TAILQ_FOREACH (s, &set->standbys, standbys)
                if (s->state != STANDBY_DROPPED && strcmp(s->key, key) == 0)
                        n++;
        return n;
}

static const Template *template_of(const StandbySet *set, const Standby *s) {
        const Template *t = NULL;

        while ((t = template_set_next(set->settings.templates, t)))
                if (strcmp(template_recipe(t)->key, s->key) == 0)
                        return t;
        return NULL;
}

/* Those whose template is gone or out of use, and the oldest of those that have no room. */
static uint64_t drop_unwanted(StandbySet *set, uint64_t memory_bytes) {
        uint64_t used = 0;
        Standby *s;

        TAILQ_FOREACH_REVERSE(s, &set->standbys, StandbyList, standbys) {
                const Template *t = s->state == STANDBY_DROPPED ? NULL : template_of(set, s);

                if (s->state == STANDBY_DROPPED)
                        continue;
                if (t && is_in_use(set, t) && used + s->memory_bytes <= memory_bytes)
                        used += s->memory_bytes;
                else
                        drop(s);
        }
        return used;
}

static bool is_making(const StandbySet *set) {
        const Standby *s;

        TAILQ_FOREACH (s, &set->standbys, standbys)
                if (s->state == STANDBY_MAKING)
                        return true;
        return false;
}

static bool is_missing(const StandbySet *set, const Template *t) {
        const char *key = template_recipe(t)->key;

        if (strcmp(key, set->failed_key) == 0 && template_used_usec(t) <= set->failed_usec)
                return false;
        return is_in_use(set, t) && count_of(set, key) < set->settings.per_template;
}

static void make_missing(StandbySet *set, const StandbyRoom *room, uint64_t used) {
        const Template *t = NULL;

        while ((t = template_set_next(set->settings.templates, t))) {
                uint64_t needed = plan_memory_max_bytes((unsigned) template_recipe(t)->input.memory_mib, false);
                int r;

                if (!is_missing(set, t) || used + needed > room->memory_bytes)
                        continue;
                r = standby_new(set, t, room->boot_usec);
                if (r < 0)
                        sd_journal_print(LOG_WARNING, "No machine can be made to wait for a run: %s", strerror(-r));
                return;
        }
}

static int on_expiry(sd_event_source *source, uint64_t usec, void *userdata) {
        changed(userdata);
        return 0;
}

/* Looks again when the next template goes out of use. */
static void set_expiry(StandbySet *set) {
        uint64_t next = UINT64_MAX;
        const Template *t = NULL;

        set->expiry = sd_event_source_disable_unref(set->expiry);
        while (set->settings.idle_usec > 0 && (t = template_set_next(set->settings.templates, t)))
                if (count_of(set, template_recipe(t)->key) > 0 && template_used_usec(t) < next)
                        next = template_used_usec(t);
        if (next < UINT64_MAX)
                (void) sd_event_add_time(set->settings.environment->event, &set->expiry, CLOCK_MONOTONIC,
                                         next + set->settings.idle_usec, 0, on_expiry, set);
}

void standby_tend(StandbySet *set, const StandbyRoom *room) {
        uint64_t used = drop_unwanted(set, room->memory_bytes);

        if (room->calm && !is_making(set))
                make_missing(set, room, used);
        set_expiry(set);
}

/* ---- taken ---- */

Vm *standby_take(StandbySet *set, const char *template_key) {
        Standby *s;

        TAILQ_FOREACH (s, &set->standbys, standbys)
                if (s->state == STANDBY_READY && strcmp(s->key, template_key) == 0) {
                        Vm *vm = TAKE_PTR(s->vm);

                        standby_free(s);
                        return vm;
                }
        return NULL;
}

unsigned standby_count(const StandbySet *set) {
        const Standby *s;
        unsigned n = 0;

        TAILQ_FOREACH (s, &set->standbys, standbys)
                n += s->state != STANDBY_DROPPED;
        return n;
}

unsigned standby_count_ready(const StandbySet *set) {
        const Standby *s;
        unsigned n = 0;

        TAILQ_FOREACH (s, &set->standbys, standbys)
                n += s->state == STANDBY_READY;
        return n;
}

/* ---- all of them ---- */

int standby_set_new(const StandbySettings *settings, StandbySet **ret) {
        StandbySet *set = calloc(1, sizeof(*set));

        if (!set)
                return -ENOMEM;
        set->settings = *settings;
        TAILQ_INIT(&set->standbys);
        *ret = set;
        return 0;
}

StandbySet *standby_set_free(StandbySet *set) {
        if (!set)
                return NULL;
        while (!TAILQ_EMPTY(&set->standbys))
                standby_free(TAILQ_FIRST(&set->standbys));
        sd_event_source_disable_unref(set->expiry);
        free(set);
        return NULL;
}
