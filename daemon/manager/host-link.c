/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One guest's control port. vm.c owns it until the guest is ready, then the run listens. What must stay true: frames are taken
 * only in their order, nothing is allocated on the guest's word, and a guest that does not read costs a bounded queue.
 */
#include "manager/host-link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/fd.h"

typedef enum LinkState {
        LINK_WAITS_HELLO,
        LINK_GREETED, /* HELLO came, SETUP has not left */
        LINK_WAITS_LINKS,
        LINK_READY, /* LINKS came: takes a command */
        LINK_WAITS_STARTED,
        LINK_STARTED,
        LINK_EXITED,
        LINK_BROKEN,
} LinkState;

struct HostLink {
        int fd;
        sd_event_source *io;
        sd_event_source *resume; /* hands out, from a clean stack, what was read before a pause */
        HostLinkHandlers handlers;
        FrameReader reader;
        LinkState state;
        bool paused;
        bool *freed; /* set by host_link_free() while frames are handed out */

        uint8_t *queue; /* bytes that the socket did not take yet */
        size_t queue_size, queue_sent;

        uint8_t *input; /* stdin that waits for the window */
        size_t input_size, input_sent;
        bool input_waits, input_eof;
        size_t window;
};

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

static int update_events(HostLink *l) {
        uint32_t events = (l->paused ? 0 : EPOLLIN) | (l->queue_sent < l->queue_size ? EPOLLOUT : 0);
        int r;

        if (!l->io)
                return 0;
        r = sd_event_source_set_io_events(l->io, events);
        if (r < 0)
                return r;
        /* off, not empty: a hang-up is reported to an empty set as well, over and over */
        return sd_event_source_set_enabled(l->io, events ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int flush_queue(HostLink *l) {
        while (l->queue_sent < l->queue_size) {
                ssize_t n = send(l->fd, l->queue + l->queue_sent, l->queue_size - l->queue_sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return errno == EAGAIN ? update_events(l) : -errno;
                }
                l->queue_sent += (size_t) n;
        }
        free(l->queue);
        l->queue = NULL;
        l->queue_size = l->queue_sent = 0;
        return update_events(l);
}

static int queue_bytes(HostLink *l, const void *data, size_t size) {
        uint8_t *grown;

        if (size == 0)
                return 0;
        if (l->queue_size - l->queue_sent + size > HOST_LINK_QUEUE_MAX)
                return -ENOBUFS;
        if (l->queue_sent > 0) {
                l->queue_size -= l->queue_sent;
                memmove(l->queue, l->queue + l->queue_sent, l->queue_size);
                l->queue_sent = 0;
        }
        grown = realloc(l->queue, l->queue_size + size);
        if (!grown)
                return -ENOMEM;
        memcpy(grown + l->queue_size, data, size);
        l->queue = grown;
        l->queue_size += size;
        return 0;
}

static int queue_frame(HostLink *l, FrameType type, const void *data, size_t size) {
        uint8_t header[FRAME_HEADER_SIZE];
        int r;

        if (size > FRAME_PAYLOAD_MAX)
                return -EMSGSIZE;
        frame_encode_header(header, (uint8_t) type, size);
        r = queue_bytes(l, header, sizeof(header));
        return r < 0 ? r : queue_bytes(l, data, size);
}

/* Sends an encoded frame: n is what its encoder returned. */
static int send_encoded(HostLink *l, const uint8_t *frame, ssize_t n) {
        int r;

        if (n < 0)
                return (int) n;
        r = queue_bytes(l, frame, (size_t) n);
        return r < 0 ? r : flush_queue(l);
}

/* Moves as much waiting stdin into the guest's window as it takes. 1: nothing waits any more. */
static int flush_input(HostLink *l) {
        while (l->input_sent < l->input_size && l->window > 0) {
                size_t n = l->input_size - l->input_sent;
                int r;

                if (n > l->window)
                        n = l->window;
                r = queue_frame(l, FRAME_STDIN, l->input + l->input_sent, n);
                if (r < 0)
                        return r;
                l->input_sent += n;
                l->window -= n;
        }
        if (l->input_sent < l->input_size)
                return 0;
        free(l->input);
        l->input = NULL;
        l->input_size = l->input_sent = 0;
        l->input_waits = false;
        return 1;
}

int host_link_send_stdin(HostLink *l, const void *data, size_t size) {
        int r, drained;

        if (l->input_waits)
                return -EBUSY;
        if ((l->state != LINK_STARTED && l->state != LINK_WAITS_STARTED) || l->input_eof)
                return -EPROTO;
        if (size == 0) {
                l->input_eof = true;
                r = queue_frame(l, FRAME_STDIN_EOF, NULL, 0);
                if (r >= 0)
                        r = flush_queue(l);
                return r < 0 ? r : 1;
        }
        l->input = malloc(size);
        if (!l->input)
                return -ENOMEM;
        memcpy(l->input, data, size);
        l->input_size = size;
        l->input_waits = true;
        drained = flush_input(l);
        r = drained < 0 ? drained : flush_queue(l);
        return r < 0 ? r : drained;
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
        r = flush_input(l);
        if (r >= 0 && flush_queue(l) >= 0 && r == 1 && l->handlers.on_stdin_drained)
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
        l->state = LINK_EXITED;
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

        if ((revents & EPOLLOUT) && flush_queue(l) < 0) {
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
        r = update_events(l);
        if (r < 0 || paused || !l->io)
                return r;
        return sd_event_source_set_enabled(l->resume, SD_EVENT_ONESHOT);
}

int host_link_send_setup(HostLink *l, const SetupMessage *m) {
        uint8_t frame[SETUP_FRAME_SIZE_MAX];

        if (l->state != LINK_GREETED)
                return -EPROTO;
        l->state = LINK_WAITS_LINKS;
        return send_encoded(l, frame, message_encode_setup(frame, m));
}

int host_link_send_bytes(HostLink *l, FrameType type, const void *data, size_t size) {
        const uint8_t *p = data;
        int r;

        if (l->state != LINK_READY)
                return -EPROTO;
        if (type != FRAME_SCRIPT)
                return queue_frame(l, type, p, size);
        while (size > 0) {
                size_t n = size > FRAME_PAYLOAD_MAX ? FRAME_PAYLOAD_MAX : size;

                r = queue_frame(l, type, p, n);
                if (r < 0)
                        return r;
                p += n;
                size -= n;
        }
        return 0;
}

int host_link_send_start(HostLink *l, const StartMessage *m) {
        uint8_t frame[START_FRAME_SIZE];

        if (l->state != LINK_READY)
                return -EPROTO;
        l->state = LINK_WAITS_STARTED;
        return send_encoded(l, frame, message_encode_start(frame, m));
}

int host_link_send_signal(HostLink *l, int signal_number) {
        uint8_t frame[SIGNAL_FRAME_SIZE];

        if (l->state != LINK_STARTED)
                return -EPROTO;
        return send_encoded(l, frame, message_encode_signal(frame, (uint8_t) signal_number));
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
