/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <string.h>

#include "manager/outcome.h"

static VmEnd end_of(const char *result) {
        VmEnd end = {.was_ready = true};

        strcpy(end.scope.result, result);
        return end;
}

static Outcome decide(bool cancelled, const ExitedMessage *exited, const VmEnd *end) {
        OutcomeFacts facts = {cancelled, exited, end};

        return outcome_decide(&facts);
}

static const ExitedMessage zero = {.how = EXITED_NORMALLY}, three = {.how = EXITED_NORMALLY, .status = 3},
                           killed = {.how = EXITED_BY_SIGNAL, .status = 9},
                           missing = {.how = EXITED_NO_EXEC, .status = 2};

static void the_guests_word_counts_when_nobody_cancelled(void) {
        VmEnd end = end_of("success");

        end.scope.stopped_by_us = true;
        assert(decide(false, &zero, &end) == OUTCOME_SUCCEEDED);
        assert(decide(false, &three, &end) == OUTCOME_FAILED);
        assert(decide(false, &killed, &end) == OUTCOME_FAILED);
        assert(decide(false, &missing, &end) == OUTCOME_FAILED);
}

static void an_exit_before_the_clock_stands_whatever_the_scope_says(void) {
        VmEnd late = end_of("timeout");

        assert(decide(false, &zero, &late) == OUTCOME_SUCCEEDED);
}

static void a_cancel_before_the_exit_stands(void) {
        VmEnd end = end_of("success");

        assert(decide(true, &zero, &end) == OUTCOME_CANCELLED);
        assert(decide(true, NULL, NULL) == OUTCOME_CANCELLED);
}

static void systemds_clock_is_a_timeout_and_a_slow_stop_of_ours_is_none(void) {
        VmEnd end = end_of("timeout");

        assert(decide(false, NULL, &end) == OUTCOME_TIMED_OUT);
        end.scope.stopped_by_us = true;
        assert(decide(false, NULL, &end) == OUTCOME_VM_FAILED);
}

static void systemctl_stop_is_a_cancel_however_slowly_it_went(void) {
        VmEnd end = end_of("success"), slow = end_of("timeout");

        end.scope.stopped_by_others = slow.scope.stopped_by_others = true;
        assert(decide(false, NULL, &end) == OUTCOME_CANCELLED);
        assert(decide(false, NULL, &slow) == OUTCOME_CANCELLED);
        end.was_ready = false;
        assert(decide(false, NULL, &end) == OUTCOME_CANCELLED);
}

static void the_memory_limit_is_told_apart(void) {
        VmEnd end = end_of("oom-kill");

        assert(decide(false, NULL, &end) == OUTCOME_OUT_OF_MEMORY);
}

static void a_machine_that_never_was_ready_is_our_failure(void) {
        VmEnd end = end_of("timeout");

        end.was_ready = false;
        assert(decide(false, NULL, &end) == OUTCOME_VM_FAILED);
        assert(decide(false, NULL, NULL) == OUTCOME_VM_FAILED);
}

static void a_machine_that_just_died_is_our_failure(void) {
        VmEnd end = end_of("success");

        assert(decide(false, NULL, &end) == OUTCOME_VM_FAILED);
}

int main(void) {
        the_guests_word_counts_when_nobody_cancelled();
        an_exit_before_the_clock_stands_whatever_the_scope_says();
        a_cancel_before_the_exit_stands();
        systemds_clock_is_a_timeout_and_a_slow_stop_of_ours_is_none();
        systemctl_stop_is_a_cancel_however_slowly_it_went();
        the_memory_limit_is_told_apart();
        a_machine_that_never_was_ready_is_our_failure();
        a_machine_that_just_died_is_our_failure();
        return 0;
}
