/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The half that becomes QEMU. It fills /proc of its namespace, gives up what it has, asks to die with the outer half, shuts the
 * system call filter behind itself and executes. From the filter on, the one thing it may do besides is to tell why it could not.
 */
#include "jail/inner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "jail/fds.h"
#include "jail/root.h"

#define PLACE_SIZE  4096U
#define PLACE_BITS  34 /* of page numbers: 64 TiB, half of what a process has */
#define PLACE_TRIES 16

int inner_place_path(const char *path, char **ret, Failure *reterr) {
        for (unsigned i = 0; i < PLACE_TRIES; i++) {
                uint64_t page;
                char *place;

                if (getrandom(&page, sizeof(page), 0) != sizeof(page))
                        return failure_set(reterr, -EIO, "random numbers");
                page = (page & ((UINT64_C(1) << PLACE_BITS) - 1)) + 16;
                place = mmap((void *) (uintptr_t) (page * PLACE_SIZE), PLACE_SIZE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
                if (place == MAP_FAILED && errno == EEXIST)
                        continue;
                if (place == MAP_FAILED)
                        return failure_set(reterr, -errno, "a place for the program's path");
                strncpy(place, path, PLACE_SIZE - 1);
                *ret = place;
                return 0;
        }
        return failure_set(reterr, -EEXIST, "a place for the program's path");
}

/* QEMU starts with every signal as the kernel hands them out. */
static int reset_signals(Failure *reterr) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigset_t none;

        for (int s = 1; s < _NSIG; s++)
                if (sigaction(s, &action, NULL) < 0 && errno != EINVAL) /* SIGKILL, SIGSTOP, the C library's own */
                        return failure_set(reterr, -errno, "signal %d", s);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                return failure_set(reterr, -errno, "signal mask");
        return 0;
}

/* Also looks whether the outer half is there still: it may have died before the kernel was asked. (getppid() is 0 in here.) */
static int die_with_outer(int outer_pidfd, Failure *reterr) {
        struct pollfd p = {.fd = outer_pidfd, .events = POLLIN};

        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "PR_SET_PDEATHSIG");
        if (poll(&p, 1, 0) < 0)
                return failure_set(reterr, -errno, "looking for the outer half");
        if (p.revents != 0)
                return failure_set(reterr, -ESRCH, "the outer half is gone");
        return 0;
}

/* A machine that is emulated touches its buffers here and there: huge pages would be 4 MiB more of each, and no faster. With hardware
 * virtualization they are the guest's own, and do make it faster. */
static int refuse_huge_pages(const Inner *inner, Failure *reterr) {
        if (!inner->options->kvm && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "PR_SET_THP_DISABLE");
        return 0;
}

static int become_qemu(const Inner *inner, Failure *reterr) {
        char *const no_environment[] = {NULL};
        int r;

        r = root_mount_proc(reterr);
        if (r < 0)
                return r;
        r = reset_signals(reterr);
        if (r < 0)
                return r;
        r = fds_close_on_exec(inner->options, reterr);
        if (r < 0)
                return r;
        r = identity_assume(&inner->identity, reterr);
        if (r < 0)
                return r;
        r = die_with_outer(inner->outer_pidfd, reterr); /* after the uid changed, which clears it */
        if (r < 0)
                return r;
        r = identity_limit(reterr);
        if (r < 0)
                return r;
        r = refuse_huge_pages(inner, reterr);
        if (r < 0)
                return r;
        r = filter_load(&inner->program, reterr);
        if (r < 0)
                return r;
        execve(inner->exec_path, inner->options->argv, no_environment);
        return failure_set(reterr, -errno, "executing %s", inner->exec_path);
}

void inner_run(const Inner *inner) {
        Failure failure = {0};
        ssize_t n;

        become_qemu(inner, &failure);
        n = write(inner->failure_fd, failure.text, strlen(failure.text));
        (void) n; /* nobody is left to be told */
        _exit(EXIT_FAILURE);
}
