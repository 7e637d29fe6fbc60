/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about a whole jail, with test-jail-inside.c in QEMU's place: what it can reach (nothing), what the jail refuses to be told,
 * and who dies with whom. Takes root: namespaces and uids are real. Arguments: ephemeral-jail, test-jail-inside.
 */
#undef NDEBUG
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "jail/test-jail-harness.h"

#define SKIP      77
#define KEPT_FD   40
#define DEAD_MSEC 10000

#define PROBE(...)                                                                                                    \
        {                                                                                                             \
                .argv = { NULL, __VA_ARGS__ }                                                                         \
        }

static void run_probe(const char *name, const char *argument, const char *end) {
        HarnessJail j = PROBE(name, argument);

        harness_run(&j, end);
}

static void nothing_can_be_reached(void) {
        char uid[16];

        snprintf(uid, sizeof(uid), "%u", HARNESS_UID);
        run_probe("files", NULL, "exited 0");
        run_probe("write", NULL, "exited 0");
        run_probe("status", uid, "exited 0");
        run_probe("limits", NULL, "exited 0");
        run_probe("not-there", NULL, "exited 0");
        run_probe("threads", NULL, "exited 0");
}

static void forbidden_calls_kill(void) {
        static const long numbers[] = {
                SYS_socket, SYS_connect, SYS_execveat, SYS_fork,   SYS_clone,      SYS_ptrace,          SYS_kill,
                SYS_mount,  SYS_unshare, SYS_setns,    SYS_keyctl, SYS_bpf,        SYS_io_uring_enter,  SYS_pidfd_open,
                SYS_setuid, SYS_chroot,  SYS_shmget,   SYS_mknod,  SYS_getdents64, SYS_perf_event_open,
        };

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                char number[16];

                snprintf(number, sizeof(number), "%ld", numbers[i]);
                run_probe("call", number, "killed 31");
        }
        run_probe("run-itself-again", NULL, "killed 31");
}

static void only_the_named_fds_are_there(void) {
        HarnessJail none = PROBE("fds"), kept = PROBE("fds", "40");
        int fds[2], hidden = open("/etc/passwd", O_RDONLY); /* survives execve on purpose */

        assert(hidden >= 0 && pipe(fds) == 0 && dup2(fds[1], KEPT_FD) == KEPT_FD);
        harness_run(&none, "exited 0");
        kept.keep_fd = KEPT_FD;
        harness_run(&kept, "exited 0");
        fd_close(fds[0]);
        fd_close(fds[1]);
        fd_close(KEPT_FD);
        fd_close(hidden);
}

static void the_end_is_told(void) {
        run_probe("exit", "0", "exited 0");
        run_probe("exit", "3", "exited 3");
        run_probe("crash", NULL, "killed 11");
}

static void assert_refused(HarnessJail j, const char *word) {
        const char *text;

        harness_start(&j);
        text = harness_expect(&j, "error ");
        if (!strstr(text, word))
                fprintf(stderr, "got '%s', expected '%s'\n", text, word);
        assert(strstr(text, word));
        harness_finish(&j, EXIT_FAILURE);
}

static void assert_uid_refused(const char *uid) {
        HarnessJail j = {.uid = uid};

        assert_refused(j, "belongs to the machine");
}

static void ids_of_the_machine_are_refused(void) {
        assert_uid_refused("0");
        assert_uid_refused("1000");
        assert_uid_refused("65535");
}

static void assert_bind_refused(const char *path, const char *word) {
        HarnessJail j = {
                .binds = {harness_inside(), path}
        };

        assert_refused(j, word);
}

static void make_file(const char *path, mode_t mode, uid_t uid) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        assert(fd >= 0 && fchown(fd, uid, 0) == 0 && fchmod(fd, mode) == 0);
        fd_close(fd);
}

