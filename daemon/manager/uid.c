/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Leases on uids. No two runs ever have the same one at a time, also not across a crash: a lease is a flock(2) on a file that bears
 * the uid's number, and a file is unlinked only under its lock. Where to look first is random, so that a uid just freed is not the
 * next one given out.
 *
 * The user database is not asked for each lease: that may block on a directory server. The block lies where nothing but containers
 * is registered, and uid_block_claim() keeps those off.
 */
#include "manager/uid.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define NAME_SIZE 16   /* ten digits */
#define TRIES_MAX 1000 /* files opened in a row, all of them taken */
#define RACES_MAX 16   /* times that a file was unlinked between open and lock */

static void lock_name(uid_t uid, char name[NAME_SIZE]) {
        snprintf(name, NAME_SIZE, "%u", uid);
}

/* Is the locked file still the one that the name leads to? A former holder may have unlinked it before we had the lock. */
static int is_named(int dir_fd, const char *name, int fd) {
        struct stat ours, named;

        if (fstat(fd, &ours) < 0)
                return -errno;
        if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino && S_ISREG(ours.st_mode);
}

/* An fd that holds the lock of name; -EBUSY when somebody else does. */
static int lock_file(int dir_fd, const char *name) {
        for (unsigned i = 0; i < RACES_MAX; i++) {
                _cleanup_(fd_closep) int fd =
                        openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
                int r;

                if (fd < 0)
                        return -errno;
                if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                        return errno == EWOULDBLOCK ? -EBUSY : -errno;
                r = is_named(dir_fd, name, fd);
                if (r < 0)
                        return r;
                if (r > 0)
                        return TAKE_FD(fd);
        }
        return -EBUSY;
}

int uid_lease_acquire(int dir_fd, Uid *ret) {
        uint32_t start;

        if (getrandom(&start, sizeof(start), 0) != sizeof(start))
                return -EIO;
        for (uint32_t i = 0; i < TRIES_MAX; i++) {
                uid_t uid = UID_BLOCK_BASE + (start % UID_BLOCK_COUNT + i) % UID_BLOCK_COUNT;
                char name[NAME_SIZE];
                int fd;

                lock_name(uid, name);
                fd = lock_file(dir_fd, name);
                if (fd == -EBUSY)
                        continue;
                if (fd < 0)
                        return fd;
                *ret = (Uid){.uid = uid, .lock_fd = fd};
                return 0;
        }
        return -EBUSY;
}

int uid_lease_adopt(int dir_fd, uid_t uid, int fd, Uid *ret) {
        char name[NAME_SIZE];
        int r;

        if (uid < UID_BLOCK_BASE || uid - UID_BLOCK_BASE >= UID_BLOCK_COUNT)
                return -ESTALE;
        lock_name(uid, name);
        r = is_named(dir_fd, name, fd);
        if (r < 0)
                return r;
        if (r == 0)
                return -ESTALE;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) /* it is ours if this very open file has it */
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        *ret = (Uid){.uid = uid, .lock_fd = fd};
        return 0;
}

void uid_lease_release(int dir_fd, Uid *lease) {
        char name[NAME_SIZE];

        if (lease->lock_fd < 0)
                return;
        lock_name(lease->uid, name);
        if (is_named(dir_fd, name, lease->lock_fd) > 0)
                unlinkat(dir_fd, name, 0);
        fd_close(lease->lock_fd);
        *lease = UID_EMPTY;
}

/* The uid that a file is named after; false for a name that is none of ours. */
static bool parse_lock_name(const char *name, uid_t *ret) {
        char again[NAME_SIZE];
        unsigned long n = strtoul(name, NULL, 10);

        if (n < UID_BLOCK_BASE || n - UID_BLOCK_BASE >= UID_BLOCK_COUNT)
                return false;
        *ret = (uid_t) n;
        lock_name(*ret, again);
        return strcmp(again, name) == 0;
}

int uid_lease_sweep(int dir_fd) {
        int copy_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirent *entry;
        int n = 0;
        DIR *dir;

        if (copy_fd < 0)
                return -errno;
        dir = fdopendir(copy_fd);
        if (!dir) {
                fd_close(copy_fd);
                return -errno;
        }
        while ((entry = readdir(dir))) {
                Uid lease = UID_EMPTY;

                if (!parse_lock_name(entry->d_name, &lease.uid))
                        continue;
                lease.lock_fd = lock_file(dir_fd, entry->d_name);
                if (lease.lock_fd < 0)
                        continue;
                uid_lease_release(dir_fd, &lease);
                n++;
        }
        closedir(dir);
        return n;
}

int uid_block_claim(int nspawn_dir_fd, int *ret_lock_fd) {
        char name[NAME_SIZE];
        int fd;

        lock_name(UID_BLOCK_BASE, name);
        fd = lock_file(nspawn_dir_fd, name);
        if (fd < 0)
                return fd;
        *ret_lock_fd = fd;
        return 0;
}
