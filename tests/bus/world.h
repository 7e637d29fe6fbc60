/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A world of its own for a test of the manager: a dbus-daemon on a socket in a temporary folder, fake-systemd, ephemerald with the jail
 * replaced by fake-jail. Nothing of the machine is touched, no root, no KVM, no QEMU. */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

/* dbus-daemon knows only uids that have a name: `daemon` and `bin` of every Debian. */
enum {
        USER_ONE = 1,
        USER_TWO = 2,
};

typedef struct World {
        char dir[64];
        pid_t bus_daemon, systemd, manager;
        sd_bus *bus; /* a client's connection */
} World;

typedef struct WorldOptions {
        const char *polkit; /* "yes", "no", "challenge", "silent"; NULL: "yes" */
        const char *fail;   /* fake-jail's word; NULL: none */
        const char *config; /* lines for [Manager]; NULL: none */
        bool templates;     /* machines are clones; otherwise each boots */
        bool as_user;       /* the client is USER_ONE: only as root, see world_has_users() */
} WorldOptions;

World *world_new(const WorldOptions *options);
void world_free(World *w); /* asserts that the manager ended well */

/* The bus goes away for good; asserts that the manager has left by itself, as failed, and none of its machines is left. */
void world_lose_bus(World *w);

/* Ends the manager by that signal and starts it again with what it has on disk. */
void world_restart_manager(World *w, int number);

/* Another client, of that uid. */
sd_bus *world_connect(World *w, uid_t uid);

bool world_has_users(void); /* running as root */

/* Starts a run by a request with this argv ("a b c" split at blanks) and more keys (", \"timeout_seconds\": 3" or ""). The object's path; the
 * caller frees. NULL and the error otherwise. */
char *world_start(sd_bus *bus, const char *argv, const char *more, sd_bus_error *error);

/* Waits until the run has ended; its outcome, and its result's JSON. The caller frees both. */
char *world_wait(sd_bus *bus, const char *path, char **ret_result);

char *world_property(sd_bus *bus, const char *path, const char *name); /* text; the caller frees; NULL: refused */

/* The run's timeline as lines "seq type json". The caller frees. */
char *world_timeline(sd_bus *bus, const char *path);
