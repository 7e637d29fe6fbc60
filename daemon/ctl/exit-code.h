/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <json-c/json.h>

/* The exit code of `ephemeralctl run` for a result (GetResult, run.result): docs/design.md, section 17.5. */
int exit_code_of_result(json_object *result);

/* The number of "SIGKILL"; 0 when there is no such signal. */
int signal_from_name(const char *name);
