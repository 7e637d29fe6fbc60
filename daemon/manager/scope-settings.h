/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-bus.h>

#include "manager/scope.h"

/* Adds the whole of StartTransientUnit's body. 0, or -errno of sd-bus. */
int scope_settings_append(sd_bus_message *m, const ScopeSettings *settings);
