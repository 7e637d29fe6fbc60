/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What callers have not read of our replies. dbus-daemon keeps a reply until its receiver reads it, and stops listening to whoever has
 * 127 MiB of such: one caller that reads nothing would silence the service for everybody. So replies are counted by caller, the bus
 * is asked what of them is still unread, and who lets too much pile up gets an error, then nothing. */

#include <stddef.h>
#include <systemd/sd-bus.h>

#include "common/cleanup.h"

typedef struct Replies Replies;

enum {
        REPLIES_CALLER_MAX = 8 * 1024 * 1024, /* unread bytes of one connection */
        REPLIES_ALL_MAX = 48 * 1024 * 1024,   /* of all; beyond it each has REPLIES_SHARE_MAX */
        REPLIES_SHARE_MAX = 64 * 1024,
        REPLIES_CALLERS_MAX = 512, /* connections with unread replies */
        REPLY_MAX = 1024 * 1024,   /* about the size of one reply that could be longer */
};

/* Looks at every call that comes in over the bus from now on. */
int replies_new(sd_bus *bus, Replies **ret);
Replies *replies_free(Replies *r);

/* A reply of more than a few hundred bytes is about to answer this call. */
void replies_charge(Replies *r, sd_bus_message *call, size_t bytes);

DEFINE_CLEANUP(Replies *, replies_free);
