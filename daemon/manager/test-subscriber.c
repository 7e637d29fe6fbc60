/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On a dbus-daemon of its own. The service and readers that read are in one event loop; a reader that sleeps is a
 * connection that is not in it.
 */
#include "manager/subscriber.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/json.h"

#define PATH      "/org/ephemeral1/run/x"
#define INTERFACE "org.ephemeral1.Run"

static char directory[] = "/tmp/test-subscriber-XXXXXX";

typedef struct Bus {
        pid_t pid;
        char address[512];
} Bus;

typedef struct Reader {
        sd_bus *bus;
        const char *name;
        bool any_order; /* seq is not looked at */
        uint64_t last_seq;
        uint64_t kept_bytes;
        uint64_t live_bytes;
        size_t n_console_bytes;
        size_t n_signals;
        char outcome[32];
        uint64_t unsubscribed_seq;
        char reason[256];
} Reader;

typedef struct World {
        Bus bus;
        sd_event *event;
        sd_bus *service;
        SubscriberHub *hub;
        Timeline *timeline;
} World;

/* Like the system bus: calls need a rule. With `ping`, the rule that the service needs. */
static void write_config(const char *path, bool ping) {
        FILE *f = fopen(path, "we");

        assert(f);
        fprintf(f,
                "<busconfig><type>session</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>"
                "<policy context=\"default\"><allow user=\"*\"/><deny send_type=\"method_call\"/>"
                "<allow send_type=\"signal\"/><allow send_requested_reply=\"true\" send_type=\"method_return\"/>"
                "<allow send_requested_reply=\"true\" send_type=\"error\"/><allow receive_type=\"method_call\"/>"
                "<allow receive_type=\"method_return\"/><allow receive_type=\"error\"/>"
                "<allow receive_type=\"signal\"/>"
                "<allow send_destination=\"org.freedesktop.DBus\"/>%s</policy></busconfig>",
                directory, ping ? "<allow send_interface=\"org.freedesktop.DBus.Peer\" send_member=\"Ping\"/>" : "");
        assert(fclose(f) == 0);
}

static void bus_start(Bus *b, bool ping) {
        char config[64];
        int fds[2];
        ssize_t n;

        snprintf(config, sizeof(config), "%s/bus.conf", directory);
        write_config(config, ping);
        assert(pipe(fds) == 0);
        b->pid = fork();
        assert(b->pid >= 0);
        if (b->pid == 0) {
                char argument[128], print[64];

                snprintf(argument, sizeof(argument), "--config-file=%s", config);
                snprintf(print, sizeof(print), "--print-address=%d", fds[1]);
                close(fds[0]);
                execlp("dbus-daemon", "dbus-daemon", "--nofork", "--nopidfile", "--nosyslog", argument, print, NULL);
                _exit(127);
        }
        close(fds[1]);
        n = read(fds[0], b->address, sizeof(b->address) - 1);
        close(fds[0]);
        if (n <= 0) {
                fprintf(stderr, "skipped: dbus-daemon does not start\n");
                exit(77);
        }
        b->address[n] = 0;
        b->address[strcspn(b->address, "\n")] = 0;
        unlink(config);
}

static void bus_stop(Bus *b) {
        char path[64];

        assert(kill(b->pid, SIGTERM) == 0);
        assert(waitpid(b->pid, NULL, 0) == b->pid);
        snprintf(path, sizeof(path), "%s/bus", directory);
        unlink(path);
}

static sd_bus *bus_connect(const Bus *b) {
        sd_bus *bus;

        assert(sd_bus_new(&bus) >= 0);
        assert(sd_bus_set_address(bus, b->address) >= 0);
        assert(sd_bus_set_bus_client(bus, true) >= 0);
        assert(sd_bus_start(bus) >= 0);
        return bus;
}

