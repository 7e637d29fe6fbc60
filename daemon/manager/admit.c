/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Authorization for the bus's methods. The subject is the caller's unique name, whose uid and start time polkit learns from the bus itself.
 * What must stay true: nothing exists before the answer, and what the handler needs is looked up after it.
 */
#include "manager/admit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/errors.h"

enum {
        POLKIT_TIMEOUT_SEC = 300, /* a person may be typing a password */
        POLKIT_ALLOW_INTERACTION = 1,
};

typedef struct Admission {
        Manager *manager;
        sd_bus_message *call;
        sd_bus_slot *slot;
        sd_bus_track *caller;
        char *cancellation_id;
        const char *action;
        AdmitHandler handler;
        void *userdata;
        void (*destroy)(void *userdata);
} Admission;

static Admission *admission_free(Admission *a) {
        if (!a)
                return NULL;
        sd_bus_slot_unref(a->slot);
        sd_bus_track_unref(a->caller);
        sd_bus_message_unref(a->call);
        if (a->destroy)
                a->destroy(a->userdata);
        a->manager->n_pending--;
        free(a->cancellation_id);
        free(a);
        return NULL;
}

DEFINE_CLEANUP(Admission *, admission_free);

int admit_caller(sd_bus_message *call, uid_t *ret_uid) {
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        int r;

        r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds);
        return r < 0 ? r : sd_bus_creds_get_euid(creds, ret_uid);
}

/* Runs the handler and replies for it if it failed. */
static void call_handler(Admission *a) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = a->handler(a->manager, a->call, a->userdata, &error);
        if (r < 0)
                (void) sd_bus_reply_method_errno(a->call, r, &error);
}

static int read_answer(sd_bus_message *reply, int *ret_authorized, int *ret_challenge) {
        int r;

        r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
        return r < 0 ? r : sd_bus_message_read(reply, "bb", ret_authorized, ret_challenge);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        _cleanup_(admission_freep) Admission *a = userdata;
        int authorized = 0, challenge = 0;

        if (sd_bus_message_is_method_error(reply, NULL))
                (void) sd_bus_reply_method_errorf(a->call, error_info_by_kind(ERROR_NOT_PERMITTED)->name,
                                                  "Not permitted: polkit cannot be asked (%s)",
                                                  sd_bus_message_get_error(reply)->message);
        else if (read_answer(reply, &authorized, &challenge) < 0)
                (void) sd_bus_reply_method_errorf(a->call, error_info_by_kind(ERROR_NOT_PERMITTED)->name,
                                                  "Not permitted: polkit gave no answer that can be read");
        else if (authorized)
                call_handler(a);
        else if (challenge)
                (void) sd_bus_reply_method_errorf(a->call, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                                  "Interactive authentication required");
        else
                (void) sd_bus_reply_method_errorf(
                        a->call, error_info_by_kind(ERROR_NOT_PERMITTED)->name,
                        "Not permitted: %s is for %swhom polkit's rules allow it", a->action,
                        strcmp(a->action, ACTION_RUN) == 0 ? "members of the group \"ephemeral\" and " : "");
        return 0;
}

static int on_caller_gone(sd_bus_track *track, void *userdata) {
        Admission *a = userdata;

        (void) sd_bus_call_method_async(a->manager->bus, NULL, "org.freedesktop.PolicyKit1",
                                        "/org/freedesktop/PolicyKit1/Authority",
                                        "org.freedesktop.PolicyKit1.Authority", "CancelCheckAuthorization", NULL, NULL,
                                        "s", a->cancellation_id);
        admission_free(a);
        return 1; /* 0 would ask for the same again */
}

static int append_details(sd_bus_message *m, const char *const *details) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{ss}");
        for (size_t i = 0; r >= 0 && details && details[i]; i += 2)
                r = sd_bus_message_append(m, "{ss}", details[i], details[i + 1]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int ask(Admission *a, const AdmitQuestion *question) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint32_t flags =
                sd_bus_message_get_allow_interactive_authorization(a->call) > 0 ? POLKIT_ALLOW_INTERACTION : 0;
        int r;

        r = sd_bus_message_new_method_call(a->manager->bus, &m, "org.freedesktop.PolicyKit1",
                                           "/org/freedesktop/PolicyKit1/Authority",
                                           "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s",
                                  sd_bus_message_get_sender(a->call), question->action);
        if (r < 0)
                return r;
        r = append_details(m, question->details);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "us", flags, a->cancellation_id);
        if (r < 0)
                return r;
        return sd_bus_call_async(a->manager->bus, &a->slot, m, on_answer, a, POLKIT_TIMEOUT_SEC * USEC_PER_SEC);
}

static int watch_caller(Admission *a) {
        int r;

        r = sd_bus_track_new(a->manager->bus, &a->caller, on_caller_gone, a);
        return r < 0 ? r : sd_bus_track_add_sender(a->caller, a->call);
}

int admit_check(Manager *m, sd_bus_message *call, const AdmitQuestion *question, sd_bus_error *reterr_error) {
        _cleanup_(admission_freep) Admission *a = NULL;
        static uint64_t counter;
        uid_t uid;
        int r;

        a = calloc(1, sizeof(*a));
        if (!a) {
                if (question->destroy)
                        question->destroy(question->userdata);
                return -ENOMEM;
        }
        *a = (Admission){
                .manager = m,
                .call = sd_bus_message_ref(call),
                .action = question->action,
                .handler = question->handler,
                .userdata = question->userdata,
                .destroy = question->destroy,
        };
        m->n_pending++;
        r = admit_caller(call, &uid);
        if (r < 0)
                return r;
        if (uid == 0) {
                r = question->handler(m, call, question->userdata, reterr_error);
                return r < 0 ? r : 1;
        }
        if (asprintf(&a->cancellation_id, "ephemerald-%llu", (unsigned long long) ++counter) < 0) {
                a->cancellation_id = NULL;
                return -ENOMEM;
        }
        r = watch_caller(a);
        if (r < 0)
                return r;
        r = ask(a, question);
        if (r < 0)
                return r;
        TAKE_PTR(a);
        return 1;
}
