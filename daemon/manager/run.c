/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a run is, from the accepted request on. Its steps are in the files that run.h lists.
 */
#include "manager/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "manager/manager.h"
#include "manager/run-clients.h"

const char *run_state_name(RunState state) {
        static const char *const names[] = {
                [RUN_QUEUED] = "queued",     [RUN_STARTING] = "starting", [RUN_RUNNING] = "running",
                [RUN_STOPPING] = "stopping", [RUN_ENDED] = "ended",
        };

        return names[state];
}

bool run_is_active(const Run *run) {
        return run->state == RUN_STARTING || run->state == RUN_RUNNING || run->state == RUN_STOPPING;
}

void run_set_state(Run *run, RunState state) {
        if (run->state == state)
                return;
        run->state = state;
        run_clients_state_changed(run);
}

void run_event(Run *run, EventType type, json_object *object) {
        (void) timeline_append(run->timeline, type, object);
}

int run_exit_status(const Run *run) {
        if (!run->has_exited)
                return -1;
        switch ((ExitedHow) run->exited.how) {
        case EXITED_NORMALLY:
                return (int) run->exited.status;
        case EXITED_BY_SIGNAL:
                return 128 + (int) run->exited.status;
        case EXITED_NO_EXEC:
                return 127;
        }
        return -1;
}

static int run_name(Run *run) {
        int r;

        r = run_id_new(run->id);
        if (r < 0)
                return r;
        r = sd_bus_path_encode("/org/ephemeral1/run", run->id, &run->path);
        if (r < 0)
                return r;
        if (asprintf(&run->unit, "ephemeral-%s.scope", run->id) < 0) {
                run->unit = NULL;
                return -ENOMEM;
        }
        if (asprintf(&run->account, "uid:%u", (unsigned) run->owner) < 0) {
                run->account = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int run_open_timeline(Run *run, JournalWriter *journal, const Request *request) {
        JournalRunFields fields = {
                .id = run->id, .unit = run->unit, .account = run->account, .workflow = request->workflow};
        int r;

        r = timeline_new(request->output_max_bytes, &run->timeline);
        if (r < 0)
                return r;
        r = journal_run_new(journal, &fields, &run->journal);
        if (r < 0)
                return r;
        return timeline_listen_journal(run->timeline, run->journal, &run->journal_listener);
}

int run_new(Manager *m, const RunSettings *settings, Run **ret) {
        _cleanup_(run_freep) Run *run = calloc(1, sizeof(*run));
        json_object *object;
        int r;

        if (!run)
                return -ENOMEM;
        run->manager = m;
        run->owner = settings->owner;
        run->stdin_open = settings->stdin_open;
        run->created_usec = clock_realtime_usec();
        r = run_name(run);
        if (r < 0)
                return r;
        r = console_new(&run->console);
        if (r < 0)
                return r;
        r = run_open_timeline(run, m->journal, settings->request);
        if (r < 0)
                return r;
        r = run_clients_new(run, &run->clients);
        if (r < 0)
                return r;
        object = json_object_new_object();
        r = json_add(object, "request", json_object_get(settings->request->accepted));
        if (r < 0) {
                json_object_put(object);
                return r;
        }
        run->request = settings->request;
        TAILQ_INSERT_TAIL(&m->runs, run, runs);
        run_event(run, EVENT_REQUEST_ACCEPTED, object);
        *ret = TAKE_PTR(run);
        return 0;
}

Run *run_free(Run *run) {
        if (!run)
                return NULL;
        if (run->request) { /* it was made whole, and the manager knows it */
                if (run->state == RUN_QUEUED && run->waiting.tqe_prev)
                        queue_remove(run);
                TAILQ_REMOVE(&run->manager->runs, run, runs);
        }
        template_wait_free(run->template_wait);
        vm_free(run->vm);
        run_clients_free(run->clients);
        timeline_listener_free(run->journal_listener);
        journal_run_free(run->journal);
        timeline_free(run->timeline);
        console_free(run->console);
        request_free(run->request);
        json_object_put(run->isolation);
        json_object_put(run->result);
        free(run->path);
        free(run->unit);
        free(run->account);
        free(run->cancelled_by);
        free(run->failure);
        free(run);
        return NULL;
}
