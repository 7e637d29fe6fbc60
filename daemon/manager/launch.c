/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `starting`: the machine itself, from its first scope to the run's own. How it is to be made has been decided (start.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "manager/manager.h"
#include "manager/run-clients.h"

static void claim(Run *run) {
        _cleanup_(freep) char *description = NULL;
        int r;

        r = asprintf(&description, "Ephemeral run %s (%s)", run->id, run->request->workflow);
        if (r >= 0)
                r = vm_claim(run->vm, run->unit, description, run->request->timeout_usec);
        if (r < 0)
                run_stop(run);
}

/* A machine that had waited becomes ready once more and is claimed at the same time; whichever is last leads on. */
static void begin(Run *run) {
        if (run->state != RUN_STARTING || !vm_is_claimed(run->vm))
                return;
        run_command(run);
        manager_look_again(run->manager);
}

static void on_ready(Vm *vm, const char *kernel, uint64_t boot_usec, void *userdata) {
        Run *run = userdata;
        json_object *ready = json_object_new_object();

        if (vm_plan(vm)->kvm)
                accelerator_worked(&run->manager->accelerator);
        run->isolation = isolation_to_json(vm_isolation(vm));
        run_event(run, EVENT_ISOLATION_VERIFIED, json_object_get(run->isolation));
        json_add_string(ready, "kernel", kernel);
        json_add_u64(ready, "boot_usec", boot_usec);
        run_event(run, EVENT_VM_READY, ready);
        if (run->state == RUN_STARTING && !run->standby)
                claim(run);
        begin(run);
}

static void on_claimed(Vm *vm, int error, void *userdata) {
        Run *run = userdata;
        const char *invocation_id = vm_invocation_id(vm);

        if (error < 0)
                return; /* on_gone comes */
        if (invocation_id)
                (void) journal_run_set_invocation_id(run->journal, invocation_id);
        begin(run);
}

static void on_console(Vm *vm, const void *data, size_t size, void *userdata) {
        Run *run = userdata;

        console_write(run->console, data, size);
        run_clients_console(run, data, size);
}

static void on_gone(Vm *vm, const VmEnd *end, void *userdata) {
        Run *run = userdata;

        if (!end->was_ready && end->reason && !end->scope.stopped_by_others && run->state == RUN_STARTING &&
            run_start_again(run, end->reason))
                return;
        if (end->reason)
                run->failure = end->was_ready ? strdup(end->reason) : console_explain(run->console, end->reason);
        run_end(run, end);
}

static const VmHandlers vm_handlers = {
        .on_ready = on_ready,
        .on_claimed = on_claimed,
        .on_console = on_console,
        .on_gone = on_gone,
};

static void tell_starting(Run *run, const Recipe *recipe, const Plan *plan) {
        json_object *o = json_object_new_object();

        json_add_string(o, "path", run->standby ? "standby" : plan_kind_name(plan->kind));
        json_add_string(o, "accelerator", plan->kvm ? "kvm" : "tcg");
        json_add_string(o, "image", recipe->image->name);
        json_add_string(o, "image_digest", recipe->image->digest);
        if (run->template[0])
                json_add_string(o, "template", run->template);
        json_add_string(o, "unit", run->unit);
        json_add_u64(o, "vcpus", plan->vcpus);
        json_add_u64(o, "memory_mib", plan->memory_mib);
        run_event(run, EVENT_VM_STARTING, o);
}

/* A machine that waits is woken. False: there is none. */
static bool wake(Run *run, const Recipe *recipe) {
        VmHandlers handlers = vm_handlers;

        run->standby = false;
        if (!run->manager->standbys || run->no_standby)
                return false;
        run->vm = standby_take(run->manager->standbys, recipe->key);
        if (!run->vm)
                return false;
        handlers.userdata = run;
        if (vm_wake(run->vm, run->id, &handlers) < 0) { /* it is about to end */
                run->vm = vm_free(run->vm);
                return false;
        }
        run->standby = true;
        tell_starting(run, recipe, vm_plan(run->vm));
        claim(run);
        return true;
}

static int create(Run *run, const Recipe *recipe, const Template *template, char **reterr_text) {
        _cleanup_(freep) char *unit = NULL, *description = NULL;
        _cleanup_(fd_closep) int state_fd = -EBADF;
        VmHandlers handlers = vm_handlers;
        VmSettings settings = {
                .id = run->id,
                .files = VM_NO_FILES,
                .boot_usec = accelerator_boot_usec(&run->manager->accelerator),
        };
        int r;

        if (asprintf(&unit, "ephemeral-vm-%s.scope", run->id) < 0)
                return -ENOMEM;
        if (asprintf(&description, "Virtual machine of %s", run->id) < 0)
                return -ENOMEM;
        if (template)
                r = template_fill(template, &settings, &state_fd);
        else
                r = recipe_fill(recipe, PLAN_COLD, &settings);
        if (r < 0)
                return r;
        settings.unit = unit;
        settings.description = description;
        handlers.userdata = run;
        tell_starting(run, recipe, settings.plan);
        return vm_start(&run->manager->vm_environment, &settings, &handlers, &run->vm, reterr_text);
}

int run_launch(Run *run, const Recipe *recipe, const Template *template, char **reterr_text) {
        *reterr_text = NULL;
        (void) snprintf(run->template, sizeof(run->template), "%s", template ? recipe->key : "");
        if (template && wake(run, recipe))
                return 0;
        return create(run, recipe, template, reterr_text);
}
