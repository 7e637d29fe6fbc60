/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The last moment of a run: verdict, result, proof that its machine left nothing, and the end of everybody who listens.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "manager/manager.h"
#include "manager/run-clients.h"

/* Why, where neither a caller nor the guest said so: systemd's clock, the memory limit, somebody's systemctl stop. */
static void tell_cause(Run *run) {
        json_object *o;

        if (run->outcome == OUTCOME_TIMED_OUT) {
                o = json_object_new_object();
                json_add_u64(o, "timeout_usec", run->request->timeout_usec);
                run_event(run, EVENT_TIMEOUT_REACHED, o);
        } else if (run->outcome == OUTCOME_OUT_OF_MEMORY) {
                o = json_object_new_object();
                json_add_u64(o, "memory_max_bytes", vm_plan(run->vm)->memory_max_bytes);
                run_event(run, EVENT_MEMORY_EXHAUSTED, o);
        } else if (run->outcome == OUTCOME_CANCELLED && !run->cancelled_by) {
                o = json_object_new_object();
                json_add_string(o, "by", "systemd");
                run_event(run, EVENT_RUN_CANCELLED, o);
        }
}

static json_object *make_result(const Run *run) {
        json_object *o = json_object_new_object();
        TimelineCounts counts;

        timeline_get_counts(run->timeline, &counts);
        json_add_string(o, "outcome", outcome_name(run->outcome));
        if (run->has_exited && run->outcome != OUTCOME_CANCELLED)
                run_add_exit(o, &run->exited);
        if (run->outcome == OUTCOME_VM_FAILED)
                json_add_string(o, "reason", run->failure ? run->failure : "the machine ended, and nothing says why");
        json_add_u64(o, "stdout_bytes", counts.kept_bytes[STREAM_STDOUT] + counts.dropped_bytes[STREAM_STDOUT]);
        json_add_u64(o, "stderr_bytes", counts.kept_bytes[STREAM_STDERR] + counts.dropped_bytes[STREAM_STDERR]);
        return o;
}

static void tell_destroyed(Run *run, const VmEnd *end) {
        json_object *o = json_object_new_object();

        json_add_string(o, "unit", end->unit ? end->unit : "");
        json_add_u64(o, "processes", end->n_processes);
        json_add_string(o, "cgroup", end->cgroup_gone ? "empty" : "populated");
        json_add_u64(o, "uid", end->uid);
        json_add_bool(o, "uid_free", end->uid_free);
        json_add_string(o, "qemu", end->qemu ? end->qemu : "not started");
        if (run->stopping_since_usec > 0)
                json_add_u64(o, "duration_usec", clock_monotonic_usec() - run->stopping_since_usec);
        run_event(run, EVENT_VM_DESTROYED, o);
}

void run_end(Run *run, const VmEnd *end) {
        bool held_slot = run_is_active(run);
        OutcomeFacts facts = {
                .cancelled = run->cancelled_by,
                .exited = run->has_exited ? &run->exited : NULL,
                .end = end,
        };

        run->outcome = outcome_decide(&facts);
        if (!run->has_exited)
                timeline_append_truncated(run->timeline);
        tell_cause(run);
        run->result = make_result(run);
        run_event(run, EVENT_RUN_RESULT, json_object_get(run->result));
        if (end)
                tell_destroyed(run, end);
        run->ended_usec = clock_realtime_usec();
        console_finish(run->console);
        if (held_slot)
                queue_release(run);
        if (end)
                run->vm = vm_free(run->vm);
        run_set_state(run, RUN_ENDED);
        run_clients_finish(run);
        manager_run_ended(run);
}
