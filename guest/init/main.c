/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ephemeral-init: PID 1 of the guest, started by the kernel from the initrd. Modules, root, loopback, control port, one
 * run (session.h), end of the machine. It never returns: whatever goes wrong is said and the machine goes off. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "init/identity.h"
#include "init/limits.h"
#include "init/log.h"
#include "init/modules.h"
#include "init/mounts.h"
#include "init/net.h"
#include "init/session.h"
#include "init/wait.h"

#define CONTROL_PORT            "control"
#define CONTROL_PORT_TIMEOUT_MS 60000U
#define CMDLINE_MAX             4096U

/* fds 0, 1 and 2 exist, so that no other fd of ours becomes one of them. */
static int open_null_streams(void) {
        int fd;

        do {
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
                if (fd < 0)
                        return log_errno(-errno, "/dev/null");
        } while (fd <= STDERR_FILENO);
        dup2(fd, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        close(fd);
        return 0;
}

static int read_cmdline(char ret[static CMDLINE_MAX]) {
        _cleanup_(fd_closep) int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return log_errno(-errno, "/proc/cmdline");
        n = read(fd, ret, CMDLINE_MAX - 1);
        if (n < 0)
                return log_errno(-errno, "/proc/cmdline");
        ret[n] = 0;
        return 0;
}

static int bring_up_root(void) {
        char cmdline[CMDLINE_MAX];
        int r;

        r = read_cmdline(cmdline);
        if (r < 0)
                return r;
        r = modules_load("/modules.list");
        if (r < 0)
                return r;
        r = mounts_switch_root(limit_disk_mib(cmdline_disk_mib(cmdline), ram_mib()));
        if (r < 0)
                return r;
        return mounts_late();
}

static int bring_up(void) {
        int r;

        umask(0022);
        r = mounts_early();
        if (r < 0)
                return r;
        log_open();
        r = open_null_streams();
        if (r < 0)
                return r;
        r = limits_apply();
        if (r < 0)
                return r;
        r = bring_up_root();
        if (r < 0)
                return r;
        r = net_loopback_up();
        return r < 0 ? log_errno(r, "cannot bring up the loopback") : 0;
}

static void kill_all(pid_t main_pid) {
        kill(-1, SIGKILL);
}

static int run(void) {
        static const SessionOps ops = {
                .script_path = RUNTIME_DIRECTORY "/script",
                .apply_setup = identity_apply,
                .list_links = net_list_links,
                .kill_all = kill_all,
        };
        _cleanup_(fd_closep) int control = -EBADF;
        int r;

        r = bring_up();
        if (r < 0)
                return r;
        control = wait_for_port(CONTROL_PORT, CONTROL_PORT_TIMEOUT_MS);
        if (control < 0)
                return log_errno(control, "no port named " CONTROL_PORT);
        return session_run(control, &ops);
}

int main(void) {
        if (getpid() != 1) {
                fprintf(stderr, "ephemeral-init: this is the first process of a guest and nothing else\n");
                return 1;
        }

        session_block_signals();
        run();
        kill_all(1);
        reboot(RB_POWER_OFF);
        for (;;)
                pause();
}
