/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The planned machine as a text. A change of it is a change of what a run can touch: it must be seen, and said in the commit.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "manager/plan.h"

static const PlanInput emulated = {
        .qemu = "/usr/bin/qemu-system-x86_64",
        .firmware = "/usr/share/qemu/qboot.rom",
        .vcpus = 2,
        .memory_mib = 256,
        .disk_mib = 64,
        .tsc_khz = 2500000,
};

#define MACHINE                                                                                                       \
        "microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=off,usb=off,pcie=off,dump-guest-core=off,mem-merge=off,"     \
        "x-option-roms=off"

#define START(machine)                                                                                                \
        "/usr/bin/qemu-system-x86_64", "-bios", "/usr/share/qemu/qboot.rom", "-nodefaults", "-no-user-config",        \
                "-no-reboot", "-display", "none", "-machine", machine, "-global", "virtio-mmio.force-legacy=false",   \
                "-accel", "tcg,tb-size=64", "-cpu", "Nehalem-v1,+rdrand,+smep,+smap,+umip", "-smp", "2", "-m", "256M"

#define KERNEL                                                                                                        \
        "-kernel", "/proc/self/fd/9", "-initrd", "/proc/self/fd/10", "-append",                                       \
                "console=hvc0 quiet panic=-1 cryptomgr.notests ephemeral.disk_mib=64 mitigations=off no_timer_check " \
                "tsc=reliable "                                                                                       \
                "tsc_early_khz=2500000"

#define DEVICES                                                                                                       \
        "-add-fd", "fd=5,set=1", "-blockdev",                                                                         \
                "driver=file,node-name=image-file,filename=/dev/fdset/1,read-only=on,locking=off", "-blockdev",       \
                "driver=raw,node-name=image,file=image-file,read-only=on", "-device",                                 \
                "virtio-blk-device,id=image,drive=image,discard=off,write-zeroes=off,config-wce=off", "-object",      \
                "rng-builtin,id=random", "-device", "virtio-rng-device,id=entropy,rng=random", "-device",             \
                "virtio-serial-device,id=serial,max_ports=8", "-chardev", "socket,id=console,fd=7", "-device",        \
                "virtconsole,id=console,chardev=console,name=console", "-chardev", "socket,id=control,fd=8",          \
                "-device", "virtserialport,id=control,chardev=control,name=control", "-chardev",                      \
                "socket,id=qmp,fd=6", "-mon", "chardev=qmp,mode=control", "-sandbox",                                 \
                "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny", "-S"

#define RAM(fd, share) "-object", "memory-backend-file,id=ram,size=256M,mem-path=/proc/self/fd/" fd ",share=" share

/* clang-format off */
static const char *const golden_cold[] = {START(MACHINE), KERNEL, DEVICES, NULL};
static const char *const golden_template[] = {
        START(MACHINE ",memory-backend=ram"), RAM("11", "on"), KERNEL, DEVICES, NULL};
static const char *const golden_clone[] = {
        START(MACHINE ",memory-backend=ram"), RAM("9", "off"), DEVICES, "-incoming", "defer", NULL};
/* clang-format on */

static Plan *plan_of(const PlanInput *input) {
        Plan *p;

        assert(plan_make(input, &p) == 0);
        return p;
}

static bool has_argument(const Plan *p, const char *argument) {
        for (char **a = p->arguments; *a; a++)
                if (strcmp(*a, argument) == 0)
                        return true;
        return false;
}

static void expect_golden(PlanKind kind, const char *const *golden) {
        _cleanup_(plan_freep) Plan *p = NULL;
        PlanInput input = emulated;
        size_t i;

        input.kind = kind;
        p = plan_of(&input);
        for (i = 0; golden[i]; i++) {
                if (!p->arguments[i] || strcmp(p->arguments[i], golden[i]) != 0)
                        fprintf(stderr, "%s, argument %zu: \"%s\", expected \"%s\"\n", plan_kind_name(kind), i,
                                p->arguments[i], golden[i]);
                assert(p->arguments[i] && strcmp(p->arguments[i], golden[i]) == 0);
        }
        assert(!p->arguments[i]);
}

static void an_emulated_machine_is_the_golden_text(void) {
        expect_golden(PLAN_COLD, golden_cold);
        expect_golden(PLAN_TEMPLATE, golden_template);
        expect_golden(PLAN_CLONE, golden_clone);
}

/* The jail numbers them in the order in which the plan lists them: text and list say the same. */
static void fds_have_the_numbers_that_the_text_names(void) {
        for (PlanKind kind = PLAN_COLD; kind <= PLAN_CLONE; kind++) {
                PlanInput input = emulated;
                _cleanup_(plan_freep) Plan *p = NULL;

                input.kind = kind;
                p = plan_of(&input);
                for (size_t i = 0; i < p->n_fds; i++)
                        assert(plan_fd_number(kind, p->fds[i]) == 5 + (int) i);
        }
        assert(plan_fd_number(PLAN_COLD, PLAN_FD_RAM) == -1);
        assert(plan_fd_number(PLAN_TEMPLATE, PLAN_FD_STATE) == -1);
        assert(plan_fd_number(PLAN_CLONE, PLAN_FD_KERNEL) == -1);
}

static void kvm_changes_accelerator_processor_and_clock_only(void) {
        PlanInput input = emulated;
        _cleanup_(plan_freep) Plan *p = NULL;
        unsigned different = 0;

        input.kvm = true;
        p = plan_of(&input);
        for (size_t i = 0; golden_cold[i]; i++)
                different += strcmp(p->arguments[i], golden_cold[i]) != 0;
        assert(different == 3); /* -accel, -cpu, and what the kernel is told of the clock */
        assert(has_argument(p, "kvm") && has_argument(p, "host,-vmx,-svm"));
}

static void limits_cover_guest_and_qemu(void) {
        _cleanup_(plan_freep) Plan *p = plan_of(&emulated);

        assert(p->memory_max_bytes == (256ULL + 96 + 64) << 20);
        assert(p->memory_max_bytes == plan_memory_max_bytes(256, false));
        assert(plan_memory_max_bytes(256, true) == (256ULL + 96) << 20);
        assert(p->tasks_max == 26);
        assert(p->cpu_quota_usec == 2000000);
}

static void no_machine_has_a_network(void) {
        _cleanup_(plan_freep) Plan *p = plan_of(&emulated);

        for (char **a = p->arguments; *a; a++)
                assert(!strstr(*a, "net") && !strstr(*a, "vsock") && !strstr(*a, "9p") && !strstr(*a, "vhost"));
        for (const PlanDevice *d = plan_devices; d->id; d++)
                assert(!strstr(d->type, "net"));
}

int main(void) {
        an_emulated_machine_is_the_golden_text();
        fds_have_the_numbers_that_the_text_names();
        kvm_changes_accelerator_processor_and_clock_only();
        limits_cover_guest_and_qemu();
        no_machine_has_a_network();
        return 0;
}
