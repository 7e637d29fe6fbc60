/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `stopping`: by a caller, or because the command has ended. systemd does the killing; a run that still waits, for its turn or for a
 * template, just leaves.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "manager/manager.h"

void run_stop(Run *run) {
        if (run->state == RUN_STOPPING || run->state == RUN_ENDED)
                return;
        run->stopping_since_usec = clock_monotonic_usec();
        if (run->state == RUN_QUEUED) {
                queue_remove(run);
                run_end(run, NULL);
                return;
        }
        run_set_state(run, RUN_STOPPING);
        if (run->vm) {
                vm_stop(run->vm);
                return;
        }
        run->template_wait = template_wait_free(run->template_wait);
        run_end(run, NULL);
}

int run_cancel(Run *run, const char *by) {
        json_object *o;

        if (run->state == RUN_STOPPING || run->state == RUN_ENDED)
                return -EALREADY;
        run->cancelled_by = strdup(by);
        if (!run->cancelled_by)
                return -ENOMEM;
        o = json_object_new_object();
        json_add_string(o, "by", by);
        run_event(run, EVENT_RUN_CANCELLED, o);
        run_stop(run);
        return 0;
}
