/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The real manager on a private bus, with clients that mean harm. Each function is a claim: what a hostile client does changes nothing for
 * others, and afterwards the manager is as it was, idle and without a file descriptor more.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

#define NAME    "org.ephemeral1"
#define ROOT    "/org/ephemeral1"
#define MANAGER "org.ephemeral1.Manager"
#define RUN     "org.ephemeral1.Run"

enum {
        PROMPT_USEC = 5 * 1000 * 1000, /* what another client may have to wait under attack, on a loaded machine */
        BIG = 900 * 1024,
};

#ifdef __SANITIZE_ADDRESS__
static const bool counts_memory = false; /* the sanitizer keeps what was freed */
#else
static const bool counts_memory = true;
#endif

/* ---- looking at the manager ---- */

static unsigned count_fds(const World *w) {
        char path[64];
        DIR *dir;
        unsigned n = 0;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int) w->manager);
        dir = opendir(path);
        assert(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}

/* A number from a line "NAME:   123" of /proc/PID/status. */
static unsigned long status_number(pid_t pid, const char *name) {
        char path[64], line[256];
        unsigned long n = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
        f = fopen(path, "re");
        assert(f);
        while (fgets(line, sizeof(line), f))
                if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
                        n = strtoul(line + strlen(name) + 1, NULL, 10);
        fclose(f);
        return n;
}

static unsigned long memory_kib(const World *w) {
        return status_number(w->manager, "VmRSS");
}

/* Waits until the manager has so many fds and sleeps: no more than a few wake-ups in half a second. */
static void expect_quiet(const World *w, unsigned fds) {
        unsigned long before, after;

        for (int i = 0;; i++) {
                before = status_number(w->manager, "voluntary_ctxt_switches");
                usleep(500 * 1000);
                after = status_number(w->manager, "voluntary_ctxt_switches");
                if (count_fds(w) <= fds && after - before <= 3)
                        return;
                if (i == 40)
                        fprintf(stderr, "%u fds, expected %u; %lu wake-ups\n", count_fds(w), fds, after - before);
                assert(i < 40);
        }
}

/* Another client is served at once. */
static void expect_served(World *w) {
        sd_bus *other = world_connect(w, geteuid());
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *m = NULL;

        assert(sd_bus_message_new_method_call(other, &m, NAME, ROOT, MANAGER, "ListWorkflows") >= 0);
        if (sd_bus_call(other, m, PROMPT_USEC, &error, NULL) < 0) {
                fprintf(stderr, "ListWorkflows: %s\n", error.message);
                abort();
        }
        sd_bus_message_unref(m);
        sd_bus_flush_close_unref(other);
}

static char *start(sd_bus *bus, const char *argv, const char *more) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        char *path = world_start(bus, argv, more, &error);

        if (!path)
                fprintf(stderr, "StartRun: %s: %s\n", error.name, error.message);
        assert(path);
        return path;
}

static void expect_outcome(World *w, const char *path, const char *outcome, const char *words) {
        char *result, *got = world_wait(w->bus, path, &result);

        if (strcmp(got, outcome) != 0 || !strstr(result, words))
                fprintf(stderr, "%s, expected %s with %s: %s\n", got, outcome, words, result);
        assert(strcmp(got, outcome) == 0 && strstr(result, words));
        free(result);
        free(got);
}

/* Starts a run without signals, so that nothing of it is left with its starter. */
static char *start_unwatched(sd_bus *bus, const char *request) {
        sd_bus_message *reply = NULL;
        const char *id, *object;
        char *path;

        assert(sd_bus_call_method(bus, NAME, ROOT, MANAGER, "StartRun", NULL, &reply, "sa{sh}a{sv}", request, 0, 1,
                                  "signals", "b", 0) >= 0);
        assert(sd_bus_message_read(reply, "so", &id, &object) >= 0);
        path = strdup(object);
        sd_bus_message_unref(reply);
        return path;
}

/* ---- clients that do not read ---- */

/* A correct request of about BIG bytes. */
static char *big_request(void) {
        char *text = NULL, *filler = malloc(BIG + 1);

        memset(filler, 'x', BIG);
        filler[BIG] = 0;
        assert(asprintf(&text, "{\"workflow\":\"command\",\"input\":{\"argv\":[\"true\"],\"stdin\":\"%s\"}}", filler) >
               0);
        free(filler);
        return text;
}

/* Calls that are a few bytes each and whose replies are BIG. Calls are answered in order: when the last is, all are done with. */
static void replies_that_nobody_reads_block_nobody(void) {
        World *w = world_new(&(WorldOptions){0});
        uid_t uid = world_has_users() ? USER_TWO : geteuid();
        sd_bus *hostile = world_connect(w, uid);
        char *request = big_request(), *path = NULL;
        unsigned fds;

        path = start(w->bus, "print x", "");
        expect_outcome(w, path, "succeeded", "");
        free(path);
        fds = count_fds(w);
        path = start_unwatched(hostile, request);
        for (int i = 0; i < 400; i++)
                assert(sd_bus_call_method_async(hostile, NULL, NAME, path, RUN, "GetRequest", NULL, NULL, NULL) >= 0);
        assert(sd_bus_flush(hostile) >= 0);
        for (int i = 0; i < 3; i++) {
                expect_served(w);
                usleep(200 * 1000);
        }
        assert(!counts_memory || memory_kib(w) < 128 * 1024);
        sd_bus_close_unref(hostile);
        expect_served(w);
        expect_quiet(w, fds);
        free(request);
        free(path);
        world_free(w);
}

