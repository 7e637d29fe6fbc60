/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "init/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "init/log.h"

#define PROCESSES_MIN      128U
#define PROCESSES_MAX      4096U
#define DISK_MIB_PARAMETER "ephemeral.disk_mib="

/* Files in a tmpfs cannot be reclaimed: a quarter of the RAM is out of their reach, or a full disk would leave the kernel
 * without memory and without anybody to kill for it. */
uint64_t limit_disk_mib(uint64_t asked_mib, uint64_t ram) {
        uint64_t most = ram - ram / 4;

        if (asked_mib == 0)
                return ram / 2;
        return asked_mib < most ? asked_mib : most;
}

/* Two a MiB: the stacks and tables of idle processes then stay below half of the RAM. */
uint64_t limit_processes(uint64_t ram) {
        uint64_t n = ram * 2;

        if (n < PROCESSES_MIN)
                return PROCESSES_MIN;
        return n < PROCESSES_MAX ? n : PROCESSES_MAX;
}

uint64_t cmdline_disk_mib(const char *cmdline) {
        const char *p = cmdline;

        while ((p = strstr(p, DISK_MIB_PARAMETER))) {
                const char *value = p + strlen(DISK_MIB_PARAMETER);
                char *end;

                if ((p == cmdline || p[-1] == ' ') && *value >= '0' && *value <= '9') {
                        uint64_t n = strtoull(value, &end, 10);

                        return *end == 0 || *end == ' ' || *end == '\n' ? n : 0;
                }
                p = value;
        }
        return 0;
}

uint64_t ram_mib(void) {
        struct sysinfo info = {0};

        sysinfo(&info);
        return (uint64_t) info.totalram * info.mem_unit / (1024U * 1024U);
}

static int set_limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
        return setrlimit(resource, &(struct rlimit){soft, hard}) < 0 ? -errno : 0;
}

static int protect_self(void) {
        _cleanup_(fd_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : fd_write_all(fd, "-1000", 5);
}

int limits_apply(void) {
        rlim_t processes = limit_processes(ram_mib());
        int r;

        r = protect_self();
        if (r >= 0)
                r = set_limit(RLIMIT_NPROC, processes, processes);
        if (r >= 0)
                r = set_limit(RLIMIT_NOFILE, 1024, 65536);
        if (r >= 0)
                r = set_limit(RLIMIT_CORE, 0, 0);
        return r < 0 ? log_errno(r, "cannot set the limits") : 0;
}
