/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A uid (and the gid of the same number) for one run, out of a 64K block of the range that docs/UIDS-GIDS.md of systemd
 * leaves to containers. It is held by a flock(2) on a file named after it; the lock lives in the open file description, so the
 * fd can wait in systemd's FD store and a crash of the manager gives nothing away. */

#include <errno.h>
#include <sys/types.h>

#define UID_BLOCK_BASE ((uid_t) 0x6ED00000)
#define UID_BLOCK_COUNT                                                                                               \
        ((uid_t) 65534) /* base + 65534 is the block's "nobody" and stays unused, as does the last one */

typedef struct Uid {
        uid_t uid;
        int lock_fd;
} Uid;

#define UID_EMPTY ((Uid){.uid = (uid_t) -1, .lock_fd = -EBADF})

/* dir_fd: /run/ephemeral/uid, mode 0700, ours alone. 0, -EBUSY when no free one was found, or -errno. */
int uid_lease_acquire(int dir_fd, Uid *ret);

/* Takes a lease back whose fd came out of the FD store. 0 and ret owns fd; -ESTALE when fd is not the lock of this uid (fd stays
 * the caller's), -EBUSY when somebody else holds it, or -errno. */
int uid_lease_adopt(int dir_fd, uid_t uid, int fd, Uid *ret);

/* Only when no process has the uid any more. Leaves an empty lease; an empty one is taken. */
void uid_lease_release(int dir_fd, Uid *lease);

/* Once, at the start of the service: removes the files of leases that nobody holds any more, left by a manager that was killed. What a machine
 * that lives on still holds stays. Their number, or -errno. */
int uid_lease_sweep(int dir_fd);

/* Once, at the start of the service: keeps systemd-nspawn -U off our block by the lock that it takes itself before it uses one.
 * nspawn_dir_fd: /run/systemd/nspawn-uid. 0 and a lock fd to keep open; -EBUSY when a container has the block; or -errno. */
int uid_block_claim(int nspawn_dir_fd, int *ret_lock_fd);
