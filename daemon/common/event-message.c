/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The sentence that a person reads for each event, in the journal and on the command line. The JSON that it is made
 * from carries text of the guest and numbers from anywhere: every look at it is checked, every text bounded, and the
 * finished line is neutralised once, at the end.
 */
#include "common/events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "common/cleanup.h"
#include "common/neutral.h"

/* Raw text of a sentence: neutralised, with the mark of a cut, it stays below EVENT_MESSAGE_MAX. */
enum { TEXT_MAX = EVENT_MESSAGE_MAX / NEUTRAL_EXPANSION - 8, STRING_SHOWN_MAX = 400, WORDS_SHOWN_MAX = 64 };

typedef struct Text {
        char data[TEXT_MAX];
        size_t size;
        bool cut;
} Text;

/* The longest part of data, at most max bytes, that does not end within a character. */
static size_t whole_characters(const char *data, size_t size, size_t max) {
        if (size <= max)
                return size;
        for (size_t n = max; n > 0 && n + 4 > max; n--)
                if (((uint8_t) data[n] & 0xc0) != 0x80)
                        return n;
        return max;
}

static void add_bytes(Text *text, const char *data, size_t size) {
        size_t n;

        if (text->cut)
                return;
        n = whole_characters(data, size, sizeof(text->data) - text->size);
        memcpy(text->data + text->size, data, n);
        text->size += n;
        text->cut = n < size;
}

static void add(Text *text, const char *string) {
        add_bytes(text, string, strlen(string));
}

__attribute__((format(printf, 2, 3))) static void addf(Text *text, const char *format, ...) {
        char buffer[256];
        va_list ap;

        va_start(ap, format);
        vsnprintf(buffer, sizeof(buffer), format, ap);
        va_end(ap);
        add(text, buffer);
}

/* A value of the type, or NULL. */
static struct json_object *find(struct json_object *object, const char *key, json_type type) {
        struct json_object *value;

        if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, key, &value))
                return NULL;
        return json_object_is_type(value, type) ? value : NULL;
}

static void add_string_value(Text *text, struct json_object *string) {
        const char *data = json_object_get_string(string);
        size_t size = (size_t) json_object_get_string_len(string);
        size_t n = whole_characters(data, size, STRING_SHOWN_MAX);

        add_bytes(text, data, n);
        if (n < size)
                add(text, "…");
}

/* before, the string, after; nothing at all when there is none. */
static bool add_string(Text *text, const char *before, struct json_object *object, const char *key) {
        struct json_object *value = find(object, key, json_type_string);

        if (!value)
                return false;
        add(text, before);
        add_string_value(text, value);
        return true;
}

static bool add_number(
        Text *text, const char *before, struct json_object *object, const char *key, const char *after) {
        struct json_object *value = find(object, key, json_type_int);

        if (!value)
                return false;
        addf(text, "%s%" PRIi64 "%s", before, json_object_get_int64(value), after);
        return true;
}

static bool add_duration(Text *text, const char *before, struct json_object *object, const char *key) {
        struct json_object *value = find(object, key, json_type_int);
        int64_t usec = value ? json_object_get_int64(value) : -1;

        if (usec < 0)
                return false;
        add(text, before);
        if (usec < 1000)
                addf(text, "%" PRIi64 " µs", usec);
        else if (usec < 1000000)
                addf(text, "%" PRIi64 " ms", usec / 1000);
        else if (usec < 60000000)
                addf(text, "%" PRIi64 ".%" PRIi64 " s", usec / 1000000, usec / 100000 % 10);
        else
                addf(text, "%" PRIi64 " min %" PRIi64 " s", usec / 60000000, usec / 1000000 % 60);
        return true;
}

static void add_bytes_value(Text *text, const char *before, struct json_object *object, const char *key) {
        struct json_object *value = find(object, key, json_type_int);
        int64_t bytes = value ? json_object_get_int64(value) : -1;

        if (bytes < 0)
                return;
        if (bytes > 0 && bytes % (1 << 20) == 0)
                addf(text, "%s%" PRIi64 " MiB", before, bytes >> 20);
        else
                addf(text, "%s%" PRIi64 " %s", before, bytes, bytes == 1 ? "byte" : "bytes");
}

