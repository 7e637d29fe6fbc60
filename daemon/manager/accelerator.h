/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* KVM or emulation (TCG), and why. /dev/kvm that opens is no proof that it works: the first boot under KVM is, and its failure is
 * remembered under /run until the host boots again. */

#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"

typedef struct Accelerator {
        AcceleratorChoice choice; /* as configured */
        bool kvm;                 /* what the next machine gets */
        bool proven;              /* a guest was ready under KVM */
        char *reason;             /* why it is not KVM; NULL when it is */
        char *verdict_path;       /* file that remembers */
} Accelerator;

/* runtime_dir: /run/ephemeral. Looks, and reads an earlier verdict. */
int accelerator_init(Accelerator *a, AcceleratorChoice choice, const char *runtime_dir);
void accelerator_done(Accelerator *a);

/* A guest was ready under KVM. */
void accelerator_worked(Accelerator *a);

/* It is known to work, so a failure has another cause. */
bool accelerator_is_tried(const Accelerator *a);

/* How long a boot may take: KVM that was never seen to work is not waited for as long. */
uint64_t accelerator_boot_usec(const Accelerator *a);

/* A machine under KVM never became ready: true when the run shall be tried again, under TCG from now on. */
bool accelerator_failed(Accelerator *a, const char *reason);
