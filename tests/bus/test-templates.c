/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The real manager makes, keeps, finds and gives up templates; behind fake-jail a "machine" that is frozen and cloned.
 */
#include <assert.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

static char *start(World *w, const char *argv) {
        char *path = world_start(w->bus, argv, "", NULL);

        assert(path);
        return path;
}

/* Waits for the end, which must be that outcome; its timeline, which the caller frees. */
static char *finish(World *w, char *path, const char *outcome) {
        char *got = world_wait(w->bus, path, NULL), *timeline = world_timeline(w->bus, path);

        if (strcmp(got, outcome) != 0)
                fprintf(stderr, "%s, expected %s:\n%s", got, outcome, timeline);
        assert(strcmp(got, outcome) == 0);
        free(got);
        free(path);
        return timeline;
}

static char *run(World *w, const char *argv, const char *outcome) {
        return finish(w, start(w, argv), outcome);
}

static unsigned count(const char *text, const char *word) {
        unsigned n = 0;

        for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
                n++;
        return n;
}

/* A file of the one template on disk, once it is there. */
static char *stored(World *w, const char *name) {
        char pattern[128], *path;
        glob_t found;

        snprintf(pattern, sizeof(pattern), "%s/templates/[0-9a-f]*/%s", w->dir, name);
        for (int i = 0; glob(pattern, 0, NULL, &found) != 0; i++) {
                assert(i < 200);
                usleep(50 * 1000);
        }
        assert(found.gl_pathc == 1);
        path = strdup(found.gl_pathv[0]);
        globfree(&found);
        return path;
}

static void expect_words(char *timeline, const char *const *words, bool there) {
        for (; *words; words++) {
                if (!strstr(timeline, *words) == there)
                        fprintf(stderr, "%s: %s in\n%s", there ? "missing" : "unexpected", *words, timeline);
                assert(!strstr(timeline, *words) != there);
        }
        free(timeline);
}

#define EXPECT(timeline, ...)    expect_words(timeline, (const char *const[]){__VA_ARGS__, NULL}, true)
#define EXPECT_NO(timeline, ...) expect_words(timeline, (const char *const[]){__VA_ARGS__, NULL}, false)

/* What the run `memory` printed is the same in both. */
static bool same_memory(const char *one, const char *other) {
        const char *a = strstr(one, "sum "), *b = strstr(other, "sum ");
        size_t n = strcspn(a, "\"");

        if (strncmp(a, b, n) != 0)
                fprintf(stderr, "%.*s, then %.*s\n", (int) n, a, (int) n, b);
        return strncmp(a, b, n) == 0;
}

static void the_first_run_builds_and_the_second_clones(void) {
        World *w = world_new(&(WorldOptions){.templates = true});

        EXPECT(run(w, "print x", "succeeded"), "2 template.building", "3 template.ready", "\"from\":\"build\"",
               "4 vm.starting {\"path\":\"clone\"", "5 isolation.verified", "6 vm.ready {\"kernel\":\"6.1.0-fake\"",
               "7 command.started");
        EXPECT(run(w, "print x", "succeeded"), "2 vm.starting {\"path\":\"clone\"", "3 isolation.verified",
               "4 vm.ready");
        world_free(w);
}

static void two_who_need_the_same_wait_for_one_build(void) {
        World *w = world_new(&(WorldOptions){.templates = true, .config = "RunsMax=4"});
        char *paths[4];
        unsigned built = 0;

        for (int i = 0; i < 4; i++)
                paths[i] = start(w, "print x");
        for (int i = 0; i < 4; i++) {
                char *timeline = finish(w, paths[i], "succeeded");

                assert(count(timeline, "\"path\":\"clone\"") == 1);
                built += count(timeline, "template.building");
                free(timeline);
        }
        assert(built >= 1);
        free(stored(w, "ram")); /* asserts that there is one */
        world_free(w);
}

static void the_next_manager_finds_it_on_disk(int number) {
        World *w = world_new(&(WorldOptions){.templates = true});
        char *before = run(w, "memory", "succeeded"), *after;

        free(stored(w, "meta.json"));
        world_restart_manager(w, number);
        after = run(w, "memory", "succeeded");
        assert(strstr(after, "\"from\":\"disk\"") && !strstr(after, "template.building"));
        assert(same_memory(before, after));
        free(before);
        free(after);
        world_free(w);
}

