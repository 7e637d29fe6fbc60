/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Capacity: so many runs at once and so much memory. Who waits is served by account: the one with the fewest active runs first, and
 * within it the oldest request, so that nobody's thousand keeps another's one waiting.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/errors.h"
#include "manager/manager.h"

enum {
        PRESSURE_QUIET_USEC = 60 * 1000 * 1000,
};

uint64_t queue_memory_of(const Request *request) {
        return plan_memory_max_bytes(request->memory_mib, false);
}

int queue_admit(Manager *m, const Request *request, sd_bus_error *reterr_error) {
        uint64_t needed = queue_memory_of(request), budget = host_memory_budget(&m->host);

        if (m->exiting)
                return error_set(reterr_error, ERROR_QUEUE_FULL, "The service is stopping: try again in a moment");
        if (needed > budget)
                return error_set(
                        reterr_error, ERROR_INSUFFICIENT_MEMORY,
                        "A machine of %u MiB needs %llu MiB of this host, which gives all runs together %llu MiB: "
                        "ask for less with vm.memory_mib",
                        request->memory_mib, (unsigned long long) (needed >> 20), (unsigned long long) (budget >> 20));
        if (m->n_queued >= m->config.queue_max)
                return error_set(reterr_error, ERROR_QUEUE_FULL,
                                 "%u runs are waiting already, which is all that QueueMax= allows: try again later",
                                 m->n_queued);
        return 0;
}

void queue_add(Run *run) {
        TAILQ_INSERT_TAIL(&run->manager->queue, run, waiting);
        run->manager->n_queued++;
}

void queue_remove(Run *run) {
        TAILQ_REMOVE(&run->manager->queue, run, waiting);
        run->manager->n_queued--;
}

static unsigned active_runs_of(const Manager *m, uid_t owner) {
        const Run *run;
        unsigned n = 0;

        TAILQ_FOREACH (run, &m->runs, runs)
                if (run->owner == owner && run_is_active(run))
                        n++;
        return n;
}

static Run *next_run(Manager *m) {
        Run *run, *best = NULL;
        unsigned fewest = 0;

        TAILQ_FOREACH (run, &m->queue, waiting) {
                unsigned n;

                if (best && best->owner == run->owner)
                        continue; /* the oldest of an account stands for it */
                n = active_runs_of(m, run->owner);
                if (!best || n < fewest) {
                        best = run;
                        fewest = n;
                }
                if (fewest == 0)
                        break;
        }
        return best;
}

static void start_waiting(Manager *m) {
        Run *run;

        while (m->n_active < m->runs_max && (run = next_run(m))) {
                uint64_t needed = queue_memory_of(run->request);

                if (m->memory_in_use + needed > host_memory_budget(&m->host))
                        return; /* the next in turn waits for memory; nobody overtakes it for ever */
                queue_remove(run);
                m->n_active++;
                m->memory_in_use += needed;
                run_start(run);
        }
}

static bool is_starting(const Manager *m) {
        const Run *run;

        TAILQ_FOREACH (run, &m->runs, runs)
                if (run->state == RUN_STARTING)
                        return true;
        return false;
}

/* Machines that wait have what the runs leave, and nothing for a while after the host was short of memory. */
static void tend_standbys(Manager *m) {
        bool pressure = m->pressure_usec > 0 && clock_monotonic_usec() - m->pressure_usec < PRESSURE_QUIET_USEC;
        uint64_t budget = host_memory_budget(&m->host);
        StandbyRoom room = {
                .calm = !m->exiting && m->n_queued == 0 && !is_starting(m),
                .memory_bytes = pressure || m->memory_in_use > budget ? 0 : budget - m->memory_in_use,
                .boot_usec = accelerator_boot_usec(&m->accelerator),
        };

        if (m->standbys)
                standby_tend(m->standbys, &room);
}

/* After a run has started, for that may have taken one of them. */
void queue_dispatch(Manager *m) {
        start_waiting(m);
        tend_standbys(m);
}

void queue_release(Run *run) {
        run->manager->n_active--;
        run->manager->memory_in_use -= queue_memory_of(run->request);
}
