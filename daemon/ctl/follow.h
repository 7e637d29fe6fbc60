/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One run's events and output as they come (OpenOutput), across restarts of the service: when the fd ends before the run
 * has, it is opened again behind the last event. Nothing comes twice. */

#include <stdint.h>
#include <systemd/sd-event.h>

#include "ctl/client.h"
#include "protocol/message.h"

#define FOLLOW_ATTEMPTS_MAX   8 /* in a row without anything new */
#define FOLLOW_EVENT_SIZE_MAX (8U << 20)

typedef struct Follow Follow;

typedef struct FollowOptions {
        const char *id; /* of the run; copied, as is the path */
        const char *path;
        uint64_t after_seq;
        bool lossless;

        /* Pointers in the messages are good during the call. After follow_stop() nothing is called any more. */
        void (*on_event)(const EventMessage *event, void *userdata);
        void (*on_output)(const OutputMessage *output, void *userdata);
        void (*on_lost)(uint64_t bytes, void *userdata);
        /* 0: the run has ended and all has come; else an exit code, and a sentence was printed. */
        void (*on_end)(int exit_code, void *userdata);
        void *userdata;
} FollowOptions;

/* The bus of ctl must be attached to the event loop. 0 or -errno; what goes wrong later is told by on_end. */
int follow_new(Ctl *ctl, sd_event *event, const FollowOptions *options, Follow **ret);
void follow_stop(Follow *follow);
Follow *follow_free(Follow *follow);
DEFINE_CLEANUP(Follow *, follow_free);
