/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The machine of a run. Every file is an inherited fd, every device is one that a run needs, and there is no network device and
 * no bus that one could be plugged into. The options are those that QEMU 7.2 and later have in common; each that is no
 * default says why it is there.
 */
#include "manager/plan.h"

#include <errno.h>

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

/* Without the frequency half of the boots hang in its calibration; the timer's check is for broken chip sets. */
#define TCG_CLOCK "no_timer_check tsc=reliable tsc_early_khz"

#define KERNEL_OPTIONS "console=hvc0 quiet panic=-1 cryptomgr.notests ephemeral.disk_mib="

#define FD(what) (JAIL_FIRST_FD + (int) (what))

const PlanDevice plan_devices[] = {
        {"image",   "virtio-blk-device"   },
        {"entropy", "virtio-rng-device"   },
        {"serial",  "virtio-serial-device"},
        {"console", "virtconsole"         },
        {"control", "virtserialport"      },
        {NULL,      NULL                  },
};

static int add_all(char ***argv, const char *const *more) {
        return strv_add_all(argv, (char *const *) more);
}

static int add_machine(char ***argv, const PlanInput *in) {
        static const char *const board[] = {
                "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                /* acpi: the stock kernel finds virtio-mmio by it. pit, pic, rtc: without them it hangs under TCG. */
                "-machine",
                "microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=off,usb=off,pcie=off,"
                "dump-guest-core=off,x-option-roms=off",
                /* the modern transport, which also has no SCSI pass-through */
                "-global", "virtio-mmio.force-legacy=false", NULL};
        static const char *const kvm[] = {"-accel", "kvm", "-cpu", "host,-vmx,-svm", NULL};
        int r;

        r = add_all(argv, board);
        if (r < 0)
                return r;
        if (in->kvm)
                r = add_all(argv, kvm);
        else {
                r = strv_add(argv, "-accel");
                if (r >= 0)
                        r = strv_addf(argv, "tcg,tb-size=%d", TCG_BUFFER_MIB);
                if (r >= 0)
                        r = strv_add(argv, "-cpu");
                if (r >= 0)
                        r = strv_add(argv, TCG_CPU);
        }
        if (r >= 0)
                r = strv_add(argv, "-smp");
        if (r >= 0)
                r = strv_addf(argv, "%u", in->vcpus);
        if (r >= 0)
                r = strv_add(argv, "-m");
        if (r >= 0)
                r = strv_addf(argv, "%luM", (unsigned long) in->memory_mib);
        return r;
}

static int add_kernel(char ***argv, const PlanInput *in) {
        int r;

        r = strv_add(argv, "-kernel");
        if (r >= 0)
                r = strv_addf(argv, "/proc/self/fd/%d", FD(PLAN_FD_KERNEL));
        if (r >= 0)
                r = strv_add(argv, "-initrd");
        if (r >= 0)
                r = strv_addf(argv, "/proc/self/fd/%d", FD(PLAN_FD_INITRD));
        if (r >= 0)
                r = strv_add(argv, "-append");
        if (r >= 0 && in->kvm)
                r = strv_addf(argv, KERNEL_OPTIONS "%lu", (unsigned long) in->disk_mib);
        else if (r >= 0)
                r = strv_addf(argv, KERNEL_OPTIONS "%lu " TCG_CLOCK "=%lu", (unsigned long) in->disk_mib,
                              (unsigned long) in->tsc_khz);
        return r;
}

static int add_devices(char ***argv) {
        int r;

        r = strv_add(argv, "-add-fd");
        if (r >= 0)
                r = strv_addf(argv, "fd=%d,set=1", FD(PLAN_FD_IMAGE));
        if (r >= 0)
                r = add_all(
                        argv,
                        (const char *const[]){
                                "-blockdev",
                                "driver=file,node-name=image-file,filename=/dev/fdset/1,read-only=on,locking=off",
                                "-blockdev", "driver=raw,node-name=image,file=image-file,read-only=on", "-device",
                                "virtio-blk-device,id=image,drive=image,discard=off,write-zeroes=off,config-wce=off",
                                "-object", "rng-builtin,id=random", "-device",
                                "virtio-rng-device,id=entropy,rng=random", "-device",
                                "virtio-serial-device,id=serial,max_ports=8", NULL});
        if (r >= 0)
                r = strv_add(argv, "-chardev");
        if (r >= 0)
                r = strv_addf(argv, "socket,id=console,fd=%d", FD(PLAN_FD_CONSOLE));
        if (r >= 0)
                r = add_all(argv,
                            (const char *const[]){"-device", "virtconsole,id=console,chardev=console,name=console",
                                                  "-chardev", NULL});
        if (r >= 0)
                r = strv_addf(argv, "socket,id=control,fd=%d", FD(PLAN_FD_CONTROL));
        if (r >= 0)
                r = add_all(argv, (const char *const[]){
                                          "-device", "virtserialport,id=control,chardev=control,name=control", NULL});
        return r;
}

static int add_monitor(char ***argv) {
        int r;

        r = strv_add(argv, "-chardev");
        if (r >= 0)
                r = strv_addf(argv, "socket,id=qmp,fd=%d", FD(PLAN_FD_QMP));
        if (r >= 0)
                r = add_all(argv, (const char *const[]){
                                          "-mon", "chardev=qmp,mode=control", "-sandbox",
                                          "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
                                          "-S", /* nothing executes before its devices were looked at */
                                          NULL});
        return r;
}

uint64_t plan_memory_max_bytes(uint64_t memory_mib, bool kvm) {
        return (memory_mib + QEMU_OVERHEAD_MIB + (kvm ? 0 : TCG_BUFFER_MIB)) * 1024 * 1024;
}

int plan_make(const PlanInput *input, Plan **ret) {
        _cleanup_(plan_freep) Plan *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->kvm = input->kvm;
        p->vcpus = input->vcpus;
        p->memory_mib = input->memory_mib;
        p->memory_max_bytes = plan_memory_max_bytes(input->memory_mib, input->kvm);
        p->tasks_max = QEMU_TASKS + input->vcpus;
        p->cpu_quota_usec = (uint64_t) input->vcpus * 1000000;

        r = strv_add(&p->arguments, input->qemu);
        if (r >= 0)
                r = strv_add(&p->arguments, "-bios");
        if (r >= 0)
                r = strv_add(&p->arguments, input->firmware);
        if (r >= 0)
                r = add_machine(&p->arguments, input);
        if (r >= 0)
                r = add_kernel(&p->arguments, input);
        if (r >= 0)
                r = add_devices(&p->arguments);
        if (r >= 0)
                r = add_monitor(&p->arguments);
        if (r < 0)
                return r;
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
