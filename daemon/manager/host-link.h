/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The host's end of the guest's `control` port: the order of frames of docs/design.md 17.1, and nothing of what they mean for a
 * run. The guest is hostile: a frame out of order, or one that message_check() refuses, ends the link for good. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "protocol/message.h"

typedef struct HostLink HostLink;

/* Bytes that wait for a guest that does not read; what is beyond is refused with -ENOBUFS. A whole request fits. */
enum {
        HOST_LINK_QUEUE_MAX = 4 * 1024 * 1024,
};

/* What the guest said. Each handler may free the link. */
typedef struct HostLinkHandlers {
        void (*on_hello)(void *userdata, const HelloMessage *m);
        void (*on_links)(void *userdata, const LinksMessage *m);
        void (*on_started)(void *userdata, uint32_t pid);
        void (*on_output)(void *userdata, int stream, const uint8_t *data, size_t size); /* stream: 1 or 2 */
        void (*on_exited)(void *userdata, const ExitedMessage *m);
        void (*on_log)(void *userdata, const char *text, size_t size);
        /* All stdin given to host_link_send_stdin() has left for the guest. */
        void (*on_stdin_drained)(void *userdata);
        /* One of these two comes, once: QEMU closed its end; or the protocol was broken, or the guest said FAILED. */
        void (*on_closed)(void *userdata);
        void (*on_broken)(void *userdata, const char *reason);
        void *userdata;
} HostLinkHandlers;

/* Takes fd over. The link moves to `event` with its handlers; nothing is sent before HELLO. */
int host_link_new(sd_event *event, int fd, const HostLinkHandlers *handlers, HostLink **ret);
HostLink *host_link_free(HostLink *l);

int host_link_fd(const HostLink *l); /* borrowed */

/* The guest is a clone of one that said HELLO long ago: it waits for SETUP. */
void host_link_skip_hello(HostLink *l);

/* The handlers change when a machine that was made ready becomes a run's. */
void host_link_set_handlers(HostLink *l, const HostLinkHandlers *handlers);

/* Each of these queues whole frames and returns 0 or -errno; -EPROTO when it is not their turn. */
int host_link_send_setup(HostLink *l, const SetupMessage *m);
int host_link_send_bytes(HostLink *l, FrameType type, const void *data, size_t size); /* ARG, ENV; SCRIPT is cut up */
int host_link_send_start(HostLink *l, const StartMessage *m);
int host_link_send_signal(HostLink *l, int signal_number);

/* Bytes for the workload's standard input, kept until the guest's window is open; size 0 is the end of file.
 * -EBUSY while bytes of an earlier call wait. Returns 1 when all went at once, 0 when on_stdin_drained follows. */
int host_link_send_stdin(HostLink *l, const void *data, size_t size);

/* While paused nothing is read: the guest's writes stop by themselves. */
int host_link_set_paused(HostLink *l, bool paused);

DEFINE_CLEANUP(HostLink *, host_link_free);
