/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The accounts of unread replies. A filter of the bus sees each call before its handler does. The truth comes from dbus-daemon's own
 * statistics (GetConnectionStats): asked when half of a window is used, and a moment after the last call, so that accounts of those
 * who read everything, or left, are closed. A bus without these statistics (dbus-broker) bounds its receivers by itself.
 */
#include "manager/replies.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/clock.h"
#include "common/errors.h"

enum {
        CALL_BYTES = 1024, /* a small reply and what the bus adds to it */
        LOOK_USEC = 3 * 1000 * 1000,
        ASK_TIMEOUT_USEC = 10 * 1000 * 1000,
};

typedef struct Caller Caller;

struct Caller {
        LIST_ENTRY(Caller) callers;
        Replies *replies;
        char *name;
        size_t unread;    /* at most */
        size_t since_ask; /* of it, what came after the question */
        sd_bus_slot *question;
};

struct Replies {
        sd_bus *bus;
        sd_bus_slot *filter;
        sd_event_source *look;
        LIST_HEAD(, Caller) callers;
        size_t n_callers, unread;
        bool blind; /* this bus does not say */
};

static void caller_free(Caller *c) {
        LIST_REMOVE(c, callers);
        c->replies->n_callers--;
        c->replies->unread -= c->unread;
        sd_bus_slot_unref(c->question);
        free(c->name);
        free(c);
}

static void set_unread(Caller *c, size_t unread) {
        c->replies->unread += unread - c->unread;
        c->unread = unread;
}

static int read_outgoing_bytes(sd_bus_message *m, uint32_t *ret) {
        const char *name;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &name);
                if (r < 0)
                        return r;
                if (strcmp(name, "OutgoingBytes") == 0)
                        return sd_bus_message_read(m, "v", "u", ret);
                r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : -ENODATA;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        Caller *c = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(m);
        uint32_t bytes = 0;

        c->question = sd_bus_slot_unref(c->question);
        if (!error && read_outgoing_bytes(m, &bytes) >= 0)
                set_unread(c, bytes + c->since_ask);
        else if (sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                set_unread(c, 0);
        else if (!c->replies->blind) {
                c->replies->blind = true;
                sd_journal_print(LOG_DEBUG, "The bus does not tell what its clients have not read: %s",
                                 error && error->message ? error->message : "no number");
        }
        if (c->unread == 0 || c->replies->blind)
                caller_free(c);
        return 0;
}

static void ask(Caller *c) {
        if (c->question)
                return;
        c->since_ask = 0;
        if (sd_bus_call_method_async(c->replies->bus, &c->question, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                     "org.freedesktop.DBus.Debug.Stats", "GetConnectionStats", on_answer, c, "s",
                                     c->name) < 0)
                c->question = NULL;
}

/* Nobody of those who are left may have to wait for a next call to be looked at. */
static int on_look(sd_event_source *s, uint64_t usec, void *userdata) {
        Replies *r = userdata;
        Caller *c;

        LIST_FOREACH (c, &r->callers, callers)
                ask(c);
        if (LIST_EMPTY(&r->callers) || sd_event_source_set_time_relative(s, LOOK_USEC) < 0)
                return 0;
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void look_later(Replies *r) {
        int enabled = SD_EVENT_OFF;

        if (sd_event_source_get_enabled(r->look, &enabled) < 0 || enabled != SD_EVENT_OFF)
                return;
        if (sd_event_source_set_time_relative(r->look, LOOK_USEC) >= 0)
                (void) sd_event_source_set_enabled(r->look, SD_EVENT_ONESHOT);
}

static Caller *find_caller(Replies *r, const char *name) {
        Caller *c;

        LIST_FOREACH (c, &r->callers, callers)
                if (strcmp(c->name, name) == 0)
                        return c;
        return NULL;
}

/* NULL: too many have unread replies, or there is no memory. */
static Caller *get_caller(Replies *r, const char *name) {
        Caller *c = find_caller(r, name);

        if (c || r->n_callers >= REPLIES_CALLERS_MAX)
                return c;
        c = calloc(1, sizeof(*c));
        if (!c)
                return NULL;
        c->replies = r;
        LIST_INSERT_HEAD(&r->callers, c, callers);
        r->n_callers++;
        c->name = strdup(name);
        if (!c->name) {
                caller_free(c);
                return NULL;
        }
        look_later(r);
        return c;
}

static size_t limit_of(const Replies *r) {
        return r->unread > REPLIES_ALL_MAX ? REPLIES_SHARE_MAX : REPLIES_CALLER_MAX;
}

static void charge(Caller *c, size_t bytes) {
        set_unread(c, c->unread + bytes);
        c->since_ask += bytes;
        if (c->unread > limit_of(c->replies) / 2)
                ask(c);
}

void replies_charge(Replies *r, sd_bus_message *call, size_t bytes) {
        const char *sender = sd_bus_message_get_sender(call);
        Caller *c = sender && !r->blind ? find_caller(r, sender) : NULL;

        if (c)
                charge(c, bytes);
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        Replies *r = userdata;
        const char *sender = sd_bus_message_get_sender(m);
        size_t limit = limit_of(r);
        Caller *c;

        if (r->blind || !sender || !sd_bus_message_is_method_call(m, NULL, NULL) ||
            sd_bus_message_get_expect_reply(m) <= 0)
                return 0;
        c = get_caller(r, sender);
        if (!c)
                return 1;
        charge(c, CALL_BYTES);
        if (c->unread <= limit)
                return 0;
        if (c->unread > 2 * limit)
                return 1; /* not even an error: it would lie unread with the others */
        return error_set(reterr_error, ERROR_QUEUE_FULL,
                         "%zu bytes of replies to this connection are not read yet: read them before the next call",
                         c->unread);
}

int replies_new(sd_bus *bus, Replies **ret) {
        _cleanup_(replies_freep) Replies *r = calloc(1, sizeof(*r));
        int k;

        if (!r)
                return -ENOMEM;
        LIST_INIT(&r->callers);
        r->bus = sd_bus_ref(bus);
        k = sd_event_add_time_relative(sd_bus_get_event(bus), &r->look, CLOCK_MONOTONIC, LOOK_USEC, 0, on_look, r);
        if (k >= 0)
                k = sd_event_source_set_enabled(r->look, SD_EVENT_OFF);
        if (k >= 0)
                k = sd_bus_add_filter(bus, &r->filter, on_call, r);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

Replies *replies_free(Replies *r) {
        if (!r)
                return NULL;
        while (!LIST_EMPTY(&r->callers))
                caller_free(LIST_FIRST(&r->callers));
        sd_bus_slot_unref(r->filter);
        sd_event_source_disable_unref(r->look);
        sd_bus_unref(r->bus);
        free(r);
        return NULL;
}
