/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A manager that answers as docs/design.md, section 5, says, without a VM: for the tests of ephemeralctl on a bus of
 * their own. Prints "ready" when it can be called.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include "common/errors.h"
#include "common/fd.h"
#include "common/json.h"
#include "common/strv.h"
#include "ctl/client.h"
#include "ctl/fake-run.h"
#include "ctl/output.h"

#define RUNS_MAX   256
#define FIRST_USEC 1700000000000000ULL

static FakeRun runs[RUNS_MAX];
static size_t n_runs;

static FakeRun *run_find(const char *id) {
        for (size_t i = 0; i < n_runs; i++)
                if (strcmp(runs[i].id, id) == 0)
                        return &runs[i];
        return NULL;
}

static char **argv_of_request(json_object *request) {
        json_object *input = NULL, *argv = NULL;
        char **v = NULL;

        json_object_object_get_ex(request, "input", &input);
        json_object_object_get_ex(input, "argv", &argv);
        for (size_t i = 0; json_object_is_type(argv, json_type_array) && i < json_object_array_length(argv); i++)
                strv_add(&v, json_object_get_string(json_object_array_get_idx(argv, i)));
        return v;
}

static int refuse(const char *script, sd_bus_error *e) {
        if (script && strcmp(script, "refuse") == 0)
                return error_set(e, ERROR_INVALID_REQUEST, "request key 'input': \033[2Jthis is refused");
        if (script && strcmp(script, "deny") == 0)
                return error_set(e, ERROR_NOT_PERMITTED, "uid 0 may not run 'command'");
        if (script && strcmp(script, "noqemu") == 0)
                return error_set(e, ERROR_NO_QEMU, "QEMU is not installed: apt install qemu-system-x86");
        return 0;
}

/* Adds how it was called to the request, so that a test can see it in GetRequest. */
static int note_options(sd_bus_message *m, json_object *request) {
        const char *key;
        int r, value;

        r = sd_bus_message_skip(m, "a{sh}");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read(m, "sv", &key, "b", &value);
                if (r >= 0)
                        r = json_add_bool(request, key, value);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r;
}

static int method_start_run(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        _cleanup_(json_putp) json_object *request = NULL;
        FakeRun *run = &runs[n_runs];
        const char *text;
        int r;

        r = sd_bus_message_read(m, "s", &text);
        if (r < 0)
                return r;
        request = parse_object(text, strlen(text));
        if (!request)
                return error_set(e, ERROR_INVALID_REQUEST, "line 1, column 1: this is no JSON object");
        r = note_options(m, request);
        if (r < 0)
                return r;
        *run = (FakeRun){.input_fd = -EBADF, .cancel_fd = -EBADF, .argv = argv_of_request(request)};
        r = refuse(run->argv ? run->argv[0] : NULL, e);
        if (r < 0 || n_runs + 1 >= RUNS_MAX)
                return r < 0 ? r : -ENOSPC;
        run->request = strdup(json_text(request));
        fake_run_init(run);
        n_runs++;
        return sd_bus_reply_method_return(m, "so", run->id, run->path);
}

static int method_validate(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        _cleanup_(json_putp) json_object *request = NULL;
        const char *text;
        int r = sd_bus_message_read(m, "s", &text);

        if (r < 0)
                return r;
        request = parse_object(text, strlen(text));
        if (!request)
                return error_set(e, ERROR_INVALID_REQUEST, "line 3, column 14: expected ',' or '}' after a value");
        return sd_bus_reply_method_return(m, "s", json_text(request));
}

static int method_list_runs(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sosstt)");
        for (size_t i = 0; r >= 0 && i < n_runs; i++) /* oldest first: the order is ephemeralctl's */
                r = sd_bus_message_append(reply, "(sosstt)", runs[i].id, runs[i].path, "command",
                                          runs[i].ended ? "ended" : "running", FIRST_USEC, (uint64_t) 0);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_get_run(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        const char *id;
        int r = sd_bus_message_read(m, "s", &id);

        if (r < 0)
                return r;
        if (!run_find(id))
                return error_set(e, ERROR_NO_SUCH_RUN, "there is no run '%s'", id);
        return sd_bus_reply_method_return(m, "o", run_find(id)->path);
}

static int method_list_workflows(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        return sd_bus_reply_method_return(m, "a(ss)", 1, "command", "Runs a command or a script");
}

