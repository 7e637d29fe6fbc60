/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Ids of runs: 48 bits of milliseconds and 80 random bits, 26 characters of base32. Within a millisecond the random part of
 * the id before is counted up, so that ids of one manager always sort by the order they were made in.
 * Not for threads: the manager has one.
 */
#include "common/id.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"

#define ULID_SIZE   16U
#define ULID_LENGTH 26U
#define TIME_SIZE   6U

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

static int random_fill(uint8_t *data, size_t size) {
        for (;;) {
                ssize_t n = getrandom(data, size, 0);

                if (n == (ssize_t) size)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
}

/* One more, as one big-endian number over time and random bits: a full random part carries into the time. */
static void count_up(uint8_t ulid[static ULID_SIZE]) {
        for (size_t i = ULID_SIZE; i-- > 0;)
                if (++ulid[i] != 0)
                        return;
}

/* 128 bits as 26 characters of five, the first of which bears only three. */
static void encode(const uint8_t ulid[static ULID_SIZE], char *ret) {
        unsigned buffer = 0, n_bits = 2;

        for (size_t i = 0; i < ULID_SIZE; i++) {
                buffer = buffer << 8 | ulid[i];
                n_bits += 8;
                while (n_bits >= 5) {
                        n_bits -= 5;
                        *ret++ = alphabet[buffer >> n_bits & 31];
                }
        }
        *ret = 0;
}

int run_id_new(char ret[static RUN_ID_LENGTH + 1]) {
        static uint8_t last[ULID_SIZE];
        uint64_t msec = clock_realtime_usec() / USEC_PER_MSEC;
        uint8_t ulid[ULID_SIZE];
        int r;

        for (size_t i = 0; i < TIME_SIZE; i++)
                ulid[i] = (uint8_t) (msec >> (8 * (TIME_SIZE - 1 - i)));
        if (memcmp(ulid, last, TIME_SIZE) > 0) {
                r = random_fill(ulid + TIME_SIZE, ULID_SIZE - TIME_SIZE);
                if (r < 0)
                        return r;
        } else {
                memcpy(ulid, last, ULID_SIZE);
                count_up(ulid);
        }
        memcpy(last, ulid, ULID_SIZE);

        encode(ulid, stpcpy(ret, RUN_ID_PREFIX));
        return 0;
}

bool run_id_is_valid(const char *id) {
        const char *ulid;

        if (!id || strnlen(id, RUN_ID_LENGTH + 1) != RUN_ID_LENGTH ||
            strncmp(id, RUN_ID_PREFIX, strlen(RUN_ID_PREFIX)) != 0)
                return false;
        ulid = id + strlen(RUN_ID_PREFIX);
        return ulid[0] <= '7' && strspn(ulid, alphabet) == ULID_LENGTH; /* beyond '7': more than 128 bits */
}
