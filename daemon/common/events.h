/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The types of a timeline's events, in one table: name on every wire, journal message id, priority, and the sentence
 * that a person reads. docs/design.md, sections 9 and 17.4, lists the JSON of each. A text for each id but
 * that of output stands in units/ephemeral.catalog. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-id128.h>

struct json_object;

typedef enum EventType {
        EVENT_REQUEST_ACCEPTED,
        EVENT_BUDGET_RESERVED,
        EVENT_TEMPLATE_BUILDING,
        EVENT_TEMPLATE_READY,
        EVENT_VM_STARTING,
        EVENT_ISOLATION_VERIFIED,
        EVENT_VM_READY,
        EVENT_COMMAND_STARTED,
        EVENT_PROCESS_EXEC,
        EVENT_OUTPUT,
        EVENT_COMMAND_FINISHED,
        EVENT_NETWORK_REFUSED,
        EVENT_WEB_ALLOWED,
        EVENT_WEB_DENIED,
        EVENT_CONNECTION_CALLED,
        EVENT_CONNECTION_DENIED,
        EVENT_MODEL_CALLED,
        EVENT_COST_UPDATED,
        EVENT_OUTPUT_TRUNCATED,
        EVENT_RUN_CANCELLED,
        EVENT_TIMEOUT_REACHED,
        EVENT_BUDGET_EXHAUSTED,
        EVENT_MEMORY_EXHAUSTED,
        EVENT_RUN_RESULT,
        EVENT_VM_DESTROYED,
        EVENT_BUDGET_SETTLED,
        EVENT_CALLBACK_DELIVERED,
        EVENT_CALLBACK_FAILED,
        EVENT_TYPE_COUNT,
} EventType;

typedef enum OutputStream {
        STREAM_STDOUT = 1, /* the numbers of the OUTPUT frame */
        STREAM_STDERR = 2,
} OutputStream;

/* One event as it is handed to those who pass it on. All pointers belong to the giver and are good during the call
 * only. */
typedef struct Event {
        uint64_t seq;  /* from 1 without a gap; 0: live output that is not kept */
        uint64_t usec; /* CLOCK_REALTIME */
        EventType type;
        const char *json; /* serialised once, the same bytes everywhere; NULL for EVENT_OUTPUT (event_output_json()) */
        size_t json_size; /* without the NUL */
        struct json_object *object; /* the same, parsed; only when just appended, NULL when read back */
        OutputStream stream;        /* EVENT_OUTPUT only, like data */
        const void *data;
        size_t data_size;
} Event;

const char *event_type_name(EventType type); /* "vm.starting" */
int event_type_from_name(const char *name);  /* an EventType, or -EINVAL */
sd_id128_t event_type_message_id(EventType type);

/* LOG_INFO …; object, which may be NULL, makes a difference where a type has good and bad news. */
int event_priority(EventType type, struct json_object *object);

/* True for the events that tell how a run ended: a timeline keeps room for them. */
bool event_type_is_final(EventType type);

const char *output_stream_name(OutputStream stream); /* "stdout", "stderr" */

/* The sentence for a person, one neutralised line of at most EVENT_MESSAGE_MAX bytes, malloc'd; NULL only when out
 * of memory. Anything may be in `object`, nothing (NULL) as well: what is missing or of a wrong type is left out of
 * the sentence. */
#define EVENT_MESSAGE_MAX 4096
char *event_message(EventType type, struct json_object *object);

/* The JSON of an `output` event: data when it is UTF-8, data_base64 when not. The same bytes for the same output,
 * always. malloc'd; NULL only when out of memory. */
char *event_output_json(OutputStream stream, const void *data, size_t size);

/* Serialises for every wire at once (json-c's plain form, made safe by neutralise_json()). malloc'd, NULL when out
 * of memory. */
char *event_json(struct json_object *object);

/* Journal entries that are no events, with ids and catalog texts of their own. */
#define JOURNAL_ID_DROPPED        SD_ID128_MAKE(f0, f9, 92, e8, e8, 19, 4c, a1, 96, e5, 6a, 28, 02, 4d, 21, f8)
#define JOURNAL_ID_OUTPUT_LIMIT   SD_ID128_MAKE(02, 2f, b8, c8, 43, 7f, 47, d7, 87, e2, 56, 35, b3, 28, e5, c6)
#define JOURNAL_ID_OUTPUT_SKIPPED SD_ID128_MAKE(cb, d0, b3, 1f, bb, db, 47, 0e, a9, 0d, 9a, 6f, 8d, 5c, ed, 8e)
