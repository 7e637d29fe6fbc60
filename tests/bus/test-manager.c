/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The real manager on a private bus. Each function is a claim about what a client sees.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/message.h"
#include "world.h"

static char *start(World *w, const char *argv, const char *more) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        char *path = world_start(w->bus, argv, more, &error);

        if (!path)
                fprintf(stderr, "StartRun: %s: %s\n", error.name, error.message);
        assert(path);
        return path;
}

/* Runs it and expects this outcome and these words in the result. */
static void expect(World *w, const char *argv, const char *more, const char *outcome, const char *words) {
        char *path = start(w, argv, more), *result, *got = world_wait(w->bus, path, &result);

        if (strcmp(got, outcome) != 0 || !strstr(result, words))
                fprintf(stderr, "%s: %s, expected %s with %s: %s\n", argv, got, outcome, words, result);
        assert(strcmp(got, outcome) == 0 && strstr(result, words));
        free(got);
        free(result);
        free(path);
}

static void expect_error(World *w, const char *argv, const char *more, const char *name, const char *words) {
        sd_bus_error error = SD_BUS_ERROR_NULL;

        assert(!world_start(w->bus, argv, more, &error));
        if (strcmp(error.name, name) != 0 || !strstr(error.message, words))
                fprintf(stderr, "%s: %s: expected %s with \"%s\"\n", error.name, error.message, name, words);
        assert(strcmp(error.name, name) == 0 && strstr(error.message, words));
        sd_bus_error_free(&error);
}

static void every_way_to_end_has_its_outcome(bool templates) {
        World *w = world_new(&(WorldOptions){.templates = templates});

        expect(w, "print hello", "", "succeeded", "\"stdout_bytes\":5");
        expect(w, "exit 3", "", "failed", "\"exit_status\":3");
        expect(w, "kill-self", "", "failed", "\"signal\":\"SIGKILL\"");
        expect(w, "no-exec", "", "failed", "\"errno\":\"ENOENT\"");
        expect(w, "sleep", ", \"timeout_seconds\": 1", "timed-out", "timed-out");
        expect(w, "garbage", "", "vm-failed", "framing");
        expect(w, "poweroff", "", "vm-failed", "the guest shut itself down (guest-shutdown)");
        world_free(w);
}

static void the_timeline_tells_a_run_in_order(void) {
        static const char *const types[] = {"request.accepted", "vm.starting",     "isolation.verified",
                                            "vm.ready",         "command.started", "output",
                                            "command.finished", "run.result",      "vm.destroyed"};
        World *w = world_new(&(WorldOptions){0});
        char *path = start(w, "print hello", ""), *got = world_wait(w->bus, path, NULL),
             *timeline = world_timeline(w->bus, path);
        const char *at = timeline;

        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                char expected[64];

                snprintf(expected, sizeof(expected), "%zu %s ", i + 1, types[i]);
                if (strncmp(at, expected, strlen(expected)) != 0)
                        fprintf(stderr, "expected \"%s\" at:\n%s", expected, at);
                assert(strncmp(at, expected, strlen(expected)) == 0);
                at = strchr(at, '\n') + 1;
        }
        assert(*at == 0);
        assert(strstr(timeline, "\"data\":\"hello\""));
        assert(strstr(timeline, "\"processes\":0,\"cgroup\":\"empty\""));
        free(timeline);
        free(got);
        free(path);
        world_free(w);
}

static void a_machine_that_is_not_as_planned_never_runs_a_command(void) {
        static const struct {
                const char *fail, *words;
        } cases[] = {
                {"verified", "the jail is not as planned"},
                {"device",   "net0 (virtio-net-device)"  },
                {"link",     "network interface: eth0"   },
                {"error",    "mounting /proc failed"     },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                World *w = world_new(&(WorldOptions){.fail = cases[i].fail});
                char *path = start(w, "print hello", ""), *result, *got = world_wait(w->bus, path, &result);
                char *timeline = world_timeline(w->bus, path);

                if (!strstr(result, cases[i].words))
                        fprintf(stderr, "%s: %s\n", cases[i].fail, result);
                assert(strcmp(got, "vm-failed") == 0 && strstr(result, cases[i].words));
                assert(!strstr(timeline, "command.started") && !strstr(timeline, "isolation.verified"));
                free(timeline);
                free(result);
                free(got);
                free(path);
                world_free(w);
        }
}

