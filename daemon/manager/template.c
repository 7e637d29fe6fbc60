/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The set of templates, and each one's way to being ready. The list is in the order of use; what a newer recipe of the same image and
 * size has replaced, or what was not used for longest, leaves it when another gets ready.
 */
#include "manager/template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/clock.h"
#include "manager/job.h"
#include "manager/template-build.h"

enum {
        LIST_MAX = 256,
};

typedef enum TemplateState {
        TEMPLATE_LOADING,
        TEMPLATE_BUILDING,
        TEMPLATE_READY,
} TemplateState;

struct TemplateWait {
        Template *template;
        TAILQ_ENTRY(TemplateWait) waits;
        TemplateHandlers handlers;
};

/* What a job works on, and nobody else while it does. */
typedef struct TemplateWork {
        TemplateMeta meta;
        TemplateFiles files; /* of a load; a save reads the template's own, which stay */
        int error;
} TemplateWork;

struct Template {
        TemplateSet *set;
        TAILQ_ENTRY(Template) templates;
        Recipe *recipe;
        TemplateState state;
        TemplatePatience patience;
        unsigned attempt;
        TemplateMeta meta;
        TemplateFiles files;
        TemplateBuild *build;
        Job *job; /* loads or saves */
        TemplateWork work;
        bool from_disk;
        uint64_t asked_usec, used_usec, duration_usec;
        TAILQ_HEAD(, TemplateWait) waits;
};

struct TemplateSet {
        TemplateSetSettings settings;
        TAILQ_HEAD(, Template) templates; /* last used first */
};

static Template *template_free(Template *t) {
        if (!t)
                return NULL;
        if (t->set)
                TAILQ_REMOVE(&t->set->templates, t, templates);
        template_build_free(t->build);
        job_free(t->job);
        template_files_done(&t->work.files);
        template_files_done(&t->files);
        recipe_free(t->recipe);
        free(t);
        return NULL;
}

DEFINE_CLEANUP(Template *, template_free);

/* Of each wait its last word, after which it is gone. */
static TemplateHandlers end_wait(TemplateWait *wait) {
        TemplateHandlers handlers = wait->handlers;

        template_wait_free(wait);
        return handlers;
}

/* ---- ready ---- */

static void forget_old(TemplateSet *set, const Template *newest) {
        Template *t, *next;
        unsigned kept = 0;

        for (t = TAILQ_FIRST(&set->templates); t; t = next) {
                next = TAILQ_NEXT(t, templates);
                if (t->state != TEMPLATE_READY)
                        continue;
                if (!t->job && (template_meta_replaces(&newest->meta, &t->meta) || kept >= set->settings.max))
                        template_free(t);
                else
                        kept++;
        }
}

static void become_ready(Template *t) {
        TemplateWait *wait;

        t->state = TEMPLATE_READY;
        t->duration_usec = clock_monotonic_usec() - t->asked_usec;
        forget_old(t->set, t);
        while ((wait = TAILQ_FIRST(&t->waits))) {
                TemplateHandlers handlers = end_wait(wait);

                handlers.on_ready(t, handlers.userdata);
        }
}

/* ---- saved ---- */

static void save(void *userdata) {
        Template *t = userdata;

        t->work.error = template_store_save(t->set->settings.store, &t->work.meta, &t->files);
        if (t->work.error >= 0)
                template_store_trim(t->set->settings.store, &t->work.meta, t->set->settings.max);
}

static void on_saved(void *userdata) {
        Template *t = userdata;

        t->job = job_free(t->job);
        if (t->work.error < 0)
                sd_journal_print(LOG_WARNING,
                                 "The template of image %s stays in memory only, it cannot be written to %s: %s",
                                 t->meta.image, t->set->settings.store, strerror(-t->work.error));
        else
                t->meta = t->work.meta;
}

static void start_saving(Template *t) {
        JobHandlers handlers = {.work = save, .done = on_saved, .userdata = t};

        t->work.meta = t->meta;
        (void) job_start(t->set->settings.environment->event, &handlers, &t->job);
}

/* ---- built ---- */

static void start_building(Template *t);

static void on_built(void *userdata, TemplateFiles files, const char *kernel) {
        Template *t = userdata;

        t->files = files;
        t->meta = template_meta_of(t->recipe, kernel);
        t->build = template_build_free(t->build);
        start_saving(t);
        become_ready(t);
}

static void fail(Template *t, const char *text) {
        TemplateWait *wait;

        TAILQ_REMOVE(&t->set->templates, t, templates); /* who asks again gets another */
        t->set = NULL;
        while ((wait = TAILQ_FIRST(&t->waits))) {
                TemplateHandlers handlers = end_wait(wait);

                handlers.on_failed(t, text, handlers.userdata);
        }
        template_free(t);
}

