/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * journald is a function here: it records what it is given, or holds the thread for as long as a test wants.
 */
#include "common/journal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/journal-run.h"
#include "common/json.h"

typedef struct FakeJournal {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool held;      /* send blocks */
        bool waiting;   /* a send is blocked */
        char **entries; /* fields joined by newlines, in front of each and behind the last */
        size_t n_entries;
} FakeJournal;

static int fake_send(const struct iovec *fields, int n_fields, void *userdata) {
        FakeJournal *j = userdata;
        size_t size;
        char *text = NULL;
        FILE *f = open_memstream(&text, &size);

        assert(f);
        for (int i = 0; i < n_fields; i++)
                fprintf(f, "\n%.*s", (int) fields[i].iov_len, (const char *) fields[i].iov_base);
        fputc('\n', f);
        assert(fclose(f) == 0);

        pthread_mutex_lock(&j->lock);
        j->waiting = true;
        pthread_cond_broadcast(&j->changed);
        while (j->held)
                pthread_cond_wait(&j->changed, &j->lock);
        j->waiting = false;
        j->entries = reallocarray(j->entries, j->n_entries + 1, sizeof(char *));
        assert(j->entries);
        j->entries[j->n_entries++] = text;
        pthread_cond_broadcast(&j->changed);
        pthread_mutex_unlock(&j->lock);
        return 0;
}

static void fake_init(FakeJournal *j, bool held) {
        *j = (FakeJournal){.held = held};
        pthread_mutex_init(&j->lock, NULL);
        pthread_cond_init(&j->changed, NULL);
}

static void fake_done(FakeJournal *j) {
        for (size_t i = 0; i < j->n_entries; i++)
                free(j->entries[i]);
        free(j->entries);
        pthread_cond_destroy(&j->changed);
        pthread_mutex_destroy(&j->lock);
}

static void fake_release(FakeJournal *j) {
        pthread_mutex_lock(&j->lock);
        j->held = false;
        pthread_cond_broadcast(&j->changed);
        pthread_mutex_unlock(&j->lock);
}

static void fake_wait_until_blocked(FakeJournal *j) {
        pthread_mutex_lock(&j->lock);
        while (!j->waiting)
                pthread_cond_wait(&j->changed, &j->lock);
        pthread_mutex_unlock(&j->lock);
}

static void fake_wait_for(FakeJournal *j, size_t n_entries) {
        pthread_mutex_lock(&j->lock);
        while (j->n_entries < n_entries)
                pthread_cond_wait(&j->changed, &j->lock);
        pthread_mutex_unlock(&j->lock);
}

/* The value of a field of one line; the caller frees it. */
static char *field(const FakeJournal *j, size_t i, const char *name) {
        char key[64];
        const char *p;

        assert(i < j->n_entries);
        snprintf(key, sizeof(key), "\n%s=", name);
        p = strstr(j->entries[i], key);
        if (!p)
                return NULL;
        p += strlen(key);
        return strndup(p, strcspn(p, "\n"));
}

static void expect_field(const FakeJournal *j, size_t i, const char *name, const char *wanted) {
        _cleanup_(freep) char *value = field(j, i, name);

        if (!value || strcmp(value, wanted) != 0) {
                fprintf(stderr, "entry %zu, %s: got <%s>, wanted <%s>\n", i, name, value ? value : "nothing", wanted);
                abort();
        }
}

static JournalWriter *writer(FakeJournal *j, size_t entries_max, size_t bytes_max, uint64_t flush_usec) {
        const JournalWriterOptions options = {
                .send = fake_send,
                .userdata = j,
                .entries_max = entries_max,
                .bytes_max = bytes_max,
                .flush_usec = flush_usec ? flush_usec : 60 * USEC_PER_SEC,
        };
        JournalWriter *w;

        assert(journal_writer_new(&options, &w) == 0);
        return w;
}

static JournalEntry *entry(bool bulk, int number) {
        JournalEntry *e = journal_entry_new(bulk);

        assert(e && journal_entry_addf(e, "N", "%d", number) == 0);
        return e;
}

static void test_entries_come_in_order_and_whole(void) {
        FakeJournal j;
        JournalWriter *w;

        fake_init(&j, false);
        w = writer(&j, 10000, 0, 0);
        for (int i = 0; i < 5000; i++)
                assert(journal_writer_push(w, entry(false, i)));
        journal_writer_free(w);
        assert(j.n_entries == 5000);
        for (int i = 0; i < 5000; i++) {
                char number[16];

                snprintf(number, sizeof(number), "%d", i);
                expect_field(&j, (size_t) i, "N", number);
        }
        fake_done(&j);
}

