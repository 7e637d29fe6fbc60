/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The properties of a unit that matter here, out of GetAll's answer or a PropertiesChanged signal. */

#include <stdint.h>
#include <systemd/sd-bus.h>

typedef struct UnitProperties {
        const char *active_state, *control_group; /* borrowed from the message; NULL: not in it */
        char result[32];                          /* "": not in it */
        char invocation_id[33];
        uint64_t cpu_usage_nsec; /* UINT64_MAX: not accounted, or not in it */
        uint64_t active_enter_usec, inactive_enter_usec;
} UnitProperties;

/* Reads an a{sv} at the message's position. 0, or -errno; strings stay with the message. */
int unit_properties_read(sd_bus_message *m, UnitProperties *ret);
