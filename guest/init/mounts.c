/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The root of a run: the image is read-only, what is written goes to RAM, and every place that takes bytes has a bound, so
 * that a workload that fills it meets ENOSPC and not the end of the machine. */

#include "init/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "init/log.h"
#include "init/wait.h"

#define IMAGE_DEVICE     "/dev/vda"
#define IMAGE_TIMEOUT_MS 30000U

typedef struct Mount {
        const char *source;
        const char *target;
        const char *type;
        unsigned long flags;
        const char *options;
} Mount;

static int mount_one(const Mount *m) {
        if (mkdir(m->target, 0755) < 0 && errno != EEXIST && errno != EROFS)
                return log_errno(-errno, "cannot make %s", m->target);
        if (mount(m->source, m->target, m->type, m->flags, m->options) < 0)
                return log_errno(-errno, "cannot mount %s", m->target);
        return 0;
}

static int mount_all(const Mount *mounts, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int r = mount_one(&mounts[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

int mounts_early(void) {
        static const Mount mounts[] = {
                {"proc",     "/proc", "proc",     MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL       },
                {"sysfs",    "/sys",  "sysfs",    MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL       },
                {"devtmpfs", "/dev",  "devtmpfs", MS_NOSUID | MS_NOEXEC,            "mode=0755"},
        };

        return mount_all(mounts, ELEMENTSOF(mounts));
}

/* An eighth of the RAM, as an option of tmpfs. */
static void eighth_of_ram(const char *mode, char *ret, size_t size) {
        struct sysinfo info = {0};

        sysinfo(&info);
        snprintf(ret, size, "mode=%s,size=%lluk,nr_inodes=16384", mode,
                 (unsigned long long) info.totalram * info.mem_unit / 8 / 1024);
}

static int mount_root(uint64_t disk_mib) {
        char size[64];
        const Mount writable = {"overlay", "/rw", "tmpfs", 0, size};
        static const Mount image = {IMAGE_DEVICE, "/image", "erofs", MS_RDONLY, NULL};
        static const Mount root = {"overlay", "/root", "overlay", 0,
                                   "lowerdir=/image,upperdir=/rw/upper,workdir=/rw/work"};
        int r;

        r = wait_for_path(IMAGE_DEVICE, IMAGE_TIMEOUT_MS);
        if (r < 0)
                return log_errno(r, "no image: %s", IMAGE_DEVICE);
        r = mount_one(&image);
        if (r < 0)
                return r;

        snprintf(size, sizeof(size), "mode=0755,size=%llum", (unsigned long long) disk_mib);
        r = mount_one(&writable);
        if (r < 0)
                return r;
        if (mkdir("/rw/upper", 0755) < 0 || mkdir("/rw/work", 0755) < 0)
                return log_errno(-errno, "cannot prepare the overlay");
        return mount_one(&root);
}

static int move_mount_into(const char *from) {
        char to[64];

        snprintf(to, sizeof(to), "/root%s", from);
        if (mount(from, to, NULL, MS_MOVE, NULL) < 0)
                return log_errno(-errno, "cannot move %s", from);
        return 0;
}

/* switch_root(8): the new root is moved over the old one, which stays below it and out of reach. */
static int enter_root(void) {
        static const char *const moved[] = {"/proc", "/sys", "/dev"};

        for (size_t i = 0; i < ELEMENTSOF(moved); i++) {
                int r = move_mount_into(moved[i]);

                if (r < 0)
                        return r;
        }
        if (chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
                return log_errno(-errno, "cannot enter the root");
        return 0;
}

int mounts_switch_root(uint64_t disk_mib) {
        char run[64], shm[64];
        const Mount mounts[] = {
                {"tmpfs",  "/run",     "tmpfs",  MS_NOSUID | MS_NODEV,  run                            },
                {"devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620,gid=5"},
                {"shm",    "/dev/shm", "tmpfs",  MS_NOSUID | MS_NODEV,  shm                            },
        };
        int r;

        r = mount_root(disk_mib);
        if (r < 0)
                return r;
        r = enter_root();
        if (r < 0)
                return r;

        eighth_of_ram("0755", run, sizeof(run));
        eighth_of_ram("1777", shm, sizeof(shm));
        return mount_all(mounts, ELEMENTSOF(mounts));
}

int mounts_late(void) {
        static const struct {
                const char *target;
                const char *path;
        } links[] = {
                {"/proc/self/fd",   "/dev/fd"    },
                {"/proc/self/fd/0", "/dev/stdin" },
                {"/proc/self/fd/1", "/dev/stdout"},
                {"/proc/self/fd/2", "/dev/stderr"},
        };

        for (size_t i = 0; i < ELEMENTSOF(links); i++)
                if (symlink(links[i].target, links[i].path) < 0 && errno != EEXIST)
                        return log_errno(-errno, "cannot make %s", links[i].path);
        if (mkdir(RUNTIME_DIRECTORY, 0755) < 0)
                return log_errno(-errno, "cannot make " RUNTIME_DIRECTORY);
        if (mkdir("/run/lock", 01777) < 0 || chmod("/run/lock", 01777) < 0)
                return log_errno(-errno, "cannot make /run/lock");
        return 0;
}
