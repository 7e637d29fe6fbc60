/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In the place of ephemeral-jail: the same command line, fds and status words, and behind them no QEMU but a process that speaks QMP and
 * the guest's protocol. What the "guest" does is told by the run's command:
 *   print TEXT | exit N | cat | sleep | kill-self | garbage | flood BYTES | poweroff | no-exec | memory
 * and how it is to fail by one word in the file of its own path with ".fail" behind it: verified, device, link, silent, error; template
 * (a machine that is to be frozen ends), clone (a clone ends), scribble (a clone writes to what it was cloned from), wake (one that
 * waited for a run ends when that comes).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/message.h"

/* The plan's numbers, daemon/manager/plan.h and jail.h. */
enum {
        GO_FD = 3,
        STATUS_FD = 4,
        QMP_FD = 6,
        CONTROL_FD = 8,
        CLONE_RAM_FD = 9,
        CLONE_STATE_FD = 10,
        TEMPLATE_RAM_FD = 11,
};

static char fail_word[32];
static bool is_template, is_clone;

static bool fails(const char *word) {
        return strcmp(fail_word, word) == 0;
}

static void send_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = write(fd, p, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        _exit(0);
                p += n;
                size -= (size_t) n;
        }
}

static void say(uint8_t type, const void *data, size_t size) {
        uint8_t header[FRAME_HEADER_SIZE];

        frame_encode_header(header, type, size);
        send_all(CONTROL_FD, header, sizeof(header));
        send_all(CONTROL_FD, data, size);
}

/* Also when the parent died before the kernel was asked: the ends of all sockets are held open, so that nothing else would tell. */
static void die_with(pid_t parent) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(0);
}

/* ---- QMP: enough of it for the manager's five questions ---- */

static const char *qmp_answer(const char *line) {
        if (strstr(line, "peripheral-anon"))
                return "[]";
        if (strstr(line, "peripheral"))
                return fails("device") ? "[{\"name\":\"net0\",\"type\":\"child<virtio-net-device>\"}]"
                                       : "[{\"name\":\"image\",\"type\":\"child<virtio-blk-device>\"},"
                                         "{\"name\":\"entropy\",\"type\":\"child<virtio-rng-device>\"},"
                                         "{\"name\":\"serial\",\"type\":\"child<virtio-serial-device>\"},"
                                         "{\"name\":\"console\",\"type\":\"child<virtconsole>\"},"
                                         "{\"name\":\"control\",\"type\":\"child<virtserialport>\"}]";
        if (strstr(line, "unattached"))
                return "[{\"name\":\"device[0]\",\"type\":\"child<max-x86_64-cpu>\"}]";
        if (strstr(line, "query-rx-filter"))
                return "[]";
        if (strstr(line, "query-kvm"))
                return "{\"enabled\":false,\"present\":true}";
        return "{}";
}

/* A state that was written while the machine was stopped says "paused", and a clone of it may never wake: no template is made of it. */
static const char *qmp_event(const char *line) {
        static bool stopped;

        stopped = strstr(line, "\"cont\"") ? false : stopped || strstr(line, "\"stop\"");
        if (strstr(line, "\"migrate\"") && stopped)
                return "{\"event\":\"MIGRATION\",\"data\":{\"status\":\"failed\"}}\r\n";
        if (strstr(line, "\"migrate\""))
                return "{\"event\":\"MIGRATION\",\"data\":{\"status\":\"completed\"}}\r\n";
        if (strstr(line, "\"cont\""))
                return "{\"event\":\"RESUME\"}\r\n";
        return "";
}

/* The guest is let go by "cont"; what is asked later is answered by a process of its own. */
static void serve_qmp(void) {
        FILE *in = fdopen(dup(QMP_FD), "r");
        pid_t guest = getpid();
        char *line = NULL;
        size_t room = 0;

        dprintf(QMP_FD, "{\"QMP\":{\"version\":{},\"capabilities\":[]}}\r\n");
        while (getline(&line, &room, in) > 0) {
                dprintf(QMP_FD, "{\"return\":%s}\r\n%s", qmp_answer(line), qmp_event(line));
                if (!strstr(line, "\"cont\"") || getpid() != guest)
                        continue;
                if (fork() > 0)
                        return;
                die_with(guest);
        }
        _exit(0);
}

