/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * QEMU's monitor of one machine: it is told to go on, and it tells that it does, and why it shut down.
 */
#include <errno.h>
#include <string.h>

#include "manager/vm-internal.h"

static void on_continued(Qmp *q, json_object *result, const char *error, void *userdata) {
        if (!result)
                vm_fail(userdata, "QEMU does not start the machine: %s", error);
}

int vm_continue(Vm *vm) {
        return qmp_call(vm->qmp, "cont", NULL, on_continued, vm);
}

static void on_shutdown(Vm *vm, json_object *data) {
        json_object *guest = NULL, *why = NULL;

        json_object_object_get_ex(data, "guest", &guest);
        json_object_object_get_ex(data, "reason", &why);
        if (json_object_get_boolean(guest))
                vm_fail(vm, "the guest shut itself down (%.64s)",
                        why ? json_object_get_string(why) : "no reason given");
}

/* A clone executes from here on; one that was asleep is awake. Both have somebody else's names. */
static void on_resumed(Vm *vm) {
        if ((vm->phase == VM_BOOTING && vm->plan->kind == PLAN_CLONE) || vm->phase == VM_WAKING)
                vm_greet(vm);
}

static void on_qmp_event(Qmp *q, const char *name, json_object *data, void *userdata) {
        Vm *vm = userdata;
        json_object *status = NULL;

        if (strcmp(name, "SHUTDOWN") == 0)
                on_shutdown(vm, data);
        else if (strcmp(name, "RESUME") == 0)
                on_resumed(vm);
        else if (strcmp(name, "MIGRATION") == 0 && json_object_object_get_ex(data, "status", &status))
                vm_on_migration(vm, json_object_get_string(status));
}

static void on_qmp_close(Qmp *q, int error, void *userdata) {
        if (error < 0)
                vm_fail(userdata, "QEMU's monitor cannot be read: %s", strerror(-error));
}

int vm_open_monitor(Vm *vm, int *ret_theirs) {
        QmpHandlers handlers = {.on_event = on_qmp_event, .on_close = on_qmp_close, .userdata = vm};
        int fd, r;

        r = vm_make_pair(&fd, ret_theirs);
        return r < 0 ? r : qmp_new(vm->environment->event, fd, &handlers, &vm->qmp);
}
