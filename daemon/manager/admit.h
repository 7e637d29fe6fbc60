/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who is calling, and may they? Asked of the bus and of polkit (PolicyKit1.Authority.CheckAuthorization), never of /proc. */

#include <systemd/sd-bus.h>

#include "manager/manager.h"

#define ACTION_RUN               "org.ephemeral1.run"
#define ACTION_RUN_AS_GUEST_ROOT "org.ephemeral1.run-as-guest-root"
#define ACTION_READ_OTHERS       "org.ephemeral1.read-others"
#define ACTION_MANAGE            "org.ephemeral1.manage"

/* The caller's effective uid as the bus saw it connect. 0 or -errno. */
int admit_caller(sd_bus_message *call, uid_t *ret_uid);

/* Called when polkit said yes. It replies to `call` itself, or returns a negative errno, with or without an error set, to be replied. */
typedef int (*AdmitHandler)(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error);

typedef struct AdmitQuestion {
        const char *action;
        const char *const *details; /* key, value, key, value, …, NULL: what rules and prompts may use; may be NULL */
        AdmitHandler handler;
        void *userdata;
        void (*destroy)(void *userdata); /* when the question is over, however; may be NULL */
} AdmitQuestion;

/* Root is not asked about. Otherwise the answer comes later; a caller who leaves cancels it; no, an error and silence are all a denial,
 * replied here. Returns what a method handler returns. Takes userdata over, also when it fails. */
int admit_check(Manager *m, sd_bus_message *call, const AdmitQuestion *question, sd_bus_error *reterr_error);
