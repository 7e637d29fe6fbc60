/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which file descriptors live in the jail. A descriptor is a right: QEMU gets those that the manager named and none besides, the
 * outer half keeps its status socket and what it was asked to hold.
 */
#include "jail/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

static int check_own(const Options *o, Failure *reterr) {
        int type = 0;
        socklen_t size = sizeof(type);
        struct stat st;

        if (getsockopt(o->status_fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
                return failure_set(reterr, -errno, "--status-fd=%d", o->status_fd);
        if (type != SOCK_SEQPACKET)
                return failure_set(reterr, -EPROTOTYPE, "--status-fd=%d", o->status_fd);
        if (fstat(o->go_fd, &st) < 0)
                return failure_set(reterr, -errno, "--go-fd=%d", o->go_fd);
        if (!S_ISFIFO(st.st_mode))
                return failure_set(reterr, -ESPIPE, "--go-fd=%d is no pipe", o->go_fd);
        return 0;
}

static int check_kept(const Options *o, Failure *reterr) {
        for (size_t i = 0; i < o->n_keep_fds; i++) {
                struct stat st;

                if (fstat(o->keep_fds[i], &st) < 0)
                        return failure_set(reterr, -errno, "--keep-fd=%d", o->keep_fds[i]);
                if (S_ISDIR(st.st_mode))
                        return failure_set(reterr, -EISDIR, "--keep-fd=%d would lead out of the jail", o->keep_fds[i]);
        }
        return 0;
}

static int prepare_streams(Failure *reterr) {
        _cleanup_(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

        if (null_fd < 0)
                return failure_set(reterr, -errno, "/dev/null");
        if (null_fd <= STDERR_FILENO) { /* it took the place of a stream that was closed */
                int moved = fcntl(null_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

                if (moved < 0)
                        return failure_set(reterr, -errno, "/dev/null");
                fd_close(null_fd);
                null_fd = moved;
        }
        for (int fd = 0; fd <= STDERR_FILENO; fd++) {
                if (fd == STDERR_FILENO && fcntl(fd, F_GETFD) >= 0)
                        break;
                if (dup2(null_fd, fd) < 0)
                        return failure_set(reterr, -errno, "standard stream %d", fd);
        }
        return 0;
}

/* The smallest named fd that is at least from; -EBADF when there is none. */
static int next_named(const Options *o, int from) {
        int next = -EBADF;

        for (size_t i = 0; i < o->n_keep_fds && next < 0; i++)
                if (o->keep_fds[i] >= from)
                        next = o->keep_fds[i];
        if (o->go_fd >= from && (next < 0 || o->go_fd < next))
                next = o->go_fd;
        if (o->status_fd >= from && (next < 0 || o->status_fd < next))
                next = o->status_fd;
        return next;
}

static int close_unnamed(const Options *o, Failure *reterr) {
        int from = STDERR_FILENO + 1;

        for (;;) {
                int fd = next_named(o, from);
                unsigned last = fd < 0 ? ~0U : (unsigned) fd - 1;

                if (fd != from && close_range((unsigned) from, last, 0) < 0)
                        return failure_set(reterr, -errno, "close_range");
                if (fd < 0)
                        return 0;
                from = fd + 1;
        }
}

int fds_prepare(const Options *options, Failure *reterr) {
        int r;

        r = check_own(options, reterr);
        if (r < 0)
                return r;
        r = check_kept(options, reterr);
        if (r < 0)
                return r;
        r = close_unnamed(options, reterr);
        if (r < 0)
                return r;
        return prepare_streams(reterr);
}

int fds_close_on_exec(const Options *options, Failure *reterr) {
        if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
                return failure_set(reterr, -errno, "close_range");
        for (size_t i = 0; i < options->n_keep_fds; i++)
                if (!options->held[i] && fcntl(options->keep_fds[i], F_SETFD, 0) < 0)
                        return failure_set(reterr, -errno, "--keep-fd=%d", options->keep_fds[i]);
        return 0;
}

/* The standard streams too; the go pipe has done its work. */
int fds_close_for_outer(const Options *options, Failure *reterr) {
        for (size_t i = 0; i < options->n_keep_fds; i++)
                if (!options->held[i])
                        close(options->keep_fds[i]);
        close(options->go_fd);
        if (close_range(0, STDERR_FILENO, 0) < 0)
                return failure_set(reterr, -errno, "close_range");
        return close_unnamed(options, reterr);
}