/* A word as a shell would need it, so that a person sees where it begins and ends. */
static void add_word(Text *text, struct json_object *word) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
        const char *data = json_object_get_string(word);
        size_t size = (size_t) json_object_get_string_len(word);
        size_t n = whole_characters(data, size, STRING_SHOWN_MAX);

        if (size > 0 && strspn(data, plain) == size) {
                add_string_value(text, word);
                return;
        }
        add(text, "'");
        for (size_t i = 0; i < n;) {
                size_t run = 0;

                while (i + run < n && data[i + run] != '\'')
                        run++;
                add_bytes(text, data + i, run);
                i += run;
                if (i < n) {
                        add(text, "'\\''");
                        i++;
                }
        }
        add(text, n < size ? "…'" : "'");
}

static void add_argv(Text *text, const char *before, struct json_object *event) {
        struct json_object *argv = find(event, "argv", json_type_array);
        size_t n = argv ? json_object_array_length(argv) : 0;

        for (size_t i = 0; i < n && !text->cut; i++) {
                struct json_object *word = json_object_array_get_idx(argv, i);

                add(text, i == 0 ? before : " ");
                if (i == WORDS_SHOWN_MAX) {
                        add(text, "…");
                        return;
                }
                if (json_object_is_type(word, json_type_string))
                        add_word(text, word);
        }
}

/* "lo (down)" … of a list of links; nothing when it is none. */
static void add_links(Text *text, const char *before, struct json_object *where) {
        struct json_object *links = find(where, "links", json_type_array);
        size_t n = links ? json_object_array_length(links) : 0;

        if (!links)
                return;
        add(text, before);
        if (n == 0)
                add(text, "none");
        for (size_t i = 0; i < n && !text->cut; i++) {
                struct json_object *link = json_object_array_get_idx(links, i);
                struct json_object *up = find(link, "up", json_type_boolean);

                add_string(text, i == 0 ? "" : ", ", link, "name");
                if (up)
                        add(text, json_object_get_boolean(up) ? " (up)" : " (down)");
        }
}

static void say_request_accepted(Text *text, struct json_object *event) {
        add(text, "Request accepted");
        add_string(text, ": workflow ", find(event, "request", json_type_object), "workflow");
}

static void say_budget_reserved(Text *text, struct json_object *event) {
        add(text, "Budget reserved");
}

static void say_template_building(Text *text, struct json_object *event) {
        add(text, "Booting a machine once, as the template of those to come");
        add_string(text, ", image ", event, "image");
        add_number(text, ", ", event, "vcpus", " vCPU");
        add_number(text, ", ", event, "memory_mib", " MiB");
}

static void say_template_ready(Text *text, struct json_object *event) {
        add(text, "The template is ready");
        add_string(text, ", from ", event, "from");
        add_duration(text, " after ", event, "duration_usec");
}

static void say_vm_starting(Text *text, struct json_object *event) {
        add(text, "Starting the microVM");
        add_string(text, ", start path ", event, "path");
        add_string(text, ", accelerator ", event, "accelerator");
        add_string(text, ", image ", event, "image");
        add_number(text, ", ", event, "vcpus", " vCPU");
        add_number(text, ", ", event, "memory_mib", " MiB");
}

static void say_isolation_verified(Text *text, struct json_object *event) {
        struct json_object *host = find(event, "namespace", json_type_object);
        struct json_object *devices = find(event, "devices", json_type_array);

        add(text, "Isolation verified");
        add_links(text, ": links of QEMU's network namespace ", host);
        add_number(text, ", addresses ", host, "addresses", "");
        add_number(text, ", routes ", host, "routes", "");
        if (devices)
                addf(text, "; devices of the microVM %zu, all planned", json_object_array_length(devices));
        add_links(text, "; links in the guest ", find(event, "guest", json_type_object));
        add_number(text, "; uid ", event, "uid", "");
}

