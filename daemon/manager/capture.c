/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The output of a short program, for questions that only the program itself can answer. Not for use inside the event loop.
 */
#include "manager/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#include "common/cleanup.h"

#define DEADLINE_MSEC 10000

static int64_t now_msec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int start(char *const argv[], int write_fd, pid_t *ret) {
        char *const no_environment[] = {NULL};
        posix_spawn_file_actions_t actions;
        int r;

        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawn_file_actions_adddup2(&actions, write_fd, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn(ret, argv[0], &actions, NULL, argv, no_environment);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

/* 1 with *ret_n bytes more (0 at the end), or -errno. */
static int read_some(int fd, int64_t deadline, char *data, size_t room, size_t *ret_n) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_msec();
        ssize_t n;
        int r;

        r = poll(&p, 1, left > 0 ? (int) left : 0);
        if (r < 0)
                return -errno;
        if (r == 0)
                return -ETIMEDOUT;
        n = read(fd, data, room);
        if (n < 0)
                return -errno;
        *ret_n = (size_t) n;
        return 1;
}

static int read_all(int fd, char *text, size_t max) {
        int64_t deadline = now_msec() + DEADLINE_MSEC;
        size_t size = 0, n = 0;
        int r;

        do {
                r = read_some(fd, deadline, text + size, max + 1 - size, &n);
                if (r == -EINTR)
                        continue;
                if (r < 0)
                        return r;
                size += n;
                if (size > max)
                        return -EFBIG;
        } while (r == -EINTR || n > 0);
        text[size] = 0;
        return 0;
}

int capture(char *const argv[], size_t max, char **ret_text) {
        _cleanup_(freep) char *text = malloc(max + 1);
        _cleanup_(fd_closep) int read_fd = -EBADF, write_fd = -EBADF;
        int fds[2], status, r;
        pid_t pid;

        if (!text)
                return -ENOMEM;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        read_fd = fds[0];
        write_fd = fds[1];
        r = start(argv, write_fd, &pid);
        if (r < 0)
                return r;
        write_fd = fd_close(write_fd);
        r = read_all(read_fd, text, max);
        if (r < 0)
                kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (r < 0)
                return r;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return -EPROTO;
        *ret_text = TAKE_PTR(text);
        return 0;
}
