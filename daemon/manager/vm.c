/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The life of one machine: uid, jail, scope, QEMU's answers, the guest's greeting, ready; then it is claimed by a run and ends. Each
 * step is started by the answer to the one before it; whatever goes wrong ends in vm_fail(), and every end in on_gone (vm-end.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/fd.h"
#include "manager/vm-internal.h"

enum {
        STOP_DEADLINE_USEC = 8 * 1000 * 1000, /* systemd kills after 2 s; then we do */
        HANG_UP_USEC = 3 * 1000 * 1000,       /* from the end of QEMU, or of its sockets, to that of its scope */
};

static void on_boot_scope_started(Scope *s, int error, const char *text, void *userdata);

/* ---- how it ends ---- */

static int on_stop_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        Vm *vm = userdata;

        if (!vm->stopping) {
                vm_stop(vm);
                return 0;
        }
        if (vm->jail)
                jail_kill(vm->jail); /* QEMU dies with it */
        if (vm->run_scope)
                (void) scope_query(vm->run_scope);
        else if (vm->boot_scope)
                (void) scope_query(vm->boot_scope);
        if (sd_event_source_set_time_relative(s, STOP_DEADLINE_USEC) >= 0)
                (void) sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

/* Something else is ending it already; whoever does so is to be known, so we do not join in before the deadline. */
void vm_expect_end(Vm *vm, uint64_t usec) {
        vm->stop_deadline = sd_event_source_disable_unref(vm->stop_deadline);
        (void) sd_event_add_time_relative(vm->environment->event, &vm->stop_deadline, CLOCK_MONOTONIC, usec, 0,
                                          on_stop_deadline, vm);
}

void vm_stop(Vm *vm) {
        if (vm->stopping || vm->finished)
                return;
        vm->stopping = true;
        vm->step_deadline = sd_event_source_disable_unref(vm->step_deadline);
        vm_expect_end(vm, STOP_DEADLINE_USEC);
        if (vm->run_scope)
                (void) scope_stop(vm->run_scope);
        if (vm->boot_scope_holds)
                (void) scope_stop(vm->boot_scope);
        else if (!vm->run_scope && vm->jail)
                jail_kill(vm->jail); /* it waits for its scope and holds nothing yet */
        vm_check_gone(vm);
}

void vm_note(Vm *vm, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (!vm->reason && vasprintf(&vm->reason, format, ap) < 0)
                vm->reason = NULL;
        va_end(ap);
}

/* ---- its steps ---- */

static int on_step_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        static const char *const missed[] = {
                [VM_BOOTING] = "the guest was not ready",
                [VM_WARMING] = "the warm-up had not ended",
                [VM_FREEZING] = "QEMU had written no state",
                [VM_WAKING] = "the guest was not awake",
        };
        Vm *vm = userdata;

        vm_fail(vm, "%s after %llu s", missed[vm->phase], (unsigned long long) (vm->boot_usec / USEC_PER_SEC));
        return 0;
}

int vm_begin_step(Vm *vm, VmPhase phase) {
        vm->phase = phase;
        vm->step_usec = clock_monotonic_usec();
        vm->step_deadline = sd_event_source_disable_unref(vm->step_deadline);
        return sd_event_add_time_relative(vm->environment->event, &vm->step_deadline, CLOCK_MONOTONIC, vm->boot_usec,
                                          0, on_step_deadline, vm);
}

void vm_end_step(Vm *vm, VmPhase phase) {
        vm->phase = phase;
        vm->step_deadline = sd_event_source_disable_unref(vm->step_deadline);
}

/* ---- jail, scope, QEMU ---- */

/* QEMU 10 warns of what it is told to do ("fd: migration to a file is deprecated"): no cause of anything. */
static const char *skip_warnings(const char *said) {
        while (strncmp(said, "warning: ", 9) == 0) {
                said += strcspn(said, "\n");
                said += *said == '\n';
        }
        return said;
}

/* The first line of what jail and QEMU printed says more than a status. */
static void note_death(Vm *vm, const char *how) {
        const char *said = skip_warnings(jail_stderr(vm->jail));
        int size = (int) strcspn(said, "\n");

        free(vm->qemu_end);
        vm->qemu_end = strdup(how);
        if (vm->stopping)
                return;
        if (strncmp(how, "error ", 6) == 0)
                vm_note(vm, "%s", how + 6);
        else if (size > 0)
                vm_note(vm, "QEMU %s: %.*s", how, size, said);
        else
                vm_note(vm, "QEMU %s", how);
        vm_expect_end(vm, HANG_UP_USEC);
}

