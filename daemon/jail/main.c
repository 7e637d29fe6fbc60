/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeral-jail: puts QEMU where it can touch what it was given and nothing else. Started by the manager, as root, once for each
 * run; docs/design.md has its place (section 7) and its interface (17.2). The files, in the order in which they come to work:
 *
 *   options fds namespaces root network filter    the outer half, before the manager says go
 *   identity inner                                the half that becomes QEMU
 *   outer status                                  the half that stays and reports
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/outer.h"
#include "jail/status.h"

int main(int argc, char **argv) {
        Failure failure = {0};
        Options options;
        int r;

        umask(0022); /* the manager's is narrower, and QEMU has to get to its own files */
        r = options_parse(argc, argv, &options, &failure);
        if (r >= 0)
                r = outer_run(&options, &failure);
        if (r >= 0)
                _exit(EXIT_SUCCESS); /* no handlers of libraries: the filter has no room for them */
        if (options.status_fd < 0 || status_send(options.status_fd, "error %s", failure.text) < 0)
                fprintf(stderr, "ephemeral-jail: %s\n", failure.text);
        return EXIT_FAILURE;
}
