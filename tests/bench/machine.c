/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "machine.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "manager/host.h"
#include "manager/jail.h"
#include "manager/template-file.h"
#include "manager/warm-up.h"

typedef struct Machine {
        pid_t pid;
        int qmp, control, console;
        FILE *answers;
        FrameReader reader;
        uint64_t started_usec;
} Machine;

Recipe *bare_recipe(const char *images, const char *image) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        RecipeSettings settings = {.vcpus = 1, .memory_mib = 256, .disk_mib = 64};
        Recipe *recipe;
        Image *files;
        char *text = NULL;
        Host host;
        Qemu *qemu;

        if (host_probe(&host) < 0 || qemu_probe(QEMU_BINARY, &qemu, &text) < 0)
                errx(1, "no QEMU: %s", text ? text : "nothing is known of this host");
        if (image_open(images, image, &files, &error) < 0)
                errx(1, "%s", error.message);
        settings.qemu = qemu;
        settings.tsc_khz = host.tsc_khz;
        settings.processor = host.processor;
        if (recipe_new(&settings, files, &recipe) < 0)
                errx(1, "no recipe");
        qemu_free(qemu);
        return recipe;
}

/* ---- QEMU ---- */

static void exec_qemu(const VmSettings *settings, const int *files) {
        const Plan *plan = settings->plan;
        int kept[PLAN_FD_COUNT];
        char *no_environment[] = {NULL};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < plan->n_fds; i++) { /* out of the way first */
                kept[i] = fcntl(files[plan->fds[i]], F_DUPFD_CLOEXEC, 100);
                if (kept[i] < 0)
                        _exit(126);
        }
        for (size_t i = 0; i < plan->n_fds; i++)
                if (dup2(kept[i], plan_fd_number(plan->kind, plan->fds[i])) < 0)
                        _exit(126);
        execve(plan->arguments[0], plan->arguments, no_environment);
        _exit(127);
}

static int pair(int *ret_theirs) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                err(1, "socketpair");
        *ret_theirs = fds[1];
        return fds[0];
}

static Machine start(VmSettings *settings) {
        Machine m = {0};
        int files[PLAN_FD_COUNT];

        memcpy(files, settings->files, sizeof(files));
        frame_reader_init(&m.reader);
        m.qmp = pair(&files[PLAN_FD_QMP]);
        m.control = pair(&files[PLAN_FD_CONTROL]);
        m.console = pair(&files[PLAN_FD_CONSOLE]);
        m.started_usec = clock_monotonic_usec();
        m.pid = fork();
        if (m.pid < 0)
                err(1, "fork");
        if (m.pid == 0)
                exec_qemu(settings, files);
        close(files[PLAN_FD_QMP]);
        close(files[PLAN_FD_CONTROL]);
        close(files[PLAN_FD_CONSOLE]);
        m.answers = fdopen(dup(m.qmp), "r");
        if (!m.answers)
                err(1, "fdopen");
        plan_free(settings->plan);
        return m;
}

static void end(Machine *m) {
        kill(m->pid, SIGKILL);
        if (waitpid(m->pid, NULL, 0) < 0)
                err(1, "waitpid");
        fclose(m->answers);
        close(m->qmp);
        close(m->control);
        close(m->console);
        frame_reader_done(&m->reader);
}

static void tell(const Machine *m, const char *line) {
        if (write(m->qmp, line, strlen(line)) != (ssize_t) strlen(line))
                err(1, "QEMU's monitor");
}

static void wait_for(Machine *m, const char *words) {
        char *line = NULL;
        size_t size = 0;

        while (getline(&line, &size, m->answers) > 0) {
                if (strstr(line, "\"error\""))
                        errx(1, "QEMU: %s", line);
                if (strstr(line, words)) {
                        free(line);
                        return;
                }
        }
        errx(1, "QEMU went away before %s", words);
}