static void on_jail_gone(Jail *j, const char *how, void *userdata) {
        Vm *vm = userdata;

        vm->jail_gone = true;
        note_death(vm, how);
        if (vm->run_scope)
                (void) scope_query(vm->run_scope);
        else if (vm->boot_scope_holds)
                (void) scope_query(vm->boot_scope);
        vm_check_gone(vm);
}

static void on_jail_verified(Jail *j, const char *facts, void *userdata) {
        Vm *vm = userdata;
        _cleanup_(freep) char *text = NULL;

        if (isolation_check_namespace(&vm->isolation, facts, &text) < 0) {
                vm_fail(vm, "%s", text ? text : "out of memory");
                return;
        }
        vm->jail_verified = true;
}

static void on_jail_started(Jail *j, pid_t qemu, void *userdata) {
        Vm *vm = userdata;

        vm->qemu_pid = qemu;
        if (vm_verify_devices(vm) < 0 || (vm->plan->kind == PLAN_CLONE && vm_restore(vm) < 0))
                vm_fail(vm, "QEMU's monitor takes no commands");
}

static const JailHandlers jail_handlers = {
        .on_verified = on_jail_verified,
        .on_started = on_jail_started,
        .on_gone = on_jail_gone,
};

static int start_boot_scope(Vm *vm) {
        uint32_t pid = (uint32_t) jail_pid(vm->jail);
        ScopeSettings settings = {
                .unit = vm->unit,
                .description = vm->description,
                .pids = &pid,
                .n_pids = 1,
                .runtime_max_usec = vm->life_usec,
                .memory_max_bytes = vm->plan->memory_max_bytes,
                .tasks_max = vm->plan->tasks_max,
                .cpu_quota_usec = vm->plan->cpu_quota_usec,
                .cpu_weight = vm->cpu_weight,
                .kvm = vm->plan->kvm,
                .bound = true,
        };
        ScopeHandlers handlers = {.on_started = on_boot_scope_started, .on_ended = vm_on_scope_ended, .userdata = vm};

        return scope_start(vm->environment->systemd, &settings, &handlers, &vm->boot_scope);
}

static void on_boot_scope_started(Scope *s, int error, const char *text, void *userdata) {
        Vm *vm = userdata;
        int r;

        if (error < 0) {
                vm->scope_over = true;
                if (vm->jail)
                        jail_kill(vm->jail);
                vm_fail(vm, "systemd does not start the scope: %s", text);
                vm_check_gone(vm); /* the jail may have been killed and gone before this answer came */
                return;
        }
        vm->boot_scope_holds = true;
        if (vm->stopping) {
                (void) scope_stop(s);
                return;
        }
        vm->step_usec = clock_monotonic_usec();
        r = jail_release(vm->jail);
        if (r == -EPIPE)
                vm_expect_end(vm, HANG_UP_USEC); /* it has died, and says why in a moment */
        else if (r < 0)
                vm_fail(vm, "the jail cannot be let go: %s", strerror(-r));
}

void vm_on_scope_ended(Scope *s, const ScopeResult *result, void *userdata) {
        Vm *vm = userdata;

        if (s == vm->boot_scope && (!vm->boot_scope_holds || vm->run_scope)) {
                vm->boot_scope_holds = false; /* empty: its processes went over to the run's scope */
                return;
        }
        vm->boot_scope_holds = false;
        vm->scope_over = true;
        vm->scope_result = *result;
        if (!vm->stopping)
                vm_expect_end(vm, HANG_UP_USEC); /* nobody's will, so the jail's last word says why */
        if (vm->jail && !vm->jail_gone)
                jail_kill(vm->jail); /* a unit may read as dead while a process lives */
        vm_check_gone(vm);
}

/* ---- birth ---- */

static int spawn_jail(Vm *vm, const VmSettings *settings) {
        int files[PLAN_FD_COUNT], numbered[PLAN_FD_COUNT];
        JailSettings jail = {
                .path = vm->environment->jail_path,
                .uid = vm->uid.uid,
                .kvm = vm->plan->kvm,
                .binds = settings->binds,
                .arguments = vm->plan->arguments,
                .fds = numbered,
                .n_fds = vm->plan->n_fds,
        };
        JailHandlers handlers = jail_handlers;
        int r;

        memcpy(files, settings->files, sizeof(files));
        r = vm_open_monitor(vm, &files[PLAN_FD_QMP]);
        if (r >= 0)
                r = vm_open_guest(vm, &files[PLAN_FD_CONTROL], &files[PLAN_FD_CONSOLE]);
        if (r >= 0) {
                int holds[] = {qmp_fd(vm->qmp), host_link_fd(vm->link), vm->console_fd, vm->uid.lock_fd};

                jail.holds = holds;
                jail.n_holds = ELEMENTSOF(holds);
                for (size_t i = 0; i < jail.n_fds; i++)
                        numbered[i] = files[vm->plan->fds[i]];
                handlers.userdata = vm;
                r = jail_spawn(vm->environment->event, &jail, &handlers, &vm->jail);
        }
        fd_close(files[PLAN_FD_QMP]);
        fd_close(files[PLAN_FD_CONTROL]);
        fd_close(files[PLAN_FD_CONSOLE]);
        return r;
}