/* ---- the guest ---- */

static FrameReader reader;

static Frame next_frame(void) {
        Frame frame;

        while (frame_reader_next(&reader, &frame) == 0)
                if (frame_reader_fill(&reader, CONTROL_FD) <= 0)
                        _exit(0);
        return frame;
}

static void say_exited(ExitedHow how, uint32_t status) {
        uint8_t frame[EXITED_FRAME_SIZE];
        ssize_t n = message_encode_exited(
                frame,
                &(ExitedMessage){.how = (uint8_t) how, .status = status, .user_usec = 1000, .duration_usec = 2000});

        send_all(CONTROL_FD, frame, (size_t) n);
}

/* Everything that comes in goes out, until the end of file. */
static void command_cat(void) {
        uint8_t credit[CREDIT_FRAME_SIZE];

        for (;;) {
                Frame frame = next_frame();

                if (frame.type != FRAME_STDIN)
                        return;
                say(FRAME_STDOUT, frame.data, frame.size);
                send_all(CONTROL_FD, credit, (size_t) message_encode_stdin_credit(credit, (uint32_t) frame.size));
        }
}

static void command_flood(const char *bytes) {
        static char data[32768];
        size_t left = strtoul(bytes, NULL, 10);

        memset(data, 'f', sizeof(data));
        while (left > 0) {
                size_t n = left < sizeof(data) ? left : sizeof(data);

                say(FRAME_STDOUT, data, n);
                left -= n;
        }
}

/* ---- memory ---- */

enum {
        MEMORY_BYTES = 64 * 1024,
};

static void write_memory(void) {
        static char data[MEMORY_BYTES];

        memset(data, 'm', sizeof(data));
        if (pwrite(TEMPLATE_RAM_FD, data, sizeof(data), 4096) != (ssize_t) sizeof(data))
                _exit(2);
}

/* Says what is in it, and how long it and the state are. */
static void command_memory(void) {
        static char data[MEMORY_BYTES];
        unsigned long sum = 0;
        char text[96];
        int n;

        if (pread(CLONE_RAM_FD, data, sizeof(data), 4096) != (ssize_t) sizeof(data))
                _exit(2);
        for (size_t i = 0; i < sizeof(data); i++)
                sum = sum * 31 + (unsigned char) data[i];
        n = snprintf(text, sizeof(text), "sum %lx ram %ld state %ld", sum, (long) lseek(CLONE_RAM_FD, 0, SEEK_END),
                     (long) lseek(CLONE_STATE_FD, 0, SEEK_END));
        say(FRAME_STDOUT, text, (size_t) n);
}

/* As a QEMU that an attacker has taken over: every way to change a file that one holds. */
static void scribble(int fd) {
        char path[32];
        void *map;
        int again;

        (void) !pwrite(fd, "evil", 4, 4096);
        (void) !ftruncate(fd, 8192);
        (void) fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536);
        map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED)
                memset(map, 'e', 65536);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDWR);
        if (again >= 0) {
                (void) !pwrite(again, "evil", 4, 4096);
                (void) !ftruncate(again, 0);
        }
        (void) fcntl(fd, F_ADD_SEALS, 0);
}

static void run_command(const char *name, const char *argument) {
        if (strcmp(name, "print") == 0)
                say(FRAME_STDOUT, argument, strlen(argument));
        else if (strcmp(name, "cat") == 0)
                command_cat();
        else if (strcmp(name, "memory") == 0)
                command_memory();
        else if (strcmp(name, "flood") == 0)
                command_flood(argument);
        else if (strcmp(name, "garbage") == 0)
                send_all(CONTROL_FD, "this is no frame at all", 23);
        else if (strcmp(name, "poweroff") == 0)
                dprintf(QMP_FD,
                        "{\"event\":\"SHUTDOWN\",\"data\":{\"guest\":true,\"reason\":\"guest-shutdown\"}}\r\n");
        if (strcmp(name, "sleep") == 0 || strcmp(name, "garbage") == 0 || strcmp(name, "poweroff") == 0)
                for (;;)
                        pause();
        if (strcmp(name, "kill-self") == 0)
                say_exited(EXITED_BY_SIGNAL, SIGKILL);
        else if (strcmp(name, "no-exec") == 0)
                say_exited(EXITED_NO_EXEC, ENOENT);
        else
                say_exited(EXITED_NORMALLY, strcmp(name, "exit") == 0 ? (uint32_t) atoi(argument) : 0);
}

