/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One transient scope, from StartTransientUnit to its end. vm.c puts each virtual machine into one before the guest runs.
 *
 * PID 1's traps, all seen on systemd 252 and 257: before the job is done the unit reads "inactive"; once collected it reads
 * "success", so it is pinned (AddRef) until its result is read; a daemon-reload says UnitRemoved of everything, so only
 * ActiveState counts, asked again after Reloading(false).
 */
#include "manager/scope.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "manager/scope-settings.h"
#include "manager/unit-properties.h"

#define SYSTEMD_NAME    "org.freedesktop.systemd1"
#define SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"
#define SYSTEMD_UNIT    "org.freedesktop.systemd1.Unit"
#define SYSTEMD_SCOPE   "org.freedesktop.systemd1.Scope"

enum {
        CALL_TIMEOUT_USEC = 10 * 1000 * 1000,
        JOB_TIMEOUT_USEC = 20 * 1000 * 1000,
};

struct Systemd {
        sd_bus *bus;
        sd_bus_slot *job_removed, *reloading;
        LIST_HEAD(, Scope) scopes;
};

struct Scope {
        Systemd *systemd;
        LIST_ENTRY(Scope) others;
        ScopeHandlers handlers;
        char *unit, *path, *job, *control_group;
        char invocation_id[33];
        sd_bus_slot *properties, *starting, *querying;
        sd_event_source *deadline;
        bool running, ended, stop_requested, referenced;
        bool deactivating;
        char last_result[32];    /* of the latest PropertiesChanged */
        char result_at_stop[32]; /* when it began to stop */
};

static void scope_fail(Scope *s, int error, const char *text) {
        if (s->running || s->ended)
                return;
        s->ended = true;
        s->deadline = sd_event_source_disable_unref(s->deadline);
        s->handlers.on_started(s, error, text, s->handlers.userdata);
}

static void scope_unreference(Scope *s) {
        if (!s->referenced)
                return;
        s->referenced = false;
        (void) sd_bus_call_method_async(s->systemd->bus, NULL, SYSTEMD_NAME, s->path, SYSTEMD_UNIT, "Unref", NULL,
                                        NULL, NULL);
}

static void scope_end(Scope *s, const UnitProperties *p) {
        ScopeResult result = {
                .cpu_usage_nsec = p->cpu_usage_nsec,
                .active_enter_usec = p->active_enter_usec,
                .inactive_enter_usec = p->inactive_enter_usec,
                .stopped_by_us = s->stop_requested,
                .stopped_by_others =
                        s->deactivating && !s->stop_requested && strcmp(s->result_at_stop, "success") == 0,
        };

        memcpy(result.result, p->result, sizeof(result.result));
        s->ended = true;
        s->properties = sd_bus_slot_unref(s->properties);
        scope_unreference(s);
        s->handlers.on_ended(s, &result, s->handlers.userdata);
}

static void scope_started(Scope *s, const UnitProperties *p) {
        s->running = true;
        s->deadline = sd_event_source_disable_unref(s->deadline);
        free(s->control_group);
        s->control_group = p->control_group ? strdup(p->control_group) : NULL;
        memcpy(s->invocation_id, p->invocation_id, sizeof(s->invocation_id));
        s->handlers.on_started(s, 0, NULL, s->handlers.userdata);
}

static int on_all_properties(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Scope *s = userdata;
        UnitProperties p;
        bool down;
        int r;

        s->querying = sd_bus_slot_unref(s->querying);
        if (s->ended)
                return 0;
        if (sd_bus_message_is_method_error(m, NULL)) {
                scope_fail(s, -EIO, sd_bus_message_get_error(m)->message);
                return 0;
        }
        r = unit_properties_read(m, &p);
        if (r < 0 || !p.active_state) {
                scope_fail(s, -EBADMSG, "systemd answered with something that is no unit");
                return 0;
        }
        down = strcmp(p.active_state, "inactive") == 0 || strcmp(p.active_state, "failed") == 0;
        if (!s->running && down)
                scope_fail(s, -ESRCH, "the process was gone before its scope was ready");
        else if (!s->running)
                scope_started(s, &p);
        else if (down)
                scope_end(s, &p);
        return 0;
}

int scope_query(Scope *s) {
        sd_bus_message *m = NULL;
        int r;

        if (s->querying || s->ended)
                return 0;
        r = sd_bus_message_new_method_call(s->systemd->bus, &m, SYSTEMD_NAME, s->path,
                                           "org.freedesktop.DBus.Properties", "GetAll");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", ""); /* "" is every interface of the object */
        if (r >= 0)
                r = sd_bus_call_async(s->systemd->bus, &s->querying, m, on_all_properties, s, CALL_TIMEOUT_USEC);
        sd_bus_message_unref(m);
        return r < 0 ? r : 0;
}