static void a_damaged_file_is_made_again(const char *name) {
        World *w = world_new(&(WorldOptions){.templates = true});
        char *path;
        int fd;

        free(run(w, "print x", "succeeded"));
        free(stored(w, "meta.json"));
        path = stored(w, name);
        world_restart_manager(w, SIGTERM);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert(fd >= 0 && pwrite(fd, "evil", 4, 4096) == 4);
        close(fd);
        EXPECT(run(w, "print x", "succeeded"), "template.building", "\"from\":\"build\"");
        free(path);
        world_free(w);
}

static void another_image_is_another_template(void) {
        World *w = world_new(&(WorldOptions){.templates = true});
        char path[128], *first, *second;
        int fd;

        free(run(w, "print x", "succeeded"));
        first = stored(w, "ram");
        snprintf(path, sizeof(path), "%s/images/default/kernel", w->dir);
        assert(unlink(path) == 0);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert(fd >= 0 && write(fd, "y", 1) == 1);
        close(fd);
        EXPECT(run(w, "print x", "succeeded"), "template.building", "\"from\":\"build\"");
        for (int i = 0; access(first, F_OK) == 0; i++) { /* until the new one is saved and the old one deleted */
                assert(i < 200);
                usleep(50 * 1000);
        }
        second = stored(w, "ram");
        assert(strcmp(first, second) != 0);
        free(first);
        free(second);
        world_free(w);
}

static void half_made_ones_are_swept_away(void) {
        World *w = world_new(&(WorldOptions){.templates = true});
        char *path, half[256];
        int fd;

        free(run(w, "print x", "succeeded"));
        path = stored(w, "meta.json");
        *strrchr(path, '/') = 0;
        snprintf(half, sizeof(half), "%s/templates/.%s", w->dir, strrchr(path, '/') + 1);
        assert(mkdir(half, 0700) == 0);
        snprintf(half + strlen(half), sizeof(half) - strlen(half), "/ram");
        fd = open(half, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert(fd >= 0);
        close(fd);
        world_restart_manager(w, SIGKILL);
        *strrchr(half, '/') = 0;
        assert(access(half, F_OK) < 0 && access(path, F_OK) == 0);
        free(path);
        world_free(w);
}

static void a_build_that_fails_is_told_after_a_second_one(void) {
        World *w = world_new(&(WorldOptions){.templates = true, .fail = "template"});

        EXPECT(run(w, "print x", "vm-failed"), "template.building", "QEMU exited 3");
        world_free(w);
}

static void a_template_whose_clones_fail_is_replaced_once(void) {
        World *w = world_new(&(WorldOptions){.templates = true, .fail = "clone"});
        char *timeline = run(w, "print x", "vm-failed");

        assert(count(timeline, "template.building") == 2 && count(timeline, "vm.starting") == 2);
        assert(strstr(timeline, "QEMU exited 3: no more memory"));
        free(timeline);
        world_free(w);
}

static void a_run_that_waits_for_a_template_can_be_cancelled(void) {
        World *w = world_new(&(WorldOptions){.templates = true, .fail = "silent"});
        char *path = start(w, "print x"), *timeline;

        do {
                usleep(20 * 1000);
                timeline = world_timeline(w->bus, path);
        } while (!strstr(timeline, "template.building") && (free(timeline), true));
        free(timeline);
        assert(sd_bus_call_method(w->bus, "org.ephemeral1", path, "org.ephemeral1.Run", "Cancel", NULL, NULL, NULL) >=
               0);
        EXPECT_NO(finish(w, path, "cancelled"), "vm.starting", "vm.destroyed");
        world_free(w);
}

static void a_hostile_qemu_changes_nothing_for_the_next_one(void) {
        World *w = world_new(&(WorldOptions){.templates = true, .fail = "scribble"});
        char *first = run(w, "memory", "succeeded");

        for (int i = 0; i < 3; i++) {
                char *next = run(w, "memory", "succeeded");

                assert(same_memory(first, next));
                free(next);
        }
        free(first);
        world_free(w);
}

/* ---- asked for by a caller ---- */

static int call(World *w, const char *method, const char *image, sd_bus_error *error) {
        return sd_bus_call_method(w->bus, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager", method, error,
                                  NULL, image ? "s" : NULL, image);
}

/* Where the templates are, one letter for each. */
static void expect_list(World *w, const char *letters) {
        sd_bus_message *reply = NULL;
        const char *key, *image, *where;
        char found[16] = "";
        uint64_t memory, bytes, made;
        uint32_t vcpus;

        assert(sd_bus_call_method(w->bus, "org.ephemeral1", "/org/ephemeral1", "org.ephemeral1.Manager",
                                  "ListTemplates", NULL, &reply, NULL) >= 0);
        assert(sd_bus_message_enter_container(reply, 'a', "(sssuttt)") > 0);
        while (sd_bus_message_read(reply, "(sssuttt)", &key, &image, &where, &vcpus, &memory, &bytes, &made) > 0) {
                assert(strlen(key) == 64 && strcmp(image, "default") == 0 && vcpus == 1 && memory == 256);
                assert((made > 0) == (strcmp(where, "making") != 0));
                strncat(found, where, 1);
        }
        sd_bus_message_unref(reply);
        if (strcmp(found, letters) != 0)
                fprintf(stderr, "templates: \"%s\", expected \"%s\"\n", found, letters);
        assert(strcmp(found, letters) == 0);
}

static void one_that_was_asked_for_is_there_for_the_first_run(void) {
        World *w = world_new(&(WorldOptions){.templates = true});

        expect_list(w, "");
        assert(call(w, "BuildTemplate", "", NULL) >= 0);
        expect_list(w, "m");
        EXPECT_NO(run(w, "print x", "succeeded"), "template.");
        assert(call(w, "BuildTemplate", "default", NULL) >= 0); /* it is there */
        free(stored(w, "meta.json"));
        world_restart_manager(w, SIGTERM);
        expect_list(w, "d");
        assert(call(w, "BuildTemplate", "", NULL) >= 0);
        expect_list(w, "m");
        world_free(w);
}

static void dropped_ones_are_gone_from_memory_and_disk(void) {
        World *w = world_new(&(WorldOptions){.templates = true});
        char *path;

        assert(call(w, "BuildTemplate", "", NULL) >= 0);
        path = stored(w, "meta.json");
        assert(call(w, "DropTemplates", NULL, NULL) >= 0);
        expect_list(w, "");
        assert(access(path, F_OK) < 0);
        assert(call(w, "DropTemplates", NULL, NULL) >= 0);
        EXPECT(run(w, "print x", "succeeded"), "template.building");
        free(path);
        world_free(w);
}

static void expect_refusal(const WorldOptions *options, const char *method, const char *image, const char *name) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        World *w = world_new(options);

        assert(call(w, method, image, &error) < 0);
        if (strcmp(error.name, name) != 0)
                fprintf(stderr, "%s: %s, expected %s\n", error.name, error.message, name);
        assert(strcmp(error.name, name) == 0);
        sd_bus_error_free(&error);
        world_free(w);
}

