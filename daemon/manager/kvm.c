/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Is there a /dev/kvm worth trying? Only what can be asked without running a guest (Linux: Documentation/virt/kvm/api.rst).
 */
#include "manager/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "common/cleanup.h"

#define KVM_PATH "/dev/kvm"

static int refuse(char **ret_reason, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(char **ret_reason, int error, const char *format, ...) {
        va_list ap;
        char *text = NULL;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;
        *ret_reason = text;
        return error;
}

/* Runs have neither root nor its group: see kvm_group() in daemon/jail/root.c. */
static int check_mode(int fd, char **ret_reason) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return refuse(ret_reason, -errno, "%s: %s", KVM_PATH, strerror(errno));
        if ((st.st_mode & 0006) == 0006 || ((st.st_mode & 0060) == 0060 && st.st_gid != 0))
                return 0;
        return refuse(ret_reason, -EACCES,
                      "%s (mode %03o, group %u) opens for root only: it takes a group of its own and mode 0660",
                      KVM_PATH, st.st_mode & 0777, st.st_gid);
}

int kvm_usable(char **ret_reason) {
        _cleanup_(fd_closep) int fd = open(KVM_PATH, O_RDWR | O_CLOEXEC | O_NOCTTY), vm_fd = -EBADF;
        int version, r;

        if (fd < 0)
                return refuse(ret_reason, -errno, "%s: %s", KVM_PATH, strerror(errno));
        r = check_mode(fd, ret_reason);
        if (r < 0)
                return r;
        version = ioctl(fd, KVM_GET_API_VERSION, 0);
        if (version < 0)
                return refuse(ret_reason, -errno, "%s: KVM_GET_API_VERSION: %s", KVM_PATH, strerror(errno));
        if (version != KVM_API_VERSION)
                return refuse(ret_reason, -EPROTO, "%s speaks API version %d, not %d", KVM_PATH, version,
                              KVM_API_VERSION);
        vm_fd = ioctl(fd, KVM_CREATE_VM, 0);
        if (vm_fd < 0)
                return refuse(ret_reason, -errno, "%s: KVM_CREATE_VM: %s", KVM_PATH, strerror(errno));
        return 0;
}