static int on_properties_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Scope *s = userdata;
        UnitProperties p;
        const char *interface;
        int r;

        r = sd_bus_message_read(m, "s", &interface);
        if (r < 0 || !s->running || s->ended)
                return 0; /* before the job is done PID 1 says "inactive" */
        r = unit_properties_read(m, &p);
        if (r < 0)
                return 0;
        if (strcmp(interface, SYSTEMD_SCOPE) == 0 && p.result[0])
                memcpy(s->last_result, p.result, sizeof(s->last_result));
        if (strcmp(interface, SYSTEMD_UNIT) != 0 || !p.active_state)
                return 0;
        if (strcmp(p.active_state, "deactivating") == 0 && !s->deactivating) {
                s->deactivating = true;
                memcpy(s->result_at_stop, s->last_result, sizeof(s->result_at_stop));
        } else if (strcmp(p.active_state, "inactive") == 0 || strcmp(p.active_state, "failed") == 0)
                (void) scope_query(s);
        return 0;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Systemd *systemd = userdata;
        const char *path, *unit, *result;
        Scope *s;
        uint32_t id;

        if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0)
                return 0;
        LIST_FOREACH (s, &systemd->scopes, others) {
                if (!s->job || s->running || s->ended || strcmp(s->job, path) != 0)
                        continue;
                if (strcmp(result, "done") == 0)
                        (void) scope_query(s); /* its cgroup and invocation id, and whether it is still there */
                else
                        scope_fail(s, -ECANCELED, result);
                break;
        }
        return 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Systemd *systemd = userdata;
        int begins;
        Scope *s;

        if (sd_bus_message_read(m, "b", &begins) < 0 || begins)
                return 0;
        LIST_FOREACH (s, &systemd->scopes, others)
                if (s->running)
                        (void) scope_query(s);
        return 0;
}

static int on_start_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Scope *s = userdata;
        const char *job;

        s->starting = sd_bus_slot_unref(s->starting);
        if (sd_bus_message_is_method_error(m, NULL)) {
                scope_fail(s, -EIO, sd_bus_message_get_error(m)->message);
                return 0;
        }
        s->referenced = true;
        if (sd_bus_message_read(m, "o", &job) < 0 || !(s->job = strdup(job)))
                scope_fail(s, -EBADMSG, "systemd answered without a job");
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        scope_fail(userdata, -ETIMEDOUT, "systemd did not start the scope in time");
        return 0;
}

static int scope_send_start(Scope *s, const ScopeSettings *settings) {
        sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(s->systemd->bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                           "StartTransientUnit");
        if (r >= 0)
                r = scope_settings_append(m, settings);
        if (r >= 0)
                r = sd_bus_call_async(s->systemd->bus, &s->starting, m, on_start_reply, s, CALL_TIMEOUT_USEC);
        sd_bus_message_unref(m);
        return r;
}

int scope_start(Systemd *systemd, const ScopeSettings *settings, const ScopeHandlers *handlers, Scope **ret) {
        _cleanup_(scope_freep) Scope *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->systemd = systemd;
        s->handlers = *handlers;
        LIST_INSERT_HEAD(&systemd->scopes, s, others);
        s->unit = strdup(settings->unit);
        if (!s->unit)
                return -ENOMEM;
        r = sd_bus_path_encode(SYSTEMD_PATH "/unit", s->unit, &s->path);
        if (r < 0)
                return r;
        r = sd_bus_match_signal_async(systemd->bus, &s->properties, SYSTEMD_NAME, s->path,
                                      "org.freedesktop.DBus.Properties", "PropertiesChanged", on_properties_changed,
                                      NULL, s);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(sd_bus_get_event(systemd->bus), &s->deadline, CLOCK_MONOTONIC, JOB_TIMEOUT_USEC,
                                       0, on_deadline, s);
        if (r < 0)
                return r;
        r = scope_send_start(s, settings);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

int scope_stop(Scope *s) {
        if (s->ended)
                return 0;
        s->stop_requested = true;
        return sd_bus_call_method_async(s->systemd->bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "StopUnit",
                                        NULL, NULL, "ss", s->unit, "replace");
}

const char *scope_unit(const Scope *s) {
        return s->unit;
}

const char *scope_control_group(const Scope *s) {
        return s->control_group;
}

const char *scope_invocation_id(const Scope *s) {
        return s->invocation_id[0] ? s->invocation_id : NULL;
}

Scope *scope_free(Scope *s) {
        if (!s)
                return NULL;
        LIST_REMOVE(s, others);
        sd_event_source_disable_unref(s->deadline);
        sd_bus_slot_unref(s->properties);
        sd_bus_slot_unref(s->starting);
        sd_bus_slot_unref(s->querying);
        scope_unreference(s);
        free(s->unit);
        free(s->path);
        free(s->job);
        free(s->control_group);
        free(s);
        return NULL;
}

int systemd_new(sd_bus *bus, Systemd **ret) {
        _cleanup_(systemd_freep) Systemd *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->bus = sd_bus_ref(bus);
        LIST_INIT(&s->scopes);
        r = sd_bus_match_signal_async(bus, &s->job_removed, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "JobRemoved",
                                      on_job_removed, NULL, s);
        if (r < 0)
                return r;
        r = sd_bus_match_signal_async(bus, &s->reloading, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reloading",
                                      on_reloading, NULL, s);
        if (r < 0)
                return r;
        /* Without it PID 1 stays silent. Once for a connection. */
        r = sd_bus_call_method_async(bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe", NULL, NULL,
                                     NULL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

Systemd *systemd_free(Systemd *s) {
        if (!s)
                return NULL;
        sd_bus_slot_unref(s->job_removed);
        sd_bus_slot_unref(s->reloading);
        sd_bus_unref(s->bus);
        free(s);
        return NULL;
}