static void say_vm_ready(Text *text, struct json_object *event) {
        add(text, "The microVM is ready");
        add_duration(text, " after ", event, "boot_usec");
        add_string(text, ", kernel ", event, "kernel");
}

static void say_command_started(Text *text, struct json_object *event) {
        add(text, "Command started");
        add_number(text, " as pid ", event, "pid", "");
        add_argv(text, ": ", event);
}

static void say_process_exec(Text *text, struct json_object *event) {
        add(text, "Process executed");
        add_number(text, " as pid ", event, "pid", "");
        add_argv(text, ": ", event);
}

static void say_output(Text *text, struct json_object *event) {
        add(text, "Output");
        add_string(text, " on ", event, "stream");
        add_bytes_value(text, ": ", event, "bytes");
}

static void say_command_finished(Text *text, struct json_object *event) {
        if (add_number(text, "Command finished with exit status ", event, "exit_status", "") ||
            add_string(text, "Command ended by signal ", event, "signal"))
                add_duration(text, " after ", event, "duration_usec");
        else if (add_string(text, "Command could not be executed: ", event, "error"))
                add_string(text, ", ", event, "errno");
        else
                add_string(text, "Command finished; it could not be executed: ", event, "errno");
        if (text->size == 0)
                add(text, "Command finished");
}

static void say_network_refused(Text *text, struct json_object *event) {
        add(text, "Network access refused by the guest's kernel");
        add_string(text, ": ", event, "address");
        add_string(text, ", ", event, "errno");
}

static void say_web_allowed(Text *text, struct json_object *event) {
        add(text, "Web access allowed");
        add_string(text, ": ", event, "domain");
}

static void say_web_denied(Text *text, struct json_object *event) {
        add(text, "Web access denied");
        add_string(text, ": ", event, "domain");
}

static void say_connection_called(Text *text, struct json_object *event) {
        add(text, "Connection called");
        add_string(text, ": ", event, "connection");
}

static void say_connection_denied(Text *text, struct json_object *event) {
        add(text, "Call of a connection denied");
        add_string(text, ": ", event, "connection");
}

static void say_model_called(Text *text, struct json_object *event) {
        add(text, "Model called");
        add_string(text, " over ", event, "connection");
}

static void say_cost_updated(Text *text, struct json_object *event) {
        add(text, "Cost updated");
        add_number(text, ": ", event, "cost_micros", " micros");
}

static void say_output_truncated(Text *text, struct json_object *event) {
        add(text, "Output was not kept whole");
        add_bytes_value(text, ": kept ", event, "kept_bytes");
        add_bytes_value(text, ", not kept ", event, "dropped_bytes");
        add_number(text, ", events not kept ", event, "dropped_events", "");
}

static void say_run_cancelled(Text *text, struct json_object *event) {
        add(text, "Run cancelled");
        add_string(text, " by ", event, "by");
}

static void say_timeout_reached(Text *text, struct json_object *event) {
        add(text, "Timeout reached");
        add_duration(text, ": the run may last ", event, "timeout_usec");
}

static void say_budget_exhausted(Text *text, struct json_object *event) {
        add(text, "Budget exhausted");
}

static void say_memory_exhausted(Text *text, struct json_object *event) {
        add(text, "Memory exhausted");
        add_bytes_value(text, ": the run may use ", event, "memory_max_bytes");
}

static void say_run_result(Text *text, struct json_object *event) {
        add(text, "Run ended");
        add_string(text, ": ", event, "outcome");
        add_number(text, ", exit status ", event, "exit_status", "");
        add_string(text, ", signal ", event, "signal");
        add_string(text, ", ", event, "reason");
        add_bytes_value(text, "; stdout ", event, "stdout_bytes");
        add_bytes_value(text, ", stderr ", event, "stderr_bytes");
}

