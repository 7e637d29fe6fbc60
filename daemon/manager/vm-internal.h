/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by vm.c (life), vm-guest.c (greeting), vm-verify.c (questions to QEMU) and vm-end.c (proof of the end). Nobody else includes it. */

#include "manager/jail.h"
#include "manager/qmp.h"
#include "manager/uid.h"
#include "manager/vm.h"

struct Vm {
        const VmEnvironment *environment;
        const Plan *plan;
        VmHandlers handlers;
        uint64_t boot_usec;
        char *id;
        char *reason; /* the first failure */
        char *qemu_end;

        Uid uid;
        Jail *jail;
        bool jail_verified, jail_gone;
        pid_t qemu_pid;
        Scope *boot_scope, *run_scope;
        bool boot_scope_holds; /* it has the processes: started, and not yet left for the run's scope */
        bool scope_over;       /* the scope that holds the machine has ended */
        ScopeResult scope_result;

        Qmp *qmp;
        Isolation isolation;
        IsolationDevices answers; /* owned references */
        unsigned n_answers;

        HostLink *link;
        int console_fd;
        sd_event_source *console;
        sd_event_source *boot_deadline, *stop_deadline, *finish;
        unsigned n_looks; /* for what should be gone, see vm-end.c */
        char kernel[KERNEL_RELEASE_SIZE_MAX + 1];
        uint64_t released_usec;
        bool ready, claiming, stopping, finished;
};

/* Remembers the first reason. */
void vm_note(Vm *vm, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Remembers it and stops the machine. */
#define vm_fail(vm, ...)                                                                                              \
        do {                                                                                                          \
                vm_note(vm, __VA_ARGS__);                                                                             \
                vm_stop(vm);                                                                                          \
        } while (false)

/* It is ending by another's hand; after so long we stop it ourselves. */
void vm_expect_end(Vm *vm, uint64_t usec);

int vm_make_pair(int *ret_ours, int *ret_theirs);

/* Make the machine's channels; QEMU's ends are the caller's, also those that were made before a failure. */
int vm_open_monitor(Vm *vm, int *ret_theirs);
int vm_open_guest(Vm *vm, int *ret_control, int *ret_console);

/* Asks QEMU for its devices; when they are the planned ones, lets it execute. */
int vm_verify_devices(Vm *vm);
void vm_verify_done(Vm *vm);

/* When jail and scope are both over: collects the proof and calls on_gone. */
void vm_check_gone(Vm *vm);
