/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-bus.h>

/* StartRun(s request_json, a{sh} files, a{sv} options) → (s id, o run); userdata is the Manager. */
int method_start_run(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error);
