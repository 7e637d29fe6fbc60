/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * /org/ephemeral1, interface org.ephemeral1.Manager.
 */
#include <errno.h>
#include <string.h>

#include "common/errors.h"
#include "common/json.h"
#include "manager/admit.h"
#include "manager/bus-options.h"
#include "manager/bus.h"
#include "manager/run-clients.h"
#include "manager/start-run.h"

enum {
        LIST_MAX = 1000,
        LIST_BYTES = 128 * 1024, /* about what so many take */
};

static int method_validate_request(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        _cleanup_(request_freep) Request *request = NULL;
        const char *text;
        int r;

        r = sd_bus_message_read(call, "s", &text);
        if (r < 0)
                return r;
        r = request_parse(text, strlen(text), m->workflows, m->config.image, &request, reterr_error);
        if (r < 0)
                return r;
        text = request_to_json(request);
        if (text)
                replies_charge(m->replies, call, strlen(text));
        return text ? sd_bus_reply_method_return(call, "s", text) : -ENOMEM;
}

/* ---- ListRuns ---- */

typedef struct ListFilter {
        uid_t uid;
        int all;
        const char *state;
        uint32_t limit;
} ListFilter;

static int read_filter(sd_bus_message *call, ListFilter *filter, sd_bus_error *reterr_error) {
        const BusOption options[] = {
                {"all",   'b', &filter->all  },
                {"state", 's', &filter->state},
                {"limit", 'u', &filter->limit},
                {NULL,    0,   NULL          },
        };

        return bus_read_options(call, options, reterr_error);
}

