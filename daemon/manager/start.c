/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `starting`: plan, image, machine; then, with isolation verified, the run's own scope. A machine that fails under a KVM that never
 * worked here is tried once more under TCG.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/neutral.h"
#include "common/strv.h"
#include "manager/image.h"
#include "manager/manager.h"
#include "manager/run-clients.h"

static void start_machine(Run *run);

static void fail(Run *run, const char *reason) {
        free(run->failure);
        run->failure = strdup(reason ? reason : "out of memory");
        run_end(run, NULL);
}

static void on_ready(Vm *vm, const char *kernel, uint64_t boot_usec, void *userdata) {
        Run *run = userdata;
        _cleanup_(freep) char *description = NULL;
        json_object *ready = json_object_new_object();
        int r;

        if (vm_plan(vm)->kvm)
                accelerator_worked(&run->manager->accelerator);
        run->isolation = isolation_to_json(vm_isolation(vm));
        run_event(run, EVENT_ISOLATION_VERIFIED, json_object_get(run->isolation));
        json_add_string(ready, "kernel", kernel);
        json_add_u64(ready, "boot_usec", boot_usec);
        run_event(run, EVENT_VM_READY, ready);
        if (run->state != RUN_STARTING)
                return;
        r = asprintf(&description, "Ephemeral run %s (%s)", run->id, run->request->workflow);
        if (r >= 0)
                r = vm_claim(vm, run->unit, description, run->request->timeout_usec);
        if (r < 0)
                run_stop(run);
}

static void on_claimed(Vm *vm, int error, void *userdata) {
        Run *run = userdata;
        const char *invocation_id = vm_invocation_id(vm);

        if (error < 0)
                return; /* on_gone comes */
        if (invocation_id)
                (void) journal_run_set_invocation_id(run->journal, invocation_id);
        if (run->state == RUN_STARTING)
                run_command(run);
}

static void on_console(Vm *vm, const void *data, size_t size, void *userdata) {
        Run *run = userdata;

        console_write(run->console, data, size);
        run_clients_console(run, data, size);
}

/* The last line of the console belongs to the reason when the guest never became ready. */
static char *with_console(Run *run, const char *reason) {
        char tail[512], *line, *text = NULL;
        _cleanup_(freep) char *safe = NULL;
        size_t size;

        console_tail(run->console, tail, sizeof(tail));
        size = strlen(tail);
        while (size > 0 && (tail[size - 1] == '\n' || tail[size - 1] == '\r'))
                tail[--size] = 0;
        line = strrchr(tail, '\n');
        line = line ? line + 1 : tail;
        safe = neutralise_line(line, strlen(line));
        if (!safe || !safe[0] || asprintf(&text, "%s; the console's last line is \"%s\"", reason, safe) < 0)
                return strdup(reason);
        return text;
}

static void on_gone(Vm *vm, const VmEnd *end, void *userdata) {
        Run *run = userdata;

        if (!end->was_ready && end->reason && run->state == RUN_STARTING && vm_plan(vm)->kvm &&
            accelerator_failed(&run->manager->accelerator, end->reason)) {
                run->vm = vm_free(run->vm);
                start_machine(run);
                return;
        }
        if (end->reason)
                run->failure = end->was_ready ? strdup(end->reason) : with_console(run, end->reason);
        run_end(run, end);
}

static const VmHandlers vm_handlers = {
        .on_ready = on_ready,
        .on_claimed = on_claimed,
        .on_console = on_console,
        .on_gone = on_gone,
};

static void tell_starting(Run *run, const Plan *plan, const Image *image) {
        json_object *o = json_object_new_object();

        json_add_string(o, "path", plan_kind_name(plan->kind));
        json_add_string(o, "accelerator", plan->kvm ? "kvm" : "tcg");
        json_add_string(o, "image", image->name);
        json_add_string(o, "image_digest", image->digest);
        json_add_string(o, "unit", run->unit);
        json_add_u64(o, "vcpus", plan->vcpus);
        json_add_u64(o, "memory_mib", plan->memory_mib);
        run_event(run, EVENT_VM_STARTING, o);
}

static int make_plan(Run *run, const Qemu *qemu, Plan **ret) {
        Manager *m = run->manager;
        PlanInput input = {
                .kind = PLAN_COLD,
                .qemu = qemu_binary(qemu),
                .firmware = qemu_firmware(qemu),
                .kvm = m->accelerator.kvm,
                .vcpus = run->request->vcpus,
                .memory_mib = run->request->memory_mib,
                .disk_mib = run->request->disk_mib,
                .tsc_khz = m->host.tsc_khz,
        };

        return plan_make(&input, ret);
}

/* KVM that was never seen to work is not waited for as long. */
static uint64_t boot_usec(const Accelerator *accelerator) {
        return (accelerator->kvm && !accelerator->proven ? KVM_BOOT_TIMEOUT_SEC : BOOT_TIMEOUT_SEC) * USEC_PER_SEC;
}

static int launch(Run *run, const Qemu *qemu, const Image *image, char **reterr_text) {
        _cleanup_(strv_freep) char **binds = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_(freep) char *unit = NULL, *description = NULL;
        VmHandlers handlers = vm_handlers;
        VmSettings settings = {
                .id = run->id,
                .files = VM_NO_FILES,
                .boot_usec = boot_usec(&run->manager->accelerator),
        };
        int r;

        r = make_plan(run, qemu, &plan);
        if (r >= 0)
                r = qemu_binds(qemu, plan->kvm, &binds);
        if (r < 0)
                return r;
        if (asprintf(&unit, "ephemeral-vm-%s.scope", run->id) < 0)
                return -ENOMEM;
        if (asprintf(&description, "Virtual machine of %s", run->id) < 0)
                return -ENOMEM;
        settings.unit = unit;
        settings.description = description;
        settings.binds = binds;
        settings.files[PLAN_FD_IMAGE] = image->root_fd;
        settings.files[PLAN_FD_KERNEL] = image->kernel_fd;
        settings.files[PLAN_FD_INITRD] = image->initrd_fd;
        handlers.userdata = run;
        tell_starting(run, plan, image);
        settings.plan = TAKE_PTR(plan);
        return vm_start(&run->manager->vm_environment, &settings, &handlers, &run->vm, reterr_text);
}

static void start_machine(Run *run) {
        _cleanup_(image_freep) Image *image = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(freep) char *text = NULL;
        Qemu *qemu;
        int r;

        r = manager_get_qemu(run->manager, &qemu, &error);
        if (r >= 0)
                r = image_open(run->manager->config.images_path, run->request->image, &image, &error);
        if (r < 0) {
                fail(run, error.message);
                return;
        }
        r = launch(run, qemu, image, &text);
        if (r < 0)
                fail(run, text ? text : strerror(-r));
}

void run_start(Run *run) {
        run_set_state(run, RUN_STARTING);
        start_machine(run);
}
