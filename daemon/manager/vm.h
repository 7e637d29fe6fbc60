/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One virtual machine, from the jail to the proof that nothing of it is left. It knows nothing of runs: it is started in a scope of
 * its own, whose clock is the boot's deadline, becomes ready, and is then moved into a run's scope, whose
 * clock starts there. So a run's RuntimeMaxUSec is its timeout to the second, however long a boot took, and a machine
 * that waits (standby) differs from one that was booted on demand only in how long it waited.
 *
 *   BOOTING ── on_ready ──► READY ── vm_claim ──► in the run's scope ──► on_gone
 *                            │ ▲
 *            vm_warm_up ◄────┤ └── on_ready ── WAKING ◄── vm_wake ── ASLEEP ◄── vm_sleep
 *            vm_freeze  ◄────┘
 */

#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "manager/host-link.h"
#include "manager/isolation.h"
#include "manager/plan.h"
#include "manager/scope.h"

typedef struct Vm Vm;

/* What all machines share; outlives them. */
typedef struct VmEnvironment {
        sd_event *event;
        Systemd *systemd;
        const char *jail_path;
        int uid_dir_fd; /* /run/ephemeral/uid */
} VmEnvironment;

typedef struct VmSettings {
        const char *id;           /* names the guest's host */
        const char *unit;         /* the scope in which it becomes ready */
        const char *description;  /* of that scope */
        Plan *plan;               /* taken over, also by a failure */
        int files[PLAN_FD_COUNT]; /* what the plan asks for beside the channels; duplicated */
        char *const *binds;       /* files QEMU needs */
        const char *kernel;       /* a clone's kernel release, which its template has told; else NULL */
        uint64_t boot_usec;       /* deadline of each step: being ready, warm, frozen, awake */
        uint64_t
                life_usec; /* of the first scope, for when nobody looks after it any more; 0: that of a boot; UINT64_MAX: no end */
        uint64_t cpu_weight; /* of the first scope; 0: as everybody's */
} VmSettings;

/* No file of a plan. */
#define VM_NO_FILES                                                                                                   \
        { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF }

/* How a machine ended, all of it. */
typedef struct VmEnd {
        bool was_ready;
        const char *reason; /* why it failed, first cause first; NULL: nothing failed */
        const char *qemu;   /* "exited 0", "killed SIGKILL", or the jail's error */
        const char *unit;   /* the last scope it was in */
        const char *control_group;
        ScopeResult scope; /* of that scope */
        uid_t uid;
        bool uid_free;        /* no process has it, and its lease is given back */
        unsigned n_processes; /* still there with its uid: 0, or something is very wrong */
        bool cgroup_gone;
} VmEnd;

typedef struct VmHandlers {
        /* Isolation is verified and the guest waits for a command. kernel: its release; boot_usec since the release of the jail, or
         * since vm_wake(). */
        void (*on_ready)(Vm *vm, const char *kernel, uint64_t boot_usec, void *userdata);
        /* vm_claim() is done: error 0, or the machine is about to end. */
        void (*on_claimed)(Vm *vm, int error, void *userdata);
        void (*on_warm)(Vm *vm, void *userdata);   /* the command of vm_warm_up() has ended */
        void (*on_frozen)(Vm *vm, void *userdata); /* its state is written: only vm_stop() is left to do */
        void (*on_console)(Vm *vm, const void *data, size_t size, void *userdata);
        void (*on_gone)(Vm *vm, const VmEnd *end, void *userdata); /* the last call; it may free vm */
        void *userdata;
} VmHandlers;

/* 0: on_gone will be called, whatever happens. -errno with a text (the caller frees): nothing was started. */
int vm_start(const VmEnvironment *environment,
             const VmSettings *settings,
             const VmHandlers *handlers,
             Vm **ret,
             char **reterr_text);

/* Runs a command in a ready machine, as a run's user and with nobody listening, then on_warm. */
int vm_warm_up(Vm *vm, char *const *argv);

/* Stops a ready machine for good and writes its state to state_fd, then on_frozen. Of a template. */
int vm_freeze(Vm *vm, int state_fd);

/* Stops a ready machine until vm_wake() gives it to somebody, under that name and with new entropy: on_ready follows. */
int vm_sleep(Vm *vm);
int vm_wake(Vm *vm, const char *id, const VmHandlers *handlers);

/* Moves a ready or waking machine into the scope `unit` with that clock, then on_claimed. Once. */
int vm_claim(Vm *vm, const char *unit, const char *description, uint64_t runtime_max_usec);

bool vm_is_claimed(const Vm *vm); /* ready, and in the scope of vm_claim() */

/* The ready machine's control port. Its handlers are the claimer's from then on; on_closed and on_broken must call these. */
HostLink *vm_link(Vm *vm);
void vm_link_closed(Vm *vm);
void vm_link_broken(Vm *vm, const char *reason);

const Plan *vm_plan(const Vm *vm);
const Isolation *vm_isolation(const Vm *vm);
const char *vm_invocation_id(const Vm *vm); /* of the claimed scope */

/* Asks systemd to end it, now. on_gone follows. */
void vm_stop(Vm *vm);

/* For a machine that never started or is gone; kills what is left otherwise. */
Vm *vm_free(Vm *vm);

DEFINE_CLEANUP(Vm *, vm_free);
