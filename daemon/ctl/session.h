/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "ctl/client.h"
#include "ctl/run-request.h"

/* Starts the request as a run, shows what it does until it has ended, and returns its exit code (design 17.5). The bus
 * is open. */
int session_run(Ctl *ctl, const RunOptions *options, const char *request);
