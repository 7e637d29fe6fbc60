/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        ENOUGH = 200, /* looks of 50 ms at something that takes a moment: ten seconds under a loaded machine */
};

static void write_file(const char *dir, const char *name, const char *text, mode_t mode) {
        char path[256];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
        assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        assert(fchmod(fd, mode) == 0);
        close(fd);
}

static pid_t spawn(char *const *argv) {
        pid_t pid = fork();

        assert(pid >= 0);
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                execvp(argv[0], argv);
                perror(argv[0]);
                _exit(127);
        }
        return pid;
}

static void pause_a_moment(void) {
        usleep(50 * 1000); /* between two looks; nothing is asserted on its length */
}

/* An image whose files are there and hold nothing: fake-jail does not read them. */
static void make_image(const char *dir) {
        static const char manifest[] =
                "{\"format\":1,\"name\":\"default\",\"distribution\":\"debian\",\"suite\":\"bookworm\","
                "\"architecture\":\"amd64\","
                "\"kernel_release\":\"6.1.0-fake\","
                "\"digest\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"files\":{"
                "\"root.erofs\":{\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\","
                "\"size\":1},"
                "\"kernel\":{\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"size\":"
                "1},"
                "\"initrd\":{\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"size\":"
                "1}},"
                "\"packages\":[\"none 0\"]}";
        char path[128];

        snprintf(path, sizeof(path), "%s/images", dir);
        assert(mkdir(path, 0755) == 0);
        snprintf(path, sizeof(path), "%s/images/default", dir);
        assert(mkdir(path, 0755) == 0);
        write_file(path, "manifest.json", manifest, 0644);
        write_file(path, "root.erofs", "x", 0644);
        write_file(path, "kernel", "x", 0644);
        write_file(path, "initrd", "x", 0644);
}

static void make_config(const char *dir, const WorldOptions *options) {
        char text[2048], path[128];
        FILE *from, *to;
        int c;

        snprintf(text, sizeof(text),
                 "[Manager]\nAccelerator=tcg\nIdleSec=0\nJailPath=%s/jail\nQemuPath=%s\nImagesPath=%s/"
                 "images\nTemplatesPath=%s/templates\nMemoryPressurePath=%s/pressure\nTemplates=%s\nStandby=0\n"
                 "WorkflowsPath=%s\n%s\n",
                 dir, FAKE_QEMU, dir, dir, dir, options->templates ? "yes" : "no", WORKFLOWS_SOURCE,
                 options->config ? options->config : "");
        write_file(dir, "ephemerald.conf", text, 0644);
        snprintf(path, sizeof(path), "%s/pressure", dir);
        assert(mkfifo(path, 0600) == 0);
        /* a copy, so that the word for it lies beside it and belongs to this world alone */
        snprintf(path, sizeof(path), "%s/jail", dir);
        from = fopen(FAKE_JAIL, "r");
        to = fopen(path, "w");
        assert(from && to);
        while ((c = getc(from)) != EOF)
                putc(c, to);
        fclose(from);
        assert(fclose(to) == 0 && chmod(path, 0755) == 0);
        if (options->fail)
                write_file(dir, "jail.fail", options->fail, 0644);
}

static void start_bus(World *w) {
        char text[1024], path[128], address[128];

        snprintf(
                text, sizeof(text),
                "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
                "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\"><busconfig><type>system</type>"
                "<listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow user=\"*\"/>"
                "<allow own=\"*\"/><allow send_type=\"*\" send_destination=\"*\"/><allow "
                "receive_type=\"*\"/></policy></busconfig>",
                w->dir);
        write_file(w->dir, "bus.conf", text, 0644);
        snprintf(path, sizeof(path), "--config-file=%s/bus.conf", w->dir);
        w->bus_daemon = spawn(
                (char *const[]){(char *) "dbus-daemon", path, (char *) "--nofork", (char *) "--nopidfile", NULL});
        snprintf(address, sizeof(address), "unix:path=%s/bus", w->dir);
        setenv("DBUS_SYSTEM_BUS_ADDRESS", address, true);
        setenv("RUNTIME_DIRECTORY", w->dir, true);
}

static void wait_for_name(World *w, const char *name) {
        for (int i = 0; sd_bus_get_name_creds(w->bus, name, 0, NULL) < 0; i++) {
                assert(i < ENOUGH);
                pause_a_moment();
        }
}

static void start_manager(World *w) {
        char config[128];

        snprintf(config, sizeof(config), "--config=%s/ephemerald.conf", w->dir);
        w->manager = spawn((char *const[]){(char *) EPHEMERALD, config, NULL});
        wait_for_name(w, "org.ephemeral1");
}

World *world_new(const WorldOptions *options) {
        World *w = calloc(1, sizeof(*w));

        assert(w);
        snprintf(w->dir, sizeof(w->dir), "/tmp/ephemeral-bus-XXXXXX");
        assert(mkdtemp(w->dir) && chmod(w->dir, 0755) == 0);
        make_image(w->dir);
        make_config(w->dir, options);
        start_bus(w);
        for (int i = 0; sd_bus_open_system(&w->bus) < 0; i++) { /* until dbus-daemon listens */
                assert(i < ENOUGH);
                pause_a_moment();
        }
        w->systemd = spawn(
                (char *const[]){(char *) FAKE_SYSTEMD, (char *) (options->polkit ? options->polkit : "yes"), NULL});
        wait_for_name(w, "org.freedesktop.systemd1");
        start_manager(w);
        if (options->as_user) {
                sd_bus_flush_close_unref(w->bus);
                w->bus = world_connect(w, USER_ONE);
        }
        return w;
}