/* What was checked may be told as text, number or yes/no. */
static void say_vm_destroyed(Text *text, struct json_object *event) {
        static const struct {
                const char *key;
                const char *label;
        } checks[] = {
                {"processes", "processes"},
                {"cgroup",    "cgroup"   },
                {"uid_free",  "uid free" },
                {"directory", "directory"},
                {"qemu",      "QEMU"     },
        };
        const char *separator = ": ";

        add(text, "The microVM is destroyed");
        for (size_t i = 0; i < ELEMENTSOF(checks); i++) {
                struct json_object *yes = find(event, checks[i].key, json_type_boolean);
                char before[32];

                snprintf(before, sizeof(before), "%s%s ", separator, checks[i].label);
                if (yes)
                        addf(text, "%s%s", before, json_object_get_boolean(yes) ? "yes" : "no");
                else if (!add_string(text, before, event, checks[i].key) &&
                         !add_number(text, before, event, checks[i].key, ""))
                        continue;
                separator = ", ";
        }
        add_duration(text, ", in ", event, "duration_usec");
}

static void say_budget_settled(Text *text, struct json_object *event) {
        add(text, "Budget settled");
        add_number(text, ": ", event, "cost_micros", " micros");
}

static void say_callback_delivered(Text *text, struct json_object *event) {
        add(text, "Callback delivered");
}

static void say_callback_failed(Text *text, struct json_object *event) {
        add(text, "Callback not delivered");
        add_string(text, ": ", event, "error");
}

typedef void (*Sentence)(Text *text, struct json_object *event);

static const Sentence sentences[EVENT_TYPE_COUNT] = {
        [EVENT_REQUEST_ACCEPTED] = say_request_accepted,
        [EVENT_BUDGET_RESERVED] = say_budget_reserved,
        [EVENT_TEMPLATE_BUILDING] = say_template_building,
        [EVENT_TEMPLATE_READY] = say_template_ready,
        [EVENT_VM_STARTING] = say_vm_starting,
        [EVENT_ISOLATION_VERIFIED] = say_isolation_verified,
        [EVENT_VM_READY] = say_vm_ready,
        [EVENT_COMMAND_STARTED] = say_command_started,
        [EVENT_PROCESS_EXEC] = say_process_exec,
        [EVENT_OUTPUT] = say_output,
        [EVENT_COMMAND_FINISHED] = say_command_finished,
        [EVENT_NETWORK_REFUSED] = say_network_refused,
        [EVENT_WEB_ALLOWED] = say_web_allowed,
        [EVENT_WEB_DENIED] = say_web_denied,
        [EVENT_CONNECTION_CALLED] = say_connection_called,
        [EVENT_CONNECTION_DENIED] = say_connection_denied,
        [EVENT_MODEL_CALLED] = say_model_called,
        [EVENT_COST_UPDATED] = say_cost_updated,
        [EVENT_OUTPUT_TRUNCATED] = say_output_truncated,
        [EVENT_RUN_CANCELLED] = say_run_cancelled,
        [EVENT_TIMEOUT_REACHED] = say_timeout_reached,
        [EVENT_BUDGET_EXHAUSTED] = say_budget_exhausted,
        [EVENT_MEMORY_EXHAUSTED] = say_memory_exhausted,
        [EVENT_RUN_RESULT] = say_run_result,
        [EVENT_VM_DESTROYED] = say_vm_destroyed,
        [EVENT_BUDGET_SETTLED] = say_budget_settled,
        [EVENT_CALLBACK_DELIVERED] = say_callback_delivered,
        [EVENT_CALLBACK_FAILED] = say_callback_failed,
};

char *event_message(EventType type, struct json_object *object) {
        Text text = {0};
        _cleanup_(freep) char *line = NULL;
        char *message;

        sentences[type](&text, object);
        line = neutralise_line(text.data, text.size);
        if (!line || !text.cut)
                return TAKE_PTR(line);
        return asprintf(&message, "%s…", line) < 0 ? NULL : message;
}
