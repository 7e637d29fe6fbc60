/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Options of ephemeral-jail. The manager writes them, so whatever is odd here is a mistake of ours; each is refused all the same,
 * because what follows is done as root.
 */
#include "jail/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int parse_number(const char *name, const char *text, unsigned long max, unsigned long *ret, Failure *reterr) {
        unsigned long value;
        char *end;

        if (text[0] < '0' || text[0] > '9')
                return failure_set(reterr, -EINVAL, "--%s=%s is no number", name, text);
        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno != 0 || *end || value > max)
                return failure_set(reterr, -ERANGE, "--%s=%s is not a number up to %lu", name, text, max);
        *ret = value;
        return 0;
}

static int parse_id(const char *name, const char *text, unsigned *ret, Failure *reterr) {
        unsigned long value;
        int r = parse_number(name, text, INT_MAX, &value, reterr);

        if (r < 0)
                return r;
        if (value < OPTIONS_UID_MIN)
                return failure_set(reterr, -EPERM, "--%s=%s belongs to the machine, not to a run (at least %d)", name,
                                   text, OPTIONS_UID_MIN);
        *ret = (unsigned) value;
        return 0;
}

static int parse_fd(const char *name, const char *text, int *ret, Failure *reterr) {
        unsigned long value;
        int r = parse_number(name, text, INT_MAX, &value, reterr);

        if (r < 0)
                return r;
        if (value < 3)
                return failure_set(reterr, -EINVAL, "--%s=%s is a standard stream", name, text);
        *ret = (int) value;
        return 0;
}

/* Keeps the list ascending: closing what lies between needs it so. */
static int add_keep_fd(Options *o, const char *name, const char *text, Failure *reterr) {
        int fd = -EBADF, r = parse_fd(name, text, &fd, reterr);
        size_t i;

        if (r < 0)
                return r;
        if (o->n_keep_fds >= OPTIONS_KEEP_MAX)
                return failure_set(reterr, -E2BIG, "more than %d times --keep-fd and --hold-fd", OPTIONS_KEEP_MAX);
        for (i = o->n_keep_fds; i > 0 && o->keep_fds[i - 1] >= fd; i--) {
                if (o->keep_fds[i - 1] == fd)
                        return failure_set(reterr, -EEXIST, "--%s=%d is given twice", name, fd);
                o->keep_fds[i] = o->keep_fds[i - 1];
                o->held[i] = o->held[i - 1];
        }
        o->keep_fds[i] = fd;
        o->held[i] = strcmp(name, "hold-fd") == 0;
        o->n_keep_fds++;
        return 0;
}

/* Absolute, without empty, "." and ".." parts: the same path then names the same place inside. */
static bool path_is_plain(const char *path) {
        if (path[0] != '/' || strlen(path) >= PATH_MAX)
                return false;
        for (const char *part = path + 1;;) {
                size_t n = strcspn(part, "/");

                if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
                        return false;
                if (!part[n])
                        return true;
                part += n + 1;
        }
}

static int add_bind(Options *o, const char *path, Failure *reterr) {
        if (!path_is_plain(path))
                return failure_set(reterr, -EINVAL, "--bind=%s is not a plain absolute path", path);
        if (o->n_binds >= OPTIONS_BINDS_MAX)
                return failure_set(reterr, -E2BIG, "more than %d times --bind", OPTIONS_BINDS_MAX);
        o->binds[o->n_binds++] = path;
        return 0;
}

static int parse_option(Options *o, int option, const char *text, Failure *reterr) {
        switch (option) {
        case 'u':
                return parse_id("uid", text, &o->uid, reterr);
        case 'g':
                return parse_id("gid", text, &o->gid, reterr);
        case 'o':
                return parse_fd("go-fd", text, &o->go_fd, reterr);
        case 's':
                return parse_fd("status-fd", text, &o->status_fd, reterr);
        case 'k':
                return add_keep_fd(o, "keep-fd", text, reterr);
        case 'h':
                return add_keep_fd(o, "hold-fd", text, reterr);
        case 'b':
                return add_bind(o, text, reterr);
        case 'v':
                o->kvm = true;
                return 0;
        default:
                return failure_set(reterr, -EINVAL, "unknown option, or one without its value");
        }
}

static int check_complete(const Options *o, Failure *reterr) {
        if (o->uid == 0 || o->gid == 0 || o->go_fd < 0 || o->status_fd < 0)
                return failure_set(reterr, -EINVAL, "--uid, --gid, --go-fd and --status-fd are all needed");
        if (o->go_fd == o->status_fd)
                return failure_set(reterr, -EINVAL, "--go-fd and --status-fd are the same");
        for (size_t i = 0; i < o->n_keep_fds; i++)
                if (o->keep_fds[i] == o->go_fd || o->keep_fds[i] == o->status_fd)
                        return failure_set(reterr, -EINVAL, "--keep-fd=%d is the jail's own", o->keep_fds[i]);
        if (!o->argv[0])
                return failure_set(reterr, -EINVAL, "no program behind --");
        for (size_t i = 0; i < o->n_binds; i++)
                if (strcmp(o->binds[i], o->argv[0]) == 0)
                        return 0;
        return failure_set(reterr, -EINVAL, "the program %s is not among --bind", o->argv[0]);
}

int options_parse(int argc, char **argv, Options *ret, Failure *reterr) {
        static const struct option options[] = {
                {"uid",              required_argument, NULL, 'u'},
                {"gid",              required_argument, NULL, 'g'},
                {"go-fd",                  required_argument, NULL, 'o'},
                {"status-fd",required_argument, NULL, 's'},
                {"keep-fd",               required_argument, NULL, 'k'},
                {"hold-fd",            required_argument, NULL, 'h'},
                {"bind",              required_argument, NULL, 'b'},
                {"kvm",                  no_argument, NULL, 'v'},
                {0             },
        };
        int option, r = 0;

        *ret = (Options){.go_fd = -EBADF, .status_fd = -EBADF, .line = argv[0]};
        optind = 0; /* GNU: start afresh, so that a test may parse twice */
        opterr = 0;
        while ((option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
                Failure later; /* the first one is told, but --status-fd may come behind it */
                int q = parse_option(ret, option, optarg, r < 0 ? &later : reterr);

                if (q < 0 && r >= 0)
                        r = q;
        }
        if (r < 0)
                return r;
        ret->argv = argv + optind;
        return check_complete(ret, reterr);
}
