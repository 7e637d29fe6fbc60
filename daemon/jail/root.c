/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The file system of a jail: an empty tmpfs, in it the named files as read-only binds at their own paths, /dev with kvm or nothing,
 * and an empty /proc that the inner half fills. It is put together by file descriptor (open_tree(2), fsmount(2), move_mount(2)) and
 * mounted over "/", which nobody can replace; so there is no directory whose owner, leftovers or links would have to be trusted.
 *
 * Only regular files that root owns and nobody else may write are bound.
 */
#include "jail/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"

#define KVM_PATH  "/dev/kvm"
#define KVM_MAJOR 10
#define KVM_MINOR 232

static int configure(int fs_fd, const char *const (*options)[2], Failure *reterr) {
        for (; (*options)[0]; options++)
                if (fsconfig(fs_fd, FSCONFIG_SET_STRING, (*options)[0], (*options)[1], 0) < 0)
                        return failure_set(reterr, -errno, "file system option %s=%s", (*options)[0], (*options)[1]);
        if (fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return failure_set(reterr, -errno, "creating a file system");
        return 0;
}

static int make_mount(
        const char *type, const char *const (*options)[2], unsigned attributes, int *ret_fd, Failure *reterr) {
        _cleanup_(fd_closep) int fs_fd = fsopen(type, FSOPEN_CLOEXEC);
        int fd, r;

        if (fs_fd < 0)
                return failure_set(reterr, -errno, "opening file system %s", type);
        r = configure(fs_fd, options, reterr);
        if (r < 0)
                return r;
        fd = fsmount(fs_fd, FSMOUNT_CLOEXEC, attributes);
        if (fd < 0)
                return failure_set(reterr, -errno, "making a mount of %s", type);
        *ret_fd = fd;
        return 0;
}

static int make_root(int *ret_fd, Failure *reterr) {
        static const char *const options[][2] = {
                {"mode",      "0755"},
                {"size",      "64k" },
                {"nr_inodes", "1k"  },
                {NULL,        NULL  },
        };
        _cleanup_(fd_closep) int fd = -EBADF;
        int r = make_mount("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd, reterr);

        if (r < 0)
                return r;
        if (move_mount(fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return failure_set(reterr, -errno, "mounting the jail's root");
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Makes the directories above path and an empty file to mount on. */
static int make_target(int root_fd, const char *path, Failure *reterr) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char part[PATH_MAX];

        for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                size_t n = (size_t) (slash - path - 1);

                memcpy(part, path + 1, n);
                part[n] = 0;
                if (mkdirat(root_fd, part, 0755) < 0 && errno != EEXIST)
                        return failure_set(reterr, -errno, "directory /%s inside the jail", part);
        }
        fd = openat(root_fd, path + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
        if (fd < 0)
                return failure_set(reterr, -errno, "%s inside the jail", path);
        return 0;
}

static int attach(int root_fd, int tree_fd, const char *path, Failure *reterr) {
        int r = make_target(root_fd, path, reterr);

        if (r < 0)
                return r;
        if (move_mount(tree_fd, "", root_fd, path + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return failure_set(reterr, -errno, "mounting %s inside the jail", path);
        return 0;
}

static int open_tree_of(const char *path, int *ret_fd, struct stat *ret_st, Failure *reterr) {
        _cleanup_(fd_closep) int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

        if (fd < 0)
                return failure_set(reterr, -errno, "%s", path);
        if (fstat(fd, ret_st) < 0)
                return failure_set(reterr, -errno, "%s", path);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int bind_file(int root_fd, const char *path, Failure *reterr) {
        _cleanup_(fd_closep) int fd = -EBADF;
        struct stat st;
        int r = open_tree_of(path, &fd, &st, reterr);

        if (r < 0)
                return r;
        if (!S_ISREG(st.st_mode))
                return failure_set(reterr, -EINVAL, "%s is no regular file", path);
        if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
                return failure_set(reterr, -EPERM, "%s could be changed by others than root", path);
        return attach(root_fd, fd, path, reterr);
}

/* Distributions let a group of its own open the device; a run gets that group. Root's own group is not handed out. */
static int kvm_group(const struct stat *st, gid_t *ret_gid, Failure *reterr) {
        const mode_t group = S_IRGRP | S_IWGRP, others = S_IROTH | S_IWOTH;

        if ((st->st_mode & others) == others) {
                *ret_gid = 0;
                return 0;
        }
        if ((st->st_mode & group) != group || st->st_gid == 0)
                return failure_set(
                        reterr, -EACCES,
                        "%s (mode %03o, group %u) opens for root only: it takes a group of its own and mode 0660",
                        KVM_PATH, st->st_mode & 0777, st->st_gid);
        *ret_gid = st->st_gid;
        return 0;
}

static int bind_kvm(int root_fd, gid_t *ret_gid, Failure *reterr) {
        /* No NODEV, which the rest of the tree has: it would shut the one device that is wanted. */
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
        _cleanup_(fd_closep) int fd = -EBADF;
        struct stat st;
        int r = open_tree_of(KVM_PATH, &fd, &st, reterr);

        if (r < 0)
                return r;
        if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(KVM_MAJOR, KVM_MINOR))
                return failure_set(reterr, -ENODEV, "%s is not the device of that name", KVM_PATH);
        if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                return failure_set(reterr, -errno, "attributes of %s", KVM_PATH);
        r = attach(root_fd, fd, KVM_PATH, reterr);
        if (r < 0)
                return r;
        return kvm_group(&st, ret_gid, reterr);
}

static int make_tree(int root_fd, const Options *options, Failure *reterr) {
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

        if (mkdirat(root_fd, "proc", 0555) < 0 || mkdirat(root_fd, "dev", 0755) < 0)
                return failure_set(reterr, -errno, "/proc and /dev inside the jail");
        for (size_t i = 0; i < options->n_binds; i++) {
                int r = bind_file(root_fd, options->binds[i], reterr);

                if (r < 0)
                        return r;
        }
        if (mount_setattr(root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
                return failure_set(reterr, -errno, "attributes of the jail's mounts");
        return 0;
}

static int make_read_only(int root_fd, Failure *reterr) {
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

        if (mount_setattr(root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
                return failure_set(reterr, -errno, "making the jail read-only");
        return 0;
}

/* pivot_root(2): with the same directory twice the old root ends on top of the new one and is taken off again. */
static int pivot(int root_fd, Failure *reterr) {
        if (fchdir(root_fd) < 0)
                return failure_set(reterr, -errno, "entering the jail's root");
        if (syscall(SYS_pivot_root, ".", ".") < 0)
                return failure_set(reterr, -errno, "pivot_root");
        if (umount2(".", MNT_DETACH) < 0)
                return failure_set(reterr, -errno, "dropping the old root");
        if (chdir("/") < 0)
                return failure_set(reterr, -errno, "entering /");
        return 0;
}

int root_enter(const Options *options, gid_t *ret_kvm_gid, Failure *reterr) {
        _cleanup_(fd_closep) int root_fd = -EBADF;
        gid_t kvm_gid = 0;
        int r;

        r = make_root(&root_fd, reterr);
        if (r < 0)
                return r;
        r = make_tree(root_fd, options, reterr);
        if (r < 0)
                return r;
        if (options->kvm) {
                r = bind_kvm(root_fd, &kvm_gid, reterr);
                if (r < 0)
                        return r;
        }
        r = make_read_only(root_fd, reterr);
        if (r < 0)
                return r;
        r = pivot(root_fd, reterr);
        if (r < 0)
                return r;
        *ret_kvm_gid = kvm_gid;
        return 0;
}

int root_mount_proc(Failure *reterr) {
        static const char *const options[][2] = {
                {"subset",  "pid"      },
                {"hidepid", "invisible"},
                {NULL,      NULL       },
        };
        _cleanup_(fd_closep) int fd = -EBADF;
        int r = make_mount("proc", options,
                           MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &fd, reterr);

        if (r < 0)
                return r;
        if (move_mount(fd, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return failure_set(reterr, -errno, "mounting /proc inside the jail");
        return 0;
}