/* ---- clients that vanish ---- */

/* Never returns: starts runs, watches them, and is killed somewhere in between. */
static void be_a_client(World *w) {
        sd_bus *bus = world_connect(w, world_has_users() ? USER_TWO : geteuid());

        for (;;) {
                sd_bus_error error = SD_BUS_ERROR_NULL;
                char *path = world_start(bus, "flood 100000", "", &error);
                sd_bus_message *reply = NULL;

                sd_bus_error_free(&error);
                if (!path)
                        continue;
                (void) sd_bus_call_method(bus, NAME, path, RUN, "Subscribe", NULL, NULL, NULL);
                (void) sd_bus_call_method(bus, NAME, path, RUN, "OpenOutput", NULL, &reply, "a{sv}", 1, "lossless",
                                          "b", 1);
                (void) sd_bus_call_method(bus, NAME, path, RUN, "Attach", NULL, NULL, NULL);
                (void) sd_bus_call_method(bus, NAME, path, RUN, "Cancel", NULL, NULL, NULL);
                sd_bus_message_unref(reply);
                free(path);
        }
}

static void clients_that_are_killed_at_any_moment_leave_nothing(void) {
        World *w = world_new(&(WorldOptions){.config = "RunsMax=8"});
        unsigned seed = (unsigned) getpid(), fds;
        char *first = start(w->bus, "print x", "");

        expect_outcome(w, first, "succeeded", "");
        fds = count_fds(w);
        fprintf(stderr, "seed %u\n", seed);
        for (int i = 0; i < 60; i++) {
                pid_t pid = fork();

                assert(pid >= 0);
                if (pid == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        be_a_client(w);
                }
                usleep((useconds_t) (rand_r(&seed) % 60000));
                kill(pid, SIGKILL);
                assert(waitpid(pid, NULL, 0) == pid);
        }
        expect_served(w);
        expect_quiet(w, fds);
        free(first);
        world_free(w);
}

/* ---- guests that are evil ---- */

static void evil_guests_end_their_own_run_and_no_other(void) {
        static const char *const evil[] = {"garbage", "poweroff", "flood 50000000"};
        World *w = world_new(&(WorldOptions){0});
        char *good = start(w->bus, "sleep", ""), *first = start(w->bus, "print x", ""), *state;
        unsigned fds;

        expect_outcome(w, first, "succeeded", "");
        fds = count_fds(w);
        for (size_t i = 0; i < sizeof(evil) / sizeof(evil[0]); i++) {
                char *path = start(w->bus, evil[i], "");

                expect_outcome(w, path, i < 2 ? "vm-failed" : "succeeded", "");
                free(path);
        }
        state = world_property(w->bus, good, "State");
        assert(strcmp(state, "running") == 0);
        assert(!counts_memory || memory_kib(w) < 64 * 1024);
        expect_quiet(w, fds);
        free(state);
        free(first);
        free(good);
        world_free(w);
}

/* 60 runs that each print 8 MiB and keep it: the oldest are forgotten, so that the manager's memory has a bound. */
static void what_ended_runs_printed_does_not_pile_up(void) {
        World *w = world_new(&(WorldOptions){0});
        char *first = NULL, *last = NULL, *state;

        for (int i = 0; i < 60; i++) {
                free(last);
                last = start_unwatched(w->bus,
                                       "{\"workflow\":\"command\",\"input\":{\"argv\":[\"flood\",\"8388608\"]},"
                                       "\"output\":{\"max_bytes\":8388608}}");
                expect_outcome(w, last, "succeeded", "\"stdout_bytes\":8388608");
                if (!first)
                        first = strdup(last);
        }
        assert(!world_property(w->bus, first, "State"));
        state = world_property(w->bus, last, "State");
        assert(strcmp(state, "ended") == 0);
        assert(!counts_memory || memory_kib(w) < 256 * 1024);
        free(state);
        free(first);
        free(last);
        world_free(w);
}

static void a_bus_that_goes_away_takes_what_runs_with_it(void) {
        World *w = world_new(&(WorldOptions){.templates = true, .config = "Standby=1\nRunsMax=2"});
        char *paths[3], *state = NULL;

        for (int i = 0; i < 3; i++) { /* the last one waits for its turn */
                paths[i] = world_start(w->bus, "sleep", "", NULL);
                assert(paths[i]);
        }
        do {
                usleep(20 * 1000);
                free(state);
                state = world_property(w->bus, paths[0], "State");
        } while (strcmp(state, "running") != 0);
        free(state);
        for (int i = 0; i < 3; i++)
                free(paths[i]);
        world_lose_bus(w);
}

int main(void) {
        a_bus_that_goes_away_takes_what_runs_with_it();
        what_ended_runs_printed_does_not_pile_up();
        clients_that_are_killed_at_any_moment_leave_nothing();
        evil_guests_end_their_own_run_and_no_other();
        replies_that_nobody_reads_block_nobody();
        return 0;
}
