/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What --json prints, and how answers of the bus become JSON. */

#include <json-c/json.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct EventMessage;

/* One object on one line, newline included, safe for a terminal (event_json()); to be freed. NULL: out of memory. */
char *event_line(json_object *object);
void print_json(json_object *object); /* on stdout */

/* An event as --json shows it: {"id":…,"seq":…,"usec":…,"type":…, and the keys of its JSON}. json_text may be what is
 * no JSON: then it is the value of "json". NULL: out of memory. */
json_object *event_to_json(
        const char *id, uint64_t seq, uint64_t usec, const char *type, const char *json_text, size_t size);

/* Parses text that came from the service; NULL when it is no JSON object. */
json_object *parse_object(const char *text, size_t size);

/* A property's name as the key it has in JSON: "TimeoutUSec" is "timeout_usec". */
void property_to_key(const char *name, char *ret, size_t size);

/* An answer of Properties.GetAll as an object with such keys. 0 or -errno. */
int properties_to_json(sd_bus_message *reply, json_object **ret);

/* Members of an object, with what to take when they are missing or of another type. */
const char *get_string(json_object *object, const char *key, const char *fallback);
int64_t get_int(json_object *object, const char *key, int64_t fallback);
