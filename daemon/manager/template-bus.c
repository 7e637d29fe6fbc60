/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * BuildTemplate, DropTemplates and ListTemplates of org.ephemeral1.Manager.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/errors.h"
#include "common/json.h"
#include "manager/admit.h"
#include "manager/bus.h"

enum {
        LIST_BYTES = 64 * 1024, /* about what all templates take */
};

struct TemplateCall {
        Manager *manager;
        TAILQ_ENTRY(TemplateCall) calls;
        sd_bus_message *call;
        Request *request; /* whose machine it would be */
        TemplateWait *wait;
};

static TemplateCall *template_call_free(TemplateCall *c) {
        if (!c)
                return NULL;
        TAILQ_REMOVE(&c->manager->template_calls, c, calls);
        template_wait_free(c->wait);
        request_free(c->request);
        sd_bus_message_unref(c->call);
        free(c);
        return NULL;
}

DEFINE_CLEANUP(TemplateCall *, template_call_free);

void template_calls_free(Manager *m) {
        while (!TAILQ_EMPTY(&m->template_calls))
                template_call_free(TAILQ_FIRST(&m->template_calls));
}

/* ---- BuildTemplate ---- */

static int get_template(TemplateCall *c, sd_bus_error *reterr_error);

static void reply_ready(TemplateCall *c, const Template *t) {
        (void) sd_bus_reply_method_return(c->call, "s", template_recipe(t)->key);
        manager_look_again(c->manager); /* it is in use, so that a machine may wait */
        template_call_free(c);
}

static void on_building(const Template *t, void *userdata) {
}

static void on_ready(const Template *t, void *userdata) {
        TemplateCall *c = userdata;

        c->wait = NULL;
        if (template_recipe(t)->input.kvm && !template_from_disk(t))
                accelerator_worked(&c->manager->accelerator);
        reply_ready(c, t);
}

static void on_failed(const Template *t, const char *text, void *userdata) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        TemplateCall *c = userdata;
        int r;

        c->wait = NULL;
        if (template_recipe(t)->input.kvm && accelerator_failed(&c->manager->accelerator, text)) {
                r = get_template(c, &error); /* under TCG, then */
                if (r >= 0)
                        return;
        } else
                r = error_set(&error, ERROR_INTERNAL, "The template of image '%s' was not made: %s",
                              template_recipe(t)->image->name, text);
        (void) sd_bus_reply_method_errno(c->call, r, &error);
        template_call_free(c);
}

/* c is gone when this has succeeded at once. */
static int get_template(TemplateCall *c, sd_bus_error *reterr_error) {
        TemplateHandlers handlers = {
                .on_building = on_building, .on_ready = on_ready, .on_failed = on_failed, .userdata = c};
        const Template *t;
        Recipe *recipe;
        int r;

        r = manager_make_recipe(c->manager, c->request, &recipe, reterr_error);
        if (r < 0)
                return r;
        r = manager_get_template(c->manager, recipe, &handlers, &t, &c->wait);
        if (r > 0)
                reply_ready(c, t);
        return r;
}

/* The machine of a command that asks for nothing but this image. */
static int make_request(Manager *m, const char *image, Request **ret, sd_bus_error *reterr_error) {
        _cleanup_(json_putp) json_object *o =
                json_tokener_parse("{\"workflow\": \"command\", \"input\": {\"argv\": [\"true\"]}}");
        json_object *vm = json_object_new_object();
        const char *text;

        json_add_string(vm, "image", image);
        if (!o || json_add(o, "vm", vm) < 0)
                return -ENOMEM;
        text = json_text(o);
        return text ? request_parse(text, strlen(text), m->workflows, m->config.image, ret, reterr_error) : -ENOMEM;
}

static int build_admitted(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        _cleanup_(template_call_freep) TemplateCall *c = NULL;
        const char *image;
        int r;

        if (!m->templates)
                return error_set(reterr_error, ERROR_NOT_SUPPORTED,
                                 "Templates=no is configured: every machine boots, and there are none");
        r = sd_bus_message_rewind(call, true);
        if (r >= 0)
                r = sd_bus_message_read(call, "s", &image);
        if (r < 0)
                return r;
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->manager = m;
        TAILQ_INSERT_TAIL(&m->template_calls, c, calls);
        c->call = sd_bus_message_ref(call);
        r = make_request(m, image[0] ? image : m->config.image, &c->request, reterr_error);
        if (r >= 0)
                r = get_template(c, reterr_error);
        if (r < 0)
                return r;
        TAKE_PTR(c);
        return 1;
}

int method_build_template(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        AdmitQuestion question = {.action = ACTION_MANAGE, .handler = build_admitted};

        return admit_check(userdata, call, &question, reterr_error);
}

/* ---- DropTemplates ---- */

static int drop_admitted(Manager *m, sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        if (m->templates)
                template_drop_all(m->templates);
        manager_look_again(m); /* what waits is of no template any more */
        return sd_bus_reply_method_return(call, NULL);
}

int method_drop_templates(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        AdmitQuestion question = {.action = ACTION_MANAGE, .handler = drop_admitted};

        return admit_check(userdata, call, &question, reterr_error);
}

/* ---- ListTemplates ---- */

typedef struct List {
        sd_bus_message *reply;
        int error;
} List;

static void append_template(const TemplateMeta *meta, TemplateWhere where, void *userdata) {
        static const char *const words[] = {
                [TEMPLATE_IN_MAKING] = "making",
                [TEMPLATE_IN_MEMORY] = "memory",
                [TEMPLATE_ON_DISK] = "disk",
        };
        List *list = userdata;

        if (list->error >= 0)
                list->error = sd_bus_message_append(list->reply, "(sssuttt)", meta->key, meta->image, words[where],
                                                    (uint32_t) meta->vcpus, meta->memory_mib, meta->used_bytes,
                                                    meta->created_usec);
}

int method_list_templates(sd_bus_message *call, void *userdata, sd_bus_error *reterr_error) {
        Manager *m = userdata;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        List list = {0};
        int r;

        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sssuttt)");
        if (r < 0)
                return r;
        list.reply = reply;
        if (m->templates)
                template_set_list(m->templates, append_template, &list);
        r = list.error < 0 ? list.error : sd_bus_message_close_container(reply);
        replies_charge(m->replies, call, LIST_BYTES);
        return r < 0 ? r : sd_bus_message_send(reply);
}
