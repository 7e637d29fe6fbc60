/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by host-link.c (life, what the guest says) and host-link-send.c (what it is told). Nobody else includes it. */

#include <stdint.h>

#include "manager/host-link.h"

typedef enum LinkState {
        LINK_WAITS_HELLO,
        LINK_GREETED, /* HELLO came, SETUP has not left */
        LINK_WAITS_LINKS,
        LINK_READY, /* LINKS or EXITED came: takes a command */
        LINK_WAITS_STARTED,
        LINK_STARTED,
        LINK_BROKEN,
} LinkState;

struct HostLink {
        int fd;
        sd_event_source *io;
        sd_event_source *resume; /* hands out, from a clean stack, what was read before a pause */
        HostLinkHandlers handlers;
        FrameReader reader;
        LinkState state;
        bool paused;
        bool *freed; /* set by host_link_free() while frames are handed out */

        uint8_t *queue; /* bytes that the socket did not take yet */
        size_t queue_size, queue_sent;

        uint8_t *input; /* stdin that waits for the window */
        size_t input_size, input_sent;
        bool input_waits, input_eof;
        size_t window;
};

/* Listens for what there is to do, and for nothing else. */
int host_link_update_events(HostLink *l);

/* Gives the socket what it takes of the queue. */
int host_link_flush(HostLink *l);

/* After EXITED: nothing of the command is left, and the guest takes another. */
void host_link_end_command(HostLink *l);

/* Moves as much waiting stdin into the guest's window as it takes. 1: nothing waits any more. */
int host_link_flush_input(HostLink *l);
