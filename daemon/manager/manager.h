/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The whole of ephemerald's state. One instance, made by main.c. */

#include <stdbool.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "common/config.h"
#include "common/journal.h"
#include "manager/accelerator.h"
#include "manager/host.h"
#include "manager/qemu.h"
#include "manager/replies.h"
#include "manager/run.h"
#include "manager/standby.h"
#include "manager/subscriber.h"
#include "manager/template.h"
#include "manager/workflow.h"

enum {
        RUNS_KEPT_MAX = 256,                 /* ended runs that can still be read; the oldest go first */
        RUNS_KEPT_BYTES = 128 * 1024 * 1024, /* and their timelines */
};

typedef struct TemplateCall TemplateCall;     /* template-bus.c: BuildTemplate that waits */
typedef struct ManagerClients ManagerClients; /* manager-bus.c: who is told of RunNew and RunEnded */

struct Manager {
        sd_event *event;
        sd_bus *bus;        /* calls */
        sd_bus *signal_bus; /* signals to subscribers, and PID 1: nobody can stop it from being heard there */
        Config config;
        Host host;
        Accelerator accelerator;
        Qemu *qemu;       /* NULL: none that can be used, and then */
        char *qemu_error; /* why */
        WorkflowSet *workflows;
        JournalWriter *journal;
        Systemd *systemd;
        VmEnvironment vm_environment;
        TemplateSet *templates; /* NULL: not wanted, every machine boots */
        TAILQ_HEAD(TemplateCallList, TemplateCall) template_calls;
        StandbySet *standbys; /* NULL: none are wanted */
        sd_event_source *pressure;
        uint64_t pressure_usec; /* monotonic: when memory was short last */
        int uid_block_fd;       /* keeps systemd-nspawn -U off our uids */
        SubscriberHub *hub;
        sd_event_source *runs_changed; /* a run has ended: look at the list and the queue, from the loop */
        ManagerClients *clients;
        Replies *replies;

        TAILQ_HEAD(RunList, Run) runs; /* all that are known, oldest first */
        TAILQ_HEAD(, Run) queue;       /* those that wait */
        unsigned n_queued, n_active, n_ended, runs_max;
        unsigned n_pending;     /* calls that wait for polkit */
        unsigned n_watchers;    /* subscribers and readers of all runs */
        uint64_t ended_bytes;   /* of the ended runs' timelines */
        uint64_t memory_in_use; /* bytes that the active runs' scopes may take */
        uint64_t used_usec;     /* monotonic: the last call, or the last moment that something was going on */
        bool exiting;           /* no new runs */
};

/* ---- manager.c ---- */

int manager_new(sd_event *event, const char *config_path, const char *runtime_dir, Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free);

/* How long until there was nothing to do for config.idle_usec; 0: now, UINT64_MAX: something is going on, or it never leaves. Signals of
 * others' units come all the time, and are no use. */
uint64_t manager_idle_wait_usec(Manager *m);

/* QEMU as it is on disk now. 0, or -errno with NoQemu or QemuTooOld. */
int manager_get_qemu(Manager *m, Qemu **ret, sd_bus_error *reterr_error);

Run *manager_find_run(Manager *m, const char *id);

/* Ended runs beyond RUNS_KEPT_MAX are forgotten, from the loop. */
void manager_run_ended(Run *run);

/* Looks at the list, the queue and the standbys, from the loop. */
void manager_look_again(Manager *m);

/* Stops taking requests and ends what there is. */
void manager_exit(Manager *m);

/* ---- start.c ---- */

/* What a machine for this request is made of now. 0, or -errno with an error set. */
int manager_make_recipe(Manager *m, const Request *request, Recipe **ret, sd_bus_error *reterr_error);

/* template_get() with as much patience as the accelerator asks for. */
int manager_get_template(
        Manager *m, Recipe *recipe, const TemplateHandlers *handlers, const Template **ret, TemplateWait **ret_wait);

/* ---- queue.c ---- */

/* Room for one more? 0, or -errno with QueueFull or InsufficientMemory. */
int queue_admit(Manager *m, const Request *request, sd_bus_error *reterr_error);
void queue_add(Run *run);
void queue_remove(Run *run);

/* Starts as many of the waiting runs as there is room for, fair between accounts; what they leave is the standbys'. */
void queue_dispatch(Manager *m);

/* A run leaves its slot. */
void queue_release(Run *run);

/* What a run's scope may take at most. */
uint64_t queue_memory_of(const Request *request);
