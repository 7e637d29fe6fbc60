/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * client: a D-Bus client of the service with a clock. One line of standard input each, and a line of JSON for an answer:
 *   run COMMAND… | many N COMMAND… (at once) | bulk BYTES (of output, over OpenOutput) | wait (until a machine waits, and is at rest)
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "common/clock.h"
#include "protocol/message.h"
#include "words.h"

#define SERVICE "org.ephemeral1"
#define ROOT    "/org/ephemeral1"
#define MANAGER "org.ephemeral1.Manager"
#define RUN     "org.ephemeral1.Run"

enum {
        RUNS_MAX = 1000,
        REST_USEC = 300 * 1000,
        CALL_USEC = 60 * 1000 * 1000,
};

typedef struct Watched {
        char path[128], way[16], outcome[32];
        uint64_t called_usec, first_usec, finished_usec, gone_usec; /* gone_usec: a duration */
} Watched;

static Watched runs[RUNS_MAX];
static unsigned n_runs, n_started, n_finished;
static sd_bus *bus;

/* Signals come on a connection of their own, so that the first may be here before StartRun's reply. */
static Watched *find(const char *path) {
        for (unsigned i = 0; i < n_runs; i++)
                if (strcmp(runs[i].path, path) == 0)
                        return &runs[i];
        if (n_runs == RUNS_MAX)
                errx(1, "more than %d runs", RUNS_MAX);
        runs[n_runs] = (Watched){0};
        snprintf(runs[n_runs].path, sizeof(runs[n_runs].path), "%s", path);
        return &runs[n_runs++];
}

static void take_event(Watched *run, const char *type, const char *text) {
        json_object *o = json_tokener_parse(text), *value = NULL;

        if (strcmp(type, "vm.starting") == 0 && json_object_object_get_ex(o, "path", &value))
                snprintf(run->way, sizeof(run->way), "%s", json_object_get_string(value));
        if (strcmp(type, "vm.destroyed") == 0 && json_object_object_get_ex(o, "duration_usec", &value))
                run->gone_usec = (uint64_t) json_object_get_int64(value);
        json_object_put(o);
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        const char *type, *text;
        uint64_t seq, usec;
        Watched *run;

        if (!sd_bus_message_is_signal(m, RUN, NULL))
                return 0;
        run = find(sd_bus_message_get_path(m));
        if (sd_bus_message_is_signal(m, RUN, "Output") && run->first_usec == 0)
                run->first_usec = clock_monotonic_usec();
        else if (sd_bus_message_is_signal(m, RUN, "Event") &&
                 sd_bus_message_read(m, "ttss", &seq, &usec, &type, &text) > 0)
                take_event(run, type, text);
        else if (sd_bus_message_is_signal(m, RUN, "Finished") && sd_bus_message_read(m, "ss", &type, &text) > 0) {
                snprintf(run->outcome, sizeof(run->outcome), "%s", type);
                run->finished_usec = clock_monotonic_usec();
                n_finished++;
        } else if (sd_bus_message_is_signal(m, RUN, "Unsubscribed") && sd_bus_message_read(m, "ts", &seq, &text) > 0)
                errx(1, "unsubscribed after event %" PRIu64 ": %s", seq, text);
        return 0;
}

static char *request(char *const *argv) {
        json_object *o = json_object_new_object(), *input = json_object_new_object(), *list = json_object_new_array();
        char *text;

        for (; *argv; argv++)
                json_object_array_add(list, json_object_new_string(*argv));
        json_object_object_add(input, "argv", list);
        json_object_object_add(o, "workflow", json_object_new_string("command"));
        json_object_object_add(o, "input", input);
        text = strdup(json_object_to_json_string(o));
        json_object_put(o);
        return text;
}

static void check(int r, const sd_bus_error *error, const char *what) {
        if (r < 0)
                errx(1, "%s: %s", what, error && error->message ? error->message : strerror(-r));
}

static sd_bus_message *new_call(char *const *argv, int signals) {
        char *text = request(argv);
        sd_bus_message *call;

        check(sd_bus_message_new_method_call(bus, &call, SERVICE, ROOT, MANAGER, "StartRun"), NULL, "StartRun");
        check(sd_bus_message_append(call, "sa{sh}a{sv}", text, 0, 1, "signals", "b", signals), NULL, "StartRun");
        free(text);
        return call;
}

static void process(void) {
        int r = sd_bus_process(bus, NULL);

        check(r, NULL, "bus");
        if (r > 0)
                return;
        r = sd_bus_wait(bus, CALL_USEC);
        check(r, NULL, "bus");
        if (r == 0)
                errx(1, "nothing was heard for 60 s: of %u runs %u are started and %u finished", n_runs, n_started,
                     n_finished);
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        const uint64_t *called_usec = userdata;
        const char *id, *path;

        check(-sd_bus_message_get_errno(reply), sd_bus_message_get_error(reply), "StartRun");
        check(sd_bus_message_read(reply, "so", &id, &path), NULL, "StartRun");
        find(path)->called_usec = *called_usec;
        n_started++;
        return 0;
}

