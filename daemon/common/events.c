/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The table of event types, and an event as JSON. What is serialised here is sent as it is on every wire (journal,
 * D-Bus, feeds), so it is made once and made safe for all of them. The sentences for people are in event-message.c.
 */
#include "common/events.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include <json-c/json.h>

#include "common/json.h"
#include "common/neutral.h"

typedef struct EventInfo {
        const char *name;
        int priority;
        bool final;
        sd_id128_t message_id;
} EventInfo;

/* clang-format off */
static const EventInfo events[] = {
        [EVENT_REQUEST_ACCEPTED] = {"request.accepted", LOG_INFO, false,
                SD_ID128_ARRAY(0b, a7, 0e, 71, 2f, 8e, 4e, be, ad, 09, 00, b5, 65, 8d, fa, 9b)},
        [EVENT_BUDGET_RESERVED] = {"budget.reserved", LOG_INFO, false,
                SD_ID128_ARRAY(88, 19, 20, fd, ad, 5b, 43, c0, a6, 97, ac, f0, e9, cb, bb, c7)},
        [EVENT_TEMPLATE_BUILDING] = {"template.building", LOG_INFO, false,
                SD_ID128_ARRAY(97, 83, c5, 96, aa, fc, 4a, e3, 96, 63, f8, a9, 87, ef, 09, 74)},
        [EVENT_TEMPLATE_READY] = {"template.ready", LOG_INFO, false,
                SD_ID128_ARRAY(a0, bf, 4b, 20, ae, 3d, 47, 62, 9e, 13, 89, ea, fa, ee, 65, 0d)},
        [EVENT_VM_STARTING] = {"vm.starting", LOG_INFO, false,
                SD_ID128_ARRAY(4d, 7b, 60, 6d, 12, b8, 45, 7e, 8c, 09, c1, 57, 47, b7, f8, e3)},
        [EVENT_ISOLATION_VERIFIED] = {"isolation.verified", LOG_INFO, false,
                SD_ID128_ARRAY(23, a1, a1, 0d, 98, 3f, 49, f7, 85, 09, b2, 26, 6f, 8f, 43, 30)},
        [EVENT_VM_READY] = {"vm.ready", LOG_INFO, false,
                SD_ID128_ARRAY(6b, cf, a7, 77, bf, 1a, 46, 73, 93, 23, 9c, 56, 98, 51, 18, bf)},
        [EVENT_COMMAND_STARTED] = {"command.started", LOG_INFO, false,
                SD_ID128_ARRAY(04, 3a, 02, f2, 61, cc, 48, 5e, a3, d1, 07, bf, fa, 10, 51, 25)},
        [EVENT_PROCESS_EXEC] = {"process.exec", LOG_INFO, false,
                SD_ID128_ARRAY(90, e2, 80, e2, 76, f8, 45, 8f, a0, b7, bf, 6e, b1, 60, 22, 43)},
        [EVENT_OUTPUT] = {"output", LOG_INFO, false,
                SD_ID128_ARRAY(7c, 74, 6e, c0, 0b, 8c, 43, b1, ab, e4, 0d, 49, ef, 1e, a8, 3f)},
        [EVENT_COMMAND_FINISHED] = {"command.finished", LOG_INFO, true,
                SD_ID128_ARRAY(d5, c0, 76, 71, 9f, 55, 48, 34, b8, 5b, ef, 32, fb, c8, d9, 7f)},
        [EVENT_NETWORK_REFUSED] = {"network.refused", LOG_NOTICE, false,
                SD_ID128_ARRAY(e5, 8a, a9, 29, 8e, b1, 4d, dd, 91, d9, 6b, 91, 3c, c4, 9f, fb)},
        [EVENT_WEB_ALLOWED] = {"web.allowed", LOG_INFO, false,
                SD_ID128_ARRAY(40, 33, c3, fb, 9d, ce, 47, 56, bb, 85, bd, 47, 0c, ea, 37, 87)},
        [EVENT_WEB_DENIED] = {"web.denied", LOG_WARNING, false,
                SD_ID128_ARRAY(24, 57, c9, c3, 5c, e8, 4e, 09, a0, 3f, 5b, d8, d9, 37, c2, 78)},
        [EVENT_CONNECTION_CALLED] = {"connection.called", LOG_INFO, false,
                SD_ID128_ARRAY(83, 00, d0, 4e, 79, 83, 42, d2, 8f, 99, 1d, 38, 9f, 66, 3b, bb)},
        [EVENT_CONNECTION_DENIED] = {"connection.denied", LOG_WARNING, false,
                SD_ID128_ARRAY(94, 12, 5a, b8, c9, 04, 49, f5, 9e, 7b, c3, 59, fd, 21, e1, 76)},
        [EVENT_MODEL_CALLED] = {"model.called", LOG_INFO, false,
                SD_ID128_ARRAY(a9, d9, 76, 15, 5a, 5c, 4b, cf, 97, 66, b5, 21, 49, 43, a3, 18)},
        [EVENT_COST_UPDATED] = {"cost.updated", LOG_INFO, false,
                SD_ID128_ARRAY(09, 6b, 4d, 97, 34, 61, 4f, c8, b8, 13, 13, 37, ac, a4, b2, 41)},
        [EVENT_OUTPUT_TRUNCATED] = {"output.truncated", LOG_WARNING, true,
                SD_ID128_ARRAY(78, cf, bd, ab, c9, d4, 4c, 81, a6, 89, 46, 92, c4, 22, 72, 15)},
        [EVENT_RUN_CANCELLED] = {"run.cancelled", LOG_NOTICE, true,
                SD_ID128_ARRAY(e3, 47, 5d, cc, de, 77, 43, 78, b5, 36, 18, 98, 9a, c7, d4, 6b)},
        [EVENT_TIMEOUT_REACHED] = {"timeout.reached", LOG_WARNING, true,
                SD_ID128_ARRAY(47, d3, d1, e4, d9, f7, 45, 7a, bc, fe, 6c, 4d, 9b, da, 65, e8)},
        [EVENT_BUDGET_EXHAUSTED] = {"budget.exhausted", LOG_WARNING, true,
                SD_ID128_ARRAY(49, 6f, cf, f6, 82, 9d, 4d, b7, 85, f4, 8b, ab, 1a, a5, 8d, 19)},
        [EVENT_MEMORY_EXHAUSTED] = {"memory.exhausted", LOG_WARNING, true,
                SD_ID128_ARRAY(af, 52, 2a, 55, c6, 23, 43, e1, ab, ee, 55, 1b, d0, 6c, 1d, 7a)},
        [EVENT_RUN_RESULT] = {"run.result", LOG_NOTICE, true,
                SD_ID128_ARRAY(10, 4c, 77, 5a, d5, b8, 4a, 3d, 8e, 7e, d4, 97, 50, cc, 92, 22)},
        [EVENT_VM_DESTROYED] = {"vm.destroyed", LOG_INFO, true,
                SD_ID128_ARRAY(90, bd, bf, 17, 9c, 69, 4a, 31, a5, 0c, cc, c1, 2d, 5c, 6c, 91)},
        [EVENT_BUDGET_SETTLED] = {"budget.settled", LOG_INFO, true,
                SD_ID128_ARRAY(ef, 51, b8, e4, 6b, 34, 45, 6a, 94, 19, 50, ae, 4c, 7f, f5, 56)},
        [EVENT_CALLBACK_DELIVERED] = {"callback.delivered", LOG_INFO, true,
                SD_ID128_ARRAY(9a, 6e, ce, 0e, 1c, f9, 41, 5d, a9, 52, d8, 4b, 4c, 09, e0, 2e)},
        [EVENT_CALLBACK_FAILED] = {"callback.failed", LOG_WARNING, true,
                SD_ID128_ARRAY(f4, 60, cd, 9b, 52, 82, 40, c9, af, bc, 69, c4, 2c, bc, 4a, b0)},
};
/* clang-format on */

