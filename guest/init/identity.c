/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A clone wakes up with the memory of its template. Two clones must share neither random numbers nor ids, so the kernel's
 * generator is fed and reseeded first, and all else that is random is drawn after that. random(4). */

#include "init/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "init/log.h"
#include "init/mounts.h"

#define BOOT_ID_KERNEL "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_OURS   RUNTIME_DIRECTORY "/boot_id"

/* struct rand_pool_info with a body. */
typedef struct Entropy {
        int bits;
        int size;
        uint8_t bytes[SETUP_ENTROPY_SIZE];
} Entropy;

static int reseed(const uint8_t entropy[SETUP_ENTROPY_SIZE]) {
        _cleanup_(fd_closep) int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
        Entropy e = {SETUP_ENTROPY_SIZE * 8, SETUP_ENTROPY_SIZE, {0}};
        int r = 0;

        if (fd < 0)
                return -errno;
        memcpy(e.bytes, entropy, sizeof(e.bytes));
        if (ioctl(fd, RNDADDENTROPY, &e) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
                r = -errno;
        explicit_bzero(&e, sizeof(e));
        return r;
}

static int set_clock(uint64_t realtime_usec) {
        struct timespec ts = {
                .tv_sec = (time_t) (realtime_usec / 1000000U),
                .tv_nsec = (long) (realtime_usec % 1000000U) * 1000,
        };

        return clock_settime(CLOCK_REALTIME, &ts) < 0 ? -errno : 0;
}

/* A random UUID of version 4, as the kernel prints its own. */
static int format_uuid(char ret[static 38]) {
        uint8_t u[16];

        if (getrandom(u, sizeof(u), 0) != (ssize_t) sizeof(u))
                return -EIO;
        u[6] = (u[6] & 0x0f) | 0x40;
        u[8] = (u[8] & 0x3f) | 0x80;
        snprintf(ret, 38, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n", u[0], u[1], u[2],
                 u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
        return 0;
}

/* The first time our file is laid over the kernel's; a clone writes another id into the one that is there. */
static int fresh_boot_id(void) {
        _cleanup_(fd_closep) int fd = -EBADF;
        bool mounted;
        char uuid[38];
        int r;

        r = format_uuid(uuid);
        if (r < 0)
                return r;
        mounted = access(BOOT_ID_OURS, F_OK) == 0;
        fd = open(BOOT_ID_OURS, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
        if (fd < 0)
                return -errno;
        r = fd_write_all(fd, uuid, strlen(uuid));
        if (r < 0)
                return r;
        if (mounted)
                return 0;
        return mount(BOOT_ID_OURS, BOOT_ID_KERNEL, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int identity_apply(const SetupMessage *setup) {
        int r;

        r = reseed(setup->entropy);
        if (r < 0)
                return log_errno(r, "cannot reseed the random number generator");
        r = set_clock(setup->realtime_usec);
        if (r < 0)
                return log_errno(r, "cannot set the clock");
        if (sethostname(setup->hostname, strlen(setup->hostname)) < 0)
                return log_errno(-errno, "cannot set the host name");
        r = fresh_boot_id();
        if (r < 0)
                return log_errno(r, "cannot renew the boot id");
        return 0;
}
