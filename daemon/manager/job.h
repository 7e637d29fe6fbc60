/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Work that would block the event loop (reading and hashing a template's memory), in a thread of its own. What `work` touches is its
 * own until `done` has been called; no lock is needed. */

#include <systemd/sd-event.h>

#include "common/cleanup.h"

typedef struct Job Job;

typedef struct JobHandlers {
        void (*work)(void *userdata); /* in the thread */
        void (*done)(void *userdata); /* from the loop, when it has returned; may free the job */
        void *userdata;
} JobHandlers;

/* 0 or -errno: nothing was started. */
int job_start(sd_event *event, const JobHandlers *handlers, Job **ret);

/* Waits for `work` to return; `done` is not called any more. */
Job *job_free(Job *j);

DEFINE_CLEANUP(Job *, job_free);
