/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The end of a machine, proved and not believed: a unit can read as dead while a process lives, so its cgroup and every process of
 * its uid are looked for. Called when jail and scope have both said that they are over.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "manager/vm-internal.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

enum {
        LOOKS_MAX = 100, /* what was killed just now needs a moment to go */
        LOOK_AGAIN_USEC = 20 * 1000,
};

/* Counts the processes of a uid and kills each. A process that ends meanwhile does not count. */
static unsigned kill_processes_of(uid_t uid) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        unsigned n = 0;

        if (!proc)
                return 0;
        while ((entry = readdir(proc))) {
                struct stat st;
                pid_t pid;

                if (!isdigit((unsigned char) entry->d_name[0]) || fstatat(dirfd(proc), entry->d_name, &st, 0) < 0 ||
                    st.st_uid != uid)
                        continue;
                pid = (pid_t) strtol(entry->d_name, NULL, 10);
                if (pid > 1 && kill(pid, SIGKILL) == 0)
                        n++;
        }
        closedir(proc);
        return n;
}

/* Gone, or there without a process in it: systemd removes it a moment after it said so. */
static bool cgroup_is_empty(const char *control_group) {
        _cleanup_(freep) char *path = NULL;
        _cleanup_(fd_closep) int fd = -EBADF;
        char text[256];
        ssize_t n;

        if (!control_group || !control_group[0])
                return true;
        if (asprintf(&path, CGROUP_ROOT "%s/cgroup.events", control_group) < 0)
                return false;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT;
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return errno == ENODEV; /* removed since it was opened */
        text[n] = 0;
        return strstr(text, "populated 0") != NULL;
}

static void vm_finish(Vm *vm, unsigned n_processes, bool cgroup_gone) {
        Scope *last = vm->run_scope ? vm->run_scope : vm->boot_scope;
        VmEnd end = {
                .was_ready = vm->phase == VM_READY,
                .reason = vm->reason,
                .qemu = vm->qemu_end,
                .unit = last ? scope_unit(last) : NULL,
                .control_group = last ? scope_control_group(last) : NULL,
                .scope = vm->scope_result,
                .uid = vm->uid.uid,
                .uid_free = n_processes == 0,
                .n_processes = n_processes,
                .cgroup_gone = cgroup_gone,
        };

        if (end.uid_free) /* an fd of the lease that is never given back keeps the uid from everybody else */
                uid_lease_release(vm->environment->uid_dir_fd, &vm->uid);
        vm->finished = true;
        vm->handlers.on_gone(vm, &end, vm->handlers.userdata);
}

static int on_finish(sd_event_source *source, uint64_t usec, void *userdata) {
        Vm *vm = userdata;
        Scope *last = vm->run_scope ? vm->run_scope : vm->boot_scope;
        unsigned n_processes = kill_processes_of(vm->uid.uid);
        bool cgroup_gone = cgroup_is_empty(last ? scope_control_group(last) : NULL);

        if ((n_processes > 0 || !cgroup_gone) && ++vm->n_looks < LOOKS_MAX &&
            sd_event_source_set_time_relative(source, LOOK_AGAIN_USEC) >= 0 &&
            sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0)
                return 0;
        vm_finish(vm, n_processes, cgroup_gone);
        return 0;
}

void vm_check_gone(Vm *vm) {
        bool scope_over = vm->scope_over || (!vm->boot_scope && !vm->run_scope);

        if (vm->finished || vm->finish || !vm->jail_gone || !scope_over)
                return;
        /* From the loop, so that no caller up the stack finds the machine freed. */
        if (sd_event_add_time_relative(vm->environment->event, &vm->finish, CLOCK_MONOTONIC, 0, 1, on_finish, vm) < 0)
                vm_finish(vm, 0, false);
}
