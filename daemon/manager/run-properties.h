/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-bus.h>

/* Getter for every property of org.ephemeral1.Run; userdata is the Run. */
int run_property_get(sd_bus *bus,
                     const char *path,
                     const char *interface,
                     const char *property,
                     sd_bus_message *reply,
                     void *userdata,
                     sd_bus_error *reterr_error);
