/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What each connection has not read yet. Bytes are on a peer's account from sending until it answers a Ping that was
 * sent behind them, so dbus-daemon never holds more of ours than the windows say. The account is as old as the
 * connection: a peer that unsubscribes, or was unsubscribed, and comes back still owes what it did not read.
 */
#include "manager/subscriber-peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t unread_bytes(const Peer *p) {
        return p->sent_bytes - p->read_bytes;
}

static void set_read(Peer *p, uint64_t read_bytes) {
        p->hub->in_flight_bytes -= read_bytes - p->read_bytes;
        p->read_bytes = read_bytes;
}

static void peer_free(Peer *p) {
        set_read(p, p->sent_bytes);
        TAILQ_REMOVE(&p->hub->peers, p, link);
        p->hub->n_peers--;
        sd_bus_slot_unref(p->ping);
        sd_bus_slot_unref(p->match);
        sd_bus_slot_unref(p->has_owner);
        free(p->name);
        free(p);
}

static void collect_later(SubscriberHub *hub) {
        sd_event_source_set_enabled(hub->deferred, SD_EVENT_ONESHOT);
}

static void lose(Peer *p, const char *reason) {
        p->hub->on_lost(p, reason);
        collect_later(p->hub);
}

static void leave(Peer *p) {
        if (p->left)
                return;
        p->left = true;
        p->ping = sd_bus_slot_unref(p->ping);
        set_read(p, p->sent_bytes);
        lose(p, NULL);
}

/* Room was made: for this peer, and for those that waited for the sum of all to fall. */
static void tell_room(Peer *p) {
        SubscriberHub *hub = p->hub;
        bool starved = hub->starved;
        Peer *other;

        p->hub->on_room(p);
        if (!starved)
                return;
        hub->starved = false;
        TAILQ_FOREACH (other, &hub->peers, link) {
                if (other != p)
                        hub->on_room(other);
        }
}

static void ping_when_due(Peer *p);

/* The answer to a Ping. Only one that the peer itself sent, error or not, proves that it has read what was before. */
static int on_pong(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        Peer *p = userdata;
        const char *sender = sd_bus_message_get_sender(m);
        const sd_bus_error *error = sd_bus_message_get_error(m);
        char reason[256];

        p->ping = sd_bus_slot_unref(p->ping);
        if (sender && strcmp(sender, p->name) == 0) {
                p->silent = false;
                set_read(p, p->ping_bytes);
                tell_room(p);
                ping_when_due(p);
                if (p->n_subscribers == 0)
                        collect_later(p->hub);
                return 0;
        }
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER)) {
                leave(p);
                return 0;
        }
        p->silent = true;
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY))
                snprintf(reason, sizeof(reason), "signals were not read for %.3g s", (double) p->hub->ping_usec / 1e6);
        else
                snprintf(reason, sizeof(reason), "Peer.Ping could not be sent: %s",
                         error && error->message ? error->message : "unknown error");
        lose(p, reason);
        return 0;
}

static int send_ping(Peer *p) {
        sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(p->hub->bus, &m, p->name, "/", "org.freedesktop.DBus.Peer", "Ping");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_call_async(p->hub->bus, &p->ping, m, on_pong, p, p->hub->ping_usec);
        if (r >= 0)
                p->ping_bytes = p->sent_bytes;
        sd_bus_message_unref(m);
        return r;
}

/* With half of the window used; without subscribers, for the last byte, so that the account can be closed. */
static void ping_when_due(Peer *p) {
        uint64_t due = p->n_subscribers > 0 ? SUBSCRIBER_WINDOW_BYTES / 2 : 1;

        if (p->ping || p->left || p->silent || unread_bytes(p) < due)
                return;
        if (send_ping(p) < 0)
                leave(p);
}

