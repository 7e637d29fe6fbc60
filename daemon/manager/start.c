/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `starting`: which way to a machine. A clone of a template, which may have to be loaded or built first; a boot of its own, where
 * templates are not wanted. A way that fails for a reason of ours is left for another one: KVM that never worked here for TCG,
 * a template whose clone does not come up for a new one, once.
 */
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "manager/image.h"
#include "manager/manager.h"

enum {
        TEMPLATE_ATTEMPTS = 2,
};

static void start_machine(Run *run);

static void fail(Run *run, const char *reason) {
        free(run->failure);
        run->failure = strdup(reason ? reason : "out of memory");
        run_end(run, NULL);
}

static void launch(Run *run, const Recipe *recipe, const Template *template) {
        _cleanup_(freep) char *text = NULL;
        int r;

        r = run_launch(run, recipe, template, &text);
        if (r < 0)
                fail(run, text ? text : strerror(-r));
}

/* ---- waiting for a template ---- */

static json_object *describe(const Template *t) {
        const Recipe *recipe = template_recipe(t);
        json_object *o = json_object_new_object();

        json_add_string(o, "template", recipe->key);
        json_add_string(o, "image", recipe->image->name);
        return o;
}

static void on_building(const Template *t, void *userdata) {
        json_object *o = describe(t);

        json_add_u64(o, "vcpus", template_recipe(t)->input.vcpus);
        json_add_u64(o, "memory_mib", template_recipe(t)->input.memory_mib);
        run_event(userdata, EVENT_TEMPLATE_BUILDING, o);
}

static void on_template_ready(const Template *t, void *userdata) {
        Run *run = userdata;
        json_object *o = describe(t);

        run->template_wait = NULL;
        json_add_string(o, "from", template_from_disk(t) ? "disk" : "build");
        json_add_u64(o, "duration_usec", template_duration_usec(t));
        run_event(run, EVENT_TEMPLATE_READY, o);
        if (template_recipe(t)->input.kvm && !template_from_disk(t))
                accelerator_worked(&run->manager->accelerator);
        launch(run, template_recipe(t), t);
}

static void on_template_failed(const Template *t, const char *text, void *userdata) {
        Run *run = userdata;

        run->template_wait = NULL;
        if (template_recipe(t)->input.kvm && accelerator_failed(&run->manager->accelerator, text))
                start_machine(run);
        else
                fail(run, text);
}

int manager_get_template(
        Manager *m, Recipe *recipe, const TemplateHandlers *handlers, const Template **ret, TemplateWait **ret_wait) {
        TemplatePatience patience = {
                .boot_usec = accelerator_boot_usec(&m->accelerator),
                .attempts = accelerator_is_tried(&m->accelerator) ? TEMPLATE_ATTEMPTS : 1,
        };

        return template_get(m->templates, recipe, &patience, handlers, ret, ret_wait);
}

static int get_template(Run *run, Recipe *recipe, const Template **ret) {
        TemplateHandlers handlers = {
                .on_building = on_building,
                .on_ready = on_template_ready,
                .on_failed = on_template_failed,
                .userdata = run,
        };

        return manager_get_template(run->manager, recipe, &handlers, ret, &run->template_wait);
}

/* ---- the choice ---- */

int manager_make_recipe(Manager *m, const Request *request, Recipe **ret, sd_bus_error *reterr_error) {
        RecipeSettings settings = {
                .kvm = m->accelerator.kvm,
                .vcpus = request->vcpus,
                .memory_mib = request->memory_mib,
                .disk_mib = request->disk_mib,
                .tsc_khz = m->host.tsc_khz,
                .processor = m->host.processor,
        };
        Image *image;
        Qemu *qemu;
        int r;

        r = manager_get_qemu(m, &qemu, reterr_error);
        if (r >= 0)
                r = image_open(m->config.images_path, request->image, &image, reterr_error);
        if (r < 0)
                return r;
        settings.qemu = qemu;
        return recipe_new(&settings, image, ret);
}

static void start_machine(Run *run) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(recipe_freep) Recipe *recipe = NULL;
        const Template *template;
        int r;

        r = manager_make_recipe(run->manager, run->request, &recipe, &error);
        if (r < 0)
                fail(run, error.message ? error.message : strerror(-r));
        else if (!run->manager->templates)
                launch(run, recipe, NULL);
        else {
                r = get_template(run, TAKE_PTR(recipe), &template);
                if (r < 0)
                        fail(run, strerror(-r));
                else if (r > 0)
                        launch(run, template_recipe(template), template);
        }
}

bool run_start_again(Run *run, const char *reason) {
        const Plan *plan = vm_plan(run->vm);

        if (run->standby) {
                run->no_standby = true; /* a clone that never waited, then */
        } else if (plan->kvm && accelerator_failed(&run->manager->accelerator, reason)) {
                /* under TCG, then */
        } else if (plan->kind == PLAN_CLONE && !run->template_dropped) {
                run->template_dropped = true;
                template_drop(run->manager->templates, run->template);
        } else
                return false;
        run->vm = vm_free(run->vm);
        start_machine(run);
        return true;
}

void run_start(Run *run) {
        run_set_state(run, RUN_STARTING);
        start_machine(run);
}
