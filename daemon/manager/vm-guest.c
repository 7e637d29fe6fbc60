/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The guest's side of a machine that is not claimed yet: its console, its greeting, its links. When it has said all that it must and
 * everything is verified, the machine is ready.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/fd.h"
#include "manager/vm-internal.h"

enum {
        CONSOLE_CHUNK = 16 * 1024,
        HANG_UP_USEC = 3 * 1000 * 1000, /* from the end of QEMU's sockets to the end of QEMU */
};

static int on_console(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Vm *vm = userdata;
        char data[CONSOLE_CHUNK];
        ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0)
                vm->console = sd_event_source_disable_unref(vm->console);
        else
                vm->handlers.on_console(vm, data, (size_t) n, vm->handlers.userdata);
        return 0;
}

void vm_greet(Vm *vm) {
        SetupMessage setup = {.realtime_usec = clock_realtime_usec()};
        int r;

        snprintf(setup.hostname, sizeof(setup.hostname), "%s", vm->id);
        if (getrandom(setup.entropy, sizeof(setup.entropy), 0) != (ssize_t) sizeof(setup.entropy)) {
                vm_fail(vm, "the kernel gives no random bytes");
                return;
        }
        r = host_link_send_setup(vm->link, &setup);
        explicit_bzero(&setup, sizeof(setup));
        if (r < 0)
                vm_fail(vm, "the guest cannot be set up: %s", strerror(-r));
}

static void on_hello(void *userdata, const HelloMessage *m) {
        Vm *vm = userdata;

        snprintf(vm->kernel, sizeof(vm->kernel), "%s", m->kernel_release);
        vm_greet(vm);
}

static void on_links(void *userdata, const LinksMessage *m) {
        Vm *vm = userdata;
        _cleanup_(freep) char *text = NULL;

        if (isolation_check_guest(&vm->isolation, m, &text) < 0) {
                vm_fail(vm, "%s", text ? text : "out of memory");
                return;
        }
        if (!isolation_is_verified(&vm->isolation)) {
                vm_fail(vm, "the guest was ready before its isolation was verified");
                return;
        }
        vm_end_step(vm, VM_READY);
        vm->handlers.on_ready(vm, vm->kernel, clock_monotonic_usec() - vm->step_usec, vm->handlers.userdata);
}

static void on_log(void *userdata, const char *text, size_t size) {
        Vm *vm = userdata;

        vm->handlers.on_console(vm, text, size, vm->handlers.userdata);
        vm->handlers.on_console(vm, "\n", 1, vm->handlers.userdata);
}

static void on_link_closed(void *userdata) {
        vm_link_closed(userdata);
}

static void on_link_broken(void *userdata, const char *reason) {
        vm_link_broken(userdata, reason);
}

/* While nobody has claimed it, what the guest says is the machine's own business; command_handlers: of its warm-up. */
static HostLinkHandlers own_handlers(Vm *vm, const HostLinkHandlers *command_handlers) {
        HostLinkHandlers h = command_handlers ? *command_handlers : (HostLinkHandlers){0};

        h.on_hello = on_hello;
        h.on_links = on_links;
        h.on_log = on_log;
        h.on_closed = on_link_closed;
        h.on_broken = on_link_broken;
        h.userdata = vm;
        return h;
}

void vm_listen(Vm *vm, const HostLinkHandlers *command_handlers) {
        HostLinkHandlers handlers = own_handlers(vm, command_handlers);

        host_link_set_handlers(vm->link, &handlers);
}

void vm_link_broken(Vm *vm, const char *reason) {
        if (vm->stopping || vm->jail_gone)
                return;
        vm_fail(vm, "%s", reason);
}

/* QEMU's sockets close when it is being killed; its end, a moment later, says by whom. */
void vm_link_closed(Vm *vm) {
        if (vm->stopping || vm->jail_gone)
                return;
        vm_expect_end(vm, HANG_UP_USEC);
}

int vm_make_pair(int *ret_ours, int *ret_theirs) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
        return 0;
}

int vm_open_guest(Vm *vm, int *ret_control, int *ret_console) {
        HostLinkHandlers handlers = own_handlers(vm, NULL);
        sd_event *event = vm->environment->event;
        int fd, r;

        r = vm_make_pair(&fd, ret_control);
        if (r < 0)
                return r;
        r = host_link_new(event, fd, &handlers, &vm->link);
        if (r < 0)
                return r;
        r = vm_make_pair(&vm->console_fd, ret_console);
        if (r < 0)
                return r;
        return sd_event_add_io(event, &vm->console, vm->console_fd, EPOLLIN, on_console, vm);
}
