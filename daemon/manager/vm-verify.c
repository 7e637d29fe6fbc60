/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Before the first instruction of a guest: QEMU is stopped (-S) and asked over QMP what the machine is made of. Only when that is
 * the plan, `cont`.
 */
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "manager/vm-internal.h"

enum {
        N_QUESTIONS = 5,
};

static void judge(Vm *vm) {
        _cleanup_(freep) char *text = NULL;
        int r;

        r = isolation_check_devices(&vm->isolation, &vm->answers, &text);
        if (r < 0) {
                vm_fail(vm, "%s", text ? text : "out of memory");
                return;
        }
        r = vm_continue(vm);
        if (r < 0)
                vm_fail(vm, "QEMU cannot be told to start the machine");
}

static void on_answer(Vm *vm, json_object **slot, json_object *result) {
        json_object_put(*slot);
        *slot = json_object_get(result);
        if (++vm->n_answers == N_QUESTIONS)
                judge(vm);
}

static void on_peripheral(Qmp *q, json_object *result, const char *error, void *userdata) {
        Vm *vm = userdata;
        on_answer(vm, &vm->answers.peripheral, result);
}

static void on_anonymous(Qmp *q, json_object *result, const char *error, void *userdata) {
        Vm *vm = userdata;
        on_answer(vm, &vm->answers.anonymous, result);
}

static void on_unattached(Qmp *q, json_object *result, const char *error, void *userdata) {
        Vm *vm = userdata;
        on_answer(vm, &vm->answers.unattached, result);
}

static void on_rx_filter(Qmp *q, json_object *result, const char *error, void *userdata) {
        Vm *vm = userdata;
        on_answer(vm, &vm->answers.rx_filter, result);
}

static void on_kvm(Qmp *q, json_object *result, const char *error, void *userdata) {
        Vm *vm = userdata;
        on_answer(vm, &vm->answers.kvm, result);
}

static int list_children(Vm *vm, const char *path, QmpReplyHandler handler) {
        _cleanup_(json_putp) json_object *arguments = json_object_new_object();
        int r;

        if (!arguments)
                return -ENOMEM;
        r = json_add_string(arguments, "path", path);
        return r < 0 ? r : qmp_call(vm->qmp, "qom-list", arguments, handler, vm);
}

int vm_verify_devices(Vm *vm) {
        int r;

        vm->n_answers = 0;
        r = list_children(vm, "/machine/peripheral", on_peripheral);
        if (r >= 0)
                r = list_children(vm, "/machine/peripheral-anon", on_anonymous);
        if (r >= 0)
                r = list_children(vm, "/machine/unattached", on_unattached);
        if (r >= 0)
                r = qmp_call(vm->qmp, "query-rx-filter", NULL, on_rx_filter, vm);
        if (r >= 0)
                r = qmp_call(vm->qmp, "query-kvm", NULL, on_kvm, vm);
        return r;
}

void vm_verify_done(Vm *vm) {
        json_object_put(vm->answers.peripheral);
        json_object_put(vm->answers.anonymous);
        json_object_put(vm->answers.unattached);
        json_object_put(vm->answers.rx_filter);
        json_object_put(vm->answers.kvm);
        vm->answers = (IsolationDevices){0};
}
