/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Subscriptions: each is a place in a run's timeline and a short queue of signals that the timeline does not hold. A
 * signal leaves when its turn has come and its peer has room (subscriber-peer.c); subscriptions of one peer take
 * turns.
 *
 * An owner is told that a subscription is gone by a deferred event source, never from within an append to the
 * timeline.
 */
#include "manager/subscriber.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/subscriber-peer.h"

enum { SIGNAL_OVERHEAD = 512 }; /* header and bookkeeping of one signal, about */

typedef struct Signal {
        STAILQ_ENTRY(Signal) next;
        uint64_t after_seq; /* its place: behind this event */
        size_t size;
        sd_bus_message *message;
} Signal;

struct Subscriber {
        TAILQ_ENTRY(Subscriber) link; /* of the peer's, then of the hub's gone ones */
        SubscriberHub *hub;
        Peer *peer; /* NULL when gone */
        SubscriberOptions options;
        char *name;
        char *path;
        char *interface;
        TimelineListener *listener;
        uint64_t seq; /* of the last event that was sent */

        STAILQ_HEAD(, Signal) queue;
        size_t queue_bytes;
        bool finishing;
        bool untold; /* in the hub's list of gone ones */
};

static void signal_free(Signal *signal) {
        sd_bus_message_unref(signal->message);
        free(signal);
}

/* Ends the subscription; its owner is told later. */
static void become_gone(Subscriber *s) {
        Signal *signal;

        if (!s->peer)
                return;
        s->listener = timeline_listener_free(s->listener);
        while ((signal = STAILQ_FIRST(&s->queue))) {
                STAILQ_REMOVE_HEAD(&s->queue, next);
                signal_free(signal);
        }
        TAILQ_REMOVE(&s->peer->subscribers, s, link);
        s->peer->n_subscribers--;
        s->peer = NULL;
        TAILQ_INSERT_TAIL(&s->hub->gone, s, link);
        s->untold = true;
        sd_event_source_set_enabled(s->hub->deferred, SD_EVENT_ONESHOT);
}

static int signal_new(Subscriber *s, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_signal(s->hub->bus, ret, s->path, s->interface, member);
}

static void unsubscribe(Subscriber *s, const char *reason) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (signal_new(s, "Unsubscribed", &m) >= 0 && sd_bus_message_append(m, "ts", s->seq, reason) >= 0)
                peer_send(s->peer, m, SIGNAL_OVERHEAD + strlen(reason));
        become_gone(s);
}

