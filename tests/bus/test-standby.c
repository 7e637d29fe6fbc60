/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The real manager keeps a machine waiting, gives it to the next run and makes another, and lets it go when it is of no use.
 */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

static World *new_world(const char *fail, const char *config) {
        return world_new(&(WorldOptions){.templates = true, .fail = fail, .config = config});
}

/* The timeline of a run that must succeed; the caller frees. */
static char *run(World *w) {
        char *path = world_start(w->bus, "print x", "", NULL), *outcome, *timeline;

        assert(path);
        outcome = world_wait(w->bus, path, NULL);
        timeline = world_timeline(w->bus, path);
        assert(outcome && timeline);
        if (strcmp(outcome, "succeeded") != 0)
                fprintf(stderr, "%s:\n%s", outcome, timeline);
        assert(strcmp(outcome, "succeeded") == 0);
        free(outcome);
        free(path);
        return timeline;
}

static void expect_path(World *w, const char *way) {
        char *timeline = run(w), words[64];

        snprintf(words, sizeof(words), "vm.starting {\"path\":\"%s\"", way);
        if (!strstr(timeline, words)) {
                fprintf(stderr, "no %s in\n%s", words, timeline);
                assert(false);
        }
        free(timeline);
}

static unsigned n_ready(World *w) {
        uint32_t n;

        assert(sd_bus_get_property_trivial(w->bus, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager",
                                           "StandbyReady", NULL, 'u', &n) >= 0);
        return n;
}

static void wait_for(World *w, unsigned n) {
        for (int i = 0; n_ready(w) != n; i++) {
                assert(i < 200);
                usleep(50 * 1000);
        }
}

static void the_next_run_has_the_one_that_waits(void) {
        World *w = new_world(NULL, "Standby=1");
        char *timeline;

        assert(n_ready(w) == 0); /* no image is in use yet */
        expect_path(w, "clone");
        wait_for(w, 1);
        timeline = run(w);
        assert(strstr(timeline, "2 vm.starting {\"path\":\"standby\"") && strstr(timeline, "3 isolation.verified") &&
               strstr(timeline, "4 vm.ready") && strstr(timeline, "5 command.started"));
        assert(strstr(timeline, "\"unit\":\"ephemeral-run-"));
        assert(strstr(timeline, "vm.destroyed") && strstr(timeline, "\"processes\":0"));
        free(timeline);
        wait_for(w, 1); /* another one */
        expect_path(w, "standby");
        world_free(w);
}

static void as_many_wait_as_are_wanted(void) {
        World *w = new_world(NULL, "Standby=3");

        free(run(w));
        wait_for(w, 3);
        expect_path(w, "standby");
        expect_path(w, "standby");
        wait_for(w, 3);
        world_free(w);
}

static void none_waits_where_none_is_wanted(void) {
        World *w = new_world(NULL, "Standby=0");

        free(run(w));
        expect_path(w, "clone");
        assert(n_ready(w) == 0);
        world_free(w);
}

static void one_that_does_not_wake_costs_no_run(void) {
        World *w = new_world("wake", "Standby=1");
        char *timeline;

        free(run(w));
        wait_for(w, 1);
        timeline = run(w);
        assert(strstr(timeline, "2 vm.starting {\"path\":\"standby\"") &&
               strstr(timeline, "3 vm.starting {\"path\":\"clone\"") && !strstr(timeline, "template.building"));
        free(timeline);
        world_free(w);
}

static void it_goes_when_its_template_is_out_of_use(void) {
        World *w = new_world(NULL, "Standby=1\nStandbyIdleSec=3");

        free(run(w));
        wait_for(w, 1);
        wait_for(w, 0);
        expect_path(w, "clone");
        wait_for(w, 1);
        world_free(w);
}

static void it_goes_when_memory_is_short(void) {
        World *w = new_world(NULL, "Standby=1");
        char path[128];
        int fd;

        free(run(w));
        wait_for(w, 1);
        snprintf(path, sizeof(path), "%s/pressure", w->dir);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert(fd >= 0 && write(fd, "!", 1) == 1);
        wait_for(w, 0);
        close(fd);
        expect_path(w, "clone");
        for (int i = 0; i < 20; i++, usleep(50 * 1000)) /* where another was ready in less, that one would not come */
                assert(n_ready(w) == 0);
        world_free(w);
}

static void it_goes_with_the_image_that_it_came_from(void) {
        World *w = new_world(NULL, "Standby=1");
        char path[128], *timeline;
        int fd;

        free(run(w));
        wait_for(w, 1);
        snprintf(path, sizeof(path), "%s/images/default/kernel", w->dir);
        assert(unlink(path) == 0);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert(fd >= 0 && write(fd, "y", 1) == 1);
        close(fd);
        timeline = run(w);
        assert(strstr(timeline, "template.building") && strstr(timeline, "\"path\":\"clone\""));
        free(timeline);
        for (int i = 0; i < 4; i++) { /* the old one goes, a new one comes, and never are there two */
                assert(n_ready(w) <= 1);
                usleep(50 * 1000);
        }
        wait_for(w, 1);
        timeline = run(w);
        assert(strstr(timeline, "\"path\":\"standby\"") && !strstr(timeline, "template.building"));
        free(timeline);
        world_free(w);
}

/* world_free() asserts for each of these worlds, too, that no process is left. */
static void the_next_manager_has_one_of_its_own(int number) {
        World *w = new_world(NULL, "Standby=1");

        free(run(w));
        wait_for(w, 1);
        world_restart_manager(w, number);
        assert(n_ready(w) == 0);
        free(run(w));
        wait_for(w, 1);
        expect_path(w, "standby");
        world_free(w);
}

int main(void) {
        the_next_run_has_the_one_that_waits();
        as_many_wait_as_are_wanted();
        none_waits_where_none_is_wanted();
        one_that_does_not_wake_costs_no_run();
        it_goes_when_its_template_is_out_of_use();
        it_goes_when_memory_is_short();
        it_goes_with_the_image_that_it_came_from();
        the_next_manager_has_one_of_its_own(SIGTERM);
        the_next_manager_has_one_of_its_own(SIGKILL);
        return 0;
}