static int append_runs(Manager *m, sd_bus_message *reply, const ListFilter *filter) {
        uint32_t n = 0;
        Run *run;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(sosstt)");
        if (r < 0)
                return r;
        TAILQ_FOREACH_REVERSE(run, &m->runs, RunList, runs) {
                if (!filter->all && filter->uid != 0 && run->owner != filter->uid)
                        continue;
                if (filter->state[0] && strcmp(filter->state, run_state_name(run->state)) != 0)
                        continue;
                if (n++ == filter->limit)
                        break;
                r = sd_bus_message_append(reply, "(sosstt)", run->id, run->path, run->request->workflow,
                                          run_state_name(run->state), run->started_usec, (uint64_t) 0);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(reply);
}

static int reply_list(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const ListFilter *filter = userdata;
        int r;

        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        r = append_runs(m, reply, filter);
        replies_charge(m->replies, call, LIST_BYTES);
        return r < 0 ? r : sd_bus_message_send(reply);
}

static int list_others(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        ListFilter filter = {.all = true, .state = "", .limit = LIST_MAX};
        int r;

        /* The question took time: what was asked is read again from the message that is still there. */
        r = sd_bus_message_rewind(call, true);
        if (r < 0)
                return r;
        r = read_filter(call, &filter, reterr_error);
        return r < 0 ? r : reply_list(m, call, &filter, reterr_error);
}

static int method_list_runs(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        ListFilter filter = {.state = "", .limit = LIST_MAX};
        AdmitQuestion question = {.action = ACTION_READ_OTHERS, .handler = list_others};
        int r;

        r = read_filter(call, &filter, reterr_error);
        if (r < 0)
                return r;
        r = admit_caller(call, &filter.uid);
        if (r < 0)
                return r;
        return filter.all ? admit_check(m, call, &question, reterr_error) : reply_list(m, call, &filter, reterr_error);
}

/* ---- GetRun ---- */

static int no_such_run(const char *id, sd_bus_error *reterr_error) {
        return error_set(reterr_error, ERROR_NO_SUCH_RUN, "There is no run '%.64s' here, or it is not yours to read",
                         id);
}

/* polkit let this caller read others' runs: from now on the object exists for it. */
static int get_admitted(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        const char *id;
        Run *run;
        int r;

        r = sd_bus_message_rewind(call, true);
        if (r >= 0)
                r = sd_bus_message_read(call, "s", &id);
        if (r < 0)
                return r;
        run = manager_find_run(m, id);
        if (!run)
                return no_such_run(id, reterr_error);
        r = run_clients_admit(run, sd_bus_message_get_sender(call));
        return r < 0 ? r : sd_bus_reply_method_return(call, "o", run->path);
}

static int method_get_run(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        AdmitQuestion question = {.action = ACTION_READ_OTHERS, .handler = get_admitted};
        const char *id;
        Run *run;
        int r;

        r = sd_bus_message_read(call, "s", &id);
        if (r < 0)
                return r;
        run = manager_find_run(m, id);
        if (run && run_bus_may_read(run, call))
                return sd_bus_reply_method_return(call, "o", run->path);
        /* Asked in both cases, so that the answer does not tell whether it exists. */
        return admit_check(m, call, &question, reterr_error);
}

/* ---- workflows ---- */

static int method_list_workflows(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Workflow *w;
        int r;

        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(ss)");
        for (size_t i = 0; r >= 0 && (w = workflow_set_at(m->workflows, i)); i++)
                r = sd_bus_message_append(reply, "(ss)", w->name, w->description);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_send(reply);
}

static int method_get_workflow(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        const Workflow *w;
        const char *name;
        int r;

        r = sd_bus_message_read(call, "s", &name);
        if (r < 0)
                return r;
        r = workflow_set_get(m->workflows, name, &w, reterr_error);
        if (r < 0)
                return r;
        replies_charge(m->replies, call, strlen(w->document));
        return sd_bus_reply_method_return(call, "s", w->document);
}

static int method_subscribe(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        uid_t uid;
        int r;

        r = admit_caller(call, &uid);
        if (r >= 0)
                r = manager_clients_subscribe(m, sd_bus_message_get_sender(call), uid);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

/* ---- properties ---- */

static int property_get_accelerator(sd_bus *bus,
                                    const char *path,
                                    const char *interface,
                                    const char *property,
                                    sd_bus_message *reply,
                                    void *userdata,
                                    sd_bus_error *reterr_error) {
        Manager *m = userdata;

        if (strcmp(property, "AcceleratorReason") == 0)
                return sd_bus_message_append(reply, "s", m->accelerator.reason ? m->accelerator.reason : "");
        return sd_bus_message_append(reply, "s", m->accelerator.kvm ? "kvm" : "tcg");
}

static int property_get_version(sd_bus *bus,
                                const char *path,
                                const char *interface,
                                const char *property,
                                sd_bus_message *reply,
                                void *userdata,
                                sd_bus_error *reterr_error) {
        return sd_bus_message_append(reply, "s", EPHEMERAL_VERSION);
}

static int property_get_standby_ready(sd_bus *bus,
                                      const char *path,
                                      const char *interface,
                                      const char *property,
                                      sd_bus_message *reply,
                                      void *userdata,
                                      sd_bus_error *reterr_error) {
        Manager *m = userdata;

        return sd_bus_message_append(reply, "u", m->standbys ? standby_count_ready(m->standbys) : 0U);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Version", "s", property_get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Accelerator", "s", property_get_accelerator, 0, 0),
        SD_BUS_PROPERTY("AcceleratorReason", "s", property_get_accelerator, 0, 0),
        SD_BUS_PROPERTY("RunsActive", "u", NULL, offsetof(Manager, n_active), 0),
        SD_BUS_PROPERTY("RunsQueued", "u", NULL, offsetof(Manager, n_queued), 0),
        SD_BUS_PROPERTY("RunsMax", "u", NULL, offsetof(Manager, runs_max), 0),
        SD_BUS_PROPERTY("StandbyReady", "u", property_get_standby_ready, 0, 0),
        SD_BUS_METHOD_WITH_ARGS("StartRun",
                                SD_BUS_ARGS("s", request_json, "a{sh}", files, "a{sv}", options),
                                SD_BUS_RESULT("s", id, "o", run),
                                method_start_run,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ValidateRequest",
                                SD_BUS_ARGS("s", request_json),
                                SD_BUS_RESULT("s", accepted_json),
                                method_validate_request,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListRuns",
                                SD_BUS_ARGS("a{sv}", filter),
                                SD_BUS_RESULT("a(sosstt)", runs),
                                method_list_runs,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "GetRun", SD_BUS_ARGS("s", id), SD_BUS_RESULT("o", run), method_get_run, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListWorkflows",
                                SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("a(ss)", workflows),
                                method_list_workflows,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetWorkflow",
                                SD_BUS_ARGS("s", name),
                                SD_BUS_RESULT("s", document),
                                method_get_workflow,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("BuildTemplate",
                                SD_BUS_ARGS("s", image),
                                SD_BUS_RESULT("s", key),
                                method_build_template,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "DropTemplates", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_drop_templates, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListTemplates",
                                SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("a(sssuttt)", templates),
                                method_list_templates,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "Subscribe", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("RunNew", SD_BUS_ARGS("s", id, "o", run), 0),
        SD_BUS_SIGNAL_WITH_ARGS("RunEnded", SD_BUS_ARGS("s", id, "o", run, "s", outcome), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Unsubscribed", SD_BUS_ARGS("t", last_seq, "s", reason), 0),
        SD_BUS_VTABLE_END,
};

int manager_bus_register(Manager *m) {
        return sd_bus_add_object_vtable(m->bus, NULL, BUS_ROOT, BUS_MANAGER, manager_vtable, m);
}
