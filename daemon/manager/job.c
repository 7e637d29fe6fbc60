/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread for one piece of work, and an eventfd that tells the loop.
 */
#include "manager/job.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct Job {
        JobHandlers handlers;
        pthread_t thread;
        bool running;
        int fd;
        sd_event_source *io;
};

static void *thread_main(void *userdata) {
        Job *j = userdata;
        uint64_t one = 1;

        j->handlers.work(j->handlers.userdata);
        (void) !write(j->fd, &one, sizeof(one));
        return NULL;
}

static int on_done(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Job *j = userdata;

        j->io = sd_event_source_disable_unref(j->io);
        j->handlers.done(j->handlers.userdata);
        return 0;
}

int job_start(sd_event *event, const JobHandlers *handlers, Job **ret) {
        _cleanup_(job_freep) Job *j = calloc(1, sizeof(*j));
        int r;

        if (!j)
                return -ENOMEM;
        j->handlers = *handlers;
        j->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (j->fd < 0)
                return -errno;
        r = sd_event_add_io(event, &j->io, j->fd, EPOLLIN, on_done, j);
        if (r < 0)
                return r;
        r = pthread_create(&j->thread, NULL, thread_main, j);
        if (r != 0)
                return -r;
        j->running = true;
        *ret = TAKE_PTR(j);
        return 0;
}

Job *job_free(Job *j) {
        if (!j)
                return NULL;
        if (j->running)
                (void) pthread_join(j->thread, NULL);
        sd_event_source_disable_unref(j->io);
        fd_close(j->fd);
        free(j);
        return NULL;
}
