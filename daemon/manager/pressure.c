/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"

/* "some": at least one task waited; of each 2 s so many usec. The kernel wants the NUL as well. */
static const char trigger[] = "some 200000 2000000";

int pressure_watch(
        sd_event *event, const char *path, sd_event_io_handler_t handler, void *userdata, sd_event_source **ret) {
        _cleanup_(fd_closep) int fd = -EBADF;
        uint32_t events = EPOLLIN;
        struct stat st;
        int r;

        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISFIFO(st.st_mode)) {
                events = EPOLLPRI;
                if (write(fd, trigger, sizeof(trigger)) != (ssize_t) sizeof(trigger))
                        return -errno;
        }
        r = sd_event_add_io(event, ret, fd, events, handler, userdata);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(*ret, true);
        if (r < 0)
                *ret = sd_event_source_disable_unref(*ret);
        else
                TAKE_FD(fd);
        return r;
}

int pressure_read(sd_event_source *source, int fd, uint32_t revents) {
        char data[64];

        if (revents & (EPOLLERR | EPOLLHUP)) /* the cgroup or the kernel's file is gone: nothing comes any more */
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (revents & EPOLLIN)
                (void) !read(fd, data, sizeof(data));
        return 0;
}
