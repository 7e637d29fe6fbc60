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

static const char *const golden_tcg[] = {
        "/usr/bin/qemu-system-x86_64",
        "-bios",
        "/usr/share/qemu/qboot.rom",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-machine",
        "microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=off,usb=off,pcie=off,dump-guest-core=off,x-option-roms=off",
        "-global",
        "virtio-mmio.force-legacy=false",
        "-accel",
        "tcg,tb-size=64",
        "-cpu",
        "Nehalem-v1,+rdrand,+smep,+smap,+umip",
        "-smp",
        "2",
        "-m",
        "256M",
        "-kernel",
        "/proc/self/fd/5",
        "-initrd",
        "/proc/self/fd/6",
        "-append",
        "console=hvc0 quiet panic=-1 cryptomgr.notests ephemeral.disk_mib=64 no_timer_check tsc=reliable "
        "tsc_early_khz=2500000",
        "-add-fd",
        "fd=7,set=1",
        "-blockdev",
        "driver=file,node-name=image-file,filename=/dev/fdset/1,read-only=on,locking=off",
        "-blockdev",
        "driver=raw,node-name=image,file=image-file,read-only=on",
        "-device",
        "virtio-blk-device,id=image,drive=image,discard=off,write-zeroes=off,config-wce=off",
        "-object",
        "rng-builtin,id=random",
        "-device",
        "virtio-rng-device,id=entropy,rng=random",
        "-device",
        "virtio-serial-device,id=serial,max_ports=8",
        "-chardev",
        "socket,id=console,fd=9",
        "-device",
        "virtconsole,id=console,chardev=console,name=console",
        "-chardev",
        "socket,id=control,fd=10",
        "-device",
        "virtserialport,id=control,chardev=control,name=control",
        "-chardev",
        "socket,id=qmp,fd=8",
        "-mon",
        "chardev=qmp,mode=control",
        "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-S",
        NULL,
};

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

static void an_emulated_machine_is_the_golden_text(void) {
        _cleanup_(plan_freep) Plan *p = plan_of(&emulated);
        size_t i;

        for (i = 0; golden_tcg[i]; i++) {
                if (!p->arguments[i] || strcmp(p->arguments[i], golden_tcg[i]) != 0)
                        fprintf(stderr, "argument %zu: \"%s\", expected \"%s\"\n", i, p->arguments[i], golden_tcg[i]);
                assert(p->arguments[i] && strcmp(p->arguments[i], golden_tcg[i]) == 0);
        }
        assert(!p->arguments[i]);
}

static void kvm_changes_accelerator_processor_and_clock_only(void) {
        PlanInput input = emulated;
        _cleanup_(plan_freep) Plan *p = NULL;
        unsigned different = 0;

        input.kvm = true;
        p = plan_of(&input);
        for (size_t i = 0; golden_tcg[i]; i++)
                different += strcmp(p->arguments[i], golden_tcg[i]) != 0;
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
        kvm_changes_accelerator_processor_and_clock_only();
        limits_cover_guest_and_qemu();
        no_machine_has_a_network();
        return 0;
}