static void test_a_full_queue_drops_and_counts_at_the_place(void) {
        FakeJournal j;
        JournalWriter *w;

        fake_init(&j, true);
        w = writer(&j, 4, 0, 0);
        assert(journal_writer_push(w, entry(false, 0)));
        fake_wait_until_blocked(&j); /* entry 0 has left the queue */
        for (int i = 1; i <= 4; i++)
                assert(journal_writer_push(w, entry(false, i)));
        for (int i = 5; i <= 11; i++)
                assert(!journal_writer_push(w, entry(false, i)));
        assert(!journal_writer_push(w, NULL));
        assert(journal_writer_dropped(w) == 8);
        fake_release(&j);
        fake_wait_for(&j, 6);
        expect_field(&j, 4, "N", "4");
        expect_field(&j, 5, "EPHEMERAL_DROPPED", "8");
        expect_field(&j, 5, "SYSLOG_IDENTIFIER", "ephemerald");
        assert(journal_writer_push(w, entry(false, 12)));
        journal_writer_free(w);
        assert(j.n_entries == 7);
        expect_field(&j, 6, "N", "12");
        fake_done(&j);
}

static void test_bulk_leaves_half_of_the_queue_to_events(void) {
        FakeJournal j;
        JournalWriter *w;

        fake_init(&j, true);
        w = writer(&j, 8, 0, 0);
        assert(journal_writer_push(w, entry(true, 0)));
        fake_wait_until_blocked(&j);
        for (int i = 1; i <= 4; i++)
                assert(journal_writer_push(w, entry(true, i)));
        assert(!journal_writer_push(w, entry(true, 5)));
        assert(journal_writer_push(w, entry(false, 6))); /* with the count before it */
        assert(journal_writer_push(w, entry(false, 7)));
        fake_release(&j);
        journal_writer_free(w);
        assert(j.n_entries == 8);
        expect_field(&j, 5, "EPHEMERAL_DROPPED", "1");
        expect_field(&j, 6, "N", "6");
        fake_done(&j);
}

static void test_the_queue_is_bounded_in_bytes(void) {
        FakeJournal j;
        JournalWriter *w;

        fake_init(&j, true);
        w = writer(&j, 0, 10, 0);
        assert(journal_writer_push(w, entry(false, 0)));
        fake_wait_until_blocked(&j);
        for (int i = 1; i <= 3; i++)
                assert(journal_writer_push(w, entry(false, i))); /* "N=1": three bytes */
        assert(!journal_writer_push(w, entry(false, 4)));
        fake_release(&j);
        journal_writer_free(w);
        assert(j.n_entries == 5);
        fake_done(&j);
}

static void test_a_stopped_journal_holds_nobody_for_long(void) {
        FakeJournal *j = malloc(sizeof(*j));
        JournalWriter *w;
        uint64_t before;

        assert(j);
        fake_init(j, true);
        w = writer(j, 0, 0, 50000);
        for (int i = 0; i < 100; i++)
                assert(journal_writer_push(w, entry(false, i)));
        fake_wait_until_blocked(j);
        before = clock_monotonic_usec();
        journal_writer_free(w);
        assert(clock_monotonic_usec() - before >= 50000);
        assert(clock_monotonic_usec() - before < 20000000);
        /* The thread ends by itself when journald is back: entry 0 is told, the others were given up. */
        fake_release(j);
        fake_wait_for(j, 1);
        assert(j->n_entries == 1);
        pthread_mutex_lock(&j->lock);
        pthread_mutex_unlock(&j->lock);
        fake_done(j);
        free(j);
}

static void test_too_many_fields_are_refused(void) {
        JournalEntry *e = journal_entry_new(false);

        for (int i = 0; i < JOURNAL_FIELDS_MAX; i++)
                assert(journal_entry_add(e, "A", "b") == 0);
        assert(journal_entry_add(e, "A", "b") == -E2BIG);
        journal_entry_free(e);
}

static const JournalRunFields fields = {"run-1", "ephemeral-run-1.scope", "uid:1000", "command"};

static void push_event(JournalRun *run, uint64_t seq, EventType type, const char *json) {
        _cleanup_(json_putp) json_object *object = json_tokener_parse(json);
        const Event event = {.seq = seq, .type = type, .json = json, .json_size = strlen(json), .object = object};

        journal_run_event(run, &event);
}

static void push_output(JournalRun *run, uint64_t seq, const char *data, size_t size) {
        const Event event = {
                .seq = seq, .type = EVENT_OUTPUT, .stream = STREAM_STDOUT, .data = data, .data_size = size};

        journal_run_event(run, &event);
}

