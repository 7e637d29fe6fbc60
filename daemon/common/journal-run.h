/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One run's events and output as journal entries, attributed to its scope (`journalctl -u ephemeral-run-ID.scope`).
 *
 * Every event is an entry: MESSAGE, MESSAGE_ID, PRIORITY, SYSLOG_IDENTIFIER=ephemeral-run, OBJECT_SYSTEMD_UNIT,
 * OBJECT_SYSTEMD_INVOCATION_ID once known, EPHEMERAL_RUN, EPHEMERAL_SEQ, EPHEMERAL_EVENT, EPHEMERAL_JSON,
 * EPHEMERAL_ACCOUNT, EPHEMERAL_WORKFLOW. Output is an entry a chunk, with EPHEMERAL_STREAM and the text, neutralised
 * across chunks, as MESSAGE without its last newline.
 *
 * A run has JOURNAL_OUTPUT_MAX bytes of output there (journald's rate limit is shared by all runs). The chunk that
 * does not fit is the first that is left out, with all that follow, and an entry says so at that place
 * (JOURNAL_ID_OUTPUT_LIMIT). Before `run.result` another says how much is missing (JOURNAL_ID_OUTPUT_SKIPPED, fields
 * EPHEMERAL_SKIPPED_BYTES, EPHEMERAL_SKIPPED_CHUNKS). Output past `output.max_bytes` (seq 0) is never written there
 * and counts as missing. The timeline itself is whole either way. */

#include "common/events.h"
#include "common/journal.h"

#define JOURNAL_OUTPUT_MAX (256U << 10)

typedef struct JournalRun JournalRun;

typedef struct JournalRunFields {
        const char *id;
        const char *unit;
        const char *account;
        const char *workflow;
} JournalRunFields;

/* Copies the fields. The writer must outlive it. 0 or -ENOMEM. */
int journal_run_new(JournalWriter *writer, const JournalRunFields *fields, JournalRun **ret);
JournalRun *journal_run_free(JournalRun *run);
DEFINE_CLEANUP(JournalRun *, journal_run_free);

/* The scope's, when it has started: 32 hex digits. 0 or -ENOMEM. */
int journal_run_set_invocation_id(JournalRun *run, const char *invocation_id);

/* Writes one event; an entry that cannot be made counts as dropped by the writer. */
void journal_run_event(JournalRun *run, const Event *event);
