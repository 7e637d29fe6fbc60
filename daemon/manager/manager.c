/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The manager's birth, its list of runs, and its end. What it can live without (QEMU, an image, workflows) may be missing at the start:
 * then requests are told so, and the service stays up.
 */
#include "manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/clock.h"
#include "common/errors.h"
#include "common/fd.h"
#include "manager/bus.h"
#include "manager/pressure.h"
#include "manager/run-clients.h"
#include "manager/uid.h"

int manager_get_qemu(Manager *m, Qemu **ret, sd_bus_error *reterr_error) {
        int r;

        if (m->qemu && qemu_is_current(m->qemu)) {
                *ret = m->qemu;
                return 0;
        }
        m->qemu = qemu_free(m->qemu);
        free(m->qemu_error);
        m->qemu_error = NULL;
        r = qemu_probe(m->config.qemu_path, &m->qemu, &m->qemu_error);
        if (r < 0)
                return error_set(reterr_error, r == -EOPNOTSUPP ? ERROR_QEMU_TOO_OLD : ERROR_NO_QEMU, "%s",
                                 m->qemu_error ? m->qemu_error : "QEMU cannot be used");
        *ret = m->qemu;
        return 0;
}

Run *manager_find_run(Manager *m, const char *id) {
        Run *run;

        TAILQ_FOREACH (run, &m->runs, runs)
                if (strcmp(run->id, id) == 0)
                        return run;
        return NULL;
}

uint64_t manager_idle_wait_usec(Manager *m) {
        bool busy = m->n_active > 0 || m->n_queued > 0 || m->n_pending > 0 || m->n_watchers > 0 ||
                    (m->templates && template_set_is_busy(m->templates)) ||
                    (m->standbys && standby_count(m->standbys) > 0);
        uint64_t now = clock_monotonic_usec();

        if (busy)
                m->used_usec = now;
        if (busy || m->config.idle_usec == 0)
                return UINT64_MAX;
        return now - m->used_usec >= m->config.idle_usec ? 0 : m->config.idle_usec - (now - m->used_usec);
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;

        if (sd_bus_message_is_method_call(message, NULL, NULL) > 0)
                m->used_usec = clock_monotonic_usec();
        return 0;
}

/* The oldest ended runs go; those that somebody still reads stay. */
static void forget_runs(Manager *m) {
        Run *run, *next;

        for (run = TAILQ_FIRST(&m->runs); run && (m->n_ended > RUNS_KEPT_MAX || m->ended_bytes > RUNS_KEPT_BYTES);
             run = next) {
                next = TAILQ_NEXT(run, runs);
                if (run->state != RUN_ENDED || run_clients_is_watched(run))
                        continue;
                m->n_ended--;
                m->ended_bytes -= timeline_bytes(run->timeline);
                run_free(run);
        }
}

static int on_runs_changed(sd_event_source *s, void *userdata) {
        Manager *m = userdata;

        forget_runs(m);
        queue_dispatch(m);
        if (m->exiting && m->n_active == 0 && m->n_queued == 0)
                return sd_event_exit(m->event, 0);
        return 0;
}

void manager_look_again(Manager *m) {
        (void) sd_event_source_set_enabled(m->runs_changed, SD_EVENT_ONESHOT);
}

void manager_run_ended(Run *run) {
        Manager *m = run->manager;

        m->n_ended++;
        m->ended_bytes += timeline_bytes(run->timeline);
        manager_clients_run_ended(run);
        manager_look_again(m);
}

static int on_exit_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        return sd_event_exit(sd_event_source_get_event(s), 0);
}

/* Every run is ended and told so, in a restart too: nobody could take it back. Only a crash leaves runs behind, to PID 1's clock. */
void manager_exit(Manager *m) {
        enum { EXIT_DEADLINE_USEC = 4 * 1000 * 1000 };
        Run *run;

        if (m->exiting)
                return;
        m->exiting = true;
        TAILQ_FOREACH (run, &m->runs, runs)
                (void) run_cancel(run, "systemd");
        if (m->n_active == 0 || sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC, EXIT_DEADLINE_USEC, 0,
                                                           on_exit_deadline, NULL) < 0)
                (void) sd_event_exit(m->event, 0);
}

