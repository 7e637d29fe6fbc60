/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Within subscriber.c and subscriber-peer.c only: the connections that signals go to, and what each has not read
 * yet. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "manager/subscriber.h"

typedef struct Peer Peer;

TAILQ_HEAD(SubscriberList, Subscriber);

struct Peer {
        TAILQ_ENTRY(Peer) link;
        SubscriberHub *hub;
        char *name;
        uid_t uid;
        bool left; /* the bus; nothing will be sent any more */

        uint64_t sent_bytes; /* ever */
        uint64_t read_bytes; /* of these, up to the last answered Ping */
        uint64_t ping_bytes; /* sent before the Ping on its way */
        bool silent;         /* did not answer: no other until it subscribes again */
        sd_bus_slot *ping;
        sd_bus_slot *match;
        sd_bus_slot *has_owner;

        struct SubscriberList subscribers;
        size_t n_subscribers;
};

struct SubscriberHub {
        sd_bus *bus;
        uint64_t ping_usec;
        sd_event_source *deferred;
        sd_bus_slot *disconnected;
        TAILQ_HEAD(, Peer) peers;
        size_t n_peers;
        uint64_t in_flight_bytes; /* of all peers */
        bool starved;             /* somebody waits for in_flight_bytes to fall */

        struct SubscriberList gone; /* to be told so by the deferred source */

        /* The subscribers' side: there is room again; none will be, with a reason to tell when the peer is still
         * there. */
        void (*on_room)(Peer *peer);
        void (*on_lost)(Peer *peer, const char *reason);
};

/* The peer of that name, made when new. 0, -EUSERS when there are too many, or -errno. */
int peer_get(SubscriberHub *hub, const char *name, uid_t uid, Peer **ret);

/* Whether size more bytes may go now; when not, on_room() will come. */
bool peer_has_room(Peer *peer, size_t size);

/* Sends a signal, whatever the room, and a Ping when it is time for one. 0 or -errno. */
int peer_send(Peer *peer, sd_bus_message *message, size_t size);

/* Frees the peers without subscribers that have read all or left. A silent one is kept for as long as it is on the
 * bus. From the deferred source. */
void peer_collect(SubscriberHub *hub);

void peer_free_all(SubscriberHub *hub);

/* Calls on_lost() for all: the bus is gone. */
void peer_lose_all(SubscriberHub *hub);