static void take_seq(Reader *reader, uint64_t seq) {
        assert(reader->any_order || seq == reader->last_seq + 1);
        reader->last_seq = seq;
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        Reader *reader = userdata;
        const char *text, *json;
        const void *data;
        uint64_t seq, usec;
        size_t size;

        if (sd_bus_message_is_signal(m, INTERFACE, "Event")) {
                assert(sd_bus_message_read(m, "ttss", &seq, &usec, &text, &json) >= 0);
                assert(usec > 0 && json[0] == '{');
                take_seq(reader, seq);
        } else if (sd_bus_message_is_signal(m, INTERFACE, "Output")) {
                assert(sd_bus_message_read(m, "ts", &seq, &text) >= 0);
                assert(sd_bus_message_read_array(m, 'y', &data, &size) >= 0);
                assert(strcmp(text, "stdout") == 0);
                if (seq == 0)
                        reader->live_bytes += size;
                else {
                        take_seq(reader, seq);
                        reader->kept_bytes += size;
                }
        } else if (sd_bus_message_is_signal(m, INTERFACE, "Console")) {
                assert(sd_bus_message_read_array(m, 'y', &data, &size) >= 0);
                reader->n_console_bytes += size;
        } else if (sd_bus_message_is_signal(m, INTERFACE, "Finished")) {
                assert(sd_bus_message_read(m, "ss", &text, &json) >= 0);
                snprintf(reader->outcome, sizeof(reader->outcome), "%s", text);
        } else if (sd_bus_message_is_signal(m, INTERFACE, "Unsubscribed")) {
                assert(sd_bus_message_read(m, "ts", &reader->unsubscribed_seq, &text) >= 0);
                snprintf(reader->reason, sizeof(reader->reason), "%s", text);
        } else
                return 0;
        assert(strcmp(sd_bus_message_get_destination(m), reader->name) == 0);
        reader->n_signals++;
        return 0;
}

static void reader_connect(Reader *reader, World *w) {
        *reader = (Reader){.bus = bus_connect(&w->bus)};
        assert(sd_bus_add_filter(reader->bus, NULL, on_signal, reader) >= 0);
        assert(sd_bus_get_unique_name(reader->bus, &reader->name) >= 0);
}

static void reader_wake(Reader *reader, World *w) {
        assert(sd_bus_attach_event(reader->bus, w->event, 0) >= 0);
}

static void reader_leave(Reader *reader) {
        reader->bus = sd_bus_close_unref(reader->bus);
}

static void world_init(World *w, bool ping, uint64_t ping_usec, uint64_t output_max_bytes) {
        bus_start(&w->bus, ping);
        assert(sd_event_new(&w->event) >= 0);
        w->service = bus_connect(&w->bus);
        assert(sd_bus_attach_event(w->service, w->event, 0) >= 0);
        assert(subscriber_hub_new(w->service, ping_usec, &w->hub) == 0);
        assert(timeline_new(output_max_bytes, &w->timeline) == 0);
}

static void world_done(World *w) {
        subscriber_hub_free(w->hub);
        timeline_free(w->timeline);
        sd_bus_close_unref(w->service);
        sd_event_unref(w->event);
        bus_stop(&w->bus);
}

static void on_gone(Subscriber *subscriber, void *userdata) {
        Subscriber **s = userdata;

        assert(*s == subscriber);
        *s = subscriber_free(subscriber);
}

static int subscribe(World *w, const char *name, uint64_t after_seq, Subscriber **ret) {
        return subscriber_new(w->hub,
                              &(SubscriberOptions){
                                      .name = name,
                                      .path = PATH,
                                      .interface = INTERFACE,
                                      .timeline = w->timeline,
                                      .after_seq = after_seq,
                                      .on_gone = on_gone,
                                      .userdata = ret,
                              },
                              ret);
}

#define RUN_UNTIL(w, condition)                                                                                       \
        do {                                                                                                          \
                uint64_t deadline = clock_monotonic_usec() + 60 * USEC_PER_SEC;                                       \
                while (!(condition)) {                                                                                \
                        assert(clock_monotonic_usec() < deadline);                                                    \
                        assert(sd_event_run((w)->event, USEC_PER_SEC) >= 0);                                          \
                }                                                                                                     \
        } while (false)

static void append(World *w, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                assert(timeline_append(w->timeline, EVENT_PROCESS_EXEC, NULL) == 0);
}

static void output(World *w, unsigned n, size_t size) {
        char *data = calloc(1, size);

        assert(data);
        for (unsigned i = 0; i < n; i++)
                assert(timeline_output(w->timeline, STREAM_STDOUT, data, size) >= 0);
        free(data);
}