static void what_cannot_be_is_said(void) {
        expect_refusal(&(WorldOptions){.templates = true}, "BuildTemplate", "nowhere",
                       "org.ephemeral1.Error.NoSuchImage");
        expect_refusal(&(WorldOptions){.templates = true}, "BuildTemplate", "../x",
                       "org.ephemeral1.Error.InvalidRequest");
        expect_refusal(&(WorldOptions){.templates = false}, "BuildTemplate", "", "org.ephemeral1.Error.NotSupported");
        expect_refusal(&(WorldOptions){.templates = true, .fail = "template"}, "BuildTemplate", "",
                       "org.ephemeral1.Error.Internal");
        if (!world_has_users())
                return;
        expect_refusal(&(WorldOptions){.templates = true, .as_user = true, .polkit = "no"}, "BuildTemplate", "",
                       "org.ephemeral1.Error.NotPermitted");
        expect_refusal(&(WorldOptions){.templates = true, .as_user = true, .polkit = "no"}, "DropTemplates", NULL,
                       "org.ephemeral1.Error.NotPermitted");
}

int main(void) {
        the_first_run_builds_and_the_second_clones();
        two_who_need_the_same_wait_for_one_build();
        the_next_manager_finds_it_on_disk(SIGTERM);
        the_next_manager_finds_it_on_disk(SIGKILL);
        a_damaged_file_is_made_again("ram");
        a_damaged_file_is_made_again("meta.json");
        another_image_is_another_template();
        half_made_ones_are_swept_away();
        a_build_that_fails_is_told_after_a_second_one();
        a_template_whose_clones_fail_is_replaced_once();
        a_run_that_waits_for_a_template_can_be_cancelled();
        a_hostile_qemu_changes_nothing_for_the_next_one();
        one_that_was_asked_for_is_there_for_the_first_run();
        dropped_ones_are_gone_from_memory_and_disk();
        what_cannot_be_is_said();
        return 0;
}
