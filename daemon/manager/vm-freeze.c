/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A machine's state out of QEMU and into another: QEMU's live migration to a file, without the memory, which both map
 * (x-ignore-shared). The state is some 200 KiB. QEMU itself stops the machine for it: one that was stopped before would be "paused" in
 * the state, and its clone would stay so whenever "cont" comes before the state is read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "manager/vm-internal.h"

#define STATE_FD_NAME "state"

static void on_told(Qmp *q, json_object *result, const char *error, void *userdata) {
        if (!result)
                vm_fail(userdata, "QEMU does not move the machine's state: %s", error);
}

/* x-ignore-shared: memory stays where it is. events: MIGRATION tells how far it is. */
static int set_capabilities(Vm *vm) {
        _cleanup_(json_putp) json_object *arguments =
                json_tokener_parse("{\"capabilities\":[{\"capability\":\"x-ignore-shared\",\"state\":true},"
                                   "{\"capability\":\"events\",\"state\":true}]}");

        return arguments ? qmp_call(vm->qmp, "migrate-set-capabilities", arguments, on_told, vm) : -ENOMEM;
}

static int call_with_text(Vm *vm, const char *command, const char *key, const char *text, int fd) {
        _cleanup_(json_putp) json_object *arguments = json_object_new_object();
        int r;

        if (!arguments)
                return -ENOMEM;
        r = json_add_string(arguments, key, text);
        return r < 0 ? r : qmp_call_with_fd(vm->qmp, command, arguments, fd, on_told, vm);
}

int vm_freeze(Vm *vm, int state_fd) {
        int r;

        if (vm->phase != VM_READY || vm->run_scope || vm->stopping)
                return -ESTALE;
        r = vm_begin_step(vm, VM_FREEZING);
        if (r >= 0)
                r = set_capabilities(vm);
        if (r >= 0)
                r = call_with_text(vm, "getfd", "fdname", STATE_FD_NAME, state_fd);
        if (r >= 0)
                r = call_with_text(vm, "migrate", "uri", "fd:" STATE_FD_NAME, -EBADF);
        return r;
}

int vm_restore(Vm *vm) {
        char uri[32];
        int r;

        host_link_skip_hello(vm->link);
        r = set_capabilities(vm);
        if (r < 0)
                return r;
        snprintf(uri, sizeof(uri), "fd:%d", plan_fd_number(PLAN_CLONE, PLAN_FD_STATE));
        return call_with_text(vm, "migrate-incoming", "uri", uri, -EBADF);
}

void vm_on_migration(Vm *vm, const char *status) {
        if (strcmp(status, "failed") == 0)
                vm_fail(vm, "QEMU cannot %s the machine's state", vm->phase == VM_FREEZING ? "write" : "go on from");
        else if (vm->phase == VM_FREEZING && strcmp(status, "completed") == 0) {
                vm_end_step(vm, VM_FREEZING);
                vm->handlers.on_frozen(vm, vm->handlers.userdata);
        }
}
