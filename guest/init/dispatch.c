/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What each frame of the host does. In its own state each frame is right; anywhere else the host and we do not mean the
 * same run, and going on would only hide it. Frames that cross EXITED on their way are no error. */

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/cleanup.h"
#include "init/log.h"
#include "init/session-private.h"

static int put_frame(Session *session, const uint8_t *frame, ssize_t size) {
        return size < 0 ? (int) size : outbox_put(&session->outbox, frame, (size_t) size);
}

static int on_setup(Session *session, const Frame *frame) {
        uint8_t encoded[LINKS_FRAME_SIZE_MAX];
        SetupMessage setup;
        LinksMessage links;
        int r;

        r = message_decode_setup(frame, &setup);
        if (r < 0)
                return log_errno(r, "SETUP");
        r = session->ops->apply_setup(&setup);
        explicit_bzero(&setup, sizeof(setup));
        if (r < 0)
                return r;

        r = session->ops->list_links(&links);
        if (r < 0)
                return log_errno(r, "cannot list the network links");
        session->state = SESSION_READY;
        return put_frame(session, encoded, message_encode_links(encoded, &links));
}

static int on_argument(Session *session, const Frame *frame) {
        int r = command_add_argument(&session->command, frame->data, frame->size);

        return r < 0 ? log_errno(r, "ARG") : 0;
}

static int on_environment(Session *session, const Frame *frame) {
        int r = command_add_environment(&session->command, frame->data, frame->size);

        return r < 0 ? log_errno(r, "ENV") : 0;
}

static int on_script(Session *session, const Frame *frame) {
        int r = command_add_script(&session->command, session->ops->script_path, frame->data, frame->size);

        return r < 0 ? log_errno(r, "SCRIPT") : 0;
}

static int on_start(Session *session, const Frame *frame) {
        uint8_t encoded[STARTED_FRAME_SIZE];
        StartMessage start;
        int r;

        r = message_decode_start(frame, &start);
        if (r < 0)
                return log_errno(r, "START");
        command_close_script(&session->command);
        r = command_add_defaults(&session->command, start.uid);
        if (r < 0)
                return log_errno(r, "START");
        r = workload_spawn(&session->workload, &session->command, &start);
        if (r < 0)
                return log_errno(r, "cannot start the command");

        inbox_init(&session->inbox, TAKE_FD(session->workload.stdin_fd));
        if (!(start.flags & START_STDIN))
                inbox_put_eof(&session->inbox);
        command_done(&session->command);
        session->state = SESSION_RUNNING;
        return put_frame(session, encoded, message_encode_started(encoded, (uint32_t) session->workload.pid));
}

static int on_stdin(Session *session, const Frame *frame) {
        int r;

        if (session->state != SESSION_RUNNING)
                return 0;
        r = frame->type == FRAME_STDIN_EOF ? inbox_put_eof(&session->inbox)
                                           : inbox_put(&session->inbox, frame->data, frame->size);
        if (r < 0)
                return log_errno(r, "STDIN past its window or its end");
        inbox_flush(&session->inbox);
        return 0;
}

static int on_signal(Session *session, const Frame *frame) {
        uint8_t signal;
        int r;

        r = message_decode_signal(frame, &signal);
        if (r < 0)
                return log_errno(r, "SIGNAL");
        /* The group is there from fork(2) on only once the child made it; until then its leader is met by its pid. */
        if (session->state == SESSION_RUNNING && kill(-session->workload.pid, signal) < 0)
                kill(session->workload.pid, signal);
        return 0;
}

#define IDLE    (1U << SESSION_READY | 1U << SESSION_ENDED)
#define COMMAND (1U << SESSION_RUNNING | 1U << SESSION_KILLED | 1U << SESSION_ENDED)

typedef struct Handler {
        uint8_t type;
        unsigned states; /* bits of SessionState: whose turn it is */
        int (*handle)(Session *session, const Frame *frame);
} Handler;

static const Handler handlers[] = {
        {FRAME_SETUP,     1U << SESSION_HELLO | IDLE, on_setup      },
        {FRAME_ARG,       IDLE,                       on_argument   },
        {FRAME_ENV,       IDLE,                       on_environment},
        {FRAME_SCRIPT,    IDLE,                       on_script     },
        {FRAME_START,     IDLE,                       on_start      },
        {FRAME_STDIN,     COMMAND,                    on_stdin      },
        {FRAME_STDIN_EOF, COMMAND,                    on_stdin      },
        {FRAME_SIGNAL,    COMMAND,                    on_signal     },
};

int session_dispatch(Session *session, const Frame *frame) {
        int r;

        r = message_check(frame);
        if (r < 0)
                return log_errno(r, "frame of type 0x%02x and %zu bytes", frame->type, frame->size);

        for (size_t i = 0; i < ELEMENTSOF(handlers); i++)
                if (handlers[i].type == frame->type && handlers[i].states & 1U << session->state)
                        return handlers[i].handle(session, frame);
        return log_errno(-EPROTO, "frame of type 0x%02x out of order", frame->type);
}
