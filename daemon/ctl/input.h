/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Standard input of this program as standard input of the run's command (SendInput). */

#include <systemd/sd-event.h>

#include "ctl/client.h"

typedef struct Input Input;

/* Sends from now on until the end of file, one piece at a time: the next is read when the service has taken the last.
 * 0 or -errno. */
int input_new(Ctl *ctl, sd_event *event, const char *path, Input **ret);
Input *input_free(Input *input);
DEFINE_CLEANUP(Input *, input_free);
