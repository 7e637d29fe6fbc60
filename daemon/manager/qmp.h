/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A client of QEMU's machine protocol on an inherited socket (docs/interop/qmp-spec.rst of QEMU). QEMU counts as taken over by the
 * guest: lines are bounded, replies are read strictly and nothing in them is asserted on. */

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"

typedef struct Qmp Qmp;

enum {
        QMP_LINE_MAX = 256 * 1024, /* bytes of one reply or event */
        QMP_CALLS_MAX = 16,        /* commands that wait for their answer */
};

/* result: the value of "return", borrowed for the call; NULL when QEMU answered with an error, whose text is then in error. */
typedef void (*QmpReplyHandler)(Qmp *q, json_object *result, const char *error, void *userdata);
/* One asynchronous event: its name and "data" (may be NULL). */
typedef void (*QmpEventHandler)(Qmp *q, const char *name, json_object *data, void *userdata);
/* QEMU hung up (error is 0) or broke the protocol (negative errno). The handler may free q. */
typedef void (*QmpCloseHandler)(Qmp *q, int error, void *userdata);

typedef struct QmpHandlers {
        QmpEventHandler on_event;
        QmpCloseHandler on_close;
        void *userdata;
} QmpHandlers;

/* Takes fd over. Capabilities are negotiated at once; commands given before that are sent behind it. */
int qmp_new(sd_event *event, int fd, const QmpHandlers *handlers, Qmp **ret);
Qmp *qmp_free(Qmp *q);

int qmp_fd(const Qmp *q); /* borrowed */

/* Sends a command without arguments, or with the object `arguments` (borrowed). -ENOTCONN after the close, -EBUSY with
 * QMP_CALLS_MAX open calls. */
int qmp_call(Qmp *q, const char *command, json_object *arguments, QmpReplyHandler handler, void *userdata);

/* The same, and QEMU gets a duplicate of fd with it (for `getfd`). */
int qmp_call_with_fd(
        Qmp *q, const char *command, json_object *arguments, int fd, QmpReplyHandler handler, void *userdata);

DEFINE_CLEANUP(Qmp *, qmp_free);
