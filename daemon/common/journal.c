/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A queue and a thread between the event loop and journald. The loop fills an entry, pushes it under a lock that is
 * never held while sending, and goes on; the thread sends. Thread and owner share the writer by a count of two: a
 * thread that journald holds when the owner's patience ends is left behind and frees the writer itself, should it
 * ever wake up.
 */
#include "common/journal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <syslog.h>
#include <time.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

#include "common/clock.h"
#include "common/events.h"

struct JournalEntry {
        STAILQ_ENTRY(JournalEntry) next;
        bool bulk;
        int n_fields;
        size_t size;
        struct iovec fields[JOURNAL_FIELDS_MAX];
};

struct JournalWriter {
        JournalSend send;
        void *userdata;
        size_t entries_max;
        size_t bytes_max;
        uint64_t flush_usec;
        pthread_t thread;

        pthread_mutex_t lock; /* for all below */
        pthread_cond_t work;
        STAILQ_HEAD(, JournalEntry) queue;
        size_t n_entries;
        size_t n_bytes;
        uint64_t n_untold; /* dropped since the last entry that told */
        uint64_t n_dropped;
        int n_refs;
        bool stop;    /* write what is there, then end */
        bool abandon; /* end without that */
};

JournalEntry *journal_entry_new(bool bulk) {
        JournalEntry *entry = calloc(1, sizeof(*entry));

        if (entry)
                entry->bulk = bulk;
        return entry;
}

JournalEntry *journal_entry_free(JournalEntry *entry) {
        if (!entry)
                return NULL;
        for (int i = 0; i < entry->n_fields; i++)
                free(entry->fields[i].iov_base);
        free(entry);
        return NULL;
}

int journal_entry_add_bytes(JournalEntry *entry, const char *field, const void *value, size_t size) {
        size_t n = strlen(field);
        char *data;

        if (entry->n_fields == JOURNAL_FIELDS_MAX)
                return -E2BIG;
        data = malloc(n + 1 + size);
        if (!data)
                return -ENOMEM;
        memcpy(data, field, n);
        data[n] = '=';
        if (size > 0)
                memcpy(data + n + 1, value, size);
        entry->fields[entry->n_fields++] = (struct iovec){data, n + 1 + size};
        entry->size += n + 1 + size;
        return 0;
}

int journal_entry_add(JournalEntry *entry, const char *field, const char *value) {
        return journal_entry_add_bytes(entry, field, value, strlen(value));
}

int journal_entry_addf(JournalEntry *entry, const char *field, const char *format, ...) {
        _cleanup_(freep) char *value = NULL;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&value, format, ap);
        va_end(ap);
        if (n < 0) {
                value = NULL;
                return -ENOMEM;
        }
        return journal_entry_add_bytes(entry, field, value, (size_t) n);
}

static int send_to_journald(const struct iovec *fields, int n_fields, void *userdata) {
        return sd_journal_sendv(fields, n_fields);
}

static JournalEntry *dropped_entry_new(uint64_t n) {
        _cleanup_(journal_entry_freep) JournalEntry *entry = journal_entry_new(false);
        char id[SD_ID128_STRING_MAX];

        if (!entry ||
            journal_entry_addf(entry, "MESSAGE",
                               "%" PRIu64 " journal entries of runs were dropped: the journal is too slow", n) < 0 ||
            journal_entry_addf(entry, "PRIORITY", "%d", LOG_WARNING) < 0 ||
            journal_entry_add(entry, "MESSAGE_ID", sd_id128_to_string(JOURNAL_ID_DROPPED, id)) < 0 ||
            journal_entry_add(entry, "SYSLOG_IDENTIFIER", "ephemerald") < 0 ||
            journal_entry_addf(entry, "EPHEMERAL_DROPPED", "%" PRIu64, n) < 0)
                return NULL;
        return TAKE_PTR(entry);
}

static void enqueue(JournalWriter *w, JournalEntry *entry) {
        STAILQ_INSERT_TAIL(&w->queue, entry, next);
        w->n_entries++;
        w->n_bytes += entry->size;
}

/* Puts the count of what is missing into the queue. */
static bool tell_dropped(JournalWriter *w) {
        JournalEntry *entry = dropped_entry_new(w->n_untold);

        if (!entry)
                return false;
        enqueue(w, entry);
        w->n_untold = 0;
        return true;
}

