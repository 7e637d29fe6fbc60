/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The verdict. Guest status, the scope's result and our own deeds can all speak of the same end, in any order: the rule in the
 * header makes one word of them, the same one always.
 */
#include "manager/outcome.h"

#include <string.h>

const char *outcome_name(Outcome outcome) {
        switch (outcome) {
        case OUTCOME_NONE:
                return "";
        case OUTCOME_SUCCEEDED:
                return "succeeded";
        case OUTCOME_FAILED:
                return "failed";
        case OUTCOME_TIMED_OUT:
                return "timed-out";
        case OUTCOME_BUDGET_EXHAUSTED:
                return "budget-exhausted";
        case OUTCOME_CANCELLED:
                return "cancelled";
        case OUTCOME_OUT_OF_MEMORY:
                return "out-of-memory";
        case OUTCOME_VM_FAILED:
                return "vm-failed";
        }
        return "";
}

Outcome outcome_decide(const OutcomeFacts *facts) {
        const VmEnd *end = facts->end;

        if (facts->cancelled)
                return OUTCOME_CANCELLED;
        if (facts->exited)
                return facts->exited->how == EXITED_NORMALLY && facts->exited->status == 0 ? OUTCOME_SUCCEEDED
                                                                                           : OUTCOME_FAILED;
        if (!end || !end->was_ready)
                return end && end->scope.stopped_by_others ? OUTCOME_CANCELLED : OUTCOME_VM_FAILED;
        if (strcmp(end->scope.result, "oom-kill") == 0)
                return OUTCOME_OUT_OF_MEMORY;
        if (end->scope.stopped_by_others)
                return OUTCOME_CANCELLED;
        if (strcmp(end->scope.result, "timeout") == 0 && !end->scope.stopped_by_us)
                return OUTCOME_TIMED_OUT;
        return OUTCOME_VM_FAILED;
}
