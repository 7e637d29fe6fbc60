/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One polkit agent for the life of the program, as systemctl has it: started before the first call, and waited for
 * until it has registered, so that the question does not come too early.
 */
#include "ctl/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

#define REGISTER_MSEC 5000

static pid_t agent_pid;

static void agent_exec(int notify_fd, pid_t parent) {
        char fd[16];
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) /* it died before the kernel was asked */
                _exit(EXIT_FAILURE);
        fcntl(notify_fd, F_SETFD, 0);
        snprintf(fd, sizeof(fd), "%d", notify_fd);
        execlp("pkttyagent", "pkttyagent", "--notify-fd", fd, "--fallback", NULL);
        _exit(EXIT_FAILURE);
}

/* It closes its end when it has registered, and so does its death. */
static void wait_for_close(int fd) {
        struct pollfd p = {.fd = fd};

        while (poll(&p, 1, REGISTER_MSEC) < 0 && errno == EINTR)
                ;
}

void agent_start(void) {
        _cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
        pid_t self = getpid();
        int fds[2];

        if (agent_pid > 0 || geteuid() == 0 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
                return;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return;
        ours = fds[0];
        theirs = fds[1];
        agent_pid = fork();
        if (agent_pid == 0)
                agent_exec(theirs, self);
        theirs = fd_close(theirs);
        if (agent_pid > 0)
                wait_for_close(ours);
}

void agent_stop(void) {
        if (agent_pid <= 0)
                return;
        kill(agent_pid, SIGTERM);
        kill(agent_pid, SIGCONT);
        waitpid(agent_pid, NULL, 0);
        agent_pid = 0;
}