static void cancel(sd_bus *bus, const char *path) {
        assert(sd_bus_call_method(bus, "org.ephemeral1", path, "org.ephemeral1.Run", "Cancel", NULL, NULL, NULL) >= 0);
}

static void a_cancel_ends_a_run_in_any_state(void) {
        World *w = world_new(&(WorldOptions){.config = "RunsMax=1"});
        char *running = start(w, "sleep", ""), *queued = start(w, "sleep", ""), *state, *got;
        sd_bus_error error = SD_BUS_ERROR_NULL;

        state = world_property(w->bus, queued, "State");
        assert(strcmp(state, "queued") == 0);
        cancel(w->bus, queued);
        got = world_wait(w->bus, queued, NULL);
        assert(strcmp(got, "cancelled") == 0);
        free(got);
        cancel(w->bus, running);
        got = world_wait(w->bus, running, NULL);
        assert(strcmp(got, "cancelled") == 0);
        assert(sd_bus_call_method(w->bus, "org.ephemeral1", running, "org.ephemeral1.Run", "Cancel", &error, NULL,
                                  NULL) < 0);
        assert(strcmp(error.name, "org.ephemeral1.Error.RunEnded") == 0);
        sd_bus_error_free(&error);
        free(got);
        free(state);
        free(running);
        free(queued);
        world_free(w);
}

static void a_stop_by_systemd_is_a_cancelled_run(void) {
        World *w = world_new(&(WorldOptions){0});
        char *path = start(w, "sleep", ""), *unit = world_property(w->bus, path, "Unit"), *state, *got, *timeline;
        bool running = false;

        for (int i = 0; !running; i++) {
                assert(i < 200);
                usleep(50 * 1000);
                state = world_property(w->bus, path, "State");
                running = strcmp(state, "running") == 0;
                free(state);
        }
        assert(sd_bus_call_method(w->bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                  "org.freedesktop.systemd1.Manager", "StopUnit", NULL, NULL, "ss", unit,
                                  "replace") >= 0);
        got = world_wait(w->bus, path, NULL);
        timeline = world_timeline(w->bus, path);
        assert(strcmp(got, "cancelled") == 0);
        assert(strstr(timeline, "run.cancelled {\"by\":\"systemd\"}"));
        free(timeline);
        free(unit);
        free(got);
        free(path);
        world_free(w);
}

static void who_waits_is_served_when_a_slot_is_free(void) {
        World *w = world_new(&(WorldOptions){.config = "RunsMax=2"});
        char *paths[10];

        for (size_t i = 0; i < 10; i++)
                paths[i] = start(w, "print x", "");
        for (size_t i = 0; i < 10; i++) {
                char *got = world_wait(w->bus, paths[i], NULL);

                assert(strcmp(got, "succeeded") == 0);
                free(got);
                free(paths[i]);
        }
        world_free(w);
}

static void a_full_queue_refuses(void) {
        World *w = world_new(&(WorldOptions){.config = "RunsMax=1\nQueueMax=1"});
        char *one = start(w, "sleep", ""), *two = start(w, "sleep", "");

        expect_error(w, "sleep", "", "org.ephemeral1.Error.QueueFull", "QueueMax");
        free(one);
        free(two);
        world_free(w);
}

