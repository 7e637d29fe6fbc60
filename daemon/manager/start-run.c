/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The method StartRun: the request is parsed and bounded, the world looked at, polkit asked, and only then is there a run.
 */
#include "manager/start-run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/errors.h"
#include "manager/admit.h"
#include "manager/bus-options.h"
#include "manager/bus.h"
#include "manager/image.h"
#include "manager/run-clients.h"

typedef struct StartRun {
        Request *request;
        int stdin_open, signals;
        uid_t uid;
} StartRun;

static void start_run_destroy(void *userdata) {
        StartRun *s = userdata;

        request_free(s->request);
        free(s);
}

static void start_run_freep(StartRun **s) {
        if (*s)
                start_run_destroy(*s);
}

/* What would make the run fail at once is told before there is one. */
static int check_world(Manager *m, const Request *request, sd_bus_error *reterr_error) {
        _cleanup_(image_freep) Image *image = NULL;
        Qemu *qemu;
        int r;

        if (m->config.require_hardware_virtualization && !m->accelerator.kvm)
                return error_set(reterr_error, ERROR_NO_HARDWARE_VIRTUALIZATION,
                                 "RequireHardwareVirtualization=yes is configured, and there is none: %s",
                                 m->accelerator.reason ? m->accelerator.reason : "unknown");
        r = manager_get_qemu(m, &qemu, reterr_error);
        if (r < 0)
                return r;
        r = image_open(m->config.images_path, request->image, &image, reterr_error);
        return r < 0 ? r : queue_admit(m, request, reterr_error);
}

/* Every permission is there: looks again at what may have changed meanwhile, and makes the run. */
static int start_admitted(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        StartRun *s = userdata;
        RunSettings settings = {.owner = s->uid, .request = s->request, .stdin_open = s->stdin_open};
        Run *run;
        int r;

        r = check_world(m, s->request, reterr_error);
        if (r < 0)
                return r;
        r = run_new(m, &settings, &run);
        if (r < 0)
                return r;
        s->request = NULL;
        if (s->signals)
                (void) run_clients_subscribe(run, sd_bus_message_get_sender(call), s->uid, 0);
        manager_clients_run_new(run);
        queue_add(run);
        r = sd_bus_reply_method_return(call, "so", run->id, run->path);
        queue_dispatch(m);
        return r;
}

static int ask_for_root(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        StartRun *first = userdata, *second;
        const char *details[] = {"workflow", first->request->workflow, "image", first->request->image, NULL};
        AdmitQuestion question = {
                .action = ACTION_RUN_AS_GUEST_ROOT,
                .details = details,
                .handler = start_admitted,
                .destroy = start_run_destroy,
        };

        if (!first->request->root)
                return start_admitted(m, call, first, reterr_error);
        second = malloc(sizeof(*second));
        if (!second)
                return -ENOMEM;
        *second = *first; /* the first question is over, and with it its userdata */
        first->request = NULL;
        question.userdata = second;
        return admit_check(m, call, &question, reterr_error);
}

static int ask(Manager *m, sd_bus_message *call, StartRun *s, sd_bus_error *reterr_error) {
        char memory[16], timeout[24];
        const char *details[] = {"workflow",
                                 s->request->workflow,
                                 "image",
                                 s->request->image,
                                 "memory_mib",
                                 memory,
                                 "timeout_seconds",
                                 timeout,
                                 NULL};
        AdmitQuestion question = {
                .action = ACTION_RUN,
                .details = details,
                .handler = ask_for_root,
                .userdata = s,
                .destroy = start_run_destroy,
        };

        snprintf(memory, sizeof(memory), "%u", s->request->memory_mib);
        snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long) (s->request->timeout_usec / USEC_PER_SEC));
        return admit_check(m, call, &question, reterr_error);
}

static int read_files(sd_bus_message *call, sd_bus_error *reterr_error) {
        int r;

        r = sd_bus_message_enter_container(call, 'a', "{sh}");
        if (r < 0)
                return r;
        r = sd_bus_message_at_end(call, false);
        if (r < 0)
                return r;
        if (r == 0)
                return error_set(reterr_error, ERROR_NOT_SUPPORTED, "Files are not offered by this version");
        return sd_bus_message_exit_container(call);
}

int method_start_run(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        _cleanup_(start_run_freep) StartRun *s = calloc(1, sizeof(*s));
        const char *text;
        int r;

        if (!s)
                return -ENOMEM;
        s->signals = true;
        r = sd_bus_message_read(call, "s", &text);
        if (r < 0)
                return r;
        r = read_files(call, reterr_error);
        if (r < 0)
                return r;
        r = bus_read_options(call,
                             (const BusOption[]){
                                     {"stdin",   'b', &s->stdin_open},
                                     {"signals", 'b', &s->signals   },
                                     {NULL,      0,   NULL          }
        },
                             reterr_error);
        if (r < 0)
                return r;
        r = admit_caller(call, &s->uid);
        if (r < 0)
                return r;
        r = request_parse(text, strlen(text), m->workflows, m->config.image, &s->request, reterr_error);
        if (r < 0)
                return r;
        r = check_world(m, s->request, reterr_error);
        if (r < 0)
                return r;
        return ask(m, call, TAKE_PTR(s), reterr_error);
}
