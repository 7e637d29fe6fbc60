/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about the command line of ephemeral-jail.
 */
#undef NDEBUG
#include "jail/options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"

#define ARGUMENTS_MAX 32
#define GOOD          "--uid=70000", "--gid=70000", "--go-fd=3", "--status-fd=4"

/* Arguments up to a NULL; argv[0] is added. */
static int parse(const char *const arguments[], Options *options, Failure *failure) {
        static char *argv[ARGUMENTS_MAX];
        int argc = 0;

        argv[argc++] = (char *) "ephemeral-jail";
        for (size_t i = 0; arguments[i]; i++)
                argv[argc++] = (char *) arguments[i];
        argv[argc] = NULL;
        return options_parse(argc, argv, options, failure);
}

static void assert_refused(const char *const arguments[], int error, const char *word) {
        Failure failure = {0};
        Options options;
        int r = parse(arguments, &options, &failure);

        if (r != error || !strstr(failure.text, word))
                fprintf(stderr, "got %d: %s, expected %d: %s\n", r, failure.text, error, word);
        assert(r == error && strstr(failure.text, word));
}

#define REFUSED(error, word, ...) assert_refused((const char *const[]){__VA_ARGS__, NULL}, error, word)

static void a_complete_line_is_understood(void) {
        const char *const arguments[] = {GOOD,          "--keep-fd=9", "--keep-fd=5", "--keep-fd=7",
                                         "--bind=/a/q", "--bind=/b",   "--kvm",       "--",
                                         "/a/q",        "-m",          "--uid=1",     NULL};
        Failure failure = {0};
        Options o;

        assert(parse(arguments, &o, &failure) == 0);
        assert(o.uid == 70000 && o.gid == 70000 && o.go_fd == 3 && o.status_fd == 4 && o.kvm);
        assert(o.n_keep_fds == 3 && o.keep_fds[0] == 5 && o.keep_fds[1] == 7 && o.keep_fds[2] == 9);
        assert(o.n_binds == 2 && strcmp(o.binds[0], "/a/q") == 0);
        assert(strcmp(o.argv[0], "/a/q") == 0 && strcmp(o.argv[2], "--uid=1") == 0 && !o.argv[3]);
}

static void ids_of_the_machine_are_refused(void) {
        REFUSED(-EPERM, "belongs to the machine", "--uid=0", "--gid=70000");
        REFUSED(-EPERM, "belongs to the machine", "--uid=65535");
        REFUSED(-EPERM, "belongs to the machine", "--uid=70000", "--gid=65534");
        REFUSED(-ERANGE, "--uid", "--uid=4294967295");
        REFUSED(-ERANGE, "--uid", "--uid=4294967296");
        REFUSED(-ERANGE, "--uid", "--uid=70000x");
        REFUSED(-EINVAL, "no number", "--uid=-1");
        REFUSED(-EINVAL, "no number", "--uid= 70000");
        REFUSED(-EINVAL, "no number", "--uid=");
}

static void fds_are_distinct_and_no_standard_streams(void) {
        REFUSED(-EINVAL, "standard stream", "--go-fd=2");
        REFUSED(-EINVAL, "standard stream", "--keep-fd=0");
        REFUSED(-EEXIST, "twice", "--keep-fd=5", "--keep-fd=6", "--keep-fd=5");
        REFUSED(-EEXIST, "twice", "--keep-fd=5", "--hold-fd=5");
        REFUSED(-EINVAL, "jail's own", GOOD, "--hold-fd=3", "--bind=/q", "--", "/q");
        REFUSED(-EINVAL, "jail's own", GOOD, "--keep-fd=3", "--bind=/q", "--", "/q");
        REFUSED(-EINVAL, "jail's own", GOOD, "--keep-fd=4", "--bind=/q", "--", "/q");
        REFUSED(-EINVAL, "the same", "--uid=70000", "--gid=70000", "--go-fd=3", "--status-fd=3", "--", "/q");
}

static void paths_are_plain(void) {
        static const char *const paths[] = {"--bind=",    "--bind=a",       "--bind=/",    "--bind=//a",
                                            "--bind=/a/", "--bind=/a//b",   "--bind=/a/.", "--bind=/./a",
                                            "--bind=/..", "--bind=/a/../b", "--bind=../a", "--bind=/a/b/.."};

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                REFUSED(-EINVAL, "plain absolute path", paths[i]);
}

static void what_is_missing_is_said(void) {
        REFUSED(-EINVAL, "all needed", "--", "/q");
        REFUSED(-EINVAL, "all needed", "--uid=70000", "--gid=70000", "--go-fd=3", "--bind=/q", "--", "/q");
        REFUSED(-EINVAL, "no program", GOOD, "--bind=/q", "--");
        REFUSED(-EINVAL, "not among --bind", GOOD, "--bind=/q", "--", "/r");
        REFUSED(-EINVAL, "unknown option", "--shell");
        REFUSED(-EINVAL, "unknown option", "--uid");
}

static void the_status_fd_is_known_whatever_else_is_wrong(void) {
        const char *const arguments[] = {"--uid=0", "--shell", "--status-fd=4", "--gid=1", NULL};
        Failure failure = {0};
        Options o;

        assert(parse(arguments, &o, &failure) == -EPERM && o.status_fd == 4);
        assert(strstr(failure.text, "--uid=0"));
}

int main(void) {
        a_complete_line_is_understood();
        ids_of_the_machine_are_refused();
        fds_are_distinct_and_no_standard_streams();
        paths_are_plain();
        what_is_missing_is_said();
        the_status_fd_is_known_whatever_else_is_wrong();
        return 0;
}