static void bad_requests_are_refused_before_there_is_a_run(void) {
        World *w = world_new(&(WorldOptions){0});
        sd_bus_message *reply = NULL;

        expect_error(w, "true", ", \"timeout_seconds\": 0", "org.ephemeral1.Error.InvalidRequest", "timeout_seconds");
        expect_error(w, "true", ", \"tiemout\": 1", "org.ephemeral1.Error.InvalidRequest", "tiemout");
        expect_error(w, "true", ", \"vm\": {\"image\": \"none-such\"}", "org.ephemeral1.Error.NoSuchImage",
                     "image build");
        expect_error(w, "true", ",", "org.ephemeral1.Error.InvalidRequest", "line 1, column");
        assert(sd_bus_call_method(w->bus, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager", "ListRuns",
                                  NULL, &reply, "a{sv}", 0) >= 0);
        assert(sd_bus_message_enter_container(reply, 'a', "(sosstt)") >= 0);
        assert(sd_bus_message_at_end(reply, false) > 0);
        sd_bus_message_unref(reply);
        world_free(w);
}

static int send_input(World *w, const char *path, const void *data, size_t size) {
        sd_bus_message *m = NULL;
        int r;

        assert(sd_bus_message_new_method_call(w->bus, &m, "org.ephemeral1", path, "org.ephemeral1.Run", "SendInput") >=
               0);
        assert(sd_bus_message_append_array(m, 'y', data, size) >= 0);
        r = sd_bus_call(w->bus, m, 0, NULL, NULL);
        sd_bus_message_unref(m);
        return r;
}

/* Reads a stream of frames to its end: the bytes of output, and the last seq. */
static size_t read_output(int fd, uint64_t *ret_seq) {
        FrameReader reader;
        size_t total = 0;
        Frame frame;
        int r = 0;

        frame_reader_init(&reader);
        while (frame_reader_fill(&reader, fd) > 0)
                while ((r = frame_reader_next(&reader, &frame)) > 0) {
                        OutputMessage output;
                        EventMessage event;

                        if (frame.type == FRAME_OUTPUT && message_decode_output(&frame, &output) == 0)
                                total += output.size;
                        if (frame.type == FRAME_EVENT && message_decode_event(&frame, &event) == 0)
                                *ret_seq = event.seq;
                }
        assert(r == 0);
        frame_reader_done(&reader);
        return total;
}

static int open_output(World *w, const char *path, bool lossless) {
        sd_bus_message *reply = NULL;
        int fd;

        assert(sd_bus_call_method(w->bus, "org.ephemeral1", path, "org.ephemeral1.Run", "OpenOutput", NULL, &reply,
                                  "a{sv}", 1, "lossless", "b", lossless) >= 0);
        assert(sd_bus_message_read(reply, "h", &fd) >= 0);
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        assert(fd >= 0 && fcntl(fd, F_SETFL, 0) == 0);
        sd_bus_message_unref(reply);
        return fd;
}

static void input_goes_in_and_comes_out(void) {
        World *w = world_new(&(WorldOptions){0});
        char *path = start(w, "cat", ""), *got, *result;
        static char data[60000];
        int fd = open_output(w, path, true);
        uint64_t seq = 0;

        memset(data, 'i', sizeof(data));
        while (send_input(w, path, "first", 5) < 0) /* the command has not started */
                usleep(20 * 1000);
        for (int i = 0; i < 10; i++)
                assert(send_input(w, path, data, sizeof(data)) >= 0);
        assert(send_input(w, path, NULL, 0) >= 0);
        assert(read_output(fd, &seq) == 5 + 10 * sizeof(data));
        got = world_wait(w->bus, path, &result);
        assert(strcmp(got, "succeeded") == 0 && strstr(result, "\"stdout_bytes\":600005"));
        assert(send_input(w, path, "more", 4) < 0);
        close(fd);
        free(result);
        free(got);
        free(path);
        world_free(w);
}

