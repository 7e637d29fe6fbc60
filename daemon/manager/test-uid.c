/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about uid leases, on a directory of the test's own. Needs no root: nobody becomes the uid.
 */
#undef NDEBUG
#include "manager/uid.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

#define PROCESSES 6
#define LEASES    100

static char directory[] = "/tmp/test-uid-XXXXXX";
static int dir_fd;

static void lock_path(uid_t uid, char path[64]) {
        snprintf(path, 64, "%s/%u", directory, uid);
}

static void a_lease_is_in_the_block_and_a_release_leaves_nothing(void) {
        Uid lease;
        char path[64];

        assert(uid_lease_acquire(dir_fd, &lease) == 0);
        assert(lease.uid >= UID_BLOCK_BASE && lease.uid < UID_BLOCK_BASE + UID_BLOCK_COUNT);
        assert(fcntl(lease.lock_fd, F_GETFD) & FD_CLOEXEC);
        lock_path(lease.uid, path);
        assert(access(path, F_OK) == 0);
        uid_lease_release(dir_fd, &lease);
        assert(access(path, F_OK) < 0 && lease.lock_fd < 0 && lease.uid == (uid_t) -1);
        uid_lease_release(dir_fd, &lease);
}

static void leases_do_not_follow_one_another(void) {
        Uid leases[8];
        unsigned neighbours = 0;

        for (size_t i = 0; i < ELEMENTSOF(leases); i++) {
                assert(uid_lease_acquire(dir_fd, &leases[i]) == 0);
                neighbours += i > 0 && leases[i].uid == leases[i - 1].uid + 1;
        }
        assert(neighbours < 3);
        for (size_t i = 0; i < ELEMENTSOF(leases); i++)
                uid_lease_release(dir_fd, &leases[i]);
}

static void a_lease_is_taken_back_by_its_fd_and_by_no_other(void) {
        Uid lease, again = UID_EMPTY;
        int copy, stranger;
        char path[64];

        assert(uid_lease_acquire(dir_fd, &lease) == 0);
        copy = fcntl(lease.lock_fd, F_DUPFD_CLOEXEC, 3); /* as the FD store gives it back */
        assert(copy >= 0);
        assert(uid_lease_adopt(dir_fd, lease.uid + 1, copy, &again) == -ESTALE);
        assert(uid_lease_adopt(dir_fd, 0, copy, &again) == -ESTALE);
        lock_path(lease.uid, path);
        stranger = open(path, O_RDWR | O_CLOEXEC);
        assert(stranger >= 0 && uid_lease_adopt(dir_fd, lease.uid, stranger, &again) == -EBUSY);
        fd_close(stranger);
        fd_close(lease.lock_fd); /* the manager crashed: the copy holds the lock */
        assert(uid_lease_adopt(dir_fd, lease.uid, copy, &again) == 0 && again.uid == lease.uid);
        uid_lease_release(dir_fd, &again);
        assert(access(path, F_OK) < 0);
}

static void a_sweep_removes_what_nobody_holds_and_nothing_else(void) {
        char abandoned[64], foreign[64], path[64];
        Uid held;

        lock_path(UID_BLOCK_BASE + 7, abandoned);
        snprintf(foreign, sizeof(foreign), "%s/notes", directory);
        assert(uid_lease_acquire(dir_fd, &held) == 0 && held.uid != UID_BLOCK_BASE + 7);
        fd_close(open(abandoned, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        fd_close(open(foreign, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        assert(uid_lease_sweep(dir_fd) == 1);
        lock_path(held.uid, path);
        assert(access(abandoned, F_OK) < 0 && access(foreign, F_OK) == 0 && access(path, F_OK) == 0);
        uid_lease_release(dir_fd, &held);
        assert(unlink(foreign) == 0);
}

static void a_link_in_the_place_of_a_lock_is_refused(void) {
        char path[64];
        int fd;

        lock_path(UID_BLOCK_BASE, path);
        assert(symlink("/tmp/test-uid-must-not-be-made", path) == 0);
        assert(uid_block_claim(dir_fd, &fd) == -ELOOP);
        assert(unlink(path) == 0 && access("/tmp/test-uid-must-not-be-made", F_OK) < 0);
}

static void the_block_is_claimed_once(void) {
        int fd, second;

        assert(uid_block_claim(dir_fd, &fd) == 0);
        assert(uid_block_claim(dir_fd, &second) == -EBUSY);
        fd_close(fd);
        assert(uid_block_claim(dir_fd, &fd) == 0);
        fd_close(fd);
}

static void hold_and_release(unsigned char *holders) {
        for (unsigned i = 0; i < LEASES; i++) {
                Uid lease;
                unsigned char *holder;

                if (uid_lease_acquire(dir_fd, &lease) < 0)
                        _exit(2);
                holder = &holders[lease.uid - UID_BLOCK_BASE];
                if (__atomic_add_fetch(holder, 1, __ATOMIC_SEQ_CST) != 1)
                        _exit(3);
                usleep(50);
                __atomic_sub_fetch(holder, 1, __ATOMIC_SEQ_CST);
                uid_lease_release(dir_fd, &lease);
        }
        _exit(0);
}

static void no_uid_has_two_holders_at_a_time(void) {
        unsigned char *holders =
                mmap(NULL, UID_BLOCK_COUNT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert(holders != MAP_FAILED);
        for (unsigned i = 0; i < PROCESSES; i++) {
                pid_t pid = fork();

                assert(pid >= 0);
                if (pid == 0)
                        hold_and_release(holders);
        }
        for (unsigned i = 0; i < PROCESSES; i++) {
                int status;

                assert(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        munmap(holders, UID_BLOCK_COUNT);
}

/* With the block narrowed by hand: all processes fight for the file of one uid. */
static void the_lock_of_one_uid_is_never_held_twice(void) {
        int *holder = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert(holder != MAP_FAILED);
        for (unsigned i = 0; i < PROCESSES; i++) {
                pid_t pid = fork();

                assert(pid >= 0);
                for (unsigned n = 0; pid == 0 && n < 2000; n++) {
                        Uid lease = {.uid = UID_BLOCK_BASE};

                        if (uid_block_claim(dir_fd, &lease.lock_fd) < 0)
                                continue;
                        if (__atomic_add_fetch(holder, 1, __ATOMIC_SEQ_CST) != 1)
                                _exit(3);
                        __atomic_sub_fetch(holder, 1, __ATOMIC_SEQ_CST);
                        uid_lease_release(dir_fd, &lease); /* unlinks: the race that is_named() is for */
                }
                if (pid == 0)
                        _exit(0);
        }
        for (unsigned i = 0; i < PROCESSES; i++) {
                int status;

                assert(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        munmap(holder, sizeof(int));
}

int main(void) {
        assert(mkdtemp(directory));
        dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert(dir_fd >= 0);
        a_lease_is_in_the_block_and_a_release_leaves_nothing();
        leases_do_not_follow_one_another();
        a_lease_is_taken_back_by_its_fd_and_by_no_other();
        a_sweep_removes_what_nobody_holds_and_nothing_else();
        a_link_in_the_place_of_a_lock_is_refused();
        the_block_is_claimed_once();
        no_uid_has_two_holders_at_a_time();
        the_lock_of_one_uid_is_never_held_twice();
        unlinkat(dir_fd, "1859125248", 0); /* the claim's file stays where it is */
        assert(rmdir(directory) == 0);     /* and nothing else */
        return 0;
}
