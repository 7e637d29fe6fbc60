/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Those who watch a run: subscribers to its signals, readers of its output, and the input that one of them is waiting to get rid of. None
 * of them can slow the run or another, but for a lossless reader, which its starter asked for. */

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "manager/run.h"

enum {
        RUN_READERS_MAX = 32, /* fds of OpenOutput at once */
};

int run_clients_new(Run *run, RunClients **ret);
RunClients *run_clients_free(RunClients *c);

/* ---- told by the run ---- */

void run_clients_state_changed(Run *run);
void run_clients_console(Run *run, const void *data, size_t size);
void run_clients_finish(Run *run); /* the last of it: signals Finished, end of file */

/* ---- asked by run-bus.c ---- */

/* Signals for this unique name, from behind after_seq. Harmless when it has them already. -EUSERS: too many. */
int run_clients_subscribe(Run *run, const char *name, uid_t uid, uint64_t after_seq);
void run_clients_unsubscribe(Run *run, const char *name);

/* The reader's end of a new stream of frames. -EUSERS: too many. */
int run_clients_open_output(Run *run, uint64_t after_seq, bool lossless, int *ret_fd);

/* Replies to `call` when the guest has taken the bytes: at once, or later. -errno: nothing was taken, reply yourself. */
int run_clients_send_input(Run *run, sd_bus_message *call, const void *data, size_t size);

/* This unique name may read the run although it is not its owner's. */
int run_clients_admit(Run *run, const char *name);
bool run_clients_is_admitted(const Run *run, const char *name);

/* Somebody still reads it, or is still being told of its end. */
bool run_clients_is_watched(const Run *run);