static void only_files_that_root_alone_can_change_are_bound(void) {
        char path[64], below[80];
        HarnessJail nested = {
                .binds = {harness_inside(), path, below}
        };

        snprintf(path, sizeof(path), "%s/other", harness_directory());
        snprintf(below, sizeof(below), "%s/below", path);
        assert_bind_refused(path, "No such file");
        assert_bind_refused(harness_directory(), "no regular file");
        assert_bind_refused("/dev/null", "no regular file");
        assert_bind_refused(harness_inside(), "File exists");
        make_file(path, 0646, 0);
        assert_bind_refused(path, "could be changed by others");
        assert(chmod(path, 0664) == 0);
        assert_bind_refused(path, "could be changed by others");
        assert(chmod(path, 0644) == 0 && chown(path, 1, 0) == 0);
        assert_bind_refused(path, "could be changed by others");
        assert(chown(path, 0, 0) == 0);
        assert_refused(nested, below);
        assert(unlink(path) == 0);
}

static void a_kept_directory_or_closed_fd_is_refused(void) {
        HarnessJail j = {.keep_fd = KEPT_FD};
        int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert(fd >= 0 && dup2(fd, KEPT_FD) == KEPT_FD);
        assert_refused(j, "would lead out of the jail");
        fd_close(fd);
        fd_close(KEPT_FD);
}

static void what_cannot_be_executed_is_told_and_never_started(void) {
        char path[64];
        HarnessJail j = {.binds = {path}, .argv = {path}};

        snprintf(path, sizeof(path), "%s/other", harness_directory());
        make_file(path, 0644, 0);
        harness_start(&j);
        harness_expect(&j, "verified ");
        harness_go(&j);
        assert(strstr(harness_expect(&j, "error executing "), "Permission denied"));
        harness_finish(&j, EXIT_FAILURE);
        assert(unlink(path) == 0);
}

static void without_the_word_nothing_runs_and_nothing_is_left(void) {
        HarnessJail j = PROBE("exit", "0");
        char text[128];

        harness_start(&j);
        snprintf(text, sizeof(text), "verified uid=%u links=lo:down addresses=0 routes=0", HARNESS_UID);
        assert(strcmp(harness_receive(&j), text) == 0);
        j.go_fd = fd_close(j.go_fd);
        harness_finish(&j, EXIT_SUCCESS);

        harness_start(&j);
        harness_expect(&j, "verified ");
        assert(write(j.go_fd, "x", 1) == 1);
        harness_expect(&j, "error byte 120");
        harness_finish(&j, EXIT_FAILURE);

        harness_start(&j);
        harness_expect(&j, "verified ");
        assert(kill(j.pid, SIGTERM) == 0);
        harness_finish(&j, -SIGTERM);
}

static void assert_dies(int pidfd) {
        struct pollfd p = {.fd = pidfd, .events = POLLIN};

        assert(poll(&p, 1, DEAD_MSEC) == 1);
        fd_close(pidfd);
}