static void tell_with_fd(const Machine *m, const char *line, int fd) {
        union {
                char space[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {0};
        struct iovec iov = {(void *) line, strlen(line)};
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
        if (sendmsg(m->qmp, &message, 0) < 0)
                err(1, "QEMU's monitor");
}

#define CAPABILITIES                                                                                                  \
        "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":[{\"capability\":"                 \
        "\"x-ignore-shared\",\"state\":true},{\"capability\":\"events\",\"state\":true}]}}\n"
#define GO "{\"execute\":\"qmp_capabilities\"}\n"

/* ---- the guest ---- */

static Frame next(Machine *m) {
        Frame frame;
        int r;

        while ((r = frame_reader_next(&m->reader, &frame)) == 0)
                if (frame_reader_fill(&m->reader, m->control) <= 0)
                        errx(1, "the guest went away");
        if (r < 0)
                errx(1, "the guest speaks no protocol: %s", strerror(-r));
        return frame;
}

static Frame expect(Machine *m, FrameType type) {
        Frame frame;

        while ((frame = next(m)).type != type)
                if (frame.type != FRAME_LOG && frame.type != FRAME_STDIN_CREDIT)
                        errx(1, "the guest says 0x%x where 0x%x was expected", frame.type, (unsigned) type);
        return frame;
}

static void say(const Machine *m, const void *data, ssize_t size) {
        if (size < 0 || write(m->control, data, (size_t) size) != size)
                err(1, "the guest's port");
}

static void greet(Machine *m) {
        uint8_t frame[SETUP_FRAME_SIZE_MAX];
        SetupMessage setup = {.realtime_usec = clock_realtime_usec(), .hostname = "bench"};

        if (getrandom(setup.entropy, sizeof(setup.entropy), 0) != sizeof(setup.entropy))
                err(1, "getrandom");
        say(m, frame, message_encode_setup(frame, &setup));
        (void) expect(m, FRAME_LINKS);
}

static void command(const Machine *m, char *const *argv) {
        uint8_t header[FRAME_HEADER_SIZE], frame[START_FRAME_SIZE];
        StartMessage message = {.uid = 1000, .gid = 1000};

        for (; *argv; argv++) {
                frame_encode_header(header, FRAME_ARG, strlen(*argv));
                say(m, header, sizeof(header));
                say(m, *argv, (ssize_t) strlen(*argv));
        }
        say(m, frame, message_encode_start(frame, &message));
}

static BareTimes finish(Machine *m) {
        BareTimes times = {0};
        Frame frame;

        (void) expect(m, FRAME_STARTED);
        while ((frame = next(m)).type != FRAME_EXITED) {
                if (frame.type != FRAME_STDOUT && frame.type != FRAME_STDERR)
                        continue;
                if (times.bytes == 0)
                        times.first_usec = clock_monotonic_usec() - m->started_usec;
                times.bytes += frame.size;
        }
        times.exited_usec = clock_monotonic_usec() - m->started_usec;
        return times;
}

/* ---- what is asked for ---- */

static void boot(Machine *m) {
        tell(m, GO "{\"execute\":\"cont\"}\n");
        (void) expect(m, FRAME_HELLO);
        greet(m);
}

static void restore(Machine *m) {
        char line[128];

        tell(m, GO CAPABILITIES);
        snprintf(line, sizeof(line), "{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:%d\"}}\n",
                 plan_fd_number(PLAN_CLONE, PLAN_FD_STATE));
        tell(m, line);
        tell(m, "{\"execute\":\"cont\"}\n");
        wait_for(m, "\"RESUME\"");
        greet(m);
}

BareTemplate bare_build(const Recipe *recipe) {
        BareTemplate t;
        VmSettings settings = {.files = VM_NO_FILES};
        Machine m;

        if (template_file_new("ram", recipe->input.memory_mib << 20, &t.ram_fd) < 0 ||
            template_file_new("state", 0, &t.state_fd) < 0 || recipe_fill(recipe, PLAN_TEMPLATE, &settings) < 0)
                err(1, "template");
        settings.files[PLAN_FD_RAM] = t.ram_fd;
        m = start(&settings);
        boot(&m);
        command(&m, warm_up_argv);
        (void) finish(&m);
        tell(&m, CAPABILITIES);
        tell_with_fd(&m, "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"state\"}}\n", t.state_fd);
        tell(&m, "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:state\"}}\n");
        wait_for(&m, "\"completed\"");
        end(&m);
        if (template_file_seal(t.ram_fd) < 0 || template_file_seal(t.state_fd) < 0)
                err(1, "seals");
        return t;
}

BareTimes bare_run(const Recipe *recipe, const BareTemplate *from, char *const *argv) {
        VmSettings settings = {.files = VM_NO_FILES};
        BareTimes times;
        Machine m;

        if (recipe_fill(recipe, from ? PLAN_CLONE : PLAN_COLD, &settings) < 0)
                errx(1, "no plan");
        if (from) {
                settings.files[PLAN_FD_RAM] = from->ram_fd;
                if (template_file_reopen(from->state_fd, &settings.files[PLAN_FD_STATE]) < 0)
                        err(1, "state");
        }
        m = start(&settings);
        if (from) {
                close(settings.files[PLAN_FD_STATE]);
                restore(&m);
        } else
                boot(&m);
        command(&m, argv);
        times = finish(&m);
        end(&m);
        return times;
}
