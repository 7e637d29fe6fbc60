/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One virtual machine, from the jail to the proof that nothing of it is left. It knows nothing of runs: it is started in a scope of
 * its own (`ephemeral-vm-…scope`, whose clock is the boot's deadline), becomes ready, and is then moved into a run's scope, whose
 * clock starts there. So a run's RuntimeMaxUSec is its timeout to the second, however long a boot took, and a machine
 * that waits (standby) differs from one that was booted on demand only in how long it waited. */

#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "manager/host-link.h"
#include "manager/image.h"
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
        const char *id;     /* names the scope: ephemeral-vm-ID.scope, and the guest's host */
        const Plan *plan;   /* borrowed until vm_free() */
        const Image *image; /* its fds are duplicated */
        char *const *binds; /* files QEMU needs */
        uint64_t boot_usec; /* deadline for being ready */
} VmSettings;

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
        /* Isolation is verified and the guest waits for a command. kernel: its release; boot_usec since the release of the jail. */
        void (*on_ready)(Vm *vm, const char *kernel, uint64_t boot_usec, void *userdata);
        /* vm_claim() is done: error 0, or the machine is about to end. */
        void (*on_claimed)(Vm *vm, int error, void *userdata);
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

/* Moves a ready machine into the scope `unit` with that clock, then on_claimed. Once. */
int vm_claim(Vm *vm, const char *unit, const char *description, uint64_t runtime_max_usec);

/* The ready machine's control port. Its handlers are the claimer's from then on; on_closed and on_broken must call these. */
HostLink *vm_link(Vm *vm);
void vm_link_closed(Vm *vm);
void vm_link_broken(Vm *vm, const char *reason);

const Isolation *vm_isolation(const Vm *vm);
const char *vm_invocation_id(const Vm *vm); /* of the claimed scope */

/* Asks systemd to end it, now. on_gone follows. */
void vm_stop(Vm *vm);

/* For a machine that never started or is gone; kills what is left otherwise. */
Vm *vm_free(Vm *vm);

DEFINE_CLEANUP(Vm *, vm_free);