static int vm_begin(Vm *vm, const VmSettings *settings, char **reterr_text) {
        const char *doing = "no uid for the machine can be noted in /run/ephemeral/uid";
        int r;

        r = uid_lease_acquire(vm->environment->uid_dir_fd, &vm->uid);
        if (r >= 0) {
                vm->isolation = (Isolation){.uid = vm->uid.uid, .kvm = vm->plan->kvm};
                doing = "the jail cannot be started";
                r = spawn_jail(vm, settings);
        }
        if (r >= 0) {
                doing = "systemd cannot be asked for a scope";
                r = start_boot_scope(vm);
        }
        if (r >= 0)
                r = vm_begin_step(vm, VM_BOOTING);
        if (r < 0 && asprintf(reterr_text, "%s: %s", doing, strerror(-r)) < 0)
                *reterr_text = NULL;
        return r;
}

static int vm_new(const VmEnvironment *environment, const VmSettings *settings, const VmHandlers *handlers, Vm **ret) {
        _cleanup_(plan_freep) Plan *plan = settings->plan;
        _cleanup_(vm_freep) Vm *vm = calloc(1, sizeof(*vm));

        if (!vm)
                return -ENOMEM;
        vm->environment = environment;
        vm->plan = TAKE_PTR(plan);
        vm->handlers = *handlers;
        vm->boot_usec = settings->boot_usec;
        /* behind our own deadline, for when we are dead */
        vm->life_usec = settings->life_usec > 0 ? settings->life_usec : settings->boot_usec + 5 * USEC_PER_SEC;
        vm->cpu_weight = settings->cpu_weight;
        vm->uid = UID_EMPTY;
        vm->console_fd = -EBADF;
        if (settings->kernel)
                snprintf(vm->kernel, sizeof(vm->kernel), "%s", settings->kernel);
        vm->id = strdup(settings->id);
        vm->unit = strdup(settings->unit);
        vm->description = strdup(settings->description);
        if (!vm->id || !vm->unit || !vm->description)
                return -ENOMEM;
        *ret = TAKE_PTR(vm);
        return 0;
}

int vm_start(const VmEnvironment *environment,
             const VmSettings *settings,
             const VmHandlers *handlers,
             Vm **ret,
             char **reterr_text) {
        _cleanup_(vm_freep) Vm *vm = NULL;
        int r;

        *reterr_text = NULL;
        r = vm_new(environment, settings, handlers, &vm);
        if (r < 0)
                return r;
        r = vm_begin(vm, settings, reterr_text);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(vm);
        return 0;
}

HostLink *vm_link(Vm *vm) {
        return vm->link;
}

const Plan *vm_plan(const Vm *vm) {
        return vm->plan;
}

const Isolation *vm_isolation(const Vm *vm) {
        return &vm->isolation;
}

const char *vm_invocation_id(const Vm *vm) {
        return vm->run_scope ? scope_invocation_id(vm->run_scope) : NULL;
}

Vm *vm_free(Vm *vm) {
        if (!vm)
                return NULL;
        sd_event_source_disable_unref(vm->step_deadline);
        sd_event_source_disable_unref(vm->stop_deadline);
        sd_event_source_disable_unref(vm->finish);
        sd_event_source_disable_unref(vm->console);
        jail_free(vm->jail);
        scope_free(vm->boot_scope);
        scope_free(vm->run_scope);
        qmp_free(vm->qmp);
        host_link_free(vm->link);
        fd_close(vm->console_fd);
        vm_verify_done(vm);
        isolation_done(&vm->isolation);
        uid_lease_release(vm->environment->uid_dir_fd, &vm->uid);
        plan_free(vm->plan);
        free(vm->id);
        free(vm->unit);
        free(vm->description);
        free(vm->reason);
        free(vm->qemu_end);
        free(vm);
        return NULL;
}
