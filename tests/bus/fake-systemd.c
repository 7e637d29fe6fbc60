/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A private bus's org.freedesktop.systemd1, as far as transient scopes go, and its polkit. Scopes are lists of pids: they end with the
 * last of them, stop by SIGTERM and then SIGKILL, and have a clock. What it says, and in which order, is what PID 1 was seen to say.
 *
 * fake-systemd yes|no|challenge|silent: what polkit answers to everything.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define ROOT "/org/freedesktop/systemd1"

enum {
        PIDS_MAX = 4,
        LOOK_USEC = 5 * 1000,
        KILL_USEC = 2 * 1000 * 1000,
};

typedef struct Unit Unit;

struct Unit {
        LIST_ENTRY(Unit) units;
        char *name, *path;
        pid_t pids[PIDS_MAX];
        const char *state, *result;
        uint64_t runtime_max_usec;
        sd_event_source *clock, *killer;
};

static LIST_HEAD(, Unit) units;
static sd_bus *bus;
static sd_event *event;
static const char *polkit;
static unsigned n_jobs;

static Unit *find_unit(const char *name) {
        Unit *u;

        LIST_FOREACH (u, &units, units)
                if (strcmp(u->name, name) == 0)
                        return u;
        return NULL;
}

static void changed(Unit *u) {
        sd_bus_emit_properties_changed(bus, u->path, "org.freedesktop.systemd1.Scope", "Result", NULL);
        sd_bus_emit_properties_changed(bus, u->path, "org.freedesktop.systemd1.Unit", "ActiveState", NULL);
}

static void signal_all(const Unit *u, int number) {
        for (size_t i = 0; i < PIDS_MAX; i++)
                if (u->pids[i] > 0)
                        kill(u->pids[i], number);
}

static int on_kill(sd_event_source *s, uint64_t usec, void *userdata) {
        Unit *u = userdata;

        u->result = "timeout";
        signal_all(u, SIGKILL);
        return 0;
}

static void stop(Unit *u, const char *result) {
        if (strcmp(u->state, "active") != 0)
                return;
        u->state = "deactivating";
        u->result = result;
        changed(u);
        signal_all(u, SIGTERM);
        sd_event_add_time_relative(event, &u->killer, CLOCK_MONOTONIC, KILL_USEC, 0, on_kill, u);
}

static int on_clock(sd_event_source *s, uint64_t usec, void *userdata) {
        stop(userdata, "timeout");
        return 0;
}

/* A zombie counts as gone: its parent is the test's manager. */
static bool is_alive(pid_t pid) {
        char path[64], state = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = fopen(path, "r");
        if (!f)
                return false;
        if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
                state = 'Z';
        fclose(f);
        return state != 'Z';
}

static bool is_down(const Unit *u) {
        return strcmp(u->state, "inactive") == 0 || strcmp(u->state, "failed") == 0;
}

static void look(Unit *u) {
        bool any = false;

        for (size_t i = 0; i < PIDS_MAX; i++) {
                if (u->pids[i] > 0 && !is_alive(u->pids[i]))
                        u->pids[i] = 0;
                any = any || u->pids[i] > 0;
        }
        if (any || is_down(u))
                return;
        u->state = strcmp(u->result, "success") == 0 ? "inactive" : "failed";
        u->clock = sd_event_source_disable_unref(u->clock);
        u->killer = sd_event_source_disable_unref(u->killer);
        changed(u);
}

static int on_look(sd_event_source *s, uint64_t usec, void *userdata) {
        Unit *u;

        LIST_FOREACH (u, &units, units)
                look(u);
        sd_event_source_set_time_relative(s, LOOK_USEC);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* ---- Manager ---- */

static void take_pid(Unit *u, pid_t pid) {
        Unit *other;

        LIST_FOREACH (other, &units, units)
                for (size_t i = 0; i < PIDS_MAX; i++)
                        if (other->pids[i] == pid)
                                other->pids[i] = 0;
        for (size_t i = 0; i < PIDS_MAX; i++)
                if (u->pids[i] == 0) {
                        u->pids[i] = pid;
                        return;
                }
}

static int read_pids(sd_bus_message *m, Unit *u) {
        uint32_t pid;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "au");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "u");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "u", &pid)) > 0)
                take_pid(u, (pid_t) pid);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_settings(sd_bus_message *m, Unit *u) {
        const char *name;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(sv)");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &name);
                if (r < 0)
                        return r;
                if (strcmp(name, "PIDs") == 0)
                        r = read_pids(m, u);
                else if (strcmp(name, "RuntimeMaxUSec") == 0)
                        r = sd_bus_message_read(m, "v", "t", &u->runtime_max_usec);
                else
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r;
}

