/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a machine's scope is: StartTransientUnit's arguments (systemd.scope(5), systemd.resource-control(5)).
 */
#include "manager/scope-settings.h"

#include <sys/socket.h>

enum {
        STOP_TIMEOUT_USEC = 2 * 1000 * 1000, /* from SIGTERM to SIGKILL */
};

static int append_pids(sd_bus_message *m, const ScopeSettings *settings) {
        if (settings->n_pids == 1)
                return sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, settings->pids[0]);
        return sd_bus_message_append(m, "(sv)", "PIDs", "au", 2, settings->pids[0], settings->pids[1]);
}

static int append_life(sd_bus_message *m, const ScopeSettings *settings) {
        return sd_bus_message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)(sv)", "Description", "s", settings->description,
                                     "Slice", "s", "ephemeral.slice", "CollectMode", "s", "inactive-or-failed",
                                     "AddRef", "b", 1, "OOMPolicy", "s", "kill", "RuntimeMaxUSec", "t",
                                     settings->runtime_max_usec, "TimeoutStopUSec", "t", (uint64_t) STOP_TIMEOUT_USEC);
}

static int append_limits(sd_bus_message *m, const ScopeSettings *settings) {
        int r;

        if (settings->cpu_weight > 0) {
                r = sd_bus_message_append(m, "(sv)", "CPUWeight", "t", settings->cpu_weight);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)", "MemoryMax", "t", settings->memory_max_bytes,
                                     "MemorySwapMax", "t", (uint64_t) 0, "TasksMax", "t", settings->tasks_max,
                                     "CPUQuotaPerSecUSec", "t", settings->cpu_quota_usec, "DevicePolicy", "s",
                                     "strict", "DeviceAllow", "a(ss)", settings->kvm ? 2 : 1, "/dev/null", "rw",
                                     "/dev/kvm", "rw");
}

/* IPAddressDeny=any: both families, prefix length 0. */
static int append_network(sd_bus_message *m) {
        return sd_bus_message_append(m, "(sv)", "IPAddressDeny", "a(iayu)", 2, AF_INET, 4, 0, 0, 0, 0, 0, AF_INET6, 16,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* What ends it beside its own clock: an explicit stop of the service does always, its death only what is bound to it. */
static int append_dependencies(sd_bus_message *m, const ScopeSettings *settings) {
        int r;

        r = sd_bus_message_append(m, "(sv)", "PartOf", "as", 1, "ephemerald.service");
        if (r < 0 || !settings->bound)
                return r;
        return sd_bus_message_append(m, "(sv)(sv)", "BindsTo", "as", 1, "ephemerald.service", "After", "as", 1,
                                     "ephemerald.service");
}

int scope_settings_append(sd_bus_message *m, const ScopeSettings *settings) {
        int r;

        r = sd_bus_message_append(m, "ss", settings->unit, "fail");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "(sv)");
        if (r < 0)
                return r;
        r = append_pids(m, settings);
        if (r < 0)
                return r;
        r = append_life(m, settings);
        if (r < 0)
                return r;
        r = append_dependencies(m, settings);
        if (r < 0)
                return r;
        r = append_limits(m, settings);
        if (r < 0)
                return r;
        r = append_network(m);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;
        return sd_bus_message_append(m, "a(sa(sv))", 0);
}
