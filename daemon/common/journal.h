/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The journal, written by a thread: sd_journal_sendv() blocks while journald does, and the event loop must not.
 *
 * The queue is bounded in entries and bytes. An entry that finds it full is dropped and counted; the count is an
 * entry of its own (JOURNAL_ID_DROPPED, field EPHEMERAL_DROPPED=) at the place of what is missing, or, when nothing
 * follows, as soon as the queue is empty. Bulk entries (output) may fill half of the queue only, so that a flood
 * does not cost another run its events. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/cleanup.h"

#define JOURNAL_QUEUE_ENTRIES 8192
#define JOURNAL_QUEUE_BYTES   (16U << 20)
#define JOURNAL_FIELDS_MAX    24
#define JOURNAL_FLUSH_USEC    2000000U

typedef struct JournalWriter JournalWriter;
typedef struct JournalEntry JournalEntry;

/* Like sd_journal_sendv(): sends one entry, may block. Called by the writer's thread only. */
typedef int (*JournalSend)(const struct iovec *fields, int n_fields, void *userdata);

typedef struct JournalWriterOptions {
        JournalSend send; /* NULL: sd_journal_sendv() */
        void *userdata;
        size_t entries_max; /* 0: the defaults above */
        size_t bytes_max;
        uint64_t flush_usec;
} JournalWriterOptions;

/* options may be NULL. The thread has all signals blocked. 0 or -errno. */
int journal_writer_new(const JournalWriterOptions *options, JournalWriter **ret);

/* Writes what is queued, for at most flush_usec; gives the rest up, even when journald is stopped. Returns NULL. */
JournalWriter *journal_writer_free(JournalWriter *writer);
DEFINE_CLEANUP(JournalWriter *, journal_writer_free);

/* Queues the entry and owns it from now on, whatever comes of it. NULL (no memory for an entry) counts as a dropped
 * one. True when it was queued. Never blocks on journald. */
bool journal_writer_push(JournalWriter *writer, JournalEntry *entry);

uint64_t journal_writer_dropped(JournalWriter *writer); /* since the start, told or not */

/* An entry to be filled. Values are bytes: newlines and anything else are fine, a person's eyes are the caller's
 * concern. */
JournalEntry *journal_entry_new(bool bulk);
JournalEntry *journal_entry_free(JournalEntry *entry);
DEFINE_CLEANUP(JournalEntry *, journal_entry_free);

/* 0, -ENOMEM, or -E2BIG with more than JOURNAL_FIELDS_MAX. */
int journal_entry_add(JournalEntry *entry, const char *field, const char *value);
int journal_entry_add_bytes(JournalEntry *entry, const char *field, const void *value, size_t size);
int journal_entry_addf(JournalEntry *entry, const char *field, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