static int method_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *mode;
        char job[64];
        Unit *u;
        int r;

        r = sd_bus_message_read(m, "ss", &name, &mode);
        if (r < 0)
                return r;
        if (find_unit(name))
                return sd_bus_error_setf(error, "org.freedesktop.systemd1.UnitExists", "Unit %s exists", name);
        u = calloc(1, sizeof(*u));
        u->name = strdup(name);
        u->state = "inactive";
        u->result = "success";
        sd_bus_path_encode(ROOT "/unit", name, &u->path);
        r = read_settings(m, u);
        if (r < 0)
                return r;
        LIST_INSERT_HEAD(&units, u, units);
        snprintf(job, sizeof(job), ROOT "/job/%u", ++n_jobs);
        sd_bus_reply_method_return(m, "o", job);
        changed(u); /* the stub: inactive */
        u->state = "active";
        changed(u);
        sd_event_add_time_relative(event, &u->clock, CLOCK_MONOTONIC, u->runtime_max_usec, 1, on_clock, u);
        return sd_bus_emit_signal(bus, ROOT, "org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", n_jobs, job,
                                  name, "done");
}

static int method_stop(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *mode;
        Unit *u;
        int r;

        r = sd_bus_message_read(m, "ss", &name, &mode);
        if (r < 0)
                return r;
        u = find_unit(name);
        if (!u)
                return sd_bus_error_setf(error, "org.freedesktop.systemd1.NoSuchUnit", "Unit %s not loaded.", name);
        r = sd_bus_reply_method_return(m, "o", ROOT "/job/0");
        stop(u, "success");
        return r;
}

/* One that is down and that nobody looks at any more is collected: its name is free again. */
static int method_unref(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Unit *u = userdata;
        int r = sd_bus_reply_method_return(m, NULL);

        if (is_down(u)) {
                LIST_REMOVE(u, units);
                free(u->name);
                free(u->path);
                free(u);
        }
        return r;
}

static int method_nothing(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, NULL);
}

/* ---- Unit ---- */

static int find_object(
        sd_bus *b, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error) {
        Unit *u;

        LIST_FOREACH (u, &units, units)
                if (strcmp(u->path, path) == 0) {
                        *ret = u;
                        return 1;
                }
        return 0;
}

static int get_text(sd_bus *b,
                    const char *path,
                    const char *interface,
                    const char *property,
                    sd_bus_message *reply,
                    void *userdata,
                    sd_bus_error *error) {
        Unit *u = userdata;

        if (strcmp(property, "ControlGroup") == 0)
                return sd_bus_message_append(reply, "s", "");
        return sd_bus_message_append(reply, "s", strcmp(property, "Result") == 0 ? u->result : u->state);
}

/* ---- polkit ---- */

static int method_check(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        if (strcmp(polkit, "silent") == 0)
                return 1;
        return sd_bus_reply_method_return(m, "(bba{ss})", strcmp(polkit, "yes") == 0, strcmp(polkit, "challenge") == 0,
                                          0);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Subscribe", NULL, NULL, method_nothing, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", method_start, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", method_stop, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable unit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("ActiveState", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_METHOD("Unref", NULL, NULL, method_unref, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable scope_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Result", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ControlGroup", "s", get_text, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable polkit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", method_check, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("CancelCheckAuthorization", "s", NULL, method_nothing, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int setup(void) {
        int r;

        r = sd_event_default(&event);
        if (r >= 0)
                r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_attach_event(bus, event, 0);
        if (r >= 0)
                r = sd_bus_add_object_vtable(bus, NULL, ROOT, "org.freedesktop.systemd1.Manager", manager_vtable,
                                             NULL);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, ROOT "/unit", "org.freedesktop.systemd1.Unit", unit_vtable,
                                               find_object, NULL);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, ROOT "/unit", "org.freedesktop.systemd1.Scope", scope_vtable,
                                               find_object, NULL);
        if (r >= 0)
                r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                             "org.freedesktop.PolicyKit1.Authority", polkit_vtable, NULL);
        if (r >= 0)
                r = sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, LOOK_USEC, 1, on_look, NULL);
        if (r >= 0)
                r = sd_bus_request_name(bus, "org.freedesktop.PolicyKit1", 0);
        if (r >= 0)
                r = sd_bus_request_name(bus, "org.freedesktop.systemd1", 0);
        return r;
}

int main(int argc, char *argv[]) {
        sigset_t term;
        Unit *u;
        int r;

        polkit = argc > 1 ? argv[1] : "yes";
        LIST_INIT(&units);
        r = setup();
        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigprocmask(SIG_BLOCK, &term, NULL);
        if (r >= 0)
                r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL); /* ends the loop */
        if (r >= 0)
                r = sd_event_loop(event);
        LIST_FOREACH (u, &units, units)
                signal_all(u, SIGKILL);
        if (r < 0)
                fprintf(stderr, "fake-systemd: %s\n", strerror(-r));
        return r < 0;
}