/* The process in between stands for the manager. */
static void before_the_word_a_jail_dies_with_its_manager(void) {
        HarnessJail j = PROBE("exit", "0");
        int status, fds[2];
        pid_t manager, jail;

        assert(pipe(fds) == 0);
        manager = fork();
        assert(manager >= 0);
        if (manager == 0) {
                harness_start(&j);
                harness_expect(&j, "verified ");
                fcntl(j.go_fd, F_SETFD, 0);
                assert(write(fds[1], &j.pid, sizeof(j.pid)) == sizeof(j.pid));
                pause();
        }
        assert(read(fds[0], &jail, sizeof(jail)) == sizeof(jail));
        assert(kill(manager, SIGKILL) == 0 && waitpid(manager, &status, 0) == manager);
        assert(waitpid(jail, &status, 0) == jail);
        assert((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
               WIFEXITED(status)); /* or it saw the pipe first */
        fd_close(fds[0]);
        fd_close(fds[1]);
}

/* Starts one that waits, up to the point where it handles SIGTERM. The pid of what is inside. */
static pid_t start_waiting(HarnessJail *j) {
        char byte;
        pid_t pid;
        int fds[2];

        assert(pipe2(fds, O_CLOEXEC) == 0 && dup2(fds[1], KEPT_FD) == KEPT_FD);
        j->keep_fd = KEPT_FD;
        harness_start(j);
        harness_expect(j, "verified ");
        harness_go(j);
        pid = atoi(harness_expect(j, "started ") + strlen("started "));
        assert(pid > 1 && read(fds[0], &byte, 1) == 1 && byte == 'w');
        fd_close(fds[0]);
        fd_close(fds[1]);
        fd_close(KEPT_FD);
        return pid;
}

static void what_stops_a_scope_ends_qemu_and_the_outer_half_reports(void) {
        HarnessJail j = PROBE("wait", "40");
        pid_t pid = start_waiting(&j);

        assert(kill(j.pid, SIGTERM) == 0 && kill(j.pid, SIGHUP) == 0 && kill(j.pid, SIGINT) == 0);
        assert(kill(pid, SIGTERM) == 0);
        harness_expect(&j, "exited 7");
        harness_finish(&j, EXIT_SUCCESS);

        pid = start_waiting(&j);
        assert(kill(pid, SIGKILL) == 0);
        harness_expect(&j, "killed 9");
        harness_finish(&j, EXIT_SUCCESS);
}

static void qemu_dies_with_the_outer_half(void) {
        HarnessJail j = PROBE("wait", "40");
        pid_t pid = start_waiting(&j);
        int pidfd = pidfd_open(pid, 0), status;

        assert(pidfd >= 0 && kill(j.pid, SIGKILL) == 0);
        assert_dies(pidfd);
        harness_finish(&j, -SIGKILL);
        assert(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void an_outer_half_without_a_listener_stays_to_the_end(void) {
        HarnessJail j = PROBE("wait", "40");
        pid_t pid = start_waiting(&j);
        int status;

        fd_close(j.status_fd);
        fd_close(j.go_fd);
        assert(kill(pid, SIGTERM) == 0);
        assert(waitpid(j.pid, &status, 0) == j.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void read_proc(pid_t pid, const char *name, char *text, size_t size) {
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert(fd >= 0);
        n = read(fd, text, size - 1);
        assert(n > 0);
        text[n] = 0;
        fd_close(fd);
}

static ino_t namespace_of(pid_t pid, const char *type) {
        char path[64];
        struct stat st;

        snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, type);
        assert(stat(path, &st) == 0);
        return st.st_ino;
}

static void two_jails_share_nothing(void) {
        static const char *const types[] = {"mnt", "net", "ipc", "uts", "pid", "cgroup"};
        char number[16];
        HarnessJail a = PROBE("wait", "40"), b = PROBE("wait", "40");
        pid_t in_a, in_b;

        snprintf(number, sizeof(number), "%u", HARNESS_UID + 1);
        b.uid = number;
        in_a = start_waiting(&a);
        in_b = start_waiting(&b);
        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                assert(namespace_of(in_a, types[i]) != namespace_of(in_b, types[i]));
                assert(namespace_of(in_a, types[i]) != namespace_of(getpid(), types[i]));
        }
        kill(in_a, SIGTERM);
        kill(in_b, SIGTERM);
        harness_expect(&a, "exited 7");
        harness_expect(&b, "exited 7");
        harness_finish(&a, EXIT_SUCCESS);
        harness_finish(&b, EXIT_SUCCESS);
}

/* How many entries a directory has; each must be one of those named. */
static unsigned count_entries(pid_t pid, const char *name, const char *const known[]) {
        char path[64];
        unsigned n = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        dir = opendir(path);
        assert(dir);
        for (struct dirent *entry; (entry = readdir(dir));) {
                bool found = entry->d_name[0] == '.';

                n += !found;
                for (size_t i = 0; known[i] && !found; i++)
                        found = strcmp(known[i], entry->d_name) == 0;
                if (!found)
                        fprintf(stderr, "%s holds %s\n", path, entry->d_name);
                assert(found);
        }
        closedir(dir);
        return n;
}

/* Seen from outside: in there, nothing may so much as list a directory. */
static void the_tree_holds_what_was_bound(void) {
        static const char *const root[] = {"proc", "dev", "tmp", NULL}, *const none[] = {NULL};
        static const char *const proc[] = {"1", "self", "thread-self", NULL}, *const inside[] = {"inside", NULL};
        HarnessJail j = PROBE("wait", "40");
        pid_t pid = start_waiting(&j);
        char below[64];

        snprintf(below, sizeof(below), "root%s", harness_directory());
        assert(count_entries(pid, "root", root) == 3);
        assert(count_entries(pid, "root/dev", none) == 0);
        assert(count_entries(pid, "root/proc", proc) == 3);
        assert(count_entries(pid, below, inside) == 1);
        kill(pid, SIGKILL);
        harness_expect(&j, "killed 9");
        harness_finish(&j, EXIT_SUCCESS);
}

static void the_outer_half_has_no_rights_left(void) {
        static const char *const lines[] = {
                "\nCapPrm:\t0000000000000000\n",
                "\nCapEff:\t0000000000000000\n",
                "\nCapBnd:\t0000000000000000\n",
                "\nNoNewPrivs:\t1\n",
                "\nSeccomp:\t2\n",
                "\nGroups:\t \n",
        };
        static const char *const status_fd[] = {"61", NULL};
        HarnessJail j = PROBE("wait", "40");
        pid_t pid = start_waiting(&j);
        char text[8192], uid[64];

        read_proc(j.pid, "status", text, sizeof(text));
        snprintf(uid, sizeof(uid), "\nUid:\t%u\t%u\t%u\t%u\n", HARNESS_UID, HARNESS_UID, HARNESS_UID, HARNESS_UID);
        assert(strstr(text, uid));
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert(strstr(text, lines[i]));
        assert(count_entries(j.pid, "fd", status_fd) == 1);
        kill(pid, SIGKILL);
        harness_expect(&j, "killed 9");
        harness_finish(&j, EXIT_SUCCESS);
}

/* Root, the one file, /proc: the old root and everything mounted on it is gone, for both halves. */
static void three_mounts_are_left_all_of_them_read_only(void) {
        HarnessJail j = PROBE("wait", "40");
        pid_t pid = start_waiting(&j);
        const pid_t both[] = {pid, j.pid};
        char text[8192];

        for (size_t i = 0; i < ELEMENTSOF(both); i++) {
                unsigned lines = 0;
                char *rest;

                read_proc(both[i], "mountinfo", text, sizeof(text));
                for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                        assert(strstr(line, " ro,nosuid,nodev"));
                        lines++;
                }
                assert(lines == 3);
        }
        kill(pid, SIGKILL);
        harness_expect(&j, "killed 9");
        harness_finish(&j, EXIT_SUCCESS);
}

static unsigned count_own_mounts(void) {
        char *line = NULL;
        size_t size = 0;
        unsigned n = 0;
        FILE *f = fopen("/proc/self/mountinfo", "re");

        assert(f);
        while (getline(&line, &size, f) > 0)
                n++;
        free(line);
        fclose(f);
        return n;
}

int main(int argc, char **argv) {
        unsigned mounts = count_own_mounts();

        assert(argc == 3);
        if (geteuid() != 0) {
                fprintf(stderr, "skipped: a jail takes root\n");
                return SKIP;
        }
        assert(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0); /* what loses its parent becomes ours to wait for */
        harness_init(argv[1], argv[2]);
        nothing_can_be_reached();
        forbidden_calls_kill();
        only_the_named_fds_are_there();
        the_end_is_told();
        ids_of_the_machine_are_refused();
        only_files_that_root_alone_can_change_are_bound();
        a_kept_directory_or_closed_fd_is_refused();
        what_cannot_be_executed_is_told_and_never_started();
        without_the_word_nothing_runs_and_nothing_is_left();
        before_the_word_a_jail_dies_with_its_manager();
        what_stops_a_scope_ends_qemu_and_the_outer_half_reports();
        qemu_dies_with_the_outer_half();
        an_outer_half_without_a_listener_stays_to_the_end();
        two_jails_share_nothing();
        the_tree_holds_what_was_bound();
        the_outer_half_has_no_rights_left();
        three_mounts_are_left_all_of_them_read_only();
        harness_done();
        assert(!harness_uid_lives());
        assert(count_own_mounts() == mounts);
        return 0;
}