static void say_links(void) {
        uint8_t links[LINKS_FRAME_SIZE_MAX];
        LinksMessage m = {.n_links = 1, .links = {{1, 9, "lo"}}};

        if (fails("link")) {
                m.n_links = 2;
                m.links[1] = (GuestLink){2, 1, "eth0"};
        }
        send_all(CONTROL_FD, links, (size_t) message_encode_links(links, &m));
}

static void greet(void) {
        uint8_t hello[HELLO_FRAME_SIZE_MAX];
        HelloMessage m = {MESSAGE_PROTOCOL_VERSION, "6.1.0-fake"};

        if (!is_clone) /* its template has said it */
                send_all(CONTROL_FD, hello, (size_t) message_encode_hello(hello, &m));
        if (next_frame().type != FRAME_SETUP)
                _exit(1);
        say_links();
}

static void serve_command(void) {
        char arguments[2][256] = {"", ""};
        uint8_t started[STARTED_FRAME_SIZE];
        size_t n = 0;
        Frame frame;

        while ((frame = next_frame()).type != FRAME_START)
                if (frame.type == FRAME_SETUP && fails("wake"))
                        _exit(3);
                else if (frame.type == FRAME_SETUP)
                        say_links();
                else if (frame.type == FRAME_ARG && n < 2)
                        snprintf(arguments[n++], sizeof(arguments[0]), "%.*s", (int) frame.size,
                                 (const char *) frame.data);
        send_all(CONTROL_FD, started, (size_t) message_encode_started(started, 77));
        run_command(arguments[0], arguments[1]);
}

static void guest(void) {
        frame_reader_init(&reader);
        serve_qmp();
        if (fails("silent"))
                for (;;)
                        pause();
        if ((is_template && fails("template")) || (is_clone && fails("clone"))) {
                fprintf(stderr, "warning: this is deprecated\nno more memory\n");
                _exit(3);
        }
        if (is_template)
                write_memory();
        if (is_clone && fails("scribble")) {
                scribble(CLONE_RAM_FD);
                scribble(CLONE_STATE_FD);
        }
        greet();
        for (;;)
                serve_command();
}

/* ---- the jail ---- */

static void status(const char *text) {
        (void) !send(STATUS_FD, text, strlen(text), MSG_NOSIGNAL);
}

static void read_fail_word(const char *own_path) {
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s.fail", own_path);
        f = fopen(path, "r");
        if (f) {
                if (!fgets(fail_word, sizeof(fail_word), f))
                        fail_word[0] = 0;
                fclose(f);
        }
}

static void read_arguments(char *argv[]) {
        for (; *argv; argv++) {
                is_template |= strstr(*argv, "share=on") != NULL;
                is_clone |= strcmp(*argv, "-incoming") == 0;
        }
}

int main(int argc, char *argv[]) {
        char text[128], go;
        int wait_status;
        pid_t self = getpid(), pid;

        read_fail_word(argv[0]);
        read_arguments(argv);
        signal(SIGTERM, SIG_IGN);
        if (fails("error")) {
                status("error mounting /proc failed: Operation not permitted");
                return 1;
        }
        snprintf(text, sizeof(text), "verified uid=%s links=lo:down%s addresses=0 routes=0",
                 argv[1] + strlen("--uid="), fails("verified") ? ",eth0:up" : "");
        status(text);
        if (read(GO_FD, &go, 1) != 1)
                return 0;
        pid = fork();
        if (pid == 0) {
                signal(SIGTERM, SIG_DFL);
                die_with(self);
                guest();
        }
        snprintf(text, sizeof(text), "started %d", (int) pid);
        status(text);
        close(QMP_FD);
        close(CONTROL_FD);
        while (waitpid(pid, &wait_status, 0) < 0)
                ;
        if (WIFEXITED(wait_status))
                snprintf(text, sizeof(text), "exited %d", WEXITSTATUS(wait_status));
        else
                snprintf(text, sizeof(text), "killed SIG%s", sigabbrev_np(WTERMSIG(wait_status)));
        status(text);
        return 0;
}
