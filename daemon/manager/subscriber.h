/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Unicast signals to those who subscribed, at each one's own speed. dbus-daemon stops reading from a *sender* whose
 * bytes pile up there (127 MiB), so signals leave on a connection of their own, and only so many bytes as a client
 * has shown to have read:
 *
 * A peer (one unique name, whatever number of subscriptions) has a window. When half of it is used, an
 * org.freedesktop.DBus.Peer.Ping follows the data; order is kept on the bus and every client library answers by
 * itself, so the answer proves that all before it was read. A peer that does not answer in time is unsubscribed from
 * everything, told by one last signal `Unsubscribed(t last_seq, s reason)`: GetTimeline(last_seq, …) gives the rest.
 * So is one subscription whose queue overflows.
 *
 * What a peer did not read stays on its account while it is on the bus, through any number of subscriptions.
 *
 * Like a feed, a subscription holds a place in the timeline, and only what the timeline does not keep is queued.
 *
 * The system bus must let the service send Ping: <allow send_interface="org.freedesktop.DBus.Peer"
 * send_member="Ping"/> for its user (an answer by the bus itself, such as AccessDenied, is no proof of reading and
 * ends the subscription). */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-bus.h>

#include "common/cleanup.h"
#include "manager/timeline.h"

#define SUBSCRIBER_PEERS_MAX     100U /* unique names; dbus-daemon bears 128 calls without an answer */
#define SUBSCRIBER_PEERS_PER_UID 25U
#define SUBSCRIBER_PER_PEER_MAX  256U /* subscriptions of one unique name */
#define SUBSCRIBER_WINDOW_BYTES                                                                                       \
        (256U << 10) /* unread bytes of a peer; one larger message may go when nothing else is unread */
#define SUBSCRIBER_IN_FLIGHT_MAX (64U << 20) /* unread bytes of all peers: half of what dbus-daemon bears */
#define SUBSCRIBER_QUEUE_MAX     (1U << 20)  /* queued bytes of one subscription that no timeline keeps */
#define SUBSCRIBER_PING_USEC     10000000U

typedef struct SubscriberHub SubscriberHub;
typedef struct Subscriber Subscriber;

/* `bus` is used for nothing else, is attached to an event loop, and is kept by reference. ping_usec 0:
 * SUBSCRIBER_PING_USEC. 0 or -errno. */
int subscriber_hub_new(sd_bus *bus, uint64_t ping_usec, SubscriberHub **ret);

/* All subscribers must have been freed. When the bus goes, all of them are gone. */
SubscriberHub *subscriber_hub_free(SubscriberHub *hub);
DEFINE_CLEANUP(SubscriberHub *, subscriber_hub_free);

typedef struct SubscriberOptions {
        const char *name;      /* unique name: only to it */
        uid_t uid;             /* whose connection that is */
        const char *path;      /* of the object whose signals these are, like interface */
        const char *interface; /* "org.ephemeral1.Run" */
        Timeline *timeline;    /* NULL: only what subscriber_send() brings. Must outlive the subscriber. */
        uint64_t after_seq;

        /* The peer left the bus, was unsubscribed, or subscriber_finish() is done. Called from the event loop, once,
         * never from within another call; the subscriber is to be freed, there or later. */
        void (*on_gone)(Subscriber *subscriber, void *userdata);
        void *userdata;
} SubscriberOptions;

/* Sends what the timeline holds behind after_seq as `Event(t seq, t usec, s type, s json)` and `Output(t seq, s
 * stream, ay data)`, and goes on with what comes. 0, -EUSERS when there are too many, or -errno. */
int subscriber_new(SubscriberHub *hub, const SubscriberOptions *options, Subscriber **ret);
Subscriber *subscriber_free(Subscriber *subscriber);
DEFINE_CLEANUP(Subscriber *, subscriber_free);

const char *subscriber_name(const Subscriber *subscriber);

/* Another signal (PropertiesChanged, RunNew …), behind the events so far; the destination is set here. The message
 * is referenced, not owned; size is about its bytes. 0; -ESHUTDOWN when gone or finished; -ENOBUFS when the queue
 * was full (the subscriber is then unsubscribed); or -errno. */
int subscriber_send(Subscriber *subscriber, sd_bus_message *message, size_t size);

/* `Console(ay data)`: best effort, dropped without a word when the peer is behind. */
void subscriber_console(Subscriber *subscriber, const void *data, size_t size);

/* `Finished(s outcome, s result_json)` as the last signal, then on_gone. 0 or -errno. */
int subscriber_finish(Subscriber *subscriber, const char *outcome, const char *result_json);
