/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An a{sv} of options as a method takes it: known names with known types, anything else refused by name. */

#include <systemd/sd-bus.h>

typedef struct BusOption {
        const char *name; /* NULL ends the table */
        char type; /* 'b' into int, 'u' into uint32_t, 't' into uint64_t, 's' into const char * (borrowed from the message) */
        void *value;
} BusOption;

/* Reads the a{sv} at the message's position. What is absent keeps its value. 0, or -errno with InvalidRequest. */
int bus_read_options(sd_bus_message *m, const BusOption *options, sd_bus_error *reterr_error);
