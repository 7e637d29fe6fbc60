/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The choice between KVM and TCG. start.c asks it for each machine, and it is told how the boot went.
 */
#include "manager/accelerator.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/clock.h"
#include "common/fd.h"
#include "manager/kvm.h"

enum {
        VERDICT_MAX = 1024,
        BOOT_TIMEOUT_SEC = 120,
        KVM_BOOT_TIMEOUT_SEC = 10, /* a KVM that works needs one */
};

static void fall_back(Accelerator *a, char *reason) {
        free(a->reason);
        a->reason = reason;
        a->kvm = false;
        sd_journal_print(LOG_NOTICE, "Runs are emulated (TCG), not hardware virtualized: %s",
                         reason ? reason : "no memory");
}

int accelerator_init(Accelerator *a, AcceleratorChoice choice, const char *runtime_dir) {
        char *reason = NULL;

        *a = (Accelerator){.choice = choice};
        if (asprintf(&a->verdict_path, "%s/kvm-does-not-work", runtime_dir) < 0) {
                a->verdict_path = NULL;
                return -ENOMEM;
        }
        if (choice == ACCELERATOR_TCG) {
                a->reason = strdup("Accelerator=tcg is configured");
                return a->reason ? 0 : -ENOMEM;
        }
        if (choice == ACCELERATOR_AUTO &&
            fd_read_file_at(AT_FDCWD, a->verdict_path, VERDICT_MAX, &reason, NULL) >= 0) {
                a->reason = reason;
                return 0;
        }
        if (kvm_usable(&reason) >= 0)
                a->kvm = true;
        else if (choice == ACCELERATOR_AUTO)
                fall_back(a, reason);
        else {
                a->kvm = true; /* asked for by name: runs fail with QEMU's own word */
                free(reason);
        }
        return 0;
}

void accelerator_done(Accelerator *a) {
        free(a->reason);
        free(a->verdict_path);
        *a = (Accelerator){0};
}

void accelerator_worked(Accelerator *a) {
        a->proven = true;
}

bool accelerator_is_tried(const Accelerator *a) {
        return !a->kvm || a->proven;
}

uint64_t accelerator_boot_usec(const Accelerator *a) {
        return (accelerator_is_tried(a) ? BOOT_TIMEOUT_SEC : KVM_BOOT_TIMEOUT_SEC) * USEC_PER_SEC;
}

bool accelerator_failed(Accelerator *a, const char *reason) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char *text = NULL;

        if (a->choice != ACCELERATOR_AUTO || a->proven)
                return false; /* it has worked: this failure has another cause */
        if (a->kvm) {
                if (asprintf(&text, "/dev/kvm opens, but a guest does not boot with it: %s", reason) < 0)
                        return false;
                fall_back(a, text);
                fd = open(a->verdict_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
                if (fd >= 0)
                        (void) fd_write_all(fd, text, strlen(text));
        }
        return true;
}