static void end(pid_t pid, int number, bool must_be_well) {
        int status;

        kill(pid, number);
        assert(waitpid(pid, &status, 0) == pid);
        if (must_be_well && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
                fprintf(stderr, "ended with wait status 0x%x\n", status);
                abort();
        }
}

void world_restart_manager(World *w, int number) {
        end(w->manager, number, number == SIGTERM);
        while (sd_bus_get_name_creds(w->bus, "org.ephemeral1", 0, NULL) >= 0)
                pause_a_moment();
        start_manager(w);
}

/* Processes of this world's jail. */
static bool any_jail_is_left(const World *w) {
        glob_t found;
        bool any = false;

        assert(glob("/proc/[0-9]*/cmdline", 0, NULL, &found) == 0);
        for (size_t i = 0; i < found.gl_pathc; i++) {
                char line[128] = "";
                FILE *f = fopen(found.gl_pathv[i], "r");

                if (f && fgets(line, sizeof(line), f))
                        any = any || strncmp(line, w->dir, strlen(w->dir)) == 0;
                if (f)
                        fclose(f);
        }
        globfree(&found);
        return any;
}

static void expect_no_jail(const World *w) {
        for (int i = 0; any_jail_is_left(w); i++) {
                assert(i < ENOUGH);
                pause_a_moment();
        }
}

static void delete (World *w) {
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", w->dir);
        assert(system(command) == 0);
        free(w);
}

void world_free(World *w) {
        sd_bus_flush_close_unref(w->bus);
        end(w->manager, SIGTERM, true);
        end(w->systemd, SIGTERM, true);
        expect_no_jail(w);
        end(w->bus_daemon, SIGKILL, false);
        delete (w);
}

void world_lose_bus(World *w) {
        int status;

        end(w->bus_daemon, SIGKILL, false);
        for (int i = 0; waitpid(w->manager, &status, WNOHANG) == 0; i++) {
                assert(i < ENOUGH);
                pause_a_moment();
        }
        assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
        expect_no_jail(w);
        end(w->systemd, SIGKILL, false);
        sd_bus_close_unref(w->bus);
        delete (w);
}

bool world_has_users(void) {
        return geteuid() == 0;
}

sd_bus *world_connect(World *w, uid_t uid) {
        sd_bus *bus;

        assert(uid == geteuid() || world_has_users());
        assert(seteuid(uid) == 0);
        assert(sd_bus_open_system(&bus) >= 0);
        assert(sd_bus_get_unique_name(bus, &(const char *){NULL}) >= 0); /* the handshake is over while we are it */
        assert(seteuid(getuid()) == 0);
        return bus;
}

char *world_start(sd_bus *bus, const char *argv, const char *more, sd_bus_error *error) {
        sd_bus_message *reply = NULL;
        char request[4096], list[2048] = "", *copy = strdup(argv), *path;
        const char *id, *object;
        int r;

        for (char *save = NULL, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
                snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s\"%s\"", list[0] ? "," : "", word);
        free(copy);
        snprintf(request, sizeof(request), "{\"workflow\":\"command\",\"input\":{\"argv\":[%s]}%s}", list, more);
        r = sd_bus_call_method(bus, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager", "StartRun", error,
                               &reply, "sa{sh}a{sv}", request, 0, 1, "stdin", "b", strcmp(argv, "cat") == 0);
        if (r < 0)
                return NULL;
        assert(sd_bus_message_read(reply, "so", &id, &object) >= 0);
        path = strdup(object);
        sd_bus_message_unref(reply);
        return path;
}

char *world_property(sd_bus *bus, const char *path, const char *name) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        char *text = NULL;

        if (sd_bus_get_property_string(bus, "org.ephemeral1", path, "org.ephemeral1.Run", name, &error, &text) < 0) {
                fprintf(stderr, "property %s: %s\n", name, error.message);
                sd_bus_error_free(&error);
                return NULL;
        }
        return text;
}

char *world_wait(sd_bus *bus, const char *path, char **ret_result) {
        sd_bus_message *reply = NULL;
        const char *result;
        char *state;

        for (int i = 0;; i++) {
                bool ended;

                state = world_property(bus, path, "State");
                if (i == ENOUGH * 2)
                        fprintf(stderr, "%s is still %s:\n%s", path, state, world_timeline(bus, path));
                assert(state && i < ENOUGH * 2);
                ended = strcmp(state, "ended") == 0;
                free(state);
                if (ended)
                        break;
                pause_a_moment();
        }
        assert(sd_bus_call_method(bus, "org.ephemeral1", path, "org.ephemeral1.Run", "GetResult", NULL, &reply,
                                  NULL) >= 0);
        assert(sd_bus_message_read(reply, "s", &result) >= 0);
        if (ret_result)
                *ret_result = strdup(result);
        sd_bus_message_unref(reply);
        return world_property(bus, path, "Outcome");
}

char *world_timeline(sd_bus *bus, const char *path) {
        sd_bus_message *reply = NULL;
        const char *type, *json;
        uint64_t seq, usec;
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert(sd_bus_call_method(bus, "org.ephemeral1", path, "org.ephemeral1.Run", "GetTimeline", NULL, &reply, "tu",
                                  (uint64_t) 0, (uint32_t) 0) >= 0);
        assert(sd_bus_message_enter_container(reply, 'a', "(ttss)") >= 0);
        while (sd_bus_message_read(reply, "(ttss)", &seq, &usec, &type, &json) > 0)
                fprintf(f, "%llu %s %s\n", (unsigned long long) seq, type, json);
        sd_bus_message_unref(reply);
        fclose(f);
        return text;
}
