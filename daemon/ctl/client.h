/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The manager, as the verbs call it (docs/design.md, section 5). */

#include <stdint.h>

#include "ctl/ctl.h"

#define CLIENT_SERVICE           "org.ephemeral1"
#define CLIENT_MANAGER_PATH      "/org/ephemeral1"
#define CLIENT_MANAGER_INTERFACE "org.ephemeral1.Manager"
#define CLIENT_RUN_INTERFACE     "org.ephemeral1.Run"

#define CLIENT_RUNS_MAX 1000000U /* that ListRuns may answer */

typedef struct Method {
        const char *path;
        const char *interface;
        const char *member;
} Method;

#define MANAGER_METHOD(name)   (&(const Method){CLIENT_MANAGER_PATH, CLIENT_MANAGER_INTERFACE, name})
#define RUN_METHOD(path, name) (&(const Method){path, CLIENT_RUN_INTERFACE, name})

/* In all of these: 0 is success; a positive value is the exit code of the program, and a sentence about it was printed. */

/* Connects to the system bus, and starts an agent that can ask for passwords when there is a terminal. */
int client_open(Ctl *ctl);
void client_close(Ctl *ctl);

/* A call that waits as long as it takes (polkit may ask a person). types as for sd_bus_message_append(). */
int client_call(Ctl *ctl, const Method *method, sd_bus_message **ret_reply, const char *types, ...);
int client_call_message(Ctl *ctl, sd_bus_message *call, sd_bus_message **ret_reply);

/* The same for a method that takes and returns strings only; *ret is to be freed. */
int client_call_string(Ctl *ctl, const Method *method, const char *argument, char **ret);

/* A message for client_call_message() or an async call, with leave to ask the user for authentication. 0 or -errno. */
int client_message(Ctl *ctl, const Method *method, sd_bus_message **ret);

/* Says what went wrong with a call, by the error if it has one, else by r, and returns the exit code. */
int client_failed(const sd_bus_error *error, int r);
/* The answer was not what the interface promises. Returns the exit code. */
int client_bad_answer(int r);

/* One run of ListRuns; the strings belong to the message. */
typedef struct RunRow {
        const char *id, *path, *workflow, *state;
        uint64_t started_usec;
        uint64_t cost_micros;
} RunRow;

typedef struct RunFilter {
        const char *state; /* NULL: any */
        bool all;
        uint32_t limit; /* 0: none */
} RunFilter;

/* Newest first. *ret_rows is to be freed, and good as long as *ret_reply. */
int client_list_runs(Ctl *ctl, const RunFilter *filter, sd_bus_message **ret_reply, RunRow **ret_rows, size_t *ret_n);

/* The run that is meant by an id or by the beginning or end of one. Both results are to be freed. */
int client_resolve_run(Ctl *ctl, const char *name, char **ret_id, char **ret_path);
