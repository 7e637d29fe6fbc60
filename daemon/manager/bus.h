/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The two interfaces of docs/design.md, section 5. Handlers read, validate, ask admit.h, call one function of the model, reply. */

#include "manager/manager.h"

#define BUS_NAME     "org.ephemeral1"
#define BUS_ROOT     "/org/ephemeral1"
#define BUS_RUN_ROOT "/org/ephemeral1/run"
#define BUS_MANAGER  "org.ephemeral1.Manager"
#define BUS_RUN      "org.ephemeral1.Run"

int manager_bus_register(Manager *m);
int run_bus_register(Manager *m);

/* ---- manager-clients.c: who asked for RunNew and RunEnded ---- */

int manager_clients_new(Manager *m, ManagerClients **ret);
ManagerClients *manager_clients_free(ManagerClients *c);
int manager_clients_subscribe(Manager *m, const char *name, uid_t uid);
void manager_clients_run_new(Run *run);
void manager_clients_run_ended(Run *run);

/* ---- template-bus.c ---- */

int method_build_template(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error);
int method_drop_templates(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error);
int method_list_templates(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error);
void template_calls_free(Manager *m); /* those that wait get no answer */

/* ---- run-bus.c ---- */

/* May the sender of this message read the run? Its owner, root, and whom polkit let in. */
bool run_bus_may_read(const Run *run, sd_bus_message *call);