static int method_get_workflow(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        const char *name;
        int r = sd_bus_message_read(m, "s", &name);

        if (r < 0)
                return r;
        if (strcmp(name, "command") != 0)
                return error_set(e, ERROR_UNKNOWN_WORKFLOW, "there is no workflow '%s'; there are: command", name);
        return sd_bus_reply_method_return(m, "s", "{\"name\": \"command\", \"limits\": {\"vcpus\": 4}}");
}

static int method_list_templates(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        return sd_bus_reply_method_return(m, "a(sssuttt)", 2, "0123456789abcdef0123", "default", "memory", 1, 256,
                                          94371840, 1000000, "fedcba9876543210fedc", "other", "making", 2, 512, 0, 0);
}

static int method_build_template(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        const char *image;
        int r;

        r = sd_bus_message_read(m, "s", &image);
        if (r < 0)
                return r;
        if (strcmp(image, "nowhere") == 0)
                return error_set(e, ERROR_NO_SUCH_IMAGE, "no image 'nowhere'");
        return sd_bus_reply_method_return(m, "s", "0123456789abcdef0123");
}

static int method_drop_templates(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        return sd_bus_reply_method_return(m, NULL);
}

static int method_open_output(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        _cleanup_(fd_closep) int fd = -EBADF;
        uint64_t after_seq = 0;
        FakeRun *run = userdata;
        const char *key;
        int r, lossless;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read_basic(m, 's', &key);
                if (r >= 0)
                        r = strcmp(key, "after-seq") == 0 ? sd_bus_message_read(m, "v", "t", &after_seq)
                                                          : sd_bus_message_read(m, "v", "b", &lossless);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = fake_run_open(run, after_seq, &fd);
        if (r < 0)
                return r;
        run->ended = true; /* as far as the properties tell */
        return sd_bus_reply_method_return(m, "h", fd);
}

static int method_send_input(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        FakeRun *run = userdata;
        const void *data;
        size_t size;
        int r = sd_bus_message_read_array(m, 'y', &data, &size);

        if (r < 0)
                return r;
        if (size == 0)
                run->input_fd = fd_close(run->input_fd);
        else if (run->input_fd < 0 || fd_write_all(run->input_fd, data, size) < 0)
                return error_set(e, ERROR_RUN_ENDED, "the run has ended");
        return sd_bus_reply_method_return(m, NULL);
}

static int method_cancel(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        FakeRun *run = userdata;

        run->cancel_fd = fd_close(run->cancel_fd);
        run->cancelled = true;
        run->ended = true;
        return sd_bus_reply_method_return(m, NULL);
}

static int method_attach(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        static const char text[] = "[    0.1] Linux version 6.1.0\r\n\033[2Jinit: ready\r\n";
        _cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours = fds[1];
        theirs = fds[0];
        fd_write_all(ours, text, strlen(text));
        return sd_bus_reply_method_return(m, "h", theirs);
}

