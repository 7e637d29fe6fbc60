/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool words_read(char *ret[WORDS_MAX + 1]) {
        static char *line;
        static size_t size;
        size_t n = 0;

        if (getline(&line, &size, stdin) <= 0)
                return false;
        for (char *word = strtok(line, " \n"); word && n < WORDS_MAX; word = strtok(NULL, " \n"))
                ret[n++] = word;
        ret[n] = NULL;
        return n > 0;
}
