/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The three answers that a machine must give before it may hold a run: the jail's of the host's namespace, QEMU's of its devices,
 * and the guest's of its links. Each check refuses with a sentence (the caller frees it) and -EPERM. */

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/types.h>

#include "manager/plan.h"
#include "protocol/message.h"

typedef struct Isolation {
        uid_t uid;
        bool kvm;
        json_object *devices; /* QOM type names that QEMU named */
        json_object *guest;   /* [{name, up}] */
        bool namespace_verified, devices_verified, guest_verified;
} Isolation;

void isolation_done(Isolation *i);

/* What the jail said behind "verified". */
int isolation_check_namespace(Isolation *i, const char *facts, char **reterr);

/* Answers of QMP; NULL where QEMU answered with an error. */
typedef struct IsolationDevices {
        json_object *peripheral, *anonymous, *unattached; /* qom-list of the three */
        json_object *rx_filter;                           /* query-rx-filter */
        json_object *kvm;                                 /* query-kvm */
} IsolationDevices;

int isolation_check_devices(Isolation *i, const IsolationDevices *answers, char **reterr);

int isolation_check_guest(Isolation *i, const LinksMessage *links, char **reterr);

bool isolation_is_verified(const Isolation *i);

/* The event `isolation.verified`, docs/design.md 17.4. NULL: out of memory. */
json_object *isolation_to_json(const Isolation *i);
