/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * bare [IMAGES]: machines without the service, one line of standard input each, and a line of JSON for an answer:
 *   build | cold COMMAND… | clone COMMAND… | many N COMMAND… (clones at once)
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "machine.h"
#include "words.h"

static void print_times(const BareTimes *times) {
        printf("{\"first_ms\": %.3f, \"exited_ms\": %.3f, \"bytes\": %" PRIu64 "}\n",
               (double) times->first_usec / 1000, (double) times->exited_usec / 1000, times->bytes);
}

/* Each has a process of its own to wait for it. */
static void many(const Recipe *recipe, const BareTemplate *from, unsigned n, char *const *argv) {
        uint64_t start = clock_monotonic_usec();
        unsigned n_failed = 0;
        int status;

        for (unsigned i = 0; i < n; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        err(1, "fork");
                if (pid == 0) {
                        BareTimes times = bare_run(recipe, from, argv);

                        _exit(times.bytes == 0);
                }
        }
        while (wait(&status) > 0)
                n_failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        printf("{\"all_ms\": %.3f, \"failed\": %u}\n", (double) (clock_monotonic_usec() - start) / 1000, n_failed);
}

int main(int argc, char *argv[]) {
        Recipe *recipe = bare_recipe(argc > 1 ? argv[1] : "/usr/lib/ephemeral/images", "default");
        BareTemplate template = {-EBADF, -EBADF};
        char *words[WORDS_MAX + 1];

        while (words_read(words)) {
                BareTimes times = {0};

                if (template.ram_fd < 0 && strcmp(words[0], "cold") != 0)
                        template = bare_build(recipe);
                if (strcmp(words[0], "cold") == 0)
                        times = bare_run(recipe, NULL, words + 1);
                else if (strcmp(words[0], "clone") == 0)
                        times = bare_run(recipe, &template, words + 1);
                else if (strcmp(words[0], "many") == 0 && words[1]) {
                        many(recipe, &template, (unsigned) atoi(words[1]), words + 2);
                        fflush(stdout);
                        continue;
                } else if (strcmp(words[0], "build") != 0)
                        errx(1, "not known: %s", words[0]);
                print_times(&times);
                fflush(stdout);
        }
        recipe_free(recipe);
        return 0;
}