static void test_signals_come_in_order_to_the_subscriber_alone(void) {
        World w;
        Reader reader, other;
        Subscriber *s = NULL;

        world_init(&w, true, 0, 64 << 20);
        reader_connect(&reader, &w);
        reader_connect(&other, &w);
        assert(sd_bus_match_signal(other.bus, NULL, NULL, NULL, INTERFACE, NULL, NULL, NULL) >= 0);
        reader_wake(&reader, &w);
        reader_wake(&other, &w);
        append(&w, 10);
        reader.last_seq = 5;
        assert(subscribe(&w, reader.name, 5, &s) == 0);
        assert(strcmp(subscriber_name(s), reader.name) == 0);
        subscriber_console(s, "boot", 4);
        for (int i = 0; i < 300; i++) {
                append(&w, 1);
                output(&w, 1, 10000);
                assert(sd_event_run(w.event, 0) >= 0);
        }
        assert(subscriber_finish(s, "succeeded", "{}") == 0);
        assert(s && subscriber_send(s, NULL, 0) == -ESHUTDOWN);
        RUN_UNTIL(&w, !s && *reader.outcome);
        assert(reader.last_seq == 610 && reader.kept_bytes == 300 * 10000 && reader.n_console_bytes == 4);
        assert(strcmp(reader.outcome, "succeeded") == 0 && !*reader.reason);
        assert(other.n_signals == 0);
        reader_leave(&reader);
        reader_leave(&other);
        world_done(&w);
}

static void test_a_sleeping_reader_costs_nobody_else_anything(void) {
        World w;
        Reader good, sleeping;
        Subscriber *to_good = NULL, *to_sleeping = NULL;
        uint64_t before;

        world_init(&w, true, 300000, 64 << 20);
        reader_connect(&good, &w);
        reader_connect(&sleeping, &w);
        reader_wake(&good, &w);
        assert(subscribe(&w, sleeping.name, 0, &to_sleeping) == 0);
        assert(subscribe(&w, good.name, 0, &to_good) == 0);
        for (int i = 0; i < 500; i++) {
                append(&w, 1);
                output(&w, 1, 65536);
                assert(sd_event_run(w.event, 0) >= 0);
        }
        RUN_UNTIL(&w, !to_sleeping && good.last_seq == 1000);
        assert(good.kept_bytes == 500 * 65536 && to_good);

        /* The service's connection is not held up. */
        before = clock_monotonic_usec();
        assert(sd_bus_call_method(w.service, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                  "GetId", NULL, NULL, NULL) >= 0);
        assert(clock_monotonic_usec() - before < 10 * USEC_PER_SEC);

        /* What it finds when it wakes up: a beginning without a gap, and where to go on from. */
        reader_wake(&sleeping, &w);
        RUN_UNTIL(&w, *sleeping.reason);
        assert(strcmp(sleeping.reason, "signals were not read for 0.3 s") == 0);
        assert(sleeping.last_seq > 0 && sleeping.unsubscribed_seq == sleeping.last_seq);
        assert(sleeping.kept_bytes <= SUBSCRIBER_WINDOW_BYTES);
        subscriber_free(to_good);
        reader_leave(&good);
        reader_leave(&sleeping);
        world_done(&w);
}

static void test_who_comes_back_still_owes_what_was_not_read(void) {
        World w;
        Reader reader;
        Subscriber *s = NULL;

        world_init(&w, true, 100000, 64 << 20);
        reader_connect(&reader, &w);
        output(&w, 100, 65536);
        for (int i = 0; i < 5; i++) {
                assert(subscribe(&w, reader.name, 0, &s) == 0);
                if (i % 2)
                        s = subscriber_free(s);
                RUN_UNTIL(&w, !s);
        }
        /* Each time it began anew, within what was left of the window: all that came fits the one window. */
        reader.any_order = true;
        while (sd_bus_process(reader.bus, NULL) > 0 || sd_bus_wait(reader.bus, 100000) > 0)
                ;
        assert(*reader.reason && reader.kept_bytes > 0 && reader.kept_bytes <= SUBSCRIBER_WINDOW_BYTES);

        /* Now that it reads, it gets all. */
        reader_wake(&reader, &w);
        reader.any_order = false;
        reader.last_seq = 0;
        assert(subscribe(&w, reader.name, 0, &s) == 0);
        RUN_UNTIL(&w, reader.last_seq == 100);
        subscriber_free(s);
        reader_leave(&reader);
        world_done(&w);
}

static void test_a_reader_that_leaves_is_gone(void) {
        World w;
        Reader reader;
        Subscriber *s = NULL, *nobody = NULL;

        world_init(&w, true, 0, 1 << 20);
        reader_connect(&reader, &w);
        reader_wake(&reader, &w);
        assert(subscribe(&w, reader.name, 0, &s) == 0);
        append(&w, 1);
        RUN_UNTIL(&w, reader.last_seq == 1);
        reader_leave(&reader);
        RUN_UNTIL(&w, !s);
        assert(subscribe(&w, ":1.4711", 0, &nobody) == 0);
        RUN_UNTIL(&w, !nobody);
        assert(subscribe(&w, "org.example.Name", 0, &nobody) == -EINVAL);
        world_done(&w);
}

