/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * /org/ephemeral1/run/ID, interface org.ephemeral1.Run. The object exists only for those who may read the run: sd-bus restricts
 * calls, never reading, so for everybody else its very path does not resolve.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/errors.h"
#include "common/fd.h"
#include "common/json.h"
#include "manager/admit.h"
#include "manager/bus-options.h"
#include "manager/bus.h"
#include "manager/run-clients.h"
#include "manager/run-properties.h"

enum {
        INPUT_CHUNK_MAX = 64 * 1024,
        TIMELINE_READ_MAX = 1000,
};

bool run_bus_may_read(const Run *run, sd_bus_message *call) {
        const char *sender = sd_bus_message_get_sender(call);
        uid_t uid;

        if (admit_caller(call, &uid) < 0)
                return false;
        return uid == 0 || uid == run->owner || (sender && run_clients_is_admitted(run, sender));
}

static int find_run(sd_bus *bus,
                    const char *path,
                    const char *interface,
                    void *userdata,
                    void **ret_found,
                    sd_bus_error *reterr_error) {
        Manager *m = userdata;
        sd_bus_message *call = sd_bus_get_current_message(bus);
        _cleanup_(freep) char *id = NULL;
        Run *run;

        if (!call || sd_bus_path_decode(path, BUS_RUN_ROOT, &id) <= 0)
                return 0;
        run = manager_find_run(m, id);
        if (!run || !run_bus_may_read(run, call))
                return 0;
        *ret_found = run;
        return 1;
}

static int enumerate_runs(
        sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        sd_bus_message *call = sd_bus_get_current_message(bus);
        char **nodes = calloc(m->n_active + m->n_queued + m->n_ended + 1, sizeof(char *));
        size_t n = 0;
        Run *run;

        if (!nodes)
                return -ENOMEM;
        TAILQ_FOREACH (run, &m->runs, runs) {
                if (!call || !run_bus_may_read(run, call))
                        continue;
                nodes[n] = strdup(run->path);
                if (nodes[n])
                        n++;
        }
        *ret_nodes = nodes;
        return 0;
}

/* ---- streams ---- */

static int too_many(int r, sd_bus_error *reterr_error) {
        return r == -EUSERS ? error_set(reterr_error, ERROR_QUEUE_FULL, "Too many are watching already") : r;
}

