/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a machine executes before it is frozen, and again while it waits: what most commands begin with is then in the guest's page
 * cache, and under TCG translated. Ends with NULL. */
extern char *const warm_up_argv[];
