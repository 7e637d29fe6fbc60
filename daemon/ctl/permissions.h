/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <json-c/json.h>

/* An accepted request as the table that says what its run may touch, spend and last: Files, Connections, Web access,
 * Shell, Budget, Timeout, and the VM. */
void print_permissions(json_object *request);

/* What a request runs, on one line: argv, or the script and its interpreter. To be freed; NULL: out of memory. */
char *describe_command(json_object *request);