static int method_get_timeline(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        static const struct {
                const char *type, *json;
        } events[] = {
                {"request.accepted", "{\"request\":{}}"                                      },
                {"vm.ready",         "{\"kernel\":\"6.1.0\",\"boot_usec\":2000000}"          },
                {"output",           "{\"stream\":\"stdout\",\"bytes\":3,\"data\":\"hi\\n\"}"},
                {"run.result",       "{\"outcome\":\"succeeded\",\"exit_status\":0}"         },
        };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        uint64_t after_seq;
        uint32_t max;
        int r;

        r = sd_bus_message_read(m, "tu", &after_seq, &max);
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(ttss)");
        /* at most two a page, so that paging is tried */
        for (uint64_t seq = after_seq + 1; r >= 0 && seq <= ELEMENTSOF(events) && seq <= after_seq + 2; seq++)
                r = sd_bus_message_append(reply, "(ttss)", seq, FIRST_USEC + (seq - 1) * 1500000, events[seq - 1].type,
                                          events[seq - 1].json);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_get_result(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        _cleanup_(freep) char *result = fake_run_result(userdata);

        return sd_bus_reply_method_return(m, "s", result);
}

static int method_get_request(sd_bus_message *m, void *userdata, sd_bus_error *e) {
        return sd_bus_reply_method_return(m, "s", ((FakeRun *) userdata)->request);
}

static int property_string(sd_bus *bus,
                           const char *path,
                           const char *interface,
                           const char *property,
                           sd_bus_message *reply,
                           void *userdata,
                           sd_bus_error *e) {
        const FakeRun *run = userdata;
        const char *value = "";

        if (strcmp(property, "Id") == 0)
                value = run->id;
        else if (strcmp(property, "State") == 0)
                value = run->ended ? "ended" : "running";
        else if (strcmp(property, "Outcome") == 0)
                value = run->ended ? fake_run_outcome(run) : "";
        else if (strcmp(property, "Workflow") == 0)
                value = "command";
        else if (strcmp(property, "Isolation") == 0)
                value = "{\"hardware_virtualization\":false}";
        else if (strcmp(property, "Version") == 0)
                value = "0.1.0";
        else if (strcmp(property, "Accelerator") == 0)
                value = "tcg";
        return sd_bus_message_append(reply, "s", value);
}

static int property_number(sd_bus *bus,
                           const char *path,
                           const char *interface,
                           const char *property,
                           sd_bus_message *reply,
                           void *userdata,
                           sd_bus_error *e) {
        if (strncmp(property, "Runs", 4) == 0 || strcmp(property, "StandbyReady") == 0)
                return sd_bus_message_append(reply, "u", 4);
        if (strcmp(property, "ExitStatus") == 0)
                return sd_bus_message_append(reply, "i", 7);
        return sd_bus_message_append(reply, "t", FIRST_USEC + (strcmp(property, "EndedUSec") == 0 ? 2500000 : 0));
}

static int property_labels(sd_bus *bus,
                           const char *path,
                           const char *interface,
                           const char *property,
                           sd_bus_message *reply,
                           void *userdata,
                           sd_bus_error *e) {
        return sd_bus_message_append(reply, "a{ss}", 1, "team", "a\033[31m");
}

/* A property that this ephemeralctl does not know how to show. */
static int property_future(sd_bus *bus,
                           const char *path,
                           const char *interface,
                           const char *property,
                           sd_bus_message *reply,
                           void *userdata,
                           sd_bus_error *e) {
        return sd_bus_message_append(reply, "a(uu)", 1, 1, 2);
}

static int find_run(
        sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *e) {
        for (size_t i = 0; i < n_runs; i++)
                if (strcmp(runs[i].path, path) == 0) {
                        *ret = &runs[i];
                        return 1;
                }
        return 0;
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("StartRun", "sa{sh}a{sv}", "so", method_start_run, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ValidateRequest", "s", "s", method_validate, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListRuns", "a{sv}", "a(sosstt)", method_list_runs, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetRun", "s", "o", method_get_run, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListWorkflows", "", "a(ss)", method_list_workflows, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListTemplates", "", "a(sssuttt)", method_list_templates, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("BuildTemplate", "s", "s", method_build_template, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("DropTemplates", "", "", method_drop_templates, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetWorkflow", "s", "s", method_get_workflow, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("Accelerator", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("AcceleratorReason", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("RunsActive", "u", property_number, 0, 0),
        SD_BUS_PROPERTY("RunsQueued", "u", property_number, 0, 0),
        SD_BUS_PROPERTY("RunsMax", "u", property_number, 0, 0),
        SD_BUS_PROPERTY("StandbyReady", "u", property_number, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable run_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("OpenOutput", "a{sv}", "h", method_open_output, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SendInput", "ay", "", method_send_input, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Cancel", "", "", method_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Kill", "", "", method_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Attach", "", "h", method_attach, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetTimeline", "tu", "a(ttss)", method_get_timeline, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetResult", "", "s", method_get_result, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetRequest", "", "s", method_get_request, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Id", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("Workflow", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("State", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("Outcome", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("ExitStatus", "i", property_number, 0, 0),
        SD_BUS_PROPERTY("StartedUSec", "t", property_number, 0, 0),
        SD_BUS_PROPERTY("EndedUSec", "t", property_number, 0, 0),
        SD_BUS_PROPERTY("Labels", "a{ss}", property_labels, 0, 0),
        SD_BUS_PROPERTY("Isolation", "s", property_string, 0, 0),
        SD_BUS_PROPERTY("Future", "a(uu)", property_future, 0, 0),
        SD_BUS_VTABLE_END,
};

int main(void) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r;

        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_IGN); /* the writers need no waiting for */
        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_add_object_vtable(bus, NULL, CLIENT_MANAGER_PATH, CLIENT_MANAGER_INTERFACE, manager_vtable,
                                             NULL);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, CLIENT_MANAGER_PATH "/run", CLIENT_RUN_INTERFACE, run_vtable,
                                               find_run, NULL);
        if (r >= 0)
                r = sd_bus_request_name(bus, CLIENT_SERVICE, 0);
        if (r < 0) {
                fprintf(stderr, "fake-manager: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        puts("ready");
        fflush(stdout);
        while (r >= 0) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, UINT64_MAX);
                if (r == -EINTR)
                        r = 0;
        }
        return EXIT_SUCCESS;
}
