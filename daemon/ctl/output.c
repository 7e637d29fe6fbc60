/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * JSON out: one object a line, with the keys that D-Bus and HTTP use. Answers of the bus are turned into JSON by their
 * signature, so that a property which the service gains shows up by itself.
 */
#include "ctl/output.h"
#include "ctl/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/events.h"
#include "common/json.h"

#define KEY_SIZE 64

char *event_line(json_object *object) {
        _cleanup_(freep) char *text = object ? event_json(object) : NULL;
        char *line;

        return text && asprintf(&line, "%s\n", text) >= 0 ? line : NULL;
}

void print_json(json_object *object) {
        _cleanup_(freep) char *line = event_line(object);

        fputs(text_or(line, "{}\n"), stdout);
        fflush(stdout);
}

json_object *parse_object(const char *text, size_t size) {
        _cleanup_(json_putp) json_object *o = NULL;
        _cleanup_(freep) char *error = NULL;

        if (json_parse(text, size, &o, &error) < 0 || !json_object_is_type(o, json_type_object))
                return NULL;
        return TAKE_PTR(o);
}

json_object *event_to_json(
        const char *id, uint64_t seq, uint64_t usec, const char *type, const char *json_text, size_t size) {
        _cleanup_(json_putp) json_object *o = json_object_new_object(), *keys = parse_object(json_text, size);
        int r;

        if (!o)
                return NULL;
        r = id ? json_add_string(o, "id", id) : 0;
        if (r >= 0)
                r = json_add_u64(o, "seq", seq);
        if (r >= 0)
                r = json_add_u64(o, "usec", usec);
        if (r >= 0)
                r = json_add_string(o, "type", type);
        if (r >= 0 && !keys)
                r = json_add_bytes(o, "json", json_text, size);
        if (r < 0)
                return NULL;
        if (keys) {
                json_object_object_foreach (keys, key, value) {
                        r = json_object_object_add(o, key, json_object_get(value));
                        if (r < 0)
                                return NULL;
                }
        }
        return TAKE_PTR(o);
}

void property_to_key(const char *name, char *ret, size_t size) {
        size_t n = 0;

        for (size_t i = 0; name[i] && n + 2 < size; i++) {
                bool usec = strncmp(name + i, "USec", 4) == 0;

                if (isupper((unsigned char) name[i]) && i > 0)
                        ret[n++] = '_';
                ret[n++] = (char) tolower((unsigned char) name[i]);
                if (usec)
                        ret[n++] = (char) tolower((unsigned char) name[++i]);
        }
        ret[n] = 0;
}

static int value_to_json(sd_bus_message *m, char type, json_object **ret) {
        union {
                const char *s;
                int b;
                int32_t i;
                uint32_t u;
                int64_t x;
                uint64_t t;
                double d;
        } v = {0};
        int r = sd_bus_message_read_basic(m, type, &v);

        if (r < 0)
                return r;
        switch (type) {
        case SD_BUS_TYPE_BOOLEAN:
                *ret = json_object_new_boolean(v.b);
                break;
        case SD_BUS_TYPE_INT32:
                *ret = json_object_new_int64(v.i);
                break;
        case SD_BUS_TYPE_UINT32:
                *ret = json_object_new_int64(v.u);
                break;
        case SD_BUS_TYPE_INT64:
                *ret = json_object_new_int64(v.x);
                break;
        case SD_BUS_TYPE_UINT64:
                *ret = json_object_new_uint64(v.t);
                break;
        case SD_BUS_TYPE_DOUBLE:
                *ret = json_object_new_double(v.d);
                break;
        default:
                *ret = json_object_new_string(v.s);
        }
        return *ret ? 0 : -ENOMEM;
}

/* a{ss}: labels */
static int strings_to_json(sd_bus_message *m, json_object **ret) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();
        const char *key, *value;
        int r;

        if (!o)
                return -ENOMEM;
        r = sd_bus_message_enter_container(m, 'a', "{ss}");
        while (r >= 0 && (r = sd_bus_message_read(m, "{ss}", &key, &value)) > 0)
                r = json_add_string(o, key, value);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(o);
        return sd_bus_message_exit_container(m);
}

/* Isolation travels as JSON in a string. */
static json_object *unwrap_isolation(const char *key, json_object *value) {
        json_object *inner;

        if (strcmp(key, "isolation") != 0 || !json_object_is_type(value, json_type_string))
                return value;
        inner = parse_object(json_object_get_string(value), (size_t) json_object_get_string_len(value));
        if (!inner)
                return value;
        json_object_put(value);
        return inner;
}

static int property_to_json(sd_bus_message *m, json_object *properties) {
        json_object *value = NULL;
        const char *name, *contents;
        char key[KEY_SIZE], type;
        int r;

        r = sd_bus_message_read_basic(m, 's', &name);
        if (r < 0)
                return r;
        property_to_key(name, key, sizeof(key));
        r = sd_bus_message_peek_type(m, &type, &contents);
        if (r < 0)
                return r;
        if (strcmp(contents, "a{ss}") != 0 && (contents[1] || !strchr("bixutdso", contents[0])))
                return sd_bus_message_skip(m, "v"); /* newer than this program */
        r = sd_bus_message_enter_container(m, 'v', contents);
        if (r >= 0)
                r = contents[0] == 'a' ? strings_to_json(m, &value) : value_to_json(m, contents[0], &value);
        if (r < 0)
                return r;
        r = json_add(properties, key, unwrap_isolation(key, value));
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int properties_to_json(sd_bus_message *reply, json_object **ret) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;
        r = sd_bus_message_enter_container(reply, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                r = property_to_json(reply, o);
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(o);
        return 0;
}

const char *get_string(json_object *object, const char *key, const char *fallback) {
        json_object *v = NULL;

        if (!json_object_object_get_ex(object, key, &v) || !json_object_is_type(v, json_type_string))
                return fallback;
        return json_object_get_string(v);
}

int64_t get_int(json_object *object, const char *key, int64_t fallback) {
        json_object *v = NULL;

        if (!json_object_object_get_ex(object, key, &v) || !json_object_is_type(v, json_type_int))
                return fallback;
        return json_object_get_int64(v);
}
