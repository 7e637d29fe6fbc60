/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One run: an accepted request on its way from `queued` to `ended`. The files of its life, in order:
 *
 *   run.c      what it is, its state, its birth and its last moment
 *   queue.c    which of the waiting runs is next
 *   start.c    `starting`: which way to a machine (template.h)
 *   launch.c   the machine, verified isolation, its own scope
 *   command.c  `running`: the command, its streams, its end
 *   stop.c     `stopping`: cancelled, ended, or killed by systemd's clock
 *   outcome.c  the verdict
 *   destroy.c  `ended`: proof that nothing is left, result
 *
 * Model only: no bus message is read or written here (run-bus.c does). */

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "common/journal-run.h"
#include "manager/console.h"
#include "manager/outcome.h"
#include "manager/request.h"
#include "manager/template.h"
#include "manager/timeline.h"
#include "manager/vm.h"

typedef struct Manager Manager;
typedef struct Run Run;

typedef enum RunState {
        RUN_QUEUED,
        RUN_STARTING,
        RUN_RUNNING,
        RUN_STOPPING,
        RUN_ENDED,
} RunState;

/* What the bus side hangs on a run (run-access.h, run-stream.h). */
typedef struct RunClients RunClients;

struct Run {
        Manager *manager;
        TAILQ_ENTRY(Run) runs;    /* manager->runs, oldest first */
        TAILQ_ENTRY(Run) waiting; /* manager->queue while RUN_QUEUED */
        char id[RUN_ID_LENGTH + 1];
        char *path; /* D-Bus object */
        char *unit;
        uid_t owner;
        char *account; /* "uid:1000" */
        Request *request;
        RunState state;
        uint64_t created_usec, started_usec, ended_usec; /* CLOCK_REALTIME, 0: not yet */

        Timeline *timeline;
        JournalRun *journal;
        TimelineListener *journal_listener;
        Console *console;
        RunClients *clients;

        TemplateWait *template_wait;          /* while there is no machine yet */
        char template[RECIPE_KEY_LENGTH + 1]; /* what the machine is a clone of; "": it booted */
        bool template_dropped;                /* it was no good, and there is no third */
        bool standby, no_standby; /* the machine had waited for it; no other of that kind: one was no good */
        Vm *vm;
        json_object *isolation;                             /* as in the event; NULL until verified */
        bool stdin_open;                                    /* SendInput may add to it */
        void (*on_stdin_drained)(Run *run, void *userdata); /* of the SendInput that waits */
        void *stdin_userdata;

        char *cancelled_by; /* "uid:1000"; NULL: not cancelled by a caller */
        bool has_exited;
        ExitedMessage exited;
        uint64_t stopping_since_usec; /* monotonic */
        Outcome outcome;
        char *failure; /* why, for OUTCOME_VM_FAILED */
        json_object *result;
};

/* ---- run.c ---- */

typedef struct RunSettings {
        uid_t owner;
        Request *request; /* taken over when it succeeds */
        bool stdin_open;
} RunSettings;

/* Makes a queued run and its first event; queue_dispatch() starts it. */
int run_new(Manager *m, const RunSettings *settings, Run **ret);
Run *run_free(Run *run);

const char *run_state_name(RunState state);
void run_set_state(Run *run, RunState state); /* and tells the clients */
bool run_is_active(const Run *run);           /* holds a slot: neither queued nor ended */

/* Appends an event; takes object. What does not fit is counted by the timeline. */
void run_event(Run *run, EventType type, json_object *object);

/* -1 while there is none; 128+N for a command that signal N ended, 127 for one that could not be executed. */
int run_exit_status(const Run *run);

/* ---- start.c ---- */

/* From queued to starting. Whatever goes wrong ends the run as vm-failed. */
void run_start(Run *run);

/* The machine is gone and was never ready: true when there is another way, and it was taken. */
bool run_start_again(Run *run, const char *reason);

/* ---- launch.c ---- */

/* Starts a clone of the template, which is of that recipe, or (NULL) boots. 0, or -errno with a text that the caller frees. */
int run_launch(Run *run, const Recipe *recipe, const Template *template, char **reterr_text);

/* ---- command.c ---- */

/* The machine is in the run's scope: tells the guest what to do. */
void run_command(Run *run);

/* `exit_status`, `signal` or `errno` and `error`. */
void run_add_exit(json_object *o, const ExitedMessage *m);

/* While a lossless reader is behind, the guest waits. */
void run_set_paused(Run *run, bool paused);

/* Bytes for the command; size 0: end of file. 1: taken. 0: drained() follows. -errno: -EBUSY one is waiting, -EPIPE closed,
 * -EAGAIN the command has not started. */
int run_send_input(Run *run, const void *data, size_t size, void (*drained)(Run *run, void *userdata), void *userdata);

/* ---- stop.c ---- */

/* Asked by a caller; `by` is an account. 0, or -EALREADY when it is ending by itself already. */
int run_cancel(Run *run, const char *by);
void run_stop(Run *run);

/* ---- destroy.c ---- */

/* The machine is gone (end), or there never was one (NULL): verdict, proof, result; the run is ended. */
void run_end(Run *run, const VmEnd *end);

DEFINE_CLEANUP(Run *, run_free);
