/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Reading of a unit's properties for scope.c. What is not known is skipped: PID 1 of each version sends more than we ask for.
 */
#include "manager/unit-properties.h"

#include <stdio.h>
#include <string.h>

static int read_invocation_id(sd_bus_message *m, char ret[static 33]) {
        const void *bytes;
        size_t size;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "ay");
        if (r < 0)
                return r;
        r = sd_bus_message_read_array(m, 'y', &bytes, &size);
        if (r < 0)
                return r;
        for (size_t i = 0; i < size && i < 16; i++)
                snprintf(ret + 2 * i, 3, "%02x", ((const uint8_t *) bytes)[i]);
        return sd_bus_message_exit_container(m);
}

static int read_property(sd_bus_message *m, const char *name, UnitProperties *p) {
        const char *result;
        int r;

        if (strcmp(name, "ActiveState") == 0)
                return sd_bus_message_read(m, "v", "s", &p->active_state);
        if (strcmp(name, "ControlGroup") == 0)
                return sd_bus_message_read(m, "v", "s", &p->control_group);
        if (strcmp(name, "CPUUsageNSec") == 0)
                return sd_bus_message_read(m, "v", "t", &p->cpu_usage_nsec);
        if (strcmp(name, "ActiveEnterTimestamp") == 0)
                return sd_bus_message_read(m, "v", "t", &p->active_enter_usec);
        if (strcmp(name, "InactiveEnterTimestamp") == 0)
                return sd_bus_message_read(m, "v", "t", &p->inactive_enter_usec);
        if (strcmp(name, "InvocationID") == 0)
                return read_invocation_id(m, p->invocation_id);
        if (strcmp(name, "Result") == 0) {
                r = sd_bus_message_read(m, "v", "s", &result);
                if (r >= 0)
                        snprintf(p->result, sizeof(p->result), "%s", result);
                return r;
        }
        return sd_bus_message_skip(m, "v");
}

int unit_properties_read(sd_bus_message *m, UnitProperties *ret) {
        UnitProperties p = {.cpu_usage_nsec = UINT64_MAX};
        const char *name;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &name);
                if (r < 0)
                        return r;
                r = read_property(m, name, &p);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                *ret = p;
        return r < 0 ? r : 0;
}