static int method_subscribe(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        uid_t uid;
        int r;

        r = admit_caller(call, &uid);
        if (r >= 0)
                r = too_many(run_clients_subscribe(run, sd_bus_message_get_sender(call), uid, 0), reterr_error);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

static int method_unsubscribe(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        run_clients_unsubscribe(userdata, sd_bus_message_get_sender(call));
        return sd_bus_reply_method_return(call, NULL);
}

static int method_open_output(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        _cleanup_(fd_closep) int fd = -EBADF;
        uint64_t after_seq = 0;
        int lossless = false, r;
        uid_t uid;

        r = bus_read_options(call,
                             (const BusOption[]){
                                     {"after-seq", 't', &after_seq},
                                     {"lossless",  'b', &lossless },
                                     {NULL,        0,   NULL      }
        },
                             reterr_error);
        if (r >= 0)
                r = admit_caller(call, &uid);
        if (r < 0)
                return r;
        if (lossless && uid != run->owner)
                return error_set(reterr_error, ERROR_NOT_PERMITTED,
                                 "Only who started a run may have it wait for a reader (option 'lossless')");
        r = too_many(run_clients_open_output(run, after_seq, lossless, &fd), reterr_error);
        return r < 0 ? r : sd_bus_reply_method_return(call, "h", fd);
}

static int method_attach(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        _cleanup_(fd_closep) int fd = -EBADF;
        int r;

        r = too_many(console_attach(run->console, &fd), reterr_error);
        return r < 0 ? r : sd_bus_reply_method_return(call, "h", fd);
}

static int method_send_input(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        const void *data;
        size_t size;
        uid_t uid;
        int r;

        r = sd_bus_message_read_array(call, 'y', &data, &size);
        if (r >= 0)
                r = admit_caller(call, &uid);
        if (r < 0)
                return r;
        if (uid != 0 && uid != run->owner)
                return error_set(reterr_error, ERROR_NOT_PERMITTED, "Only who started a run may write to its command");
        if (size > INPUT_CHUNK_MAX)
                return error_set(reterr_error, ERROR_INVALID_REQUEST,
                                 "%zu bytes of input at once are too many: send %d at most", size, INPUT_CHUNK_MAX);
        r = run_clients_send_input(run, call, data, size);
        if (r == -EBUSY)
                return error_set(reterr_error, ERROR_INVALID_REQUEST,
                                 "The command has not taken the input before this one: wait for that reply");
        if (r == -EAGAIN)
                return error_set(reterr_error, ERROR_INVALID_REQUEST,
                                 "The command has not started: send input after the event command.started");
        if (r == -EPIPE)
                return error_set(reterr_error, ERROR_RUN_ENDED,
                                 "The command's standard input is closed: start the run with the option 'stdin'");
        return r;
}

/* ---- reading ---- */

/* A reply to GetTimeline: whole events, up to the one that fills it. */
typedef struct EventList {
        sd_bus_message *reply;
        size_t bytes;
} EventList;

/* 1 when the reply is full. */
static int append_event(const Event *event, void *userdata) {
        EventList *list = userdata;
        _cleanup_(freep) char *output = NULL;
        const char *json = event->json;
        int r;

        if (event->type == EVENT_OUTPUT) {
                output = event_output_json(event->stream, event->data, event->data_size);
                json = output;
        }
        if (!json)
                return -ENOMEM;
        r = sd_bus_message_append(list->reply, "(ttss)", event->seq, event->usec, event_type_name(event->type), json);
        list->bytes += strlen(json);
        return r < 0 ? r : list->bytes >= REPLY_MAX;
}

static int method_get_timeline(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        EventList list = {0};
        uint64_t after_seq;
        uint32_t max;
        int r;

        r = sd_bus_message_read(call, "tu", &after_seq, &max);
        if (r < 0)
                return r;
        if (max == 0 || max > TIMELINE_READ_MAX)
                max = TIMELINE_READ_MAX;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(ttss)");
        if (r >= 0) {
                list.reply = reply;
                r = timeline_read(run->timeline, after_seq, max, append_event, &list);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        replies_charge(run->manager->replies, call, list.bytes);
        return r < 0 ? r : sd_bus_message_send(reply);
}

static int method_get_request(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        const char *text = request_to_json(run->request);

        if (!text)
                return -ENOMEM;
        replies_charge(run->manager->replies, call, strlen(text));
        return sd_bus_reply_method_return(call, "s", text);
}

static int method_get_result(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        const char *text;

        if (!run->result)
                return error_set(reterr_error, ERROR_INVALID_REQUEST,
                                 "The run is %s: it has no result before it has ended", run_state_name(run->state));
        text = json_text(run->result);
        return text ? sd_bus_reply_method_return(call, "s", text) : -ENOMEM;
}

/* ---- ending ---- */

static int method_cancel(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Run *run = userdata;
        char by[32];
        uid_t uid;
        int r;

        r = admit_caller(call, &uid);
        if (r < 0)
                return r;
        if (uid != 0 && uid != run->owner)
                return error_set(reterr_error, ERROR_NOT_PERMITTED, "Only who started a run may end it");
        snprintf(by, sizeof(by), "uid:%u", (unsigned) uid);
        r = run_cancel(run, by);
        if (r == -EALREADY && run->state == RUN_ENDED)
                return error_set(reterr_error, ERROR_RUN_ENDED, "The run has ended already (%s)",
                                 outcome_name(run->outcome));
        if (r < 0 && r != -EALREADY)
                return r;
        return sd_bus_reply_method_return(call, NULL);
}

static const sd_bus_vtable run_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Workflow", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Outcome", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExitStatus", "i", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Unit", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Account", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Labels", "a{ss}", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("CreatedUSec", "t", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartedUSec", "t", run_property_get, 0, 0),
        SD_BUS_PROPERTY("EndedUSec", "t", run_property_get, 0, 0),
        SD_BUS_PROPERTY("TimeoutUSec", "t", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Image", "s", run_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Accelerator", "s", run_property_get, 0, 0),
        SD_BUS_PROPERTY("Isolation", "s", run_property_get, 0, 0),
        SD_BUS_METHOD_WITH_ARGS(
                "Subscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "Unsubscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_unsubscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Cancel", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Kill", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "Attach", SD_BUS_NO_ARGS, SD_BUS_RESULT("h", console), method_attach, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenOutput",
                                SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("h", frames),
                                method_open_output,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "SendInput", SD_BUS_ARGS("ay", data), SD_BUS_NO_RESULT, method_send_input, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetTimeline",
                                SD_BUS_ARGS("t", after_seq, "u", max),
                                SD_BUS_RESULT("a(ttss)", events),
                                method_get_timeline,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetRequest",
                                SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("s", request_json),
                                method_get_request,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetResult",
                                SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("s", result_json),
                                method_get_result,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("Event", SD_BUS_ARGS("t", seq, "t", usec, "s", type, "s", json), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Output", SD_BUS_ARGS("t", seq, "s", stream, "ay", data), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Console", SD_BUS_ARGS("ay", data), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Finished", SD_BUS_ARGS("s", outcome, "s", result_json), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Unsubscribed", SD_BUS_ARGS("t", last_seq, "s", reason), 0),
        SD_BUS_VTABLE_END,
};

int run_bus_register(Manager *m) {
        int r;

        r = sd_bus_add_fallback_vtable(m->bus, NULL, BUS_RUN_ROOT, BUS_RUN, run_vtable, find_run, m);
        if (r < 0)
                return r;
        return sd_bus_add_node_enumerator(m->bus, NULL, BUS_RUN_ROOT, enumerate_runs, m);
}
