/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The manager's side of ephemeral-jail (docs/design.md 17.2): spawn it, hear its status, let it go. */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"

typedef struct Jail Jail;

enum {
        JAIL_FDS_MAX = 16,
        JAIL_STDERR_MAX = 4096, /* kept of what jail and QEMU print: the reason when a machine does not start */
};

typedef struct JailSettings {
        const char *path; /* of ephemeral-jail */
        uid_t uid;        /* the run's own; the gid is the same number */
        bool kvm;
        char *const *binds;     /* files QEMU needs */
        char *const *arguments; /* QEMU and its arguments */
        const int *fds;         /* n_fds, become the numbers from JAIL_FIRST_FD on, in this order */
        size_t n_fds;
        /* n_holds more, for the jail's outer half alone: they stay open as long as it lives, whatever becomes of us. So QEMU's
         * channels do not hang up, and the uid stays leased, while a machine outlives its manager. */
        const int *holds;
        size_t n_holds;
} JailSettings;

/* Numbers in the jail: the go pipe and the status socket, for its outer half alone, then the fds. */
enum {
        JAIL_GO_FD = 3,
        JAIL_STATUS_FD = 4,
        JAIL_FIRST_FD = 5,
};

typedef struct JailHandlers {
        /* "verified": the text behind that word (uid=… links=… addresses=… routes=…). */
        void (*on_verified)(Jail *j, const char *facts, void *userdata);
        /* QEMU runs as this process of ours (host pid). */
        void (*on_started)(Jail *j, pid_t qemu, void *userdata);
        /* The jail's outer half is reaped. how: "exited 0", "killed SIGKILL", or the jail's own error. */
        void (*on_gone)(Jail *j, const char *how, void *userdata);
        void *userdata;
} JailHandlers;

/* The process waits for jail_release() before it executes QEMU, and dies with us until then. SIGCHLD must be blocked. */
int jail_spawn(sd_event *event, const JailSettings *settings, const JailHandlers *handlers, Jail **ret);

pid_t jail_pid(const Jail *j);

/* The scope is confirmed: QEMU may start. */
int jail_release(Jail *j);

/* For a jail that no scope holds yet. */
void jail_kill(Jail *j);

/* What jail and QEMU wrote to stderr so far, "" if nothing. */
const char *jail_stderr(const Jail *j);

/* Kills what is left: nothing of it outlives its object. */
Jail *jail_free(Jail *j);

DEFINE_CLEANUP(Jail *, jail_free);
