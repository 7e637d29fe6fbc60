/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The first byte is the type of an event, the rest its JSON, as hostile as it likes: one harmless, bounded line. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "common/events.h"
#include "common/neutral.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct json_tokener *tokener;
        struct json_object *object;
        char *message, *again, *json;

        if (size < 2)
                return 0;
        tokener = json_tokener_new();
        require(tokener != NULL);
        object = json_tokener_parse_ex(tokener, (const char *) data + 1, (int) size - 1);
        json_tokener_free(tokener);

        message = event_message((EventType) (data[0] % EVENT_TYPE_COUNT), object);
        require(message && strlen(message) <= EVENT_MESSAGE_MAX);
        again = neutralise_line(message, strlen(message));
        require(again && strcmp(again, message) == 0);
        free(again);
        free(message);

        json = event_json(object);
        require(json != NULL);
        again = neutralise(json, strlen(json));
        require(again && strcmp(again, json) == 0);
        free(again);
        free(json);
        json_object_put(object);
        return 0;
}
