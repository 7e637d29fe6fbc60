/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemerald: set up, announce, loop, leave when idle. The name is taken last, when every object is there; it is given back first, and
 * only then does the process go, so that no call on the bus is lost between two of its lives.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "manager/bus.h"

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        (void) sd_notify(false, "STOPPING=1");
        manager_exit(userdata);
        return 0;
}

static int on_name_gone(sd_bus_message *m, void *userdata, sd_bus_error *reterr_error) {
        return sd_event_exit(userdata, 0);
}

/* From STOPPING=1 on, PID 1 keeps start requests until this process is gone; calls that arrive before the bus has taken the name back
 * are still answered. */
static int begin_idle_exit(Manager *m) {
        _cleanup_(freep) char *match = NULL;
        const char *unique;
        int r;

        r = sd_bus_get_unique_name(m->bus, &unique);
        if (r < 0)
                return r;
        if (asprintf(&match,
                     "sender='org.freedesktop.DBus',type='signal',interface='org.freedesktop.DBus',member='"
                     "NameOwnerChanged',"
                     "path='/org/freedesktop/DBus',arg0='" BUS_NAME "',arg1='%s',arg2=''",
                     unique) < 0) {
                match = NULL;
                return -ENOMEM;
        }
        (void) sd_notify(false, "STOPPING=1");
        r = sd_bus_add_match_async(m->bus, NULL, match, on_name_gone, NULL, m->event);
        if (r < 0)
                return r;
        return sd_bus_release_name_async(m->bus, NULL, BUS_NAME, NULL, NULL);
}

static int loop(Manager *m) {
        bool leaving = false;
        int r, code = 0;

        while (sd_event_get_state(m->event) != SD_EVENT_FINISHED) {
                uint64_t wait_usec = leaving ? UINT64_MAX : manager_idle_wait_usec(m);

                if (wait_usec == 0) {
                        r = begin_idle_exit(m);
                        if (r < 0)
                                return r;
                        leaving = true;
                        continue;
                }
                r = sd_event_run(m->event, wait_usec);
                if (r < 0)
                        return r;
        }
        r = sd_event_get_exit_code(m->event, &code);
        return r < 0 ? r : code;
}

static int make_event(sd_event **ret) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        sigset_t set;
        int r;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGCHLD); /* sd_event_add_child(3) */
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        signal(SIGPIPE, SIG_IGN); /* a jail may be gone when it is let go */
        r = sd_event_default(&event);
        if (r < 0)
                return r;
        r = sd_event_set_watchdog(event, true);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(event);
        return 0;
}

static int run(const char *config_path) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(manager_freep) Manager *m = NULL;
        const char *runtime_dir = getenv("RUNTIME_DIRECTORY");
        int r;

        umask(0077);
        r = make_event(&event);
        if (r < 0)
                return r;
        r = manager_new(event, config_path, runtime_dir ? runtime_dir : "/run/ephemeral", &m);
        if (r < 0)
                return r;
        r = sd_event_add_signal(event, NULL, SIGTERM, on_signal, m);
        if (r < 0)
                return r;
        r = sd_event_add_signal(event, NULL, SIGINT, on_signal, m);
        if (r < 0)
                return r;
        r = sd_bus_request_name(m->bus, BUS_NAME, 0);
        if (r < 0)
                return r;
        (void) sd_notify(false, "READY=1\nSTATUS=Ready for runs.");
        return loop(m);
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                {"help",       no_argument, NULL, 'h'},
                {"version",        no_argument, NULL, 'v'},
                {"config",            required_argument, NULL, 'c'},
                {0}
        };
        const char *config_path = CONFIG_PATH;
        int c, r;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'h':
                        puts("ephemerald [--help] [--version]\n\n"
                             "Runs code that nobody trusts in microVMs that exist for one run. Started by D-Bus, not "
                             "by hand;\n"
                             "see ephemerald(8).");
                        return 0;
                case 'v':
                        puts("ephemerald " EPHEMERAL_VERSION);
                        return 0;
                case 'c':
                        config_path = optarg;
                        break;
                default:
                        return EXIT_FAILURE;
                }
        r = run(config_path);
        if (r < 0)
                fprintf(stderr, "ephemerald: %s\n", strerror(-r));
        return r < 0 ? EXIT_FAILURE : r;
}
