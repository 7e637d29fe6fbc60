/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "ctl/ctl.h"

/* All verbs, in the order of the help; ends with NULL. */
extern const Verb *const verbs[];

extern const Option options_common[];
extern const Option options_global_only[];

const Verb *verb_find(const char *name);
/* The verb whose name is nearest to a mistyped one, or NULL if none is near. */
const Verb *verb_suggest(const char *name);

void help_program(void);
void help_verb(const Verb *verb);
void help_version(void);