static void build_failed(Template *t, const char *text) {
        bool again = t->attempt < t->patience.attempts;

        sd_journal_print(LOG_WARNING, "The template of image %s was not made%s: %s", t->recipe->image->name,
                         again ? ", trying once more" : "", text);
        if (again)
                start_building(t);
        else
                fail(t, text);
}

static void on_build_failed(void *userdata, const char *text) {
        Template *t = userdata;

        t->build = template_build_free(t->build);
        build_failed(t, text);
}

static void start_building(Template *t) {
        TemplateBuildHandlers handlers = {.on_built = on_built, .on_failed = on_build_failed, .userdata = t};
        TemplateBuildSettings settings = {
                .recipe = t->recipe,
                .attempt = ++t->attempt,
                .boot_usec = t->patience.boot_usec,
        };
        _cleanup_(freep) char *text = NULL;
        int r;

        t->state = TEMPLATE_BUILDING;
        r = template_build_start(t->set->settings.environment, &settings, &handlers, &t->build, &text);
        if (r < 0)
                build_failed(t, text ? text : strerror(-r));
}

/* ---- loaded ---- */

static void load(void *userdata) {
        Template *t = userdata;

        t->work.error = template_store_load(t->set->settings.store, t->recipe->key, &t->work.meta, &t->work.files);
}

/* Its guest counts time by the frequency that it was booted with; what is measured at each start differs a little. */
static bool tsc_fits(uint64_t a, uint64_t b) {
        return (a > b ? a - b : b - a) <= b / 1000;
}

static void tell_building(Template *t) {
        TemplateWait *wait, *next;

        for (wait = TAILQ_FIRST(&t->waits); wait; wait = next) {
                next = TAILQ_NEXT(wait, waits);
                wait->handlers.on_building(t, wait->handlers.userdata);
        }
}

static void on_loaded(void *userdata) {
        Template *t = userdata;

        t->job = job_free(t->job);
        if (t->work.error == -EBADMSG)
                sd_journal_print(LOG_WARNING, "The template of image %s in %s is damaged and is made again",
                                 t->recipe->image->name, t->set->settings.store);
        if (t->work.error < 0 || !tsc_fits(t->work.meta.tsc_khz, t->set->settings.tsc_khz)) {
                template_files_done(&t->work.files);
                tell_building(t);
                start_building(t);
                return;
        }
        t->meta = t->work.meta;
        t->files = t->work.files;
        t->work.files = TEMPLATE_NO_FILES;
        t->from_disk = true;
        become_ready(t);
}

/* ---- asked for ---- */

static int template_new(TemplateSet *set, Recipe *recipe, const TemplatePatience *patience, Template **ret) {
        _cleanup_(recipe_freep) Recipe *owned = recipe;
        _cleanup_(template_freep) Template *t = calloc(1, sizeof(*t));
        JobHandlers handlers = {.work = load, .done = on_loaded, .userdata = t};
        int r;

        if (!t)
                return -ENOMEM;
        TAILQ_INIT(&t->waits);
        t->set = set;
        TAILQ_INSERT_HEAD(&set->templates, t, templates);
        t->recipe = TAKE_PTR(owned);
        t->patience = *patience;
        t->files = t->work.files = TEMPLATE_NO_FILES;
        t->asked_usec = t->used_usec = clock_monotonic_usec();
        r = job_start(set->settings.environment->event, &handlers, &t->job);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}

static Template *find(const TemplateSet *set, const char *key) {
        Template *t;

        TAILQ_FOREACH (t, &set->templates, templates)
                if (strcmp(t->recipe->key, key) == 0)
                        return t;
        return NULL;
}

static int wait_for(Template *t, const TemplateHandlers *handlers, TemplateWait **ret) {
        TemplateWait *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return -ENOMEM;
        wait->template = t;
        wait->handlers = *handlers;
        TAILQ_INSERT_TAIL(&t->waits, wait, waits);
        *ret = wait;
        if (t->state == TEMPLATE_BUILDING)
                handlers->on_building(t, handlers->userdata);
        return 0;
}

