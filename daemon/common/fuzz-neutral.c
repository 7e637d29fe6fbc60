/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any bytes: the text is safe, neutralising it again changes nothing, and a cut (where the first byte says) neither. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/neutral.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
        if (!condition)
                abort();
}

static void check_text(const char *text, size_t size_max) {
        size_t size = strlen(text);
        char *again = neutralise(text, size);

        require(size <= size_max);
        require(again && strcmp(again, text) == 0);
        for (size_t i = 0; i < size; i++)
                require((unsigned char) text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t');
        free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Neutraliser n = {0};
        char *whole, *line, *parts[3], *p;
        const char *text = (const char *) data;
        size_t cut;

        if (size < 1)
                return 0;
        cut = (size_t) data[0] % size;
        whole = neutralise(text, size);
        line = neutralise_line(text, size);
        parts[0] = neutraliser_feed(&n, text, cut);
        parts[1] = neutraliser_feed(&n, text + cut, size - cut);
        parts[2] = neutraliser_finish(&n);
        require(whole && line && parts[0] && parts[1] && parts[2]);
        check_text(whole, NEUTRAL_EXPANSION * size);
        check_text(line, NEUTRAL_EXPANSION * size);
        require(!strchr(line, '\n'));
        p = whole;
        for (int i = 0; i < 3; i++) {
                require(strncmp(p, parts[i], strlen(parts[i])) == 0);
                p += strlen(parts[i]);
                free(parts[i]);
        }
        require(*p == 0);
        free(whole);
        free(line);
        return 0;
}
