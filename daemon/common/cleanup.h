/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ownership by scope: `_cleanup_(freep) char *s = NULL;` and TAKE_PTR() to hand it on. */

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Defines NAMEp(), the cleanup handler for a pointer type whose destructor takes NULL. */
#define DEFINE_CLEANUP(type, func)                                                                                    \
        static inline void func##p(type *p) {                                                                         \
                if (*p)                                                                                               \
                        func(*p);                                                                                     \
        }                                                                                                             \
        struct eph_require_semicolon

#define TAKE_PTR(p)                                                                                                   \
        __extension__({                                                                                               \
                __typeof__(p) *_pp = &(p);                                                                            \
                __typeof__(p) _p = *_pp;                                                                              \
                *_pp = NULL;                                                                                          \
                _p;                                                                                                   \
        })

#define TAKE_FD(fd)                                                                                                   \
        __extension__({                                                                                               \
                int *_fdp = &(fd);                                                                                    \
                int _fd = *_fdp;                                                                                      \
                *_fdp = -EBADF;                                                                                       \
                _fd;                                                                                                  \
        })

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))

static inline void freep(void *p) {
        free(*(void **) p);
}

/* Closes when there is something to close; errno is kept. Always returns -EBADF, the empty fd. */
int fd_close(int fd);

static inline void fd_closep(int *fd) {
        *fd = fd_close(*fd);
}