bool peer_has_room(Peer *p, size_t size) {
        uint64_t unread = unread_bytes(p);

        if (p->left)
                return false;
        if (unread > 0 && unread + size > SUBSCRIBER_WINDOW_BYTES) {
                ping_when_due(p);
                return false;
        }
        if (p->hub->in_flight_bytes > 0 && p->hub->in_flight_bytes + size > SUBSCRIBER_IN_FLIGHT_MAX) {
                p->hub->starved = true;
                return false;
        }
        return true;
}

int peer_send(Peer *p, sd_bus_message *m, size_t size) {
        int r;

        r = sd_bus_message_set_destination(m, p->name);
        if (r < 0)
                return r;
        r = sd_bus_send(p->hub->bus, m, NULL);
        if (r < 0)
                return r;
        p->sent_bytes += size;
        p->hub->in_flight_bytes += size;
        ping_when_due(p);
        return 0;
}

static int on_name_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        const char *name, *before, *after;

        if (sd_bus_message_read(m, "sss", &name, &before, &after) >= 0 && *after == 0)
                leave(userdata);
        return 0;
}

static int on_match_added(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        if (sd_bus_message_is_method_error(m, NULL))
                leave(userdata);
        return 0;
}

static int on_has_owner(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        Peer *p = userdata;
        int has_owner = false;

        p->has_owner = sd_bus_slot_unref(p->has_owner);
        if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read(m, "b", &has_owner) < 0 || !has_owner)
                leave(p);
        return 0;
}

/* Nothing here waits for the bus: the match is asked for before the question whether the peer is there at all. */
static int watch_name(Peer *p) {
        char match[512];
        int n, r;

        n = snprintf(match, sizeof(match),
                     "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                     "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
                     p->name);
        if (n < 0 || (size_t) n >= sizeof(match))
                return -EINVAL;
        r = sd_bus_add_match_async(p->hub->bus, &p->match, match, on_name_owner_changed, on_match_added, p);
        if (r < 0)
                return r;
        return sd_bus_call_method_async(p->hub->bus, &p->has_owner, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                        "org.freedesktop.DBus", "NameHasOwner", on_has_owner, p, "s", p->name);
}

static Peer *find_peer(SubscriberHub *hub, const char *name, uid_t uid, size_t *ret_of_uid) {
        Peer *p;

        *ret_of_uid = 0;
        TAILQ_FOREACH (p, &hub->peers, link) {
                if (strcmp(p->name, name) == 0 && !p->left)
                        return p;
                *ret_of_uid += p->uid == uid;
        }
        return NULL;
}

int peer_get(SubscriberHub *hub, const char *name, uid_t uid, Peer **ret) {
        size_t n_of_uid;
        Peer *p = find_peer(hub, name, uid, &n_of_uid);
        int r;

        if (p) {
                p->silent = false; /* it gets another Ping, and its window back when it answers */
                *ret = p;
                return 0;
        }
        if (name[0] != ':' || strchr(name, '\''))
                return -EINVAL;
        if (hub->n_peers >= SUBSCRIBER_PEERS_MAX || n_of_uid >= SUBSCRIBER_PEERS_PER_UID)
                return -EUSERS;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->hub = hub;
        p->uid = uid;
        TAILQ_INIT(&p->subscribers);
        TAILQ_INSERT_TAIL(&hub->peers, p, link);
        hub->n_peers++;
        p->name = strdup(name);
        r = p->name ? watch_name(p) : -ENOMEM;
        if (r < 0) {
                peer_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

void peer_collect(SubscriberHub *hub) {
        for (Peer *p = TAILQ_FIRST(&hub->peers), *next; p; p = next) {
                next = TAILQ_NEXT(p, link);
                if (p->n_subscribers > 0)
                        continue;
                if (p->left || unread_bytes(p) == 0)
                        peer_free(p);
                else
                        ping_when_due(p);
        }
}

void peer_free_all(SubscriberHub *hub) {
        while (!TAILQ_EMPTY(&hub->peers))
                peer_free(TAILQ_FIRST(&hub->peers));
}

void peer_lose_all(SubscriberHub *hub) {
        Peer *p;

        TAILQ_FOREACH (p, &hub->peers, link)
                leave(p);
}