static void test_live_output_that_piles_up_ends_the_subscription(void) {
        World w;
        Reader reader;
        Subscriber *s = NULL;

        world_init(&w, true, 0, 100);
        reader_connect(&reader, &w);
        assert(subscribe(&w, reader.name, 0, &s) == 0);
        output(&w, 30, 65536); /* nobody runs the loop: no Ping can be answered */
        RUN_UNTIL(&w, !s);
        reader_wake(&reader, &w);
        RUN_UNTIL(&w, *reader.reason);
        assert(strcmp(reader.reason, "more came than was read") == 0 && reader.unsubscribed_seq == 1);
        assert(reader.live_bytes <= SUBSCRIBER_WINDOW_BYTES);
        reader_leave(&reader);
        world_done(&w);
}

static void test_a_refused_ping_is_no_proof(void) {
        World w;
        Reader reader;
        Subscriber *s = NULL;

        world_init(&w, false, 0, 1 << 20);
        reader_connect(&reader, &w);
        reader_wake(&reader, &w);
        assert(subscribe(&w, reader.name, 0, &s) == 0);
        output(&w, 16, 65536);
        RUN_UNTIL(&w, !s && *reader.reason);
        assert(strncmp(reader.reason, "Peer.Ping could not be sent: ", 29) == 0);
        assert(reader.unsubscribed_seq == reader.last_seq);
        reader_leave(&reader);
        world_done(&w);
}

static void test_subscriptions_of_one_peer_share_its_window(void) {
        enum { N = 8 };
        World w;
        Reader reader;
        Subscriber *s[N] = {NULL};

        world_init(&w, true, 100000, 64 << 20);
        reader_connect(&reader, &w);
        output(&w, 10, 50000);
        for (int i = 0; i < N; i++)
                assert(subscribe(&w, reader.name, 9, &s[i]) == 0);
        for (int i = 0; i < N; i++)
                RUN_UNTIL(&w, !s[i]);
        reader.any_order = true;
        while (sd_bus_process(reader.bus, NULL) > 0 || sd_bus_wait(reader.bus, 100000) > 0)
                ;
        assert(reader.kept_bytes == SUBSCRIBER_WINDOW_BYTES / 50000 * 50000);
        assert(*reader.reason);
        reader_leave(&reader);
        world_done(&w);
}

static void test_peers_are_bounded_per_uid(void) {
        World w;
        Reader readers[SUBSCRIBER_PEERS_PER_UID + 1];
        Subscriber *s[SUBSCRIBER_PEERS_PER_UID + 1] = {NULL};
        unsigned n = SUBSCRIBER_PEERS_PER_UID;

        world_init(&w, true, 0, 0);
        for (unsigned i = 0; i <= n; i++)
                reader_connect(&readers[i], &w);
        for (unsigned i = 0; i < n; i++)
                assert(subscribe(&w, readers[i].name, 0, &s[i]) == 0);
        assert(subscribe(&w, readers[n].name, 0, &s[n]) == -EUSERS);
        s[0] = subscriber_free(s[0]);
        assert(sd_event_run(w.event, 0) >= 0);
        RUN_UNTIL(&w, s[n] || subscribe(&w, readers[n].name, 0, &s[n]) == 0);
        for (unsigned i = 0; i <= n; i++) {
                subscriber_free(s[i]);
                reader_leave(&readers[i]);
        }
        world_done(&w);
}

static void test_all_are_gone_with_the_bus(void) {
        World w;
        Reader reader;
        Subscriber *s = NULL;

        world_init(&w, true, 0, 0);
        reader_connect(&reader, &w);
        assert(subscribe(&w, reader.name, 0, &s) == 0);
        assert(sd_event_run(w.event, 0) >= 0);
        assert(sd_bus_set_exit_on_disconnect(w.service, false) >= 0);
        bus_stop(&w.bus);
        RUN_UNTIL(&w, !s);
        reader_leave(&reader);
        bus_start(&w.bus, true); /* for world_done() */
        world_done(&w);
}

int main(void) {
        assert(mkdtemp(directory));
        test_signals_come_in_order_to_the_subscriber_alone();
        test_a_sleeping_reader_costs_nobody_else_anything();
        test_who_comes_back_still_owes_what_was_not_read();
        test_a_reader_that_leaves_is_gone();
        test_live_output_that_piles_up_ends_the_subscription();
        test_a_refused_ping_is_no_proof();
        test_subscriptions_of_one_peer_share_its_window();
        test_peers_are_bounded_per_uid();
        test_all_are_gone_with_the_bus();
        assert(rmdir(directory) == 0);
        return 0;
}
