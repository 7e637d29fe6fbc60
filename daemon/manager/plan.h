/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From what a run asked for to the machine that QEMU is to build: a pure function, so that what a VM can touch is a text that a
 * test compares. Nothing of the run's own content (command, input) is in it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

/* Three ways to a guest that waits for a command. All have the same devices, or a template's state would not fit its clones. */
typedef enum PlanKind {
        PLAN_COLD,     /* boots, in memory of its own */
        PLAN_TEMPLATE, /* boots, in a memfd that is kept */
        PLAN_CLONE,    /* goes on where a template was frozen, on a private mapping of its memory */
} PlanKind;

const char *plan_kind_name(PlanKind kind); /* "cold", … */

/* What a machine is given by fd. Which of them, and in which order the jail numbers them from JAIL_FIRST_FD on, says Plan.fds. */
typedef enum PlanFd {
        PLAN_FD_IMAGE,
        PLAN_FD_QMP,
        PLAN_FD_CONSOLE,
        PLAN_FD_CONTROL,
        PLAN_FD_KERNEL,
        PLAN_FD_INITRD,
        PLAN_FD_RAM,   /* memfd(2) of exactly memory_mib; a clone's is sealed */
        PLAN_FD_STATE, /* of the devices and processors of a frozen machine; read from its offset */
        PLAN_FD_COUNT,
} PlanFd;

typedef struct PlanInput {
        PlanKind kind;
        const char *qemu;     /* path of the program */
        const char *firmware; /* qemu_firmware() */
        bool kvm;
        unsigned vcpus;
        uint64_t memory_mib;
        uint64_t disk_mib; /* of the tmpfs over the image */
        uint64_t tsc_khz;  /* of this host: the guest cannot calibrate it under TCG */
} PlanInput;

/* A device as QMP's qom-list shows it in /machine/peripheral. */
typedef struct PlanDevice {
        const char *id;
        const char *type;
} PlanDevice;

typedef struct Plan {
        PlanKind kind;
        char **arguments; /* QEMU and its arguments */
        PlanFd fds[PLAN_FD_COUNT];
        size_t n_fds;
        bool kvm;
        unsigned vcpus;
        uint64_t memory_mib;
        uint64_t memory_max_bytes; /* guest memory and QEMU's own */
        uint64_t tasks_max;
        uint64_t cpu_quota_usec; /* per second */
} Plan;

/* What a machine of this size may take of the host: the guest's memory and QEMU's own. */
uint64_t plan_memory_max_bytes(uint64_t memory_mib, bool kvm);

/* 0 or -ENOMEM. */
int plan_make(const PlanInput *input, Plan **ret);
Plan *plan_free(Plan *p);

/* The number of that fd inside the jail, -1 if a machine of this kind has none. */
int plan_fd_number(PlanKind kind, PlanFd fd);

/* Exactly these devices are in a planned machine, beside what the board itself brings; ends with an id of NULL. */
extern const PlanDevice plan_devices[];

DEFINE_CLEANUP(Plan *, plan_free);
