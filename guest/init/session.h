/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine's talk over the control port: HELLO, SETUP, then commands one after another (docs/design.md, section 17.1). */

#include <sys/types.h>

#include "protocol/message.h"

/* What of the machine a session needs: PID 1's business, other in tests. */
typedef struct SessionOps {
        const char *script_path;

        /* Entropy, clock, names. 0, or -errno. */
        int (*apply_setup)(const SetupMessage *setup);
        int (*list_links)(LinksMessage *ret);

        /* SIGKILL to every process but init. */
        void (*kill_all)(pid_t main_pid);
} SessionOps;

/* SIGCHLD, SIGPIPE and whatever else must not end the caller, blocked: once, before anything else. */
int session_block_signals(void);

/* control_fd does not block and stays the caller's. Returns when the host is gone (0), after a frame out of order or
 * another failure, told to the host as FAILED (-errno). */
int session_run(int control_fd, const SessionOps *ops);
