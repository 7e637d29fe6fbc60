/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One verdict on a run from all that is known of its end. Pure. */

#include <stdbool.h>

#include "manager/vm.h"

typedef enum Outcome {
        OUTCOME_NONE, /* not ended */
        OUTCOME_SUCCEEDED,
        OUTCOME_FAILED,
        OUTCOME_TIMED_OUT,
        OUTCOME_BUDGET_EXHAUSTED,
        OUTCOME_CANCELLED,
        OUTCOME_OUT_OF_MEMORY,
        OUTCOME_VM_FAILED,
} Outcome;

typedef struct OutcomeFacts {
        bool cancelled;              /* we were asked to stop it, and did so before it said how it ended */
        const ExitedMessage *exited; /* what the guest said; NULL: nothing */
        const VmEnd *end;            /* NULL: there never was a machine */
} OutcomeFacts;

/* The rule, first match: cancelled by a caller; the guest's own word; systemd's clock; the memory limit; stopped by somebody at
 * systemd; all else is ours. */
Outcome outcome_decide(const OutcomeFacts *facts);

/* "timed-out"; "" for OUTCOME_NONE. */
const char *outcome_name(Outcome outcome);