static void a_lossless_reader_gets_every_byte_of_a_flood(void) {
        World *w = world_new(&(WorldOptions){0});
        char *path = start(w, "flood 20000000", ""), *got;
        int fd = open_output(w, path, true);
        uint64_t seq = 0;

        assert(read_output(fd, &seq) == 20000000);
        got = world_wait(w->bus, path, NULL);
        assert(strcmp(got, "succeeded") == 0);
        close(fd);
        free(got);
        free(path);
        world_free(w);
}

static void polkits_no_and_its_silence_are_denials(void) {
        World *w;

        if (!world_has_users())
                return;
        w = world_new(&(WorldOptions){.polkit = "no", .as_user = true});
        expect_error(w, "true", "", "org.ephemeral1.Error.NotPermitted", "Not permitted");
        world_free(w);
        w = world_new(&(WorldOptions){.polkit = "challenge", .as_user = true});
        expect_error(w, "true", "", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "Interactive");
        world_free(w);
}

static void a_caller_who_leaves_before_polkit_answers_leaves_nothing(void) {
        World *w;
        sd_bus *other;

        if (!world_has_users())
                return;
        w = world_new(&(WorldOptions){.polkit = "silent"});
        other = world_connect(w, USER_ONE);
        assert(sd_bus_call_method_async(other, NULL, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager",
                                        "StartRun", NULL, NULL, "sa{sh}a{sv}",
                                        "{\"workflow\":\"command\",\"input\":{\"argv\":[\"true\"]}}", 0, 0) >= 0);
        assert(sd_bus_flush(other) >= 0);
        sd_bus_close_unref(other);
        expect(w, "print x", "", "succeeded", "succeeded"); /* root is not asked about, and the service is well */
        world_free(w);
}

static void another_users_run_is_as_one_that_never_was(void) {
        sd_bus_error error = SD_BUS_ERROR_NULL, none = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        World *w;
        sd_bus *other;
        char *path, *got;

        if (!world_has_users())
                return;
        w = world_new(&(WorldOptions){.as_user = true});
        other = world_connect(w, USER_TWO);
        path = start(w, "sleep", "");
        assert(!world_property(other, path, "State"));
        assert(sd_bus_call_method(other, "org.ephemeral1", path, "org.ephemeral1.Run", "Cancel", &error, NULL, NULL) <
               0);
        assert(sd_bus_call_method(other, "org.ephemeral1", "/org/ephemeral1/run/run_2d00000000000000000000000000",
                                  "org.ephemeral1.Run", "Cancel", &none, NULL, NULL) < 0);
        assert(strcmp(error.name, none.name) == 0);
        assert(sd_bus_call_method(other, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager", "ListRuns",
                                  NULL, &reply, "a{sv}", 0) >= 0);
        assert(sd_bus_message_enter_container(reply, 'a', "(sosstt)") >= 0);
        assert(sd_bus_message_at_end(reply, false) > 0);
        sd_bus_message_unref(reply);
        cancel(w->bus, path);
        got = world_wait(w->bus, path, NULL);
        free(got);
        free(path);
        sd_bus_error_free(&error);
        sd_bus_error_free(&none);
        sd_bus_flush_close_unref(other);
        world_free(w);
}

int main(void) {
        every_way_to_end_has_its_outcome(false);
        every_way_to_end_has_its_outcome(true);
        the_timeline_tells_a_run_in_order();
        a_machine_that_is_not_as_planned_never_runs_a_command();
        a_cancel_ends_a_run_in_any_state();
        a_stop_by_systemd_is_a_cancelled_run();
        who_waits_is_served_when_a_slot_is_free();
        a_full_queue_refuses();
        bad_requests_are_refused_before_there_is_a_run();
        input_goes_in_and_comes_out();
        a_lossless_reader_gets_every_byte_of_a_flood();
        polkits_no_and_its_silence_are_denials();
        a_caller_who_leaves_before_polkit_answers_leaves_nothing();
        another_users_run_is_as_one_that_never_was();
        return 0;
}
