/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Turns one run's events into journal entries and keeps account of its share of output there. Called by the run's
 * timeline for each event, once, in order; the writer does the rest.
 */
#include "common/journal-run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "common/neutral.h"

struct JournalRun {
        JournalWriter *writer;
        char *id;
        char *unit;
        char *account;
        char *workflow;
        char *invocation_id;
        Neutraliser neutralisers[STREAM_STDERR + 1];
        uint64_t written_bytes;
        uint64_t skipped_bytes;
        uint64_t skipped_chunks;
};

static char *copy(const char *s) {
        return strdup(s ? s : "");
}

int journal_run_new(JournalWriter *writer, const JournalRunFields *fields, JournalRun **ret) {
        _cleanup_(journal_run_freep) JournalRun *run = calloc(1, sizeof(*run));

        if (!run)
                return -ENOMEM;
        run->writer = writer;
        run->id = copy(fields->id);
        run->unit = copy(fields->unit);
        run->account = copy(fields->account);
        run->workflow = copy(fields->workflow);
        if (!run->id || !run->unit || !run->account || !run->workflow)
                return -ENOMEM;
        *ret = TAKE_PTR(run);
        return 0;
}

JournalRun *journal_run_free(JournalRun *run) {
        if (!run)
                return NULL;
        free(run->id);
        free(run->unit);
        free(run->account);
        free(run->workflow);
        free(run->invocation_id);
        free(run);
        return NULL;
}

int journal_run_set_invocation_id(JournalRun *run, const char *invocation_id) {
        char *s = strdup(invocation_id);

        if (!s)
                return -ENOMEM;
        free(run->invocation_id);
        run->invocation_id = s;
        return 0;
}

/* An entry with the fields that all of a run's have; NULL when out of memory. */
static JournalEntry *entry_new(JournalRun *run, bool bulk, sd_id128_t message_id, int priority, const char *message) {
        _cleanup_(journal_entry_freep) JournalEntry *entry = journal_entry_new(bulk);
        char id[SD_ID128_STRING_MAX];

        if (!entry || !message || journal_entry_add(entry, "MESSAGE", message) < 0 ||
            journal_entry_add(entry, "MESSAGE_ID", sd_id128_to_string(message_id, id)) < 0 ||
            journal_entry_addf(entry, "PRIORITY", "%d", priority) < 0 ||
            journal_entry_add(entry, "SYSLOG_IDENTIFIER", "ephemeral-run") < 0 ||
            journal_entry_add(entry, "OBJECT_SYSTEMD_UNIT", run->unit) < 0 ||
            journal_entry_add(entry, "EPHEMERAL_RUN", run->id) < 0 ||
            journal_entry_add(entry, "EPHEMERAL_ACCOUNT", run->account) < 0 ||
            journal_entry_add(entry, "EPHEMERAL_WORKFLOW", run->workflow) < 0)
                return NULL;
        if (run->invocation_id && journal_entry_add(entry, "OBJECT_SYSTEMD_INVOCATION_ID", run->invocation_id) < 0)
                return NULL;
        return TAKE_PTR(entry);
}

static JournalEntry *add_event(JournalEntry *entry, const Event *event, const char *json, size_t json_size) {
        if (entry && json && journal_entry_addf(entry, "EPHEMERAL_SEQ", "%" PRIu64, event->seq) >= 0 &&
            journal_entry_add(entry, "EPHEMERAL_EVENT", event_type_name(event->type)) >= 0 &&
            journal_entry_add_bytes(entry, "EPHEMERAL_JSON", json, json_size) >= 0)
                return entry;
        return journal_entry_free(entry);
}

static void write_limit(JournalRun *run) {
        _cleanup_(freep) char *message = NULL;

        if (asprintf(&message, "Further output of this run is not written to the journal (limit %u bytes)",
                     JOURNAL_OUTPUT_MAX) < 0)
                message = NULL;
        journal_writer_push(run->writer, entry_new(run, false, JOURNAL_ID_OUTPUT_LIMIT, LOG_NOTICE, message));
}

static void write_skipped(JournalRun *run) {
        _cleanup_(journal_entry_freep) JournalEntry *entry = NULL;
        _cleanup_(freep) char *message = NULL;

        if (run->skipped_chunks == 0)
                return;
        if (asprintf(&message, "%" PRIu64 " bytes of output in %" PRIu64 " chunks were not written to the journal",
                     run->skipped_bytes, run->skipped_chunks) < 0)
                message = NULL;
        entry = entry_new(run, false, JOURNAL_ID_OUTPUT_SKIPPED, LOG_NOTICE, message);
        if (entry && (journal_entry_addf(entry, "EPHEMERAL_SKIPPED_BYTES", "%" PRIu64, run->skipped_bytes) < 0 ||
                      journal_entry_addf(entry, "EPHEMERAL_SKIPPED_CHUNKS", "%" PRIu64, run->skipped_chunks) < 0))
                entry = journal_entry_free(entry);
        journal_writer_push(run->writer, TAKE_PTR(entry));
}

static void write_text(JournalRun *run, OutputStream stream, char *text, const Event *event) {
        _cleanup_(journal_entry_freep) JournalEntry *entry = NULL;
        _cleanup_(freep) char *json = NULL;
        size_t n = text ? strlen(text) : 0;

        if (n > 0 && text[n - 1] == '\n')
                text[n - 1] = 0;
        entry = entry_new(run, true, event_type_message_id(EVENT_OUTPUT), event_priority(EVENT_OUTPUT, NULL), text);
        if (entry && journal_entry_add(entry, "EPHEMERAL_STREAM", output_stream_name(stream)) < 0)
                entry = journal_entry_free(entry);
        if (event) {
                json = event_output_json(stream, event->data, event->data_size);
                entry = add_event(TAKE_PTR(entry), event, json, json ? strlen(json) : 0);
        }
        journal_writer_push(run->writer, TAKE_PTR(entry));
}

static void write_output(JournalRun *run, const Event *event) {
        _cleanup_(freep) char *text = NULL;

        if (run->skipped_chunks > 0 || event->seq == 0 || event->data_size > JOURNAL_OUTPUT_MAX - run->written_bytes) {
                if (run->skipped_chunks == 0)
                        write_limit(run);
                run->skipped_bytes += event->data_size;
                run->skipped_chunks++;
                return;
        }
        run->written_bytes += event->data_size;
        text = neutraliser_feed(&run->neutralisers[event->stream], event->data, event->data_size);
        write_text(run, event->stream, text, event);
}

/* A character that never became whole is still shown. */
static void write_held(JournalRun *run) {
        for (OutputStream stream = STREAM_STDOUT; stream <= STREAM_STDERR; stream++) {
                _cleanup_(freep) char *text = NULL;

                if (run->neutralisers[stream].n_held == 0)
                        continue;
                text = neutraliser_finish(&run->neutralisers[stream]);
                write_text(run, stream, text, NULL);
        }
}

void journal_run_event(JournalRun *run, const Event *event) {
        _cleanup_(freep) char *message = NULL;
        JournalEntry *entry;

        if (event->type == EVENT_OUTPUT) {
                write_output(run, event);
                return;
        }
        if (event->type == EVENT_COMMAND_FINISHED || event->type == EVENT_RUN_RESULT)
                write_held(run);
        if (event->type == EVENT_RUN_RESULT)
                write_skipped(run);
        message = event_message(event->type, event->object);
        entry = entry_new(run, false, event_type_message_id(event->type), event_priority(event->type, event->object),
                          message);
        journal_writer_push(run->writer, add_event(entry, event, event->json, event->json_size));
}
