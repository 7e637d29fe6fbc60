/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/id.h"

static void ids_sort_by_the_order_they_were_made_in(void) {
        char last[RUN_ID_LENGTH + 1] = "", id[RUN_ID_LENGTH + 1];

        for (int i = 0; i < 100000; i++) {
                assert(run_id_new(id) == 0);
                assert(strlen(id) == RUN_ID_LENGTH);
                assert(run_id_is_valid(id));
                assert(strcmp(last, id) < 0);
                memcpy(last, id, sizeof(last));
        }
}

static void an_id_begins_with_its_time(void) {
        static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
        char id[RUN_ID_LENGTH + 1];
        uint64_t msec = 0, now;

        now = clock_realtime_usec() / USEC_PER_MSEC;
        assert(run_id_new(id) == 0);
        for (size_t i = 4; i < 14; i++)
                msec = msec << 5 | (uint64_t) (strchr(digits, id[i]) - digits);
        assert(msec + 1000 > now && msec < now + 1000);
}

static void what_is_no_id_is_told(void) {
        assert(run_id_is_valid("run-01hf7z3q9v0000000000000000"));
        assert(run_id_is_valid("run-7zzzzzzzzzzzzzzzzzzzzzzzzz"));
        assert(!run_id_is_valid("run-8zzzzzzzzzzzzzzzzzzzzzzzzz")); /* 129 bits */
        assert(!run_id_is_valid(NULL));
        assert(!run_id_is_valid(""));
        assert(!run_id_is_valid("run-"));
        assert(!run_id_is_valid("run-01hf7z3q9v000000000000000"));
        assert(!run_id_is_valid("run-01hf7z3q9v00000000000000000"));
        assert(!run_id_is_valid("run-01HF7Z3Q9V0000000000000000"));
        assert(!run_id_is_valid("run-01hf7z3q9v000000000000000i"));
        assert(!run_id_is_valid("run-01hf7z3q9v00000000000000/."));
        assert(!run_id_is_valid("ran-01hf7z3q9v0000000000000000"));
}

static void the_clocks_advance(void) {
        uint64_t monotonic = clock_monotonic_usec(), realtime = clock_realtime_usec();

        assert(monotonic > 0);
        assert(realtime > 1700000000ULL * USEC_PER_SEC);
        assert(clock_monotonic_usec() >= monotonic);
}

int main(void) {
        ids_sort_by_the_order_they_were_made_in();
        an_id_begins_with_its_time();
        what_is_no_id_is_told();
        the_clocks_advance();
        return 0;
}
