/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The title of the outer half, written over its command line (proc(5), /proc/PID/cmdline).
 */
#include "jail/title.h"

#include <stdio.h>
#include <string.h>

void title_set(const Options *options) {
        char *first = options->line, *last = first;

        for (char **argv = options->argv; *argv; argv++)
                last = *argv + strlen(*argv);
        if (last <= first)
                return;
        memset(first, 0, (size_t) (last - first));
        snprintf(first, (size_t) (last - first), "ephemeral-jail: waits for the QEMU of uid %u",
                 (unsigned) options->uid);
}