static void test_an_event_has_all_fields(void) {
        FakeJournal j;
        JournalWriter *w;
        JournalRun *run;
        char id[SD_ID128_STRING_MAX];

        fake_init(&j, false);
        w = writer(&j, 0, 0, 0);
        assert(journal_run_new(w, &fields, &run) == 0);
        push_event(run, 1, EVENT_RUN_CANCELLED, "{\"by\":\"uid:0\"}");
        assert(journal_run_set_invocation_id(run, "00112233445566778899aabbccddeeff") == 0);
        push_event(run, 2, EVENT_VM_READY, "{}");
        journal_run_free(run);
        journal_writer_free(w);

        assert(j.n_entries == 2);
        expect_field(&j, 0, "MESSAGE", "Run cancelled by uid:0");
        expect_field(&j, 0, "MESSAGE_ID", sd_id128_to_string(event_type_message_id(EVENT_RUN_CANCELLED), id));
        expect_field(&j, 0, "PRIORITY", "5");
        expect_field(&j, 0, "SYSLOG_IDENTIFIER", "ephemeral-run");
        expect_field(&j, 0, "OBJECT_SYSTEMD_UNIT", "ephemeral-run-1.scope");
        expect_field(&j, 0, "EPHEMERAL_RUN", "run-1");
        expect_field(&j, 0, "EPHEMERAL_SEQ", "1");
        expect_field(&j, 0, "EPHEMERAL_EVENT", "run.cancelled");
        expect_field(&j, 0, "EPHEMERAL_JSON", "{\"by\":\"uid:0\"}");
        expect_field(&j, 0, "EPHEMERAL_ACCOUNT", "uid:1000");
        expect_field(&j, 0, "EPHEMERAL_WORKFLOW", "command");
        assert(!field(&j, 0, "OBJECT_SYSTEMD_INVOCATION_ID"));
        expect_field(&j, 1, "OBJECT_SYSTEMD_INVOCATION_ID", "00112233445566778899aabbccddeeff");
        fake_done(&j);
}

static void test_output_is_neutralised_across_chunks(void) {
        FakeJournal j;
        JournalWriter *w;
        JournalRun *run;

        fake_init(&j, false);
        w = writer(&j, 0, 0, 0);
        assert(journal_run_new(w, &fields, &run) == 0);
        push_output(run, 1, "\x1b[2Jeuro \xe2\x82", 11);
        push_output(run, 2, "\xac\n", 2);
        push_output(run, 3, "cut \xe2", 5);
        push_event(run, 4, EVENT_COMMAND_FINISHED, "{\"exit_status\":0}");
        journal_run_free(run);
        journal_writer_free(w);

        assert(j.n_entries == 5);
        expect_field(&j, 0, "MESSAGE", "^[[2Jeuro ");
        expect_field(&j, 0, "EPHEMERAL_STREAM", "stdout");
        expect_field(&j, 0, "EPHEMERAL_JSON",
                     "{\"stream\":\"stdout\",\"bytes\":11,\"data_base64\":\"G1sySmV1cm8g4oI=\"}");
        expect_field(&j, 1, "MESSAGE", "€");
        expect_field(&j, 2, "MESSAGE", "cut ");
        expect_field(&j, 3, "MESSAGE", "\\xe2");
        expect_field(&j, 4, "EPHEMERAL_SEQ", "4");
        fake_done(&j);
}

static void test_output_has_its_share_and_the_rest_is_counted(void) {
        static char chunk[65536];
        FakeJournal j;
        JournalWriter *w;
        JournalRun *run;

        memset(chunk, 'x', sizeof(chunk));
        fake_init(&j, false);
        w = writer(&j, 0, 0, 0);
        assert(journal_run_new(w, &fields, &run) == 0);
        for (uint64_t seq = 1; seq <= 6; seq++)
                push_output(run, seq, chunk, sizeof(chunk));
        push_output(run, 7, "small", 5); /* would fit, but would stand in the wrong place */
        push_output(run, 0, "live", 4);
        push_event(run, 8, EVENT_RUN_RESULT, "{\"outcome\":\"succeeded\"}");
        journal_run_free(run);
        journal_writer_free(w);

        assert(j.n_entries == JOURNAL_OUTPUT_MAX / sizeof(chunk) + 3);
        expect_field(&j, 4, "MESSAGE",
                     "Further output of this run is not written to the journal (limit 262144 bytes)");
        expect_field(&j, 5, "EPHEMERAL_SKIPPED_BYTES", "131081");
        expect_field(&j, 5, "EPHEMERAL_SKIPPED_CHUNKS", "4");
        expect_field(&j, 6, "MESSAGE", "Run ended: succeeded");
        fake_done(&j);
}

int main(void) {
        test_entries_come_in_order_and_whole();
        test_a_full_queue_drops_and_counts_at_the_place();
        test_bulk_leaves_half_of_the_queue_to_events();
        test_the_queue_is_bounded_in_bytes();
        test_a_stopped_journal_holds_nobody_for_long();
        test_too_many_fields_are_refused();
        test_an_event_has_all_fields();
        test_output_is_neutralised_across_chunks();
        test_output_has_its_share_and_the_rest_is_counted();
        return 0;
}