int template_get(TemplateSet *set,
                 Recipe *recipe,
                 const TemplatePatience *patience,
                 const TemplateHandlers *handlers,
                 const Template **ret,
                 TemplateWait **ret_wait) {
        Template *t = find(set, recipe->key);
        int r;

        if (!t) {
                r = template_new(set, recipe, patience, &t);
                return r < 0 ? r : wait_for(t, handlers, ret_wait);
        }
        recipe_free(recipe);
        TAILQ_REMOVE(&set->templates, t, templates);
        TAILQ_INSERT_HEAD(&set->templates, t, templates);
        t->used_usec = clock_monotonic_usec();
        if (t->state != TEMPLATE_READY)
                return wait_for(t, handlers, ret_wait);
        *ret = t;
        return 1;
}

TemplateWait *template_wait_free(TemplateWait *wait) {
        if (!wait)
                return NULL;
        TAILQ_REMOVE(&wait->template->waits, wait, waits);
        free(wait);
        return NULL;
}

/* ---- of a template ---- */

const Recipe *template_recipe(const Template *t) {
        return t->recipe;
}

uint64_t template_used_usec(const Template *t) {
        return t->used_usec;
}

bool template_from_disk(const Template *t) {
        return t->from_disk;
}

uint64_t template_duration_usec(const Template *t) {
        return t->duration_usec;
}

int template_fill(const Template *t, VmSettings *settings, int *ret_state_fd) {
        _cleanup_(fd_closep) int state_fd = -EBADF;
        int r;

        r = template_file_reopen(t->files.state_fd, &state_fd);
        if (r >= 0)
                r = recipe_fill(t->recipe, PLAN_CLONE, settings);
        if (r < 0)
                return r;
        settings->kernel = t->meta.kernel;
        settings->files[PLAN_FD_RAM] = t->files.ram_fd;
        settings->files[PLAN_FD_STATE] = state_fd;
        *ret_state_fd = TAKE_FD(state_fd);
        return 0;
}

/* ---- of the set ---- */

void template_drop(TemplateSet *set, const char *key) {
        Template *t = find(set, key);

        if (t && t->state != TEMPLATE_READY)
                return; /* another one, in the making */
        template_free(t);
        (void) template_store_drop(set->settings.store, key);
}

const Template *template_set_next(const TemplateSet *set, const Template *after) {
        const Template *t = after ? TAILQ_NEXT(after, templates) : TAILQ_FIRST(&set->templates);

        while (t && t->state != TEMPLATE_READY)
                t = TAILQ_NEXT(t, templates);
        return t;
}

void template_drop_all(TemplateSet *set) {
        TemplateMeta *stored = calloc(LIST_MAX, sizeof(*stored));
        Template *t, *next;

        for (t = TAILQ_FIRST(&set->templates); t; t = next) {
                next = TAILQ_NEXT(t, templates);
                if (t->state == TEMPLATE_READY)
                        template_free(t); /* waits for it to be saved, and that is then deleted */
        }
        for (size_t n = stored ? template_store_list(set->settings.store, stored, LIST_MAX) : 0; n > 0; n--)
                (void) template_store_drop(set->settings.store, stored[n - 1].key);
        free(stored);
}

void template_set_list(const TemplateSet *set,
                       void (*each)(const TemplateMeta *meta, TemplateWhere where, void *userdata),
                       void *userdata) {
        TemplateMeta *stored = calloc(LIST_MAX, sizeof(*stored)), making;
        size_t n = stored ? template_store_list(set->settings.store, stored, LIST_MAX) : 0;
        const Template *t;

        TAILQ_FOREACH (t, &set->templates, templates) {
                making = template_meta_of(t->recipe, "");
                making.created_usec = 0;
                if (t->state == TEMPLATE_READY)
                        each(&t->meta, TEMPLATE_IN_MEMORY, userdata);
                else
                        each(&making, TEMPLATE_IN_MAKING, userdata);
        }
        for (size_t i = 0; i < n; i++)
                if (!find(set, stored[i].key))
                        each(&stored[i], TEMPLATE_ON_DISK, userdata);
        free(stored);
}

bool template_set_is_busy(const TemplateSet *set) {
        const Template *t;

        TAILQ_FOREACH (t, &set->templates, templates)
                if (t->state != TEMPLATE_READY || t->job)
                        return true;
        return false;
}

int template_set_new(const TemplateSetSettings *settings, TemplateSet **ret) {
        TemplateSet *set = calloc(1, sizeof(*set));

        if (!set)
                return -ENOMEM;
        set->settings = *settings;
        TAILQ_INIT(&set->templates);
        template_store_sweep(settings->store);
        *ret = set;
        return 0;
}

TemplateSet *template_set_free(TemplateSet *set) {
        if (!set)
                return NULL;
        while (!TAILQ_EMPTY(&set->templates))
                template_free(TAILQ_FIRST(&set->templates));
        free(set);
        return NULL;
}
