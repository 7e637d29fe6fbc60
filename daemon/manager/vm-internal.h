/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by vm.c (life), vm-monitor.c (QEMU's monitor), vm-verify.c (questions to QEMU), vm-guest.c (greeting), vm-claim.c (into the
 * run's scope), vm-warm.c (warm-up, sleep), vm-freeze.c (state out and in) and vm-end.c (proof of the end). Nobody else includes it. */

#include "manager/jail.h"
#include "manager/qmp.h"
#include "manager/uid.h"
#include "manager/vm.h"

typedef enum VmPhase {
        VM_BOOTING,
        VM_READY,
        VM_WARMING,
        VM_FREEZING,
        VM_ASLEEP,
        VM_WAKING,
} VmPhase;

struct Vm {
        const VmEnvironment *environment;
        Plan *plan;
        VmHandlers handlers;
        VmPhase phase;
        uint64_t boot_usec, life_usec, cpu_weight;
        char *id, *unit, *description;
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
        sd_event_source *step_deadline, *stop_deadline, *finish;
        unsigned n_looks; /* for what should be gone, see vm-end.c */
        char kernel[KERNEL_RELEASE_SIZE_MAX + 1];
        uint64_t step_usec; /* monotonic: the beginning of the step to being ready */
        bool claiming, stopping, finished;
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

/* Of the first scope and of the run's. */
void vm_on_scope_ended(Scope *s, const ScopeResult *result, void *userdata);

/* The step that leads on from here has begun and has a deadline; it is over. */
int vm_begin_step(Vm *vm, VmPhase phase);
void vm_end_step(Vm *vm, VmPhase phase);

int vm_make_pair(int *ret_ours, int *ret_theirs);

/* Make the machine's channels; QEMU's ends are the caller's, also those that were made before a failure. */
int vm_open_monitor(Vm *vm, int *ret_theirs);
int vm_open_guest(Vm *vm, int *ret_control, int *ret_console);

/* Asks QEMU for its devices; when they are the planned ones, lets it execute. */
int vm_verify_devices(Vm *vm);
void vm_verify_done(Vm *vm);

/* Lets a stopped machine execute; a failure is the machine's. */
int vm_continue(Vm *vm);

/* Names, clock and entropy for a guest that waits for them; it answers with its links. */
void vm_greet(Vm *vm);

/* Hears what the guest says, and what its command says by these handlers. */
void vm_listen(Vm *vm, const HostLinkHandlers *command_handlers);

/* Tells a clone's QEMU to read the template's state. */
int vm_restore(Vm *vm);

/* QMP's MIGRATION event. */
void vm_on_migration(Vm *vm, const char *status);

/* When jail and scope are both over: collects the proof and calls on_gone. */
void vm_check_gone(Vm *vm);
