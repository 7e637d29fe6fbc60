/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * File descriptors: closing without losing errno, whole writes and bounded reads. Used by every program of the suite.
 * An empty fd is -EBADF, so that a use of it fails by itself.
 */
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int fd_close(int fd) {
        if (fd >= 0) {
                int saved = errno;

                close(fd);
                errno = saved;
        }
        return -EBADF;
}

int fd_write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = write(fd, p, size);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

int fd_read_file(int fd, size_t max, char **ret_data, size_t *ret_size) {
        _cleanup_(freep) char *data = NULL;
        size_t size = 0, room;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EBADFD;
        if ((size_t) st.st_size > max)
                return -EFBIG;

        room = (size_t) st.st_size + 1; /* one more than it said: a file that grows is noticed */
        data = malloc(room + 1);
        if (!data)
                return -ENOMEM;
        while (size < room) {
                ssize_t n = read(fd, data + size, room - size);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        if (size == room)
                return -EFBIG;
        data[size] = 0;
        *ret_data = TAKE_PTR(data);
        if (ret_size)
                *ret_size = size;
        return 0;
}

int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size) {
        _cleanup_(fd_closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        if (fd < 0)
                return -errno;
        return fd_read_file(fd, max, ret_data, ret_size);
}

int fd_set_nonblocking(int fd, bool on) {
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0)
                return -errno;
        flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
        return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}