_Static_assert(ELEMENTSOF(events) == EVENT_TYPE_COUNT, "each type has its line");

const char *event_type_name(EventType type) {
        return events[type].name;
}

int event_type_from_name(const char *name) {
        for (int i = 0; i < EVENT_TYPE_COUNT; i++)
                if (strcmp(events[i].name, name) == 0)
                        return i;
        return -EINVAL;
}

sd_id128_t event_type_message_id(EventType type) {
        return events[type].message_id;
}

bool event_type_is_final(EventType type) {
        return events[type].final;
}

int event_priority(EventType type, struct json_object *object) {
        struct json_object *outcome;

        if (type == EVENT_RUN_RESULT && json_object_is_type(object, json_type_object) &&
            json_object_object_get_ex(object, "outcome", &outcome) && json_object_is_type(outcome, json_type_string) &&
            strcmp(json_object_get_string(outcome), "vm-failed") == 0)
                return LOG_ERR;
        return events[type].priority;
}

const char *output_stream_name(OutputStream stream) {
        return stream == STREAM_STDOUT ? "stdout" : "stderr";
}

char *event_json(json_object *object) {
        const char *json = json_text(object);

        return json ? neutralise_json(json, strlen(json)) : NULL;
}

char *event_output_json(OutputStream stream, const void *data, size_t size) {
        _cleanup_(json_putp) json_object *object = json_object_new_object();

        if (!object || json_add_string(object, "stream", output_stream_name(stream)) < 0 ||
            json_add_u64(object, "bytes", size) < 0 || json_add_bytes(object, "data", data, size) < 0)
                return NULL;
        return event_json(object);
}
