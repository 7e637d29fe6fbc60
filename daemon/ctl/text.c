/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Times, sizes and money for people; programs get the plain numbers by --json.
 */
#include "ctl/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"

#define MINUTE (60 * USEC_PER_SEC)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

char *text_duration(char ret[TEXT_SIZE], uint64_t usec) {
        if (usec < USEC_PER_SEC)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "ms", (uint64_t) (usec / USEC_PER_MSEC));
        else if (usec < MINUTE)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 ".%02" PRIu64 "s", (uint64_t) (usec / USEC_PER_SEC),
                         (uint64_t) (usec % USEC_PER_SEC / (10 * USEC_PER_MSEC)));
        else if (usec < HOUR)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "min %" PRIu64 "s", (uint64_t) (usec / MINUTE),
                         (uint64_t) (usec % MINUTE / USEC_PER_SEC));
        else if (usec < DAY)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "h %" PRIu64 "min", (uint64_t) (usec / HOUR),
                         (uint64_t) (usec % HOUR / MINUTE));
        else
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "d %" PRIu64 "h", (uint64_t) (usec / DAY),
                         (uint64_t) (usec % DAY / HOUR));
        return ret;
}

char *text_offset(char ret[TEXT_SIZE], uint64_t from, uint64_t usec) {
        uint64_t distance = usec >= from ? usec - from : from - usec;

        snprintf(ret, TEXT_SIZE, "%c%" PRIu64 ".%03" PRIu64 "s", usec >= from ? '+' : '-',
                 (uint64_t) (distance / USEC_PER_SEC), (uint64_t) (distance % USEC_PER_SEC / USEC_PER_MSEC));
        return ret;
}

char *text_ago(char ret[TEXT_SIZE], uint64_t now_usec, uint64_t usec) {
        uint64_t ago = now_usec > usec ? now_usec - usec : 0;

        if (usec == 0)
                snprintf(ret, TEXT_SIZE, "-");
        else if (ago < USEC_PER_SEC)
                snprintf(ret, TEXT_SIZE, "now");
        else if (ago < MINUTE)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "s ago", (uint64_t) (ago / USEC_PER_SEC));
        else if (ago < HOUR)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "min ago", (uint64_t) (ago / MINUTE));
        else if (ago < DAY)
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "h ago", (uint64_t) (ago / HOUR));
        else
                snprintf(ret, TEXT_SIZE, "%" PRIu64 "d ago", (uint64_t) (ago / DAY));
        return ret;
}

char *text_time(char ret[TEXT_SIZE], uint64_t usec) {
        time_t seconds = (time_t) (usec / USEC_PER_SEC);
        struct tm tm;

        if (usec == 0 || !localtime_r(&seconds, &tm) || strftime(ret, TEXT_SIZE, "%a %Y-%m-%d %H:%M:%S %Z", &tm) == 0)
                snprintf(ret, TEXT_SIZE, "-");
        return ret;
}

char *text_bytes(char ret[TEXT_SIZE], uint64_t bytes) {
        static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
        double v = (double) bytes;
        size_t u = 0;

        for (; v >= 1024; v /= 1024)
                u++;
        snprintf(ret, TEXT_SIZE, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
        return ret;
}

char *text_micros(char ret[TEXT_SIZE], uint64_t micros) {
        snprintf(ret, TEXT_SIZE, "$%" PRIu64 ".%06" PRIu64, (uint64_t) (micros / 1000000),
                 (uint64_t) (micros % 1000000));
        return ret;
}