static void start_and_watch(unsigned n, char *const *argv) {
        static uint64_t called_usec[RUNS_MAX];

        n_runs = n_started = n_finished = 0;
        for (unsigned i = 0; i < n && i < RUNS_MAX; i++) {
                sd_bus_message *call = new_call(argv, true);

                called_usec[i] = clock_monotonic_usec();
                check(sd_bus_call_async(bus, NULL, call, on_started, &called_usec[i], CALL_USEC), NULL, "StartRun");
                check(sd_bus_flush(bus), NULL, "bus");
                sd_bus_message_unref(call);
        }
        while (n_finished < n || n_started < n)
                process();
}

static void run_one(char *const *argv) {
        start_and_watch(1, argv);
        printf("{\"way\": \"%s\", \"outcome\": \"%s\", \"first_ms\": %.3f, \"finished_ms\": %.3f, \"gone_ms\": "
               "%.3f}\n",
               runs[0].way, runs[0].outcome, (double) (runs[0].first_usec - runs[0].called_usec) / 1000,
               (double) (runs[0].finished_usec - runs[0].called_usec) / 1000, (double) runs[0].gone_usec / 1000);
}

static void run_many(unsigned n, char *const *argv) {
        uint64_t begin = clock_monotonic_usec();
        unsigned failed = 0;

        start_and_watch(n, argv);
        for (unsigned i = 0; i < n_runs; i++)
                failed += strcmp(runs[i].outcome, "succeeded") != 0 || runs[i].first_usec == 0;
        printf("{\"all_ms\": %.3f, \"failed\": %u}\n", (double) (clock_monotonic_usec() - begin) / 1000, failed);
}

/* Counts what comes of so many zeros, and looks at each. */
static void run_bulk(char *bytes) {
        char *argv[] = {(char *) "head", (char *) "-c", bytes, (char *) "/dev/zero", NULL};
        sd_bus_message *call = new_call(argv, false), *reply = NULL, *opened = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t n = 0, begin = 0, other = 0;
        FrameReader reader;
        const char *id, *path;
        Frame frame;
        int fd;

        check(sd_bus_call(bus, call, CALL_USEC, &error, &reply), &error, "StartRun");
        check(sd_bus_message_read(reply, "so", &id, &path), NULL, "StartRun");
        check(sd_bus_call_method(bus, SERVICE, path, RUN, "OpenOutput", &error, &opened, "a{sv}", 1, "lossless", "b",
                                 true),
              &error, "OpenOutput");
        check(sd_bus_message_read(opened, "h", &fd), NULL, "OpenOutput");
        frame_reader_init(&reader);
        do
                while (frame_reader_next(&reader, &frame) > 0) {
                        OutputMessage output;

                        if (frame.type != FRAME_OUTPUT || message_decode_output(&frame, &output) < 0)
                                continue;
                        begin = begin > 0 ? begin : clock_monotonic_usec();
                        n += output.size;
                        for (size_t i = 0; i < output.size; i++)
                                other += output.data[i] != 0;
                }
        while (frame_reader_fill(&reader, fd) > 0);
        printf("{\"bytes\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"ms\": %.3f}\n", n, other,
               (double) (clock_monotonic_usec() - begin) / 1000);
        frame_reader_done(&reader);
        sd_bus_message_unref(call);
        sd_bus_message_unref(reply);
        sd_bus_message_unref(opened);
}

static void wait_for_standby(void) {
        uint64_t end = clock_monotonic_usec() + CALL_USEC;
        uint32_t n = 0;

        while (n == 0) {
                if (clock_monotonic_usec() > end)
                        errx(1, "no machine waits after 60 s");
                check(sd_bus_get_property_trivial(bus, SERVICE, ROOT, MANAGER, "StandbyReady", NULL, 'u', &n), NULL,
                      "StandbyReady");
                usleep(20 * 1000);
        }
        usleep(REST_USEC);
        printf("{}\n");
}

int main(void) {
        char *words[WORDS_MAX + 1];

        check(sd_bus_open_system(&bus), NULL, "system bus");
        check(sd_bus_add_filter(bus, NULL, on_signal, NULL), NULL, "system bus");
        while (words_read(words)) {
                if (strcmp(words[0], "run") == 0)
                        run_one(words + 1);
                else if (strcmp(words[0], "many") == 0 && words[1])
                        run_many((unsigned) atoi(words[1]), words + 2);
                else if (strcmp(words[0], "bulk") == 0 && words[1])
                        run_bulk(words[1]);
                else if (strcmp(words[0], "wait") == 0)
                        wait_for_standby();
                else
                        errx(1, "not known: %s", words[0]);
                fflush(stdout);
        }
        sd_bus_flush_close_unref(bus);
        return 0;
}
