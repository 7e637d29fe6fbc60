/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Starts ephemeral-jail as the manager does. Everything that goes wrong ends the test.
 */
#undef NDEBUG
#include "jail/test-jail-harness.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

#define GO_FD            60 /* where they are in the jail; away from what a test keeps */
#define STATUS_FD        61
#define COMMAND_MAX      32
#define DEADLINE_SECONDS 10

static const char *jail_path;
static char directory[] = "/tmp/test-jail-XXXXXX";
static char inside_path[64];

void harness_init(const char *jail, const char *inside) {
        char command[512];

        jail_path = jail;
        assert(mkdtemp(directory));
        snprintf(inside_path, sizeof(inside_path), "%s/inside", directory);
        snprintf(command, sizeof(command), "cp '%s' %s && chmod 0755 %s", inside, inside_path, inside_path);
        assert(system(command) == 0);
}

void harness_done(void) {
        assert(unlink(inside_path) == 0);
        assert(rmdir(directory) == 0);
}

const char *harness_inside(void) {
        return inside_path;
}

const char *harness_directory(void) {
        return directory;
}

static size_t add(char **command, size_t n, const char *option, const char *value) {
        assert(n < COMMAND_MAX - 1);
        assert(asprintf(&command[n], "%s%s", option, value) >= 0);
        return n + 1;
}

static _Noreturn void become_jail(const HarnessJail *j, int go_fd, int status_fd) {
        char *command[COMMAND_MAX] = {NULL}, number[16];
        char *const no_environment[] = {NULL};
        const char *uid = j->uid;
        size_t n = 0;

        snprintf(number, sizeof(number), "%u", HARNESS_UID);
        uid = uid ? uid : number;
        n = add(command, n, jail_path, "");
        n = add(command, n, "--uid=", uid);
        n = add(command, n, "--gid=", uid);
        n = add(command, n, "--go-fd=60", "");
        n = add(command, n, "--status-fd=61", "");
        for (size_t i = 0; j->binds[i]; i++)
                n = add(command, n, "--bind=", j->binds[i]);
        if (!j->binds[0])
                n = add(command, n, "--bind=", inside_path);
        if (j->keep_fd > 0) {
                snprintf(number, sizeof(number), "%d", j->keep_fd);
                n = add(command, n, "--keep-fd=", number);
                assert(fcntl(j->keep_fd, F_SETFD, 0) == 0);
        }
        n = add(command, n, "--", "");
        n = add(command, n, j->argv[0] ? j->argv[0] : inside_path, "");
        for (size_t i = 1; i < HARNESS_ARGS_MAX && j->argv[i]; i++)
                n = add(command, n, j->argv[i], "");
        assert(dup2(go_fd, GO_FD) >= 0 && dup2(status_fd, STATUS_FD) >= 0);
        execve(jail_path, command, no_environment);
        _exit(127);
}

void harness_start(HarnessJail *j) {
        struct timeval deadline = {.tv_sec = DEADLINE_SECONDS};
        int status_fds[2], go_fds[2];

        assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, status_fds) == 0);
        assert(setsockopt(status_fds[0], SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) == 0);
        assert(pipe2(go_fds, O_CLOEXEC) == 0);
        j->pid = fork();
        assert(j->pid >= 0);
        if (j->pid == 0)
                become_jail(j, go_fds[0], status_fds[1]);
        fd_close(go_fds[0]);
        fd_close(status_fds[1]);
        j->go_fd = go_fds[1];
        j->status_fd = status_fds[0];
}

void harness_go(HarnessJail *j) {
        assert(write(j->go_fd, "g", 1) == 1);
}

const char *harness_receive(HarnessJail *j) {
        static char text[HARNESS_TEXT_MAX];
        ssize_t n = recv(j->status_fd, text, sizeof(text) - 1, 0);

        if (n < 0 && errno == ECONNRESET) /* it ended with the word unread in its pipe */
                n = 0;
        assert(n >= 0);
        text[n] = 0;
        return text;
}

const char *harness_expect(HarnessJail *j, const char *beginning) {
        const char *text = harness_receive(j);

        if (strncmp(text, beginning, strlen(beginning)) != 0)
                fprintf(stderr, "got '%s', expected '%s'\n", text, beginning);
        assert(strncmp(text, beginning, strlen(beginning)) == 0);
        return text;
}

void harness_finish(HarnessJail *j, int status) {
        int now;

        assert(harness_receive(j)[0] == 0);
        assert(waitpid(j->pid, &now, 0) == j->pid);
        if (status < 0)
                assert(WIFSIGNALED(now) && WTERMSIG(now) == -status);
        else
                assert(WIFEXITED(now) && WEXITSTATUS(now) == status);
        fd_close(j->go_fd);
        fd_close(j->status_fd);
}

void harness_run(HarnessJail *j, const char *last_message) {
        harness_start(j);
        harness_expect(j, "verified ");
        harness_go(j);
        harness_expect(j, "started ");
        harness_expect(j, last_message);
        harness_finish(j, 0);
}

bool harness_uid_lives(void) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        bool lives = false;

        assert(proc);
        while ((entry = readdir(proc))) {
                struct stat st;

                if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
                    fstatat(dirfd(proc), entry->d_name, &st, 0) < 0)
                        continue;
                lives = lives || (st.st_uid & ~0xffU) == HARNESS_UID;
        }
        closedir(proc);
        return lives;
}
