/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Transient scopes: org.freedesktop.systemd1(5), systemd.scope(5). Nothing blocks; every wait on PID 1 has a deadline. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "common/cleanup.h"

typedef struct Scope Scope;
typedef struct Systemd Systemd;

/* Our subscription to PID 1's signals: one per bus connection, shared by all scopes. */
int systemd_new(sd_bus *bus, Systemd **ret);
Systemd *systemd_free(Systemd *s);

typedef struct ScopeSettings {
        const char *unit; /* "ephemeral-run-….scope" */
        const char *description;
        const uint32_t *pids; /* moved there, also out of another scope; at least one */
        size_t n_pids;
        uint64_t runtime_max_usec; /* PID 1 kills at the end of it, whatever becomes of us */
        uint64_t memory_max_bytes;
        uint64_t tasks_max;
        uint64_t cpu_quota_usec; /* CPU time per second of wall clock */
        uint64_t cpu_weight;     /* CPUWeight=, 1 … 10000; 0: the default */
        bool kvm;                /* the only device beside /dev/null */
        bool bound;              /* ends with ephemerald, also when that dies: of no use to anybody else */
} ScopeSettings;

typedef struct ScopeResult {
        char result[32];         /* "success", "timeout", "oom-kill", "resources"; "" if the unit never started */
        bool stopped_by_us;      /* scope_stop() was called before the end */
        bool stopped_by_others;  /* a stop that we did not ask for: systemctl stop */
        uint64_t cpu_usage_nsec; /* UINT64_MAX: not known */
        uint64_t active_enter_usec, inactive_enter_usec; /* CLOCK_REALTIME */
} ScopeResult;

/* error 0: the processes are in the scope and its limits hold. Otherwise a negative errno and PID 1's own words. */
typedef void (*ScopeStartedHandler)(Scope *s, int error, const char *text, void *userdata);
/* The scope has ended. Called once, and only after a successful start. The handler may free s. */
typedef void (*ScopeEndedHandler)(Scope *s, const ScopeResult *result, void *userdata);

typedef struct ScopeHandlers {
        ScopeStartedHandler on_started;
        ScopeEndedHandler on_ended;
        void *userdata;
} ScopeHandlers;

int scope_start(Systemd *systemd, const ScopeSettings *settings, const ScopeHandlers *handlers, Scope **ret);

/* Asks PID 1 to stop it; on_ended follows. Harmless when it is stopping or gone. */
int scope_stop(Scope *s);

/* Asks PID 1 how it is: for callers who saw its last process go and heard nothing. */
int scope_query(Scope *s);

const char *scope_unit(const Scope *s);
const char *scope_control_group(const Scope *s); /* "/ephemeral.slice/….scope"; NULL before the start */
const char *scope_invocation_id(const Scope *s); /* 32 hex digits; NULL before the start */

Scope *scope_free(Scope *s);

DEFINE_CLEANUP(Scope *, scope_free);
DEFINE_CLEANUP(Systemd *, systemd_free);
