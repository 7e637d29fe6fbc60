/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The list of a run's watchers. The timeline's listeners feed.c and subscriber.c do the work; here is who has one, when it goes, and
 * what of a run's own life they are told.
 */
#include "manager/run-clients.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/json.h"
#include "manager/feed.h"
#include "manager/manager.h"
#include "manager/subscriber.h"

enum {
        SMALL_SIGNAL_SIZE = 512, /* about what PropertiesChanged takes */
};

typedef struct Watcher Watcher;

/* Exactly one of feed and subscriber is set. */
struct Watcher {
        LIST_ENTRY(Watcher) watchers;
        RunClients *clients;
        Feed *feed;
        Subscriber *subscriber;
        bool congested;
};

struct RunClients {
        Run *run;
        LIST_HEAD(, Watcher) watchers;
        unsigned n_feeds, n_congested;
        sd_bus_track *admitted;
        sd_bus_message *input; /* the SendInput that waits for its reply */
};

static Watcher *watcher_free(Watcher *w) {
        if (!w)
                return NULL;
        if (w->clients) {
                LIST_REMOVE(w, watchers);
                w->clients->run->manager->n_watchers--;
                if (w->feed)
                        w->clients->n_feeds--;
                if (w->congested && --w->clients->n_congested == 0)
                        run_set_paused(w->clients->run, false);
        }
        feed_free(w->feed);
        subscriber_free(w->subscriber);
        free(w);
        return NULL;
}

DEFINE_CLEANUP(Watcher *, watcher_free);

static void watcher_add(RunClients *c, Watcher *w) {
        w->clients = c;
        LIST_INSERT_HEAD(&c->watchers, w, watchers);
        c->run->manager->n_watchers++;
        if (w->feed)
                c->n_feeds++;
}

int run_clients_new(Run *run, RunClients **ret) {
        RunClients *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->run = run;
        LIST_INIT(&c->watchers);
        r = sd_bus_track_new(run->manager->bus, &c->admitted, NULL, NULL);
        if (r < 0) {
                free(c);
                return r;
        }
        *ret = c;
        return 0;
}

RunClients *run_clients_free(RunClients *c) {
        if (!c)
                return NULL;
        while (!LIST_EMPTY(&c->watchers))
                watcher_free(LIST_FIRST(&c->watchers));
        sd_bus_track_unref(c->admitted);
        sd_bus_message_unref(c->input);
        free(c);
        return NULL;
}

/* ---- told by the run ---- */

static int new_properties_changed(Run *run, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_signal(run->manager->signal_bus, &m, run->path, "org.freedesktop.DBus.Properties",
                                      "PropertiesChanged");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "sa{sv}as", "org.ephemeral1.Run", 3, "State", "s", run_state_name(run->state),
                                  "Outcome", "s", outcome_name(run->outcome), "ExitStatus", "i", run_exit_status(run),
                                  0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

void run_clients_state_changed(Run *run) {
        Watcher *w;

        LIST_FOREACH (w, &run->clients->watchers, watchers) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

                if (w->subscriber && new_properties_changed(run, &m) >= 0)
                        (void) subscriber_send(w->subscriber, m, SMALL_SIGNAL_SIZE);
        }
}

void run_clients_console(Run *run, const void *data, size_t size) {
        Watcher *w;

        LIST_FOREACH (w, &run->clients->watchers, watchers)
                if (w->subscriber)
                        subscriber_console(w->subscriber, data, size);
}

void run_clients_finish(Run *run) {
        RunClients *c = run->clients;
        const char *result = json_text(run->result);
        Watcher *w;

        LIST_FOREACH (w, &c->watchers, watchers)
                if (w->feed)
                        (void) feed_finish(w->feed);
                else
                        (void) subscriber_finish(w->subscriber, outcome_name(run->outcome), result ? result : "{}");
        if (c->input) {
                (void) sd_bus_reply_method_errorf(c->input, "org.ephemeral1.Error.RunEnded",
                                                  "The run has ended; its command did not take all of the input");
                c->input = sd_bus_message_unref(c->input);
                run->on_stdin_drained = NULL;
        }
}

