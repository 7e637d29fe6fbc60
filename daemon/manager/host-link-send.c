/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a guest is told: whole frames through a bounded queue, in their turn, and standard input no further than the guest's window
 * is open.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "manager/host-link-internal.h"

int host_link_update_events(HostLink *l) {
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

int host_link_flush(HostLink *l) {
        while (l->queue_sent < l->queue_size) {
                ssize_t n = send(l->fd, l->queue + l->queue_sent, l->queue_size - l->queue_sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return errno == EAGAIN ? host_link_update_events(l) : -errno;
                }
                l->queue_sent += (size_t) n;
        }
        free(l->queue);
        l->queue = NULL;
        l->queue_size = l->queue_sent = 0;
        return host_link_update_events(l);
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
        return r < 0 ? r : host_link_flush(l);
}

int host_link_flush_input(HostLink *l) {
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

void host_link_end_command(HostLink *l) {
        free(l->input);
        l->input = NULL;
        l->input_size = l->input_sent = 0;
        l->input_waits = l->input_eof = false;
        l->window = STDIN_WINDOW_BYTES;
        l->state = LINK_READY;
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
                        r = host_link_flush(l);
                return r < 0 ? r : 1;
        }
        l->input = malloc(size);
        if (!l->input)
                return -ENOMEM;
        memcpy(l->input, data, size);
        l->input_size = size;
        l->input_waits = true;
        drained = host_link_flush_input(l);
        r = drained < 0 ? drained : host_link_flush(l);
        return r < 0 ? r : drained;
}

int host_link_send_setup(HostLink *l, const SetupMessage *m) {
        uint8_t frame[SETUP_FRAME_SIZE_MAX];

        if (l->state != LINK_GREETED && l->state != LINK_READY)
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
