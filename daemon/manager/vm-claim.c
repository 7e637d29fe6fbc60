/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A ready machine becomes a run's: it is moved into that run's scope, whose clock starts there.
 */
#include <errno.h>

#include "manager/vm-internal.h"

static void on_run_scope_started(Scope *s, int error, const char *text, void *userdata) {
        Vm *vm = userdata;

        vm->claiming = false;
        if (error < 0) {
                vm->run_scope = scope_free(vm->run_scope);
                vm->scope_over = !vm->boot_scope_holds;
                vm_fail(vm, "systemd does not start the scope: %s", text);
                vm_check_gone(vm);
        } else {
                vm->boot_scope_holds = false;
                if (vm->stopping)
                        (void) scope_stop(s);
        }
        vm->handlers.on_claimed(vm, error, vm->handlers.userdata);
}

bool vm_is_claimed(const Vm *vm) {
        return vm->phase == VM_READY && vm->run_scope && !vm->claiming;
}

int vm_claim(Vm *vm, const char *unit, const char *description, uint64_t runtime_max_usec) {
        uint32_t pids[2] = {(uint32_t) jail_pid(vm->jail), (uint32_t) vm->qemu_pid};
        ScopeSettings settings = {
                .unit = unit,
                .description = description,
                .pids = pids,
                .n_pids = 2,
                .runtime_max_usec = runtime_max_usec,
                .memory_max_bytes = vm->plan->memory_max_bytes,
                .tasks_max = vm->plan->tasks_max,
                .cpu_quota_usec = vm->plan->cpu_quota_usec,
                .kvm = vm->plan->kvm,
        };
        ScopeHandlers handlers = {.on_started = on_run_scope_started, .on_ended = vm_on_scope_ended, .userdata = vm};

        if ((vm->phase != VM_READY && vm->phase != VM_WAKING) || vm->run_scope || vm->stopping || vm->jail_gone)
                return -ESTALE;
        vm->claiming = true;
        return scope_start(vm->environment->systemd, &settings, &handlers, &vm->run_scope);
}
