/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One guest's control port. vm.c owns it until the guest is ready, then the run listens. What must stay true: frames are taken
 * only in their order, nothing is allocated on the guest's word, and a guest that does not read costs a bounded queue.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/fd.h"
#include "manager/host-link-internal.h"

HostLink *host_link_free(HostLink *l) {
        if (!l)
                return NULL;
        if (l->freed)
                *l->freed = true;
        sd_event_source_disable_unref(l->io);
        sd_event_source_disable_unref(l->resume);
        fd_close(l->fd);
        frame_reader_done(&l->reader);
        free(l->queue);
        free(l->input);
        free(l);
        return NULL;
}

static void link_break(HostLink *l, const char *reason) {
        if (l->state == LINK_BROKEN)
                return;
        l->state = LINK_BROKEN;
        l->io = sd_event_source_disable_unref(l->io);
        l->handlers.on_broken(l->handlers.userdata, reason);
}

static void link_close(HostLink *l) {
        if (l->state == LINK_BROKEN)
                return;
        l->state = LINK_BROKEN;
        l->io = sd_event_source_disable_unref(l->io);
        l->handlers.on_closed(l->handlers.userdata);
}

static void on_credit(HostLink *l, const Frame *frame) {
        uint32_t bytes = 0;
        int r;

        (void) message_decode_stdin_credit(frame, &bytes);
        if (bytes > STDIN_WINDOW_BYTES - l->window) {
                link_break(l, "the guest gave back more of the stdin window than it had");
                return;
        }
        l->window += bytes;
        if (!l->input_waits)
                return;
        r = host_link_flush_input(l);
        if (r >= 0 && host_link_flush(l) >= 0 && r == 1 && l->handlers.on_stdin_drained)
                l->handlers.on_stdin_drained(l->handlers.userdata);
}

/* The state in which a frame may come; streams and credit only while the command runs. */
static LinkState frame_turn(uint8_t type) {
        switch (type) {
        case FRAME_HELLO:
                return LINK_WAITS_HELLO;
        case FRAME_LINKS:
                return LINK_WAITS_LINKS;
        case FRAME_STARTED:
                return LINK_WAITS_STARTED;
        default:
                return LINK_STARTED;
        }
}

static void on_text(HostLink *l, const Frame *frame) {
        char reason[TEXT_SIZE_MAX + 32];

        if (frame->type == FRAME_LOG) {
                l->handlers.on_log(l->handlers.userdata, (const char *) frame->data, frame->size);
                return;
        }
        snprintf(reason, sizeof(reason), "the guest cannot go on: %.*s", (int) frame->size,
                 (const char *) frame->data);
        link_break(l, reason);
}

static void on_hello(HostLink *l, const Frame *frame) {
        HelloMessage m;

        if (message_decode_hello(frame, &m) < 0 || m.version != MESSAGE_PROTOCOL_VERSION) {
                link_break(l, "the guest's init speaks another version of the protocol: build the image again");
                return;
        }
        l->state = LINK_GREETED;
        l->handlers.on_hello(l->handlers.userdata, &m);
}

static void on_exited(HostLink *l, const Frame *frame) {
        ExitedMessage m;

        if (message_decode_exited(frame, &m) < 0) {
                link_break(l, "the guest sent a broken EXITED");
                return;
        }
        host_link_end_command(l);
        l->handlers.on_exited(l->handlers.userdata, &m);
}

static void on_ready_frame(HostLink *l, const Frame *frame) {
        LinksMessage m;
        uint32_t pid = 0;

        if (frame->type == FRAME_LINKS) {
                l->state = LINK_READY;
                if (message_decode_links(frame, &m) < 0)
                        link_break(l, "the guest sent broken LINKS");
                else
                        l->handlers.on_links(l->handlers.userdata, &m);
                return;
        }
        (void) message_decode_started(frame, &pid);
        l->state = LINK_STARTED;
        l->handlers.on_started(l->handlers.userdata, pid);
}

static void on_frame(HostLink *l, const Frame *frame) {
        if (!frame_type_from_guest(frame->type) || message_check(frame) < 0) {
                link_break(l, "the guest sent a frame that cannot be");
                return;
        }
        if (frame->type == FRAME_LOG || frame->type == FRAME_FAILED) {
                on_text(l, frame);
                return;
        }
        if (frame_turn(frame->type) != l->state && !(frame->type == FRAME_EXITED && l->state == LINK_WAITS_STARTED)) {
                link_break(l, "the guest sent a frame out of order");
                return;
        }
        switch (frame->type) {
        case FRAME_HELLO:
                on_hello(l, frame);
                break;
        case FRAME_LINKS:
        case FRAME_STARTED:
                on_ready_frame(l, frame);
                break;
        case FRAME_STDOUT:
        case FRAME_STDERR:
                l->handlers.on_output(l->handlers.userdata, frame->type == FRAME_STDOUT ? 1 : 2, frame->data,
                                      frame->size);
                break;
        case FRAME_STDIN_CREDIT:
                on_credit(l, frame);
                break;
        case FRAME_EXITED:
                on_exited(l, frame);
                break;
        default:
                link_break(l, "the guest sent a frame that is not for us");
        }
}

/* Hands out what is in the reader. Handlers may free or pause the link. */
static void hand_out(HostLink *l) {
        bool freed = false;
        Frame frame;
        int r = 0;

        l->freed = &freed;
        while (l->state != LINK_BROKEN && !l->paused && (r = frame_reader_next(&l->reader, &frame)) > 0) {
                on_frame(l, &frame);
                if (freed)
                        return;
        }
        l->freed = NULL;
        if (r < 0)
                link_break(l, "the guest broke the framing of its control port");
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        HostLink *l = userdata;
        ssize_t n;

        if ((revents & EPOLLOUT) && host_link_flush(l) < 0) {
                link_close(l);
                return 0;
        }
        if (l->paused || !(revents & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                return 0;
        n = frame_reader_fill(&l->reader, fd);
        if (n > 0)
                hand_out(l);
        else if (n == 0 || n == -ECONNRESET)
                link_close(l);
        else if (n != -EAGAIN)
                link_break(l, "the guest broke the framing of its control port");
        return 0;
}

static int on_resumed(sd_event_source *s, void *userdata) {
        hand_out(userdata);
        return 0;
}

int host_link_set_paused(HostLink *l, bool paused) {
        int r;

        if (l->paused == paused)
                return 0;
        l->paused = paused;
        r = host_link_update_events(l);
        if (r < 0 || paused || !l->io)
                return r;
        return sd_event_source_set_enabled(l->resume, SD_EVENT_ONESHOT);
}

void host_link_skip_hello(HostLink *l) {
        if (l->state == LINK_WAITS_HELLO)
                l->state = LINK_READY;
}

int host_link_fd(const HostLink *l) {
        return l->fd;
}

void host_link_set_handlers(HostLink *l, const HostLinkHandlers *handlers) {
        l->handlers = *handlers;
}

int host_link_new(sd_event *event, int fd, const HostLinkHandlers *handlers, HostLink **ret) {
        _cleanup_(fd_closep) int owned = fd;
        _cleanup_(host_link_freep) HostLink *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        l->fd = TAKE_FD(owned);
        l->handlers = *handlers;
        l->window = STDIN_WINDOW_BYTES;
        frame_reader_init(&l->reader);
        r = fd_set_nonblocking(l->fd, true);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &l->io, l->fd, EPOLLIN, on_io, l);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &l->resume, on_resumed, l);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(l->resume, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}
