/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is done with a ready machine before somebody has it: a command that fetches and translates what the first one of a run will
 * need, and sleep until then.
 */
#include <errno.h>
#include <string.h>

#include "manager/vm-internal.h"

enum {
        WARM_UP_USER = 1000,
        WAKE_USEC = 5 * 1000 * 1000, /* a machine that takes longer is slower than a new one */
};

static void on_started(void *userdata, uint32_t pid) {
}

static void on_output(void *userdata, int stream, const uint8_t *data, size_t size) {
}

/* How it ended is nobody's business: an image may lack the program. */
static void on_exited(void *userdata, const ExitedMessage *m) {
        Vm *vm = userdata;

        vm_end_step(vm, VM_READY);
        vm->handlers.on_warm(vm, vm->handlers.userdata);
}

int vm_warm_up(Vm *vm, char *const *argv) {
        StartMessage start = {.uid = WARM_UP_USER, .gid = WARM_UP_USER};
        int r;

        if (vm->phase != VM_READY || vm->run_scope || vm->stopping)
                return -ESTALE;
        r = vm_begin_step(vm, VM_WARMING);
        if (r < 0)
                return r;
        vm_listen(vm, &(HostLinkHandlers){.on_started = on_started, .on_output = on_output, .on_exited = on_exited});
        for (; *argv && r >= 0; argv++)
                r = host_link_send_bytes(vm->link, FRAME_ARG, *argv, strlen(*argv));
        return r < 0 ? r : host_link_send_start(vm->link, &start);
}

static void on_stopped(Qmp *q, json_object *result, const char *error, void *userdata) {
        if (!result)
                vm_fail(userdata, "QEMU does not stop the machine: %s", error);
}

int vm_sleep(Vm *vm) {
        if (vm->phase != VM_READY || vm->run_scope || vm->stopping)
                return -ESTALE;
        vm->phase = VM_ASLEEP;
        return qmp_call(vm->qmp, "stop", NULL, on_stopped, vm);
}

int vm_wake(Vm *vm, const char *id, const VmHandlers *handlers) {
        char *name;
        int r;

        if (vm->phase != VM_ASLEEP || vm->stopping || vm->jail_gone)
                return -ESTALE;
        name = strdup(id);
        if (!name)
                return -ENOMEM;
        free(vm->id);
        vm->id = name;
        vm->handlers = *handlers;
        if (vm->boot_usec > WAKE_USEC)
                vm->boot_usec = WAKE_USEC;
        r = vm_begin_step(vm, VM_WAKING);
        return r < 0 ? r : vm_continue(vm); /* its event RESUME: vm_greet() */
}
