/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "init/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "init/log.h"

static int module_load(const char *path) {
        _cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return log_errno(-errno, "module %s", path);
        if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
                return log_errno(-errno, "module %s", path);
        unlink(path);
        return 0;
}

DEFINE_CLEANUP(FILE *, fclose);

int modules_load(const char *list_path) {
        _cleanup_(fclosep) FILE *f = fopen(list_path, "re");
        char line[256];

        if (!f)
                return log_errno(-errno, "%s", list_path);
        while (fgets(line, sizeof(line), f)) {
                int r;

                line[strcspn(line, "\n")] = 0;
                r = module_load(line);
                if (r < 0)
                        return r;
        }
        unlink(list_path);
        return 0;
}
