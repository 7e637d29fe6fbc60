/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The machine of a run. Every file is an inherited fd, every device is one that a run needs, and there is no network device and
 * no bus that one could be plugged into. The options are those that QEMU 7.2 and later have in common; each that is no
 * default says why it is there.
 */
#include "manager/plan.h"

#include <errno.h>
#include <string.h>

#include "common/strv.h"
#include "manager/jail.h"

enum {
        /* QEMU itself, its queues, and under TCG the buffer of translated code */
        QEMU_OVERHEAD_MIB = 96,
        TCG_BUFFER_MIB = 64,
        /* main loop, RCU, QMP, block workers; the jail's outer half */
        QEMU_TASKS = 24,
};

/* x86-64-v2. What `max` has beyond it is code that the guest patches into itself while it boots: 0.4 s, emulated. */
#define TCG_CPU "Nehalem-v1,+rdrand,+smep,+smap,+umip"

/* Without the frequency half of the boots hang in its calibration; the timer's check is for broken chip sets. The mitigations are
 * against what a processor does ahead of time with its page tables and branches: an emulated one has tables that are looked up by a
 * program, and two of them for each process would empty its cache at every system call (output 2.6 times as slow). */
#define TCG_OPTIONS "mitigations=off no_timer_check tsc=reliable tsc_early_khz"

#define KERNEL_OPTIONS "console=hvc0 quiet panic=-1 cryptomgr.notests ephemeral.disk_mib="

/* The first four have the same numbers in every kind. */
static const PlanFd fds_of_cold[] = {PLAN_FD_IMAGE,   PLAN_FD_QMP,    PLAN_FD_CONSOLE,
                                     PLAN_FD_CONTROL, PLAN_FD_KERNEL, PLAN_FD_INITRD};
static const PlanFd fds_of_template[] = {PLAN_FD_IMAGE,  PLAN_FD_QMP,    PLAN_FD_CONSOLE, PLAN_FD_CONTROL,
                                         PLAN_FD_KERNEL, PLAN_FD_INITRD, PLAN_FD_RAM};
static const PlanFd fds_of_clone[] = {PLAN_FD_IMAGE,   PLAN_FD_QMP, PLAN_FD_CONSOLE,
                                      PLAN_FD_CONTROL, PLAN_FD_RAM, PLAN_FD_STATE};

static const struct {
        const char *name;
        const PlanFd *fds;
        size_t n_fds;
} kinds[] = {
        [PLAN_COLD] = {"cold",     fds_of_cold,     ELEMENTSOF(fds_of_cold)    },
        [PLAN_TEMPLATE] = {"template", fds_of_template, ELEMENTSOF(fds_of_template)},
        [PLAN_CLONE] = {"clone",    fds_of_clone,    ELEMENTSOF(fds_of_clone)   },
};

const PlanDevice plan_devices[] = {
        {"image",   "virtio-blk-device"   },
        {"entropy", "virtio-rng-device"   },
        {"serial",  "virtio-serial-device"},
        {"console", "virtconsole"         },
        {"control", "virtserialport"      },
        {NULL,      NULL                  },
};

const char *plan_kind_name(PlanKind kind) {
        return kinds[kind].name;
}

int plan_fd_number(PlanKind kind, PlanFd fd) {
        for (size_t i = 0; i < kinds[kind].n_fds; i++)
                if (kinds[kind].fds[i] == fd)
                        return JAIL_FIRST_FD + (int) i;
        return -1;
}

/* The arguments as they grow; the first error stays. */
typedef struct Arguments {
        char **argv;
        int error;
} Arguments;

static void add(Arguments *a, const char *argument) {
        if (a->error >= 0)
                a->error = strv_add(&a->argv, argument);
}

#define add_option(a, name, ...)                                                                                      \
        do {                                                                                                          \
                add(a, name);                                                                                         \
                if ((a)->error >= 0)                                                                                  \
                        (a)->error = strv_addf(&(a)->argv, __VA_ARGS__);                                              \
        } while (false)

