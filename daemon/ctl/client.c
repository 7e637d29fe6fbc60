/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Calls to the manager and what to say when they fail. Errors of the service come with a sentence that tells what was
 * wrong and what would be right; it is printed as it is, and the table in common/errors.h gives the exit code.
 */
#include "ctl/client.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/errors.h"
#include "common/id.h"
#include "ctl/agent.h"
#include "ctl/terminal.h"
#include "ctl/text.h"

#define NAME_SIZE_MIN 4 /* of an id's end: less is more likely a mistake */

int client_open(Ctl *ctl) {
        int r = sd_bus_open_system(&ctl->bus);

        if (r < 0) {
                print_error("Cannot connect to the system bus: %s. Is D-Bus running (systemctl status dbus)?",
                            strerror(-r));
                return EXIT_CODE_OURS;
        }
        if (ctl->ask_password)
                agent_start();
        return 0;
}

void client_close(Ctl *ctl) {
        agent_stop();
        ctl->bus = sd_bus_flush_close_unref(ctl->bus);
}

int client_message(Ctl *ctl, const Method *method, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(ctl->bus, &m, CLIENT_SERVICE, method->path, method->interface,
                                           method->member);
        if (r < 0)
                return r;
        r = sd_bus_message_set_allow_interactive_authorization(m, ctl->ask_password);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

int client_bad_answer(int r) {
        print_error(
                "The service gave an answer that cannot be understood: %s. Do ephemerald and ephemeralctl have the "
                "same version?",
                strerror(r < 0 ? -r : EBADMSG));
        return EXIT_CODE_OURS;
}

int client_failed(const sd_bus_error *error, int r) {
        const ErrorInfo *info = error ? error_info(error->name) : NULL;

        if (!error || !sd_bus_error_is_set(error)) {
                print_error("The service cannot be asked: %s.", strerror(-r));
                return EXIT_CODE_OURS;
        }
        if (info) {
                print_error("%s", error->message);
                return info->exit_code;
        }
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                print_error("The service ephemerald is not installed, or its D-Bus files are not: %s", error->message);
        else if (sd_bus_error_has_names(error, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT, SD_BUS_ERROR_DISCONNECTED))
                print_error("The service ephemerald did not answer: %s (see 'journalctl -u ephemerald').",
                            error->message);
        else if (sd_bus_error_has_name(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED)) {
                print_error(
                        "This needs authentication, which cannot be asked for here (no terminal, no pkttyagent, or "
                        "--no-ask-password). Members of the group 'ephemeral' start runs without.");
                return EXIT_CODE_REFUSED;
        } else if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED)) {
                print_error("Not permitted: %s", text_or(error->message, error->name));
                return EXIT_CODE_REFUSED;
        } else
                print_error("%s", text_or(error->message, error->name));
        return EXIT_CODE_OURS;
}

int client_call_message(Ctl *ctl, sd_bus_message *call, sd_bus_message **ret_reply) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call(ctl->bus, call, UINT64_MAX, &error, ret_reply);

        return r < 0 ? client_failed(&error, r) : 0;
}

int client_call(Ctl *ctl, const Method *method, sd_bus_message **ret_reply, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        va_list ap;
        int r;

        r = client_message(ctl, method, &call);
        if (r < 0)
                return client_failed(NULL, r);
        va_start(ap, types);
        r = types ? sd_bus_message_appendv(call, types, ap) : 0;
        va_end(ap);
        if (r < 0)
                return client_failed(NULL, r);
        return client_call_message(ctl, call, ret_reply);
}

int client_call_string(Ctl *ctl, const Method *method, const char *argument, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *s;
        int r;

        r = client_call(ctl, method, &reply, argument ? "s" : NULL, argument);
        if (r != 0)
                return r;
        r = sd_bus_message_read(reply, "s", &s);
        if (r < 0)
                return client_bad_answer(r);
        *ret = strdup(s);
        return *ret ? 0 : client_bad_answer(-ENOMEM);
}

