/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `running`: the command is sent to the guest, its streams come back, and its end is told. The handlers are the guest's word, already
 * in order and bounded (host-link.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "manager/manager.h"

enum {
        GUEST_USER = 1000,
};

static void on_started(void *userdata, uint32_t pid) {
        Run *run = userdata;
        json_object *o = json_object_new_object(), *argv = json_object_new_array();

        if (run->state != RUN_STARTING)
                return;
        run->started_usec = clock_realtime_usec();
        for (char **a = run->request->argv; *a; a++)
                json_object_array_add(argv, json_object_new_string(*a));
        json_add(o, "argv", argv);
        json_add_u64(o, "pid", pid);
        json_add_u64(o, "uid", run->request->root ? 0 : GUEST_USER);
        run_event(run, EVENT_COMMAND_STARTED, o);
        run_set_state(run, RUN_RUNNING);
}

static void on_output(void *userdata, int stream, const uint8_t *data, size_t size) {
        Run *run = userdata;

        if (run->state == RUN_RUNNING)
                (void) timeline_output(run->timeline, (OutputStream) stream, data, size);
}

void run_add_exit(json_object *o, const ExitedMessage *m) {
        char text[32];
        const char *name;

        switch ((ExitedHow) m->how) {
        case EXITED_NORMALLY:
                json_add_u64(o, "exit_status", m->status);
                break;
        case EXITED_BY_SIGNAL:
                name = sigabbrev_np((int) m->status);
                if (name)
                        snprintf(text, sizeof(text), "SIG%s", name);
                else
                        snprintf(text, sizeof(text), "%u", m->status); /* a real-time signal */
                json_add_string(o, "signal", text);
                break;
        case EXITED_NO_EXEC:
                name = strerrorname_np((int) m->status);
                json_add_string(o, "errno", name ? name : "unknown");
                json_add_string(o, "error", strerror((int) m->status));
                break;
        }
}

static json_object *finished_to_json(const ExitedMessage *m) {
        json_object *o = json_object_new_object();

        run_add_exit(o, m);
        json_add_u64(o, "user_usec", m->user_usec);
        json_add_u64(o, "system_usec", m->system_usec);
        json_add_u64(o, "max_rss_kib", m->max_rss_kib);
        json_add_u64(o, "duration_usec", m->duration_usec);
        return o;
}

static void on_exited(void *userdata, const ExitedMessage *m) {
        Run *run = userdata;

        if (run->state != RUN_RUNNING && run->state != RUN_STARTING)
                return; /* cancelled before: that word stands */
        run->has_exited = true;
        run->exited = *m;
        timeline_append_truncated(run->timeline);
        run_event(run, EVENT_COMMAND_FINISHED, finished_to_json(m));
        run_stop(run);
}

static void on_log(void *userdata, const char *text, size_t size) {
        Run *run = userdata;

        console_write(run->console, text, size);
        console_write(run->console, "\n", 1);
}

static void on_stdin_drained(void *userdata) {
        Run *run = userdata;
        void (*drained)(Run *, void *) = run->on_stdin_drained;

        run->on_stdin_drained = NULL;
        if (drained)
                drained(run, run->stdin_userdata);
        else if (!run->stdin_open) /* the request's own input has left */
                (void) host_link_send_stdin(vm_link(run->vm), NULL, 0);
}

static void on_closed(void *userdata) {
        vm_link_closed(((Run *) userdata)->vm);
}

static void on_broken(void *userdata, const char *reason) {
        vm_link_broken(((Run *) userdata)->vm, reason);
}

static const HostLinkHandlers command_handlers = {
        .on_started = on_started,
        .on_output = on_output,
        .on_exited = on_exited,
        .on_log = on_log,
        .on_stdin_drained = on_stdin_drained,
        .on_closed = on_closed,
        .on_broken = on_broken,
};

static int send_all(HostLink *link, FrameType type, char *const *strings) {
        for (size_t i = 0; strings[i]; i++) {
                int r = host_link_send_bytes(link, type, strings[i], strlen(strings[i]));

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The request's own stdin goes first; without SendInput, the end of file follows it. */
static int send_first_input(Run *run, HostLink *link) {
        int r = 1;

        if (run->request->stdin_size > 0)
                r = host_link_send_stdin(link, run->request->stdin_data, run->request->stdin_size);
        if (r == 1 && !run->stdin_open)
                r = host_link_send_stdin(link, NULL, 0);
        return r;
}

static int send_command(Run *run, HostLink *link) {
        const Request *request = run->request;
        bool has_stdin = run->stdin_open || request->stdin_size > 0;
        StartMessage start = {
                .uid = request->root ? 0 : GUEST_USER,
                .gid = request->root ? 0 : GUEST_USER,
                .flags = has_stdin ? START_STDIN : 0,
        };
        int r;

        r = send_all(link, FRAME_ARG, request->argv);
        if (r >= 0)
                r = send_all(link, FRAME_ENV, request->env);
        if (r >= 0 && request->script)
                r = host_link_send_bytes(link, FRAME_SCRIPT, request->script, request->script_size);
        if (r >= 0)
                r = host_link_send_start(link, &start);
        if (r >= 0 && has_stdin)
                r = send_first_input(run, link);
        return r;
}

void run_command(Run *run) {
        HostLinkHandlers handlers = command_handlers;
        HostLink *link = vm_link(run->vm);

        handlers.userdata = run;
        host_link_set_handlers(link, &handlers);
        if (send_command(run, link) < 0)
                vm_link_broken(run->vm, "the command cannot be sent to the guest");
}

void run_set_paused(Run *run, bool paused) {
        if (run->vm && run->state != RUN_STOPPING && run->state != RUN_ENDED)
                (void) host_link_set_paused(vm_link(run->vm), paused);
}

int run_send_input(
        Run *run, const void *data, size_t size, void (*drained)(Run *run, void *userdata), void *userdata) {
        int r;

        if (run->on_stdin_drained)
                return -EBUSY;
        if (run->state == RUN_QUEUED || run->state == RUN_STARTING)
                return -EAGAIN;
        if (!run->stdin_open || run->state != RUN_RUNNING)
                return -EPIPE;
        r = host_link_send_stdin(vm_link(run->vm), data, size);
        if (r == 0) {
                run->on_stdin_drained = drained;
                run->stdin_userdata = userdata;
        }
        if (r >= 0 && size == 0)
                run->stdin_open = false;
        return r == -EPROTO ? -EPIPE : r;
}
