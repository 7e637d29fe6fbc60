/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The system calls of a jailed QEMU (7.2 and 10, from its loader to its end, TCG and KVM), and of the outer half. Whatever is not here
 * is death. A name is added with its reason, and only when a guest needs it: there is no socket, no connect, no way to a new
 * process, namespace, mount, key, program or ring.
 *
 * QEMU's own -sandbox lies on top of this and takes away more once it has started (execve among it).
 */
#include "jail/filter.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "common/cleanup.h"

#define QEMU  (1U << FILTER_TCG | 1U << FILTER_KVM)
#define TCG   (1U << FILTER_TCG)
#define KVM   (1U << FILTER_KVM)
#define OUTER (1U << FILTER_OUTER)

/* What pthread_create() of glibc asks for, and nothing more: a thread, in the same namespaces. */
#define CLONE_OF_PTHREAD                                                                                              \
        (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |            \
         CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define IOCTL_TYPE_MASK 0xff00U
#define KVM_IOCTL_TYPE  0xae00U /* KVMIO of linux/kvm.h */

/* Arguments that the kernel takes as int: what is in the upper half does not matter, to it or to us. */
#define INT_MASK 0xffffffffU

#define ALLOW(profiles, name)                                                                                         \
        {                                                                                                             \
                SCMP_SYS(name), profiles, 0, 0, {                                                                     \
                        { 0 }                                                                                         \
                }                                                                                                     \
        }
#define FAIL(profiles, name, error)                                                                                   \
        {                                                                                                             \
                SCMP_SYS(name), profiles, error, 0, {                                                                 \
                        { 0 }                                                                                         \
                }                                                                                                     \
        }
#define ALLOW_IF(profiles, name, ...)                                                                                 \
        {                                                                                                             \
                SCMP_SYS(name), profiles, 0, 1, {                                                                     \
                        __VA_ARGS__                                                                                   \
                }                                                                                                     \
        }
#define ALLOW_IF2(profiles, name, ...)                                                                                \
        {                                                                                                             \
                SCMP_SYS(name), profiles, 0, 2, {                                                                     \
                        __VA_ARGS__                                                                                   \
                }                                                                                                     \
        }
#define ALLOW_INT(profiles, name, n, val) ALLOW_IF(profiles, name, MASKED(n, INT_MASK, val))
#define MASKED(n, mask, val)                                                                                          \
        { n, SCMP_CMP_MASKED_EQ, mask, (uint32_t) (val) }

const FilterRule filter_rules[] = {
        /* Loader and C library */
        ALLOW(QEMU, access),
        ALLOW_INT(QEMU, arch_prctl, 0, ARCH_SET_FS),
        ALLOW_INT(QEMU, arch_prctl, 0, 0x3001), /* ARCH_CET_STATUS: glibc before 2.39 asks, the kernel knows none */
        ALLOW(QEMU, brk),
        ALLOW(QEMU, exit),
        ALLOW(QEMU | OUTER, exit_group),
        ALLOW(QEMU, getrandom),
        ALLOW(QEMU, madvise),
        ALLOW(QEMU, mremap), /* realloc() of a large block */
        ALLOW(QEMU, munmap),
        ALLOW_INT(QEMU, prlimit64, 0, 0),
        ALLOW(QEMU, rseq),
        ALLOW(QEMU, set_robust_list),
        ALLOW(QEMU, set_tid_address),
        ALLOW(QEMU, sysinfo),
        ALLOW(QEMU, uname),

        /* Memory that runs: under KVM only what the loader maps from a file, never what was written before */
        ALLOW_IF(KVM, mmap, MASKED(2, PROT_EXEC, 0)),
        ALLOW_IF2(KVM,
                  mmap,
                  MASKED(2, PROT_EXEC | PROT_WRITE, PROT_EXEC),
                  MASKED(3, MAP_PRIVATE | MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE)),
        ALLOW_IF(KVM, mprotect, MASKED(2, PROT_EXEC, 0)),
        ALLOW(TCG, mmap),
        ALLOW(TCG, mprotect),
        FAIL(QEMU, memfd_create, ENOSYS), /* a file of its own making could be mapped as a program */

        /* Threads */
        ALLOW_IF(QEMU, clone, {0, SCMP_CMP_EQ, CLONE_OF_PTHREAD, 0}),
        FAIL(QEMU, clone3, ENOSYS), /* its flags are in memory, where no filter can look; glibc falls back to clone */
        ALLOW(QEMU, futex),
        ALLOW(QEMU, getpid),
        ALLOW(QEMU, gettid),
        ALLOW(QEMU, sched_getaffinity),
        ALLOW_INT(QEMU, tgkill, 0, 1), /* itself: QEMU is process 1 of its namespace */

        /* Signals */
        ALLOW(QEMU, rt_sigaction),
        ALLOW(QEMU, rt_sigprocmask),
        ALLOW(QEMU | OUTER, rt_sigreturn),
        ALLOW(QEMU, signalfd4),

        /* Waiting and time */
        ALLOW(QEMU, clock_nanosleep),
        ALLOW(QEMU, epoll_create1),
        ALLOW(QEMU, eventfd2),
        ALLOW(QEMU, poll), /* the monitor's thread loops in GLib */
        ALLOW(QEMU, ppoll),
        ALLOW(QEMU | OUTER,
              restart_syscall), /* waiting goes on after SIGSTOP and SIGCONT, a freezer, a suspended host */
        FAIL(QEMU, io_uring_setup, ENOSYS),

        /* Files: there are few to be found, all of them read-only */
        ALLOW(QEMU, close),
        ALLOW_INT(QEMU, fadvise64, 3, POSIX_FADV_DONTNEED), /* of the image, when a clone takes it over */
        ALLOW(QEMU, fstat),
        ALLOW(QEMU, fstatfs), /* of RAM in a memfd: the size of its pages */
        ALLOW(QEMU, ftruncate),
        ALLOW(QEMU, lseek),
        ALLOW(QEMU, newfstatat),
        ALLOW(QEMU, openat),
        ALLOW(QEMU, pread64),
        ALLOW(QEMU, preadv),
        ALLOW(QEMU, read),
        ALLOW(QEMU, readlink),
        ALLOW(QEMU, readv), /* a template's device state */
        ALLOW(QEMU, statfs),
        ALLOW(QEMU | OUTER, write),
        ALLOW(QEMU, writev),
        ALLOW_INT(QEMU, fcntl, 1, F_GETFD),
        ALLOW_INT(QEMU, fcntl, 1, F_SETFD),
        ALLOW_INT(QEMU, fcntl, 1, F_GETFL),
        ALLOW_INT(QEMU, fcntl, 1, F_SETFL),
        ALLOW_INT(QEMU, fcntl, 1, F_DUPFD_CLOEXEC),

        /* Devices */
        ALLOW_IF(KVM, ioctl, MASKED(1, IOCTL_TYPE_MASK, KVM_IOCTL_TYPE)),
        ALLOW_INT(QEMU, ioctl, 1, TCGETS), /* isatty() */

        /* Sockets that were inherited; none can be made */
        ALLOW(QEMU, getpeername),
        ALLOW(QEMU, getsockname),
        ALLOW(QEMU, getsockopt),
        ALLOW(QEMU, recvmsg),
        ALLOW(QEMU, sendmsg),
        ALLOW(QEMU, setsockopt),

        /* Memory policy: asked for by libnuma as it is loaded, and by QEMU for RAM */
        ALLOW(QEMU, get_mempolicy),
        ALLOW(QEMU, set_mempolicy),

        /* Itself: its name, timer slack, what happens on a broken page, and QEMU's sandbox */
        ALLOW_INT(QEMU, prctl, 0, PR_SET_NAME),
        ALLOW_INT(QEMU, prctl, 0, PR_SET_TIMERSLACK),
        ALLOW_INT(QEMU, prctl, 0, PR_SET_NO_NEW_PRIVS),
        ALLOW_INT(QEMU, prctl, 0, PR_CAPBSET_READ),
        ALLOW_INT(QEMU, prctl, 0, PR_MCE_KILL),
        ALLOW_INT(QEMU, seccomp, 0, SECCOMP_SET_MODE_STRICT), /* libseccomp's way to ask whether the call is there */
        ALLOW_INT(QEMU, seccomp, 0, SECCOMP_SET_MODE_FILTER),
        ALLOW_INT(QEMU, seccomp, 0, SECCOMP_GET_ACTION_AVAIL),
        ALLOW_INT(QEMU, seccomp, 0, SECCOMP_GET_NOTIF_SIZES),

        /* The outer half waits */
        ALLOW(OUTER, wait4),
};

const size_t filter_n_rules = ELEMENTSOF(filter_rules);