static int append_filter(sd_bus_message *m, const RunFilter *filter) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && filter->state)
                r = sd_bus_message_append(m, "{sv}", "state", "s", filter->state);
        if (r >= 0 && filter->all)
                r = sd_bus_message_append(m, "{sv}", "all", "b", 1);
        if (r >= 0 && filter->limit > 0)
                r = sd_bus_message_append(m, "{sv}", "limit", "u", filter->limit);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int rows_read(sd_bus_message *m, RunRow **ret_rows, size_t *ret_n) {
        _cleanup_(freep) RunRow *rows = NULL;
        size_t n = 0, room = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(sosstt)");
        if (r < 0)
                return r;
        for (;;) {
                if (n == room) {
                        RunRow *grown =
                                n < CLIENT_RUNS_MAX ? reallocarray(rows, room = 2 * room + 16, sizeof(*rows)) : NULL;

                        if (!grown)
                                return -ENOMEM;
                        rows = grown;
                }
                r = sd_bus_message_read(m, "(sosstt)", &rows[n].id, &rows[n].path, &rows[n].workflow, &rows[n].state,
                                        &rows[n].started_usec, &rows[n].cost_micros);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                n++;
        }
        *ret_rows = TAKE_PTR(rows);
        *ret_n = n;
        return 0;
}

/* Ids sort by time. */
static int newest_first(const void *a, const void *b) {
        return strcmp(((const RunRow *) b)->id, ((const RunRow *) a)->id);
}

int client_list_runs(Ctl *ctl, const RunFilter *filter, sd_bus_message **ret_reply, RunRow **ret_rows, size_t *ret_n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        int r;

        r = client_message(ctl, MANAGER_METHOD("ListRuns"), &call);
        if (r >= 0)
                r = append_filter(call, filter);
        if (r < 0)
                return client_failed(NULL, r);
        r = client_call_message(ctl, call, &reply);
        if (r != 0)
                return r;
        r = rows_read(reply, ret_rows, ret_n);
        if (r < 0)
                return client_bad_answer(r);
        qsort(*ret_rows, *ret_n, sizeof(**ret_rows), newest_first);
        *ret_reply = TAKE_PTR(reply);
        return 0;
}

static bool name_fits(const char *id, const char *name) {
        size_t n = strlen(name), length = strlen(id);
        const char *bare = strncmp(id, RUN_ID_PREFIX, strlen(RUN_ID_PREFIX)) == 0 ? id + strlen(RUN_ID_PREFIX) : id;

        if (n == 0)
                return false;
        if (strncmp(id, name, n) == 0 || strncmp(bare, name, n) == 0)
                return true;
        return n >= NAME_SIZE_MIN && n <= length && strcmp(id + length - n, name) == 0;
}

static int resolve_abbreviation(Ctl *ctl, const char *name, char **ret_id) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(freep) RunRow *rows = NULL;
        const RunRow *found = NULL;
        size_t n;
        int r;

        r = client_list_runs(ctl, &(const RunFilter){.limit = CLIENT_RUNS_MAX}, &reply, &rows, &n);
        if (r != 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (!name_fits(rows[i].id, name))
                        continue;
                if (found) {
                        print_error("More than one run fits '%s': %s, %s … Give more of the id.", name, found->id,
                                    rows[i].id);
                        return EXIT_FAILURE;
                }
                found = &rows[i];
        }
        if (!found) {
                print_error("No run fits '%s'. 'ephemeralctl list' shows those there are.", name);
                return EXIT_FAILURE;
        }
        *ret_id = strdup(found->id);
        return *ret_id ? 0 : client_bad_answer(-ENOMEM);
}

/* Runs that the caller may not read are asked for as those that never were, so that is what is said. */
static int get_run(Ctl *ctl, const char *id, char **ret_path) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path;
        int r;

        r = client_message(ctl, MANAGER_METHOD("GetRun"), &call);
        if (r >= 0)
                r = sd_bus_message_append(call, "s", id);
        if (r < 0)
                return client_failed(NULL, r);
        r = sd_bus_call(ctl->bus, call, UINT64_MAX, &error, &reply);
        if (r < 0 && sd_bus_error_has_name(&error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED)) {
                print_error("You have no run %s, and reading those of others needs authentication.", id);
                return EXIT_CODE_REFUSED;
        }
        if (r < 0)
                return client_failed(&error, r);
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return client_bad_answer(r);
        *ret_path = strdup(path);
        return *ret_path ? 0 : client_bad_answer(-ENOMEM);
}

int client_resolve_run(Ctl *ctl, const char *name, char **ret_id, char **ret_path) {
        _cleanup_(freep) char *id = NULL;
        int r;

        if (run_id_is_valid(name)) {
                id = strdup(name);
                if (!id)
                        return client_bad_answer(-ENOMEM);
        } else {
                r = resolve_abbreviation(ctl, name, &id);
                if (r != 0)
                        return r;
        }
        r = get_run(ctl, id, ret_path);
        if (r == 0)
                *ret_id = TAKE_PTR(id);
        return r;
}
