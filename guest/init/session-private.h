/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by session.c (the loop) and dispatch.c (what the host's frames do). */

#include "init/command.h"
#include "init/inbox.h"
#include "init/outbox.h"
#include "init/session.h"
#include "init/workload.h"

typedef enum SessionState {
        SESSION_HELLO, /* HELLO is sent, SETUP comes next */
        SESSION_READY, /* LINKS is sent; ARG, ENV, SCRIPT, START */
        SESSION_RUNNING,
        SESSION_KILLED, /* the main process ended; the rest dies and the pipes run dry */
        SESSION_ENDED,  /* EXITED is sent: as READY, and what the host sent before it heard of it may still come */
} SessionState;

typedef struct Session {
        const SessionOps *ops;
        SessionState state;
        int control_fd;
        int signal_fd;
        Command command;
        Workload workload;
        FrameReader reader;
        Outbox outbox;
        Inbox inbox;
        char last_words[256];   /* what FAILED says */
        int wait_status;        /* of the main process */
        bool childless;         /* nothing is left to reap */
        bool stderr_first;      /* the two streams take turns */
        uint64_t kill_deadline; /* monotonic usec: what will not die is left behind */
} Session;

/* Takes one frame of the host. 0, or -errno with the reason logged. */
int session_dispatch(Session *session, const Frame *frame);
