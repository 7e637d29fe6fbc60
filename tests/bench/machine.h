/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine with nothing around it: QEMU with the very arguments that ephemerald plans, and no jail, no scope, no bus, no timeline. What
 * it takes is what the machine itself takes; the rest is ours. Everything blocks, and everything that goes wrong ends the program. */

#include <stdint.h>
#include <sys/types.h>

#include "manager/recipe.h"
#include "protocol/message.h"

typedef struct BareTemplate {
        int ram_fd, state_fd;
} BareTemplate;

typedef struct BareTimes {
        uint64_t first_usec;  /* from the exec of QEMU to the command's first output */
        uint64_t exited_usec; /* to its end */
        uint64_t bytes;       /* of output */
} BareTimes;

/* The recipe of a command's machine in that image. */
Recipe *bare_recipe(const char *images, const char *image);

/* Boots a machine, warms it up as the service does, and freezes it. */
BareTemplate bare_build(const Recipe *recipe);

/* Boots (template NULL) or clones a machine, runs the command in it and ends it. argv ends with NULL. */
BareTimes bare_run(const Recipe *recipe, const BareTemplate *from, char *const *argv);