/* Nobody can call, and PID 1 is not heard, whose connection has dropped what it watched for us. What runs ends here, with its last
 * words in the journal; then systemd starts another manager, which gets a name on the new bus. */
static int on_bus_lost(sd_bus_message *message, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        Run *run;

        if (m->exiting)
                return sd_event_exit(m->event, EXIT_FAILURE);
        m->exiting = true;
        sd_journal_print(LOG_ERR, "The system bus has gone away: starting anew");
        TAILQ_FOREACH (run, &m->runs, runs) {
                if (run->state == RUN_ENDED)
                        continue;
                if (run->state == RUN_QUEUED)
                        queue_remove(run);
                if (!run->failure)
                        run->failure = strdup("the system bus has gone away");
                run_end(run, NULL);
        }
        return sd_event_exit(m->event, EXIT_FAILURE);
}

static int watch_bus(Manager *m, sd_bus *bus) {
        return sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus.Local", NULL, "org.freedesktop.DBus.Local",
                                   "Disconnected", on_bus_lost, m);
}

static int open_uid_dir(Manager *m, const char *runtime_dir) {
        _cleanup_(freep) char *path = NULL;
        _cleanup_(fd_closep) int nspawn = -EBADF;

        if (asprintf(&path, "%s/uid", runtime_dir) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        m->vm_environment.uid_dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (m->vm_environment.uid_dir_fd < 0)
                return -errno;
        (void) uid_lease_sweep(m->vm_environment.uid_dir_fd);
        nspawn = open("/run/systemd/nspawn-uid", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (nspawn >= 0 && uid_block_claim(nspawn, &m->uid_block_fd) < 0)
                sd_journal_print(LOG_WARNING, "A container of systemd-nspawn uses uids of runs");
        return 0;
}

static int load(Manager *m, const char *config_path, const char *runtime_dir) {
        _cleanup_(freep) char *text = NULL;
        Qemu *qemu;
        int r;

        r = config_load(config_path, &m->config, &text);
        if (r < 0) {
                sd_journal_print(LOG_ERR, "%s", text ? text : strerror(-r));
                return r;
        }
        r = host_probe(&m->host);
        if (r < 0)
                return r;
        r = accelerator_init(&m->accelerator, m->config.accelerator, runtime_dir);
        if (r < 0)
                return r;
        r = workflow_set_load(m->config.workflows_path, &m->workflows);
        if (r < 0)
                return r;
        if (manager_get_qemu(m, &qemu, NULL) < 0)
                sd_journal_print(LOG_ERR, "%s", m->qemu_error);
        m->runs_max = m->config.runs_max > 0 ? m->config.runs_max
                                             : host_runs_max(&m->host, plan_memory_max_bytes(256, false));
        return 0;
}

static int connect_bus(Manager *m) {
        int r;

        r = sd_bus_open_system_with_description(&m->bus, "ephemerald");
        if (r >= 0)
                r = sd_bus_attach_event(m->bus, m->event, 0);
        if (r >= 0)
                r = sd_bus_add_filter(m->bus, NULL, on_message, m);
        if (r >= 0)
                r = sd_bus_open_system_with_description(&m->signal_bus, "ephemerald-signals");
        if (r >= 0)
                r = sd_bus_attach_event(m->signal_bus, m->event, 0);
        if (r < 0) {
                sd_journal_print(LOG_ERR, "The system bus cannot be reached: %s. Is dbus.service running?",
                                 strerror(-r));
                return r;
        }
        r = watch_bus(m, m->bus);
        if (r >= 0)
                r = watch_bus(m, m->signal_bus);
        if (r >= 0)
                r = replies_new(m->bus, &m->replies);
        if (r >= 0) /* where windows bound what lies unread: no client comes between us and PID 1 */
                r = systemd_new(m->signal_bus, &m->systemd);
        if (r >= 0)
                r = subscriber_hub_new(m->signal_bus, 0, &m->hub);
        if (r >= 0)
                r = manager_clients_new(m, &m->clients);
        if (r >= 0)
                r = manager_bus_register(m);
        if (r >= 0)
                r = run_bus_register(m);
        return r;
}

static void on_standbys_changed(void *userdata) {
        manager_look_again(userdata);
}

static int on_pressure(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;

        m->pressure_usec = clock_monotonic_usec();
        manager_look_again(m);
        return pressure_read(s, fd, revents);
}

static int open_standbys(Manager *m) {
        StandbySettings settings = {
                .environment = &m->vm_environment,
                .templates = m->templates,
                .per_template = m->config.standby,
                .idle_usec = m->config.standby_idle_usec,
                .on_changed = on_standbys_changed,
                .userdata = m,
        };
        int r;

        if (!m->templates || m->config.standby == 0)
                return 0;
        r = pressure_watch(m->event, m->config.memory_pressure_path, on_pressure, m, &m->pressure);
        if (r < 0)
                sd_journal_print(LOG_NOTICE, "Whether memory is short cannot be read from %s: %s",
                                 m->config.memory_pressure_path, strerror(-r));
        return standby_set_new(&settings, &m->standbys);
}

static int open_templates(Manager *m) {
        TemplateSetSettings settings = {
                .environment = &m->vm_environment,
                .store = m->config.templates_path,
                .max = m->config.templates_max,
                .tsc_khz = m->host.tsc_khz,
        };

        return m->config.templates ? template_set_new(&settings, &m->templates) : 0;
}

int manager_new(sd_event *event, const char *config_path, const char *runtime_dir, Manager **ret) {
        _cleanup_(manager_freep) Manager *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        m->event = sd_event_ref(event);
        m->vm_environment.uid_dir_fd = m->uid_block_fd = -EBADF;
        TAILQ_INIT(&m->runs);
        TAILQ_INIT(&m->queue);
        TAILQ_INIT(&m->template_calls);
        r = load(m, config_path, runtime_dir);
        if (r < 0)
                return r;
        r = open_uid_dir(m, runtime_dir);
        if (r < 0)
                return r;
        r = journal_writer_new(NULL, &m->journal);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &m->runs_changed, on_runs_changed, m);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(m->runs_changed, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = connect_bus(m);
        if (r < 0)
                return r;
        m->vm_environment.event = event;
        m->vm_environment.systemd = m->systemd;
        m->vm_environment.jail_path = m->config.jail_path;
        r = open_templates(m);
        if (r < 0)
                return r;
        r = open_standbys(m);
        if (r < 0)
                return r;
        m->used_usec = clock_monotonic_usec();
        *ret = TAKE_PTR(m);
        return 0;
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;
        while (!TAILQ_EMPTY(&m->runs))
                run_free(TAILQ_FIRST(&m->runs));
        template_calls_free(m);
        sd_event_source_disable_unref(m->pressure);
        standby_set_free(m->standbys);
        template_set_free(m->templates);
        manager_clients_free(m->clients);
        subscriber_hub_free(m->hub);
        systemd_free(m->systemd);
        replies_free(m->replies);
        sd_bus_flush_close_unref(m->signal_bus);
        sd_bus_flush_close_unref(m->bus);
        sd_event_source_disable_unref(m->runs_changed);
        journal_writer_free(m->journal);
        workflow_set_free(m->workflows);
        qemu_free(m->qemu);
        free(m->qemu_error);
        accelerator_done(&m->accelerator);
        config_done(&m->config);
        fd_close(m->vm_environment.uid_dir_fd);
        fd_close(m->uid_block_fd);
        sd_event_unref(m->event);
        free(m);
        return NULL;
}