static int output_signal(Subscriber *s, const Event *event, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = signal_new(s, "Output", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ts", event->seq, output_stream_name(event->stream));
        if (r < 0)
                return r;
        r = sd_bus_message_append_array(m, 'y', event->data, event->data_size);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static int event_signal(Subscriber *s, const Event *event, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        if (event->type == EVENT_OUTPUT)
                return output_signal(s, event, ret);
        r = signal_new(s, "Event", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ttss", event->seq, event->usec, event_type_name(event->type), event->json);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static int send_queued(Subscriber *s, Signal *signal) {
        int r;

        if (!peer_has_room(s->peer, signal->size))
                return 0;
        STAILQ_REMOVE_HEAD(&s->queue, next);
        s->queue_bytes -= signal->size;
        r = peer_send(s->peer, signal->message, signal->size);
        signal_free(signal);
        return r < 0 ? r : 1;
}

static int send_event(Subscriber *s, const Event *event) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        size_t size = SIGNAL_OVERHEAD + event->json_size + event->data_size;
        int r;

        if (!peer_has_room(s->peer, size))
                return 0;
        r = event_signal(s, event, &m);
        if (r < 0)
                return r;
        r = peer_send(s->peer, m, size);
        if (r < 0)
                return r;
        s->seq = event->seq;
        return 1;
}

/* 1 when a signal was sent, 0 when there is none or no room for it, or the subscription is gone. */
static int send_next(Subscriber *s) {
        Signal *signal = STAILQ_FIRST(&s->queue);
        Timeline *timeline = s->options.timeline;
        Event event;
        int r = 0;

        if (!s->peer)
                return 0;
        if (signal && signal->after_seq <= s->seq)
                r = send_queued(s, signal);
        else if (timeline && timeline_get(timeline, s->seq + 1, &event) == 0)
                r = send_event(s, &event);
        else if (s->finishing)
                become_gone(s);
        if (r < 0 && s->peer)
                become_gone(s);
        return r > 0;
}

static void send_all(Subscriber *s) {
        while (send_next(s))
                ;
}

/* Each subscription a signal in turn; whoever was first goes last the next time. */
static void on_room(Peer *peer) {
        Subscriber *s, *next;
        bool progress = true;

        while (progress) {
                progress = false;
                for (s = TAILQ_FIRST(&peer->subscribers); s && s->peer; s = next) {
                        next = TAILQ_NEXT(s, link); /* s may be gone, all may be: then next has no peer */
                        progress |= send_next(s);
                }
        }
        s = TAILQ_FIRST(&peer->subscribers);
        if (s) {
                TAILQ_REMOVE(&peer->subscribers, s, link);
                TAILQ_INSERT_TAIL(&peer->subscribers, s, link);
        }
}

static void on_lost(Peer *peer, const char *reason) {
        Subscriber *s;

        while ((s = TAILQ_FIRST(&peer->subscribers))) {
                if (reason)
                        unsubscribe(s, reason);
                else
                        become_gone(s);
        }
}

static int enqueue(Subscriber *s, sd_bus_message *m, size_t size) {
        Signal *signal;

        if (s->queue_bytes + size > SUBSCRIBER_QUEUE_MAX && s->queue_bytes > 0) {
                unsubscribe(s, "more came than was read");
                return -ENOBUFS;
        }
        signal = malloc(sizeof(*signal));
        if (!signal)
                return -ENOMEM;
        *signal = (Signal){
                .after_seq = s->options.timeline ? timeline_last_seq(s->options.timeline) : 0,
                .size = size,
                .message = sd_bus_message_ref(m),
        };
        STAILQ_INSERT_TAIL(&s->queue, signal, next);
        s->queue_bytes += size;
        return 0;
}

static void on_event(Timeline *timeline, const Event *event, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Subscriber *s = userdata;
        int r;

        if (event->seq == 0) {
                r = output_signal(s, event, &m);
                if (r >= 0)
                        r = enqueue(s, m, SIGNAL_OVERHEAD + event->data_size);
                if (r < 0) {
                        become_gone(s);
                        return;
                }
        }
        send_all(s);
}

static int on_deferred(sd_event_source *source, void *userdata) {
        SubscriberHub *hub = userdata;
        Subscriber *s;

        while ((s = TAILQ_FIRST(&hub->gone))) {
                TAILQ_REMOVE(&hub->gone, s, link);
                s->untold = false;
                if (s->options.on_gone)
                        s->options.on_gone(s, s->options.userdata);
        }
        peer_collect(hub);
        return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        peer_lose_all(userdata);
        return 0;
}

int subscriber_hub_new(sd_bus *bus, uint64_t ping_usec, SubscriberHub **ret) {
        _cleanup_(subscriber_hub_freep) SubscriberHub *hub = calloc(1, sizeof(*hub));
        int r;

        if (!hub)
                return -ENOMEM;
        TAILQ_INIT(&hub->peers);
        TAILQ_INIT(&hub->gone);
        hub->bus = sd_bus_ref(bus);
        hub->ping_usec = ping_usec ? ping_usec : SUBSCRIBER_PING_USEC;
        hub->on_room = on_room;
        hub->on_lost = on_lost;
        r = sd_event_add_defer(sd_bus_get_event(bus), &hub->deferred, on_deferred, hub);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(hub->deferred, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_bus_match_signal_async(bus, &hub->disconnected, "org.freedesktop.DBus.Local", NULL,
                                      "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, NULL, hub);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(hub);
        return 0;
}

SubscriberHub *subscriber_hub_free(SubscriberHub *hub) {
        if (!hub)
                return NULL;
        peer_free_all(hub);
        assert(TAILQ_EMPTY(&hub->gone));
        sd_event_source_disable_unref(hub->deferred);
        sd_bus_slot_unref(hub->disconnected);
        sd_bus_unref(hub->bus);
        free(hub);
        return NULL;
}

static int join_peer(Subscriber *s) {
        Peer *peer;
        int r;

        r = peer_get(s->hub, s->name, s->options.uid, &peer);
        if (r < 0)
                return r;
        if (peer->n_subscribers >= SUBSCRIBER_PER_PEER_MAX)
                return -EUSERS;
        TAILQ_INSERT_TAIL(&peer->subscribers, s, link);
        peer->n_subscribers++;
        s->peer = peer;
        return 0;
}

int subscriber_new(SubscriberHub *hub, const SubscriberOptions *options, Subscriber **ret) {
        _cleanup_(subscriber_freep) Subscriber *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->hub = hub;
        s->options = *options;
        s->seq = options->after_seq;
        STAILQ_INIT(&s->queue);
        s->name = strdup(options->name);
        s->path = strdup(options->path);
        s->interface = strdup(options->interface);
        if (!s->name || !s->path || !s->interface)
                return -ENOMEM;
        if (options->timeline) {
                r = timeline_listen(options->timeline, on_event, s, &s->listener);
                if (r < 0)
                        return r;
        }
        r = join_peer(s);
        if (r < 0)
                return r;
        send_all(s);
        *ret = TAKE_PTR(s);
        return 0;
}

Subscriber *subscriber_free(Subscriber *s) {
        if (!s)
                return NULL;
        become_gone(s);
        if (s->untold)
                TAILQ_REMOVE(&s->hub->gone, s, link);
        timeline_listener_free(s->listener);
        free(s->name);
        free(s->path);
        free(s->interface);
        free(s);
        return NULL;
}

const char *subscriber_name(const Subscriber *s) {
        return s->name;
}

int subscriber_send(Subscriber *s, sd_bus_message *m, size_t size) {
        int r;

        if (!s->peer || s->finishing)
                return -ESHUTDOWN;
        r = enqueue(s, m, SIGNAL_OVERHEAD + size);
        if (r < 0)
                return r;
        send_all(s);
        return 0;
}

void subscriber_console(Subscriber *s, const void *data, size_t size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (!s->peer || s->finishing || !peer_has_room(s->peer, SIGNAL_OVERHEAD + size))
                return;
        if (signal_new(s, "Console", &m) >= 0 && sd_bus_message_append_array(m, 'y', data, size) >= 0)
                peer_send(s->peer, m, SIGNAL_OVERHEAD + size);
}

int subscriber_finish(Subscriber *s, const char *outcome, const char *result_json) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        if (!s->peer || s->finishing)
                return 0;
        r = signal_new(s, "Finished", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ss", outcome, result_json);
        if (r < 0)
                return r;
        r = enqueue(s, m, SIGNAL_OVERHEAD + strlen(outcome) + strlen(result_json));
        if (r < 0)
                return r;
        s->finishing = true;
        send_all(s);
        return 0;
}