/* ---- asked by run-bus.c ---- */

static void on_subscriber_gone(Subscriber *s, void *userdata) {
        watcher_free(userdata);
}

static Watcher *find_subscriber(RunClients *c, const char *name) {
        Watcher *w;

        LIST_FOREACH (w, &c->watchers, watchers)
                if (w->subscriber && strcmp(subscriber_name(w->subscriber), name) == 0)
                        return w;
        return NULL;
}

int run_clients_subscribe(Run *run, const char *name, uid_t uid, uint64_t after_seq) {
        _cleanup_(watcher_freep) Watcher *w = NULL;
        SubscriberOptions options = {
                .name = name,
                .uid = uid,
                .path = run->path,
                .interface = "org.ephemeral1.Run",
                .timeline = run->timeline,
                .after_seq = after_seq,
                .on_gone = on_subscriber_gone,
        };
        int r;

        if (find_subscriber(run->clients, name))
                return 0;
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        options.userdata = w;
        r = subscriber_new(run->manager->hub, &options, &w->subscriber);
        if (r < 0)
                return r;
        if (run->state == RUN_ENDED)
                (void) subscriber_finish(w->subscriber, outcome_name(run->outcome), json_text(run->result));
        watcher_add(run->clients, TAKE_PTR(w));
        return 0;
}

void run_clients_unsubscribe(Run *run, const char *name) {
        watcher_free(find_subscriber(run->clients, name));
}

static void on_feed_gone(Feed *feed, void *userdata) {
        watcher_free(userdata);
}

static void on_congestion(Feed *feed, bool congested, void *userdata) {
        Watcher *w = userdata;
        RunClients *c = w->clients;

        if (!c || w->congested == congested)
                return;
        w->congested = congested;
        c->n_congested += congested ? 1 : -1U;
        run_set_paused(c->run, c->n_congested > 0);
}

int run_clients_open_output(Run *run, uint64_t after_seq, bool lossless, int *ret_fd) {
        _cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
        _cleanup_(watcher_freep) Watcher *w = NULL;
        FeedOptions options = {
                .after_seq = after_seq,
                .lossless = lossless,
                .on_congestion = on_congestion,
                .on_gone = on_feed_gone,
        };
        int pair[2], r;

        if (run->clients->n_feeds >= RUN_READERS_MAX)
                return -EUSERS;
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        options.userdata = w;
        r = feed_new(run->manager->event, ours, run->timeline, &options, &w->feed);
        if (r < 0)
                return r;
        TAKE_FD(ours);
        if (run->state == RUN_ENDED)
                (void) feed_finish(w->feed);
        watcher_add(run->clients, TAKE_PTR(w));
        *ret_fd = TAKE_FD(theirs);
        return 0;
}

static void on_input_taken(Run *run, void *userdata) {
        RunClients *c = run->clients;

        (void) sd_bus_reply_method_return(c->input, NULL);
        c->input = sd_bus_message_unref(c->input);
}

int run_clients_send_input(Run *run, sd_bus_message *call, const void *data, size_t size) {
        int r;

        r = run_send_input(run, data, size, on_input_taken, NULL);
        if (r < 0)
                return r;
        if (r > 0)
                return sd_bus_reply_method_return(call, NULL);
        run->clients->input = sd_bus_message_ref(call);
        return 1;
}

int run_clients_admit(Run *run, const char *name) {
        return sd_bus_track_add_name(run->clients->admitted, name);
}

bool run_clients_is_admitted(const Run *run, const char *name) {
        return sd_bus_track_contains(run->clients->admitted, name) != NULL;
}

bool run_clients_is_watched(const Run *run) {
        return !LIST_EMPTY(&run->clients->watchers);
}