static JournalEntry *dequeue(JournalWriter *w) {
        JournalEntry *entry;

        if (w->n_entries == 0 && w->n_untold > 0)
                tell_dropped(w);
        entry = STAILQ_FIRST(&w->queue);
        if (!entry)
                return NULL;
        STAILQ_REMOVE_HEAD(&w->queue, next);
        w->n_entries--;
        w->n_bytes -= entry->size;
        return entry;
}

/* Called with the lock, which is gone when it returns. */
static void writer_unref_unlock(JournalWriter *w) {
        JournalEntry *entry;
        int n_refs = --w->n_refs;

        pthread_mutex_unlock(&w->lock);
        if (n_refs > 0)
                return;
        while ((entry = STAILQ_FIRST(&w->queue))) {
                STAILQ_REMOVE_HEAD(&w->queue, next);
                journal_entry_free(entry);
        }
        pthread_cond_destroy(&w->work);
        pthread_mutex_destroy(&w->lock);
        free(w);
}

static void *writer_thread(void *userdata) {
        JournalWriter *w = userdata;

        pthread_mutex_lock(&w->lock);
        while (!w->abandon) {
                JournalEntry *entry = dequeue(w);

                if (!entry) {
                        if (w->stop)
                                break;
                        pthread_cond_wait(&w->work, &w->lock);
                        continue;
                }
                pthread_mutex_unlock(&w->lock);
                /* An error is no reason to stop: journald may be there again for the next. */
                w->send(entry->fields, entry->n_fields, w->userdata);
                journal_entry_free(entry);
                pthread_mutex_lock(&w->lock);
        }
        writer_unref_unlock(w);
        return NULL;
}

/* All signals blocked: they are the event loop's. */
static int start_thread(JournalWriter *w) {
        sigset_t all, before;
        int r;

        sigfillset(&all);
        r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        r = pthread_create(&w->thread, NULL, writer_thread, w);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

int journal_writer_new(const JournalWriterOptions *options, JournalWriter **ret) {
        JournalWriterOptions o = options ? *options : (JournalWriterOptions){0};
        JournalWriter *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return -ENOMEM;
        w->send = o.send ? o.send : send_to_journald;
        w->userdata = o.userdata;
        w->entries_max = o.entries_max ? o.entries_max : JOURNAL_QUEUE_ENTRIES;
        w->bytes_max = o.bytes_max ? o.bytes_max : JOURNAL_QUEUE_BYTES;
        w->flush_usec = o.flush_usec ? o.flush_usec : JOURNAL_FLUSH_USEC;
        w->n_refs = 2;
        STAILQ_INIT(&w->queue);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->work, NULL);
        r = start_thread(w);
        if (r < 0) {
                w->n_refs = 1;
                pthread_mutex_lock(&w->lock);
                writer_unref_unlock(w);
                return r;
        }
        *ret = w;
        return 0;
}

JournalWriter *journal_writer_free(JournalWriter *w) {
        struct timespec deadline;
        uint64_t usec;

        if (!w)
                return NULL;
        usec = clock_monotonic_usec() + w->flush_usec;
        deadline = (struct timespec){(time_t) (usec / USEC_PER_SEC), (long) (usec % USEC_PER_SEC * NSEC_PER_USEC)};

        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->work);
        pthread_mutex_unlock(&w->lock);

        if (pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC, &deadline) != 0)
                pthread_detach(w->thread);
        pthread_mutex_lock(&w->lock);
        w->abandon = true;
        writer_unref_unlock(w);
        return NULL;
}

/* Whether the queue has room for it, and for the entry that tells what is missing before it. */
static bool has_room(const JournalWriter *w, const JournalEntry *entry) {
        size_t share = entry->bulk ? 2 : 1;
        size_t n = w->n_untold > 0 ? 2 : 1;

        return w->n_entries + n <= w->entries_max / share && entry->size <= w->bytes_max / share &&
               w->n_bytes <= w->bytes_max / share - entry->size;
}

bool journal_writer_push(JournalWriter *w, JournalEntry *entry) {
        bool queued;

        pthread_mutex_lock(&w->lock);
        queued = entry && has_room(w, entry) && (w->n_untold == 0 || tell_dropped(w));
        if (queued) {
                enqueue(w, entry);
                pthread_cond_signal(&w->work);
        } else {
                w->n_untold++;
                w->n_dropped++;
                pthread_cond_signal(&w->work);
        }
        pthread_mutex_unlock(&w->lock);
        if (!queued)
                journal_entry_free(entry);
        return queued;
}

uint64_t journal_writer_dropped(JournalWriter *w) {
        uint64_t n;

        pthread_mutex_lock(&w->lock);
        n = w->n_dropped;
        pthread_mutex_unlock(&w->lock);
        return n;
}
