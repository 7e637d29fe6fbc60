/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "init/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

#define PORTS_DIRECTORY "/sys/class/virtio-ports"
#define STEP_MS         2U

static void sleep_step(void) {
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
}

int wait_for_path(const char *path, unsigned timeout_ms) {
        for (unsigned waited = 0; waited <= timeout_ms; waited += STEP_MS) {
                if (access(path, F_OK) == 0)
                        return 0;
                sleep_step();
        }
        return -ETIMEDOUT;
}

static bool port_has_name(const char *device, const char *name) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char path[PATH_MAX], line[64];
        ssize_t n;

        snprintf(path, sizeof(path), PORTS_DIRECTORY "/%s/name", device);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        n = read(fd, line, sizeof(line) - 1);
        if (n < 0)
                return false;
        line[n] = 0;
        line[strcspn(line, "\n")] = 0;
        return strcmp(line, name) == 0;
}

DEFINE_CLEANUP(DIR *, closedir);

/* The device file of the port, or -ENOENT: the host names a port a moment after it is there. */
static int find_port(const char *name, char *ret, size_t size) {
        _cleanup_(closedirp) DIR *ports = opendir(PORTS_DIRECTORY);
        const struct dirent *entry;

        if (!ports)
                return -ENOENT;
        while ((entry = readdir(ports))) {
                if (entry->d_name[0] == '.' || !port_has_name(entry->d_name, name))
                        continue;
                snprintf(ret, size, "/dev/%s", entry->d_name);
                return 0;
        }
        return -ENOENT;
}

static bool host_is_connected(int fd) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};

        return poll(&p, 1, 0) >= 0 && !(p.revents & POLLHUP);
}

int wait_for_port(const char *name, unsigned timeout_ms) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char path[PATH_MAX];

        for (unsigned waited = 0; waited <= timeout_ms; waited += STEP_MS) {
                if (fd < 0 && find_port(name, path, sizeof(path)) >= 0)
                        fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
                if (fd >= 0 && host_is_connected(fd))
                        return TAKE_FD(fd);
                sleep_step();
        }
        return -ETIMEDOUT;
}