static void add_machine(Arguments *a, const PlanInput *in) {
        add(a, in->qemu);
        add_option(a, "-bios", "%s", in->firmware);
        add(a, "-nodefaults");
        add(a, "-no-user-config");
        add(a, "-no-reboot");
        add_option(a, "-display", "none");
        /* acpi: the stock kernel finds virtio-mmio by it. pit, pic, rtc: without them it hangs under TCG. mem-merge: what two
         * guests have in common is nobody's business, and it is shared by the template already. */
        add_option(a, "-machine",
                   "microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=off,usb=off,pcie=off,"
                   "dump-guest-core=off,mem-merge=off,x-option-roms=off%s",
                   in->kind == PLAN_COLD ? "" : ",memory-backend=ram");
        /* the modern transport, which also has no SCSI pass-through */
        add_option(a, "-global", "virtio-mmio.force-legacy=false");
        if (in->kvm) {
                add_option(a, "-accel", "kvm");
                add_option(a, "-cpu", "host,-vmx,-svm");
        } else {
                add_option(a, "-accel", "tcg,tb-size=%d", TCG_BUFFER_MIB);
                add_option(a, "-cpu", TCG_CPU);
        }
        add_option(a, "-smp", "%u", in->vcpus);
        add_option(a, "-m", "%luM", (unsigned long) in->memory_mib);
        if (in->kind != PLAN_COLD)
                add_option(a, "-object", "memory-backend-file,id=ram,size=%luM,mem-path=/proc/self/fd/%d,share=%s",
                           (unsigned long) in->memory_mib, plan_fd_number(in->kind, PLAN_FD_RAM),
                           in->kind == PLAN_TEMPLATE ? "on" : "off");
}

static void add_kernel(Arguments *a, const PlanInput *in) {
        add_option(a, "-kernel", "/proc/self/fd/%d", plan_fd_number(in->kind, PLAN_FD_KERNEL));
        add_option(a, "-initrd", "/proc/self/fd/%d", plan_fd_number(in->kind, PLAN_FD_INITRD));
        if (in->kvm)
                add_option(a, "-append", KERNEL_OPTIONS "%lu", (unsigned long) in->disk_mib);
        else
                add_option(a, "-append", KERNEL_OPTIONS "%lu " TCG_OPTIONS "=%lu", (unsigned long) in->disk_mib,
                           (unsigned long) in->tsc_khz);
}

static void add_devices(Arguments *a, PlanKind kind) {
        add_option(a, "-add-fd", "fd=%d,set=1", plan_fd_number(kind, PLAN_FD_IMAGE));
        add_option(a, "-blockdev", "driver=file,node-name=image-file,filename=/dev/fdset/1,read-only=on,locking=off");
        add_option(a, "-blockdev", "driver=raw,node-name=image,file=image-file,read-only=on");
        add_option(a, "-device", "virtio-blk-device,id=image,drive=image,discard=off,write-zeroes=off,config-wce=off");
        add_option(a, "-object", "rng-builtin,id=random");
        add_option(a, "-device", "virtio-rng-device,id=entropy,rng=random");
        add_option(a, "-device", "virtio-serial-device,id=serial,max_ports=8");
        add_option(a, "-chardev", "socket,id=console,fd=%d", plan_fd_number(kind, PLAN_FD_CONSOLE));
        add_option(a, "-device", "virtconsole,id=console,chardev=console,name=console");
        add_option(a, "-chardev", "socket,id=control,fd=%d", plan_fd_number(kind, PLAN_FD_CONTROL));
        add_option(a, "-device", "virtserialport,id=control,chardev=control,name=control");
}

static void add_monitor(Arguments *a, PlanKind kind) {
        add_option(a, "-chardev", "socket,id=qmp,fd=%d", plan_fd_number(kind, PLAN_FD_QMP));
        add_option(a, "-mon", "chardev=qmp,mode=control");
        add_option(a, "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
        add(a, "-S"); /* nothing executes before its devices were looked at */
        if (kind == PLAN_CLONE)
                add_option(a, "-incoming", "defer"); /* its capabilities are told over QMP first */
}

uint64_t plan_memory_max_bytes(uint64_t memory_mib, bool kvm) {
        return (memory_mib + QEMU_OVERHEAD_MIB + (kvm ? 0 : TCG_BUFFER_MIB)) * 1024 * 1024;
}

int plan_make(const PlanInput *input, Plan **ret) {
        _cleanup_(plan_freep) Plan *p = calloc(1, sizeof(*p));
        Arguments arguments = {0};

        if (!p)
                return -ENOMEM;
        p->kind = input->kind;
        p->kvm = input->kvm;
        p->vcpus = input->vcpus;
        p->memory_mib = input->memory_mib;
        p->memory_max_bytes = plan_memory_max_bytes(input->memory_mib, input->kvm);
        p->tasks_max = QEMU_TASKS + input->vcpus;
        p->cpu_quota_usec = (uint64_t) input->vcpus * 1000000;
        p->n_fds = kinds[input->kind].n_fds;
        memcpy(p->fds, kinds[input->kind].fds, p->n_fds * sizeof(PlanFd));

        add_machine(&arguments, input);
        if (input->kind != PLAN_CLONE)
                add_kernel(&arguments, input);
        add_devices(&arguments, input->kind);
        add_monitor(&arguments, input->kind);
        p->arguments = arguments.argv;
        if (arguments.error < 0)
                return arguments.error;
        *ret = TAKE_PTR(p);
        return 0;
}

Plan *plan_free(Plan *p) {
        if (!p)
                return NULL;
        strv_free(p->arguments);
        free(p);
        return NULL;
}
