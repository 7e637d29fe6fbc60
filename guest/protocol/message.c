/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Payloads to structs and back, for both ends of the control port and for OpenOutput's readers. Encoders apply the same
 * rules as decoders (they decode what they wrote), so that neither side can send what the other refuses. */

#include "protocol/message.h"

#include <errno.h>
#include <string.h>

#include "protocol/message-private.h"
#include "protocol/wire.h"

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))

typedef struct FrameRule {
        uint8_t type;
        size_t size_min;
        size_t size_max;
        bool no_nul;
} FrameRule;

static const FrameRule frame_rules[] = {
        {FRAME_SETUP,        8 + SETUP_ENTROPY_SIZE + 1, SETUP_FRAME_SIZE_MAX - FRAME_HEADER_SIZE, false},
        {FRAME_ARG,          0,                          ARGUMENT_SIZE_MAX,                        true },
        {FRAME_ENV,          2,                          ARGUMENT_SIZE_MAX,                        true },
        {FRAME_SCRIPT,       1,                          FRAME_PAYLOAD_MAX,                        false},
        {FRAME_START,        12,                         12,                                       false},
        {FRAME_STDIN,        1,                          STDIN_WINDOW_BYTES,                       false},
        {FRAME_STDIN_EOF,    0,                          0,                                        false},
        {FRAME_SIGNAL,       1,                          1,                                        false},
        {FRAME_EVENT,        18,                         FRAME_PAYLOAD_MAX,                        false},
        {FRAME_OUTPUT,       OUTPUT_HEAD_SIZE + 1,       FRAME_PAYLOAD_MAX,                        false},
        {FRAME_LOST,         8,                          8,                                        false},
        {FRAME_HELLO,        4 + 1,                      HELLO_FRAME_SIZE_MAX - FRAME_HEADER_SIZE, true },
        {FRAME_LINKS,        0,                          LINKS_FRAME_SIZE_MAX - FRAME_HEADER_SIZE, false},
        {FRAME_STARTED,      4,                          4,                                        false},
        {FRAME_STDOUT,       1,                          FRAME_PAYLOAD_MAX,                        false},
        {FRAME_STDERR,       1,                          FRAME_PAYLOAD_MAX,                        false},
        {FRAME_EXITED,       37,                         37,                                       false},
        {FRAME_STDIN_CREDIT, 4,                          4,                                        false},
        {FRAME_LOG,          1,                          TEXT_SIZE_MAX,                            true },
        {FRAME_FAILED,       1,                          TEXT_SIZE_MAX,                            true },
};

static const FrameRule *frame_rule(uint8_t type) {
        for (size_t i = 0; i < ELEMENTSOF(frame_rules); i++)
                if (frame_rules[i].type == type)
                        return &frame_rules[i];
        return NULL;
}

int message_check(const Frame *frame) {
        const FrameRule *rule = frame_rule(frame->type);
        const uint8_t *equals;

        if (!rule || frame->size < rule->size_min || frame->size > rule->size_max)
                return -EBADMSG;
        if (rule->no_nul && frame->size > 0) {
                /* Of HELLO, the text behind the version. */
                size_t skip = frame->type == FRAME_HELLO ? 4 : 0;

                if (memchr(frame->data + skip, 0, frame->size - skip))
                        return -EBADMSG;
        }
        if (frame->type == FRAME_ENV) {
                equals = memchr(frame->data, '=', frame->size);
                if (!equals || equals == frame->data)
                        return -EBADMSG;
        }
        return 0;
}

int message_check_type(const Frame *frame, FrameType type) {
        return frame->type == type ? message_check(frame) : -EBADMSG;
}

static bool is_graphic(uint8_t c) {
        return c > 0x20 && c < 0x7f;
}

static bool is_link_name_char(uint8_t c) {
        return is_graphic(c) && c != '/';
}

static bool is_hostname_char(uint8_t c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

int message_get_text(const uint8_t *data, size_t size, size_t max, bool (*is_allowed)(uint8_t c), char *ret) {
        if (size < 1 || size > max)
                return -EBADMSG;
        for (size_t i = 0; i < size; i++)
                if (!is_allowed(data[i]))
                        return -EBADMSG;

        memcpy(ret, data, size);
        ret[size] = 0;
        return 0;
}

/* Puts the header before a payload of size bytes that stands at its place already. */
static ssize_t seal(uint8_t *frame, FrameType type, size_t size) {
        frame_encode_header(frame, (uint8_t) type, size);
        return (ssize_t) (FRAME_HEADER_SIZE + size);
}

static Frame frame_of(FrameType type, const uint8_t *encoded, const uint8_t *end) {
        return (Frame){(uint8_t) type, encoded + FRAME_HEADER_SIZE, (size_t) (end - encoded) - FRAME_HEADER_SIZE};
}

ssize_t message_encode_hello(uint8_t ret[HELLO_FRAME_SIZE_MAX], const HelloMessage *m) {
        size_t n = strnlen(m->kernel_release, sizeof(m->kernel_release));
        uint8_t *p = ret + FRAME_HEADER_SIZE;
        HelloMessage check;
        Frame frame;

        if (n > KERNEL_RELEASE_SIZE_MAX)
                return -EINVAL;
        p = wire_put_u32(p, m->version);
        memcpy(p, m->kernel_release, n);

        frame = frame_of(FRAME_HELLO, ret, p + n);
        if (message_decode_hello(&frame, &check) < 0)
                return -EINVAL;
        return seal(ret, FRAME_HELLO, frame.size);
}

int message_decode_hello(const Frame *frame, HelloMessage *ret) {
        HelloMessage m = {0};
        int r;

        r = message_check_type(frame, FRAME_HELLO);
        if (r < 0)
                return r;

        m.version = wire_get_u32(frame->data);
        r = message_get_text(frame->data + 4, frame->size - 4, KERNEL_RELEASE_SIZE_MAX, is_graphic, m.kernel_release);
        if (r < 0)
                return r;

        *ret = m;
        return 0;
}

ssize_t message_encode_setup(uint8_t ret[SETUP_FRAME_SIZE_MAX], const SetupMessage *m) {
        size_t n = strnlen(m->hostname, sizeof(m->hostname));
        uint8_t *p = ret + FRAME_HEADER_SIZE;
        SetupMessage check;
        Frame frame;
        int r;

        if (n > SETUP_HOSTNAME_SIZE_MAX)
                return -EINVAL;
        p = wire_put_u64(p, m->realtime_usec);
        memcpy(p, m->entropy, SETUP_ENTROPY_SIZE);
        p += SETUP_ENTROPY_SIZE;
        memcpy(p, m->hostname, n);

        frame = frame_of(FRAME_SETUP, ret, p + n);
        r = message_decode_setup(&frame, &check);
        explicit_bzero(&check, sizeof(check));
        if (r < 0)
                return -EINVAL;
        return seal(ret, FRAME_SETUP, frame.size);
}

int message_decode_setup(const Frame *frame, SetupMessage *ret) {
        const size_t fixed = 8 + SETUP_ENTROPY_SIZE;
        char hostname[SETUP_HOSTNAME_SIZE_MAX + 1];
        int r;

        r = message_check_type(frame, FRAME_SETUP);
        if (r < 0)
                return r;
        r = message_get_text(frame->data + fixed, frame->size - fixed, SETUP_HOSTNAME_SIZE_MAX, is_hostname_char,
                             hostname);
        if (r < 0)
                return r;

        *ret = (SetupMessage){.realtime_usec = wire_get_u64(frame->data)};
        memcpy(ret->entropy, frame->data + 8, SETUP_ENTROPY_SIZE);
        memcpy(ret->hostname, hostname, strlen(hostname) + 1);
        return 0;
}

ssize_t message_encode_links(uint8_t ret[LINKS_FRAME_SIZE_MAX], const LinksMessage *m) {
        uint8_t *p = ret + FRAME_HEADER_SIZE;
        LinksMessage check;
        Frame frame;

        if (m->n_links > LINKS_MAX)
                return -EINVAL;
        for (size_t i = 0; i < m->n_links; i++) {
                const GuestLink *link = &m->links[i];
                size_t n = strnlen(link->name, LINK_NAME_SIZE_MAX);

                p = wire_put_u32(p, link->index);
                p = wire_put_u32(p, link->flags);
                *p++ = (uint8_t) n;
                memcpy(p, link->name, n);
                p += n;
        }

        frame = frame_of(FRAME_LINKS, ret, p);
        if (message_decode_links(&frame, &check) < 0)
                return -EINVAL;
        return seal(ret, FRAME_LINKS, frame.size);
}

/* The link at p, of at most left bytes: its size in the frame, or -EBADMSG. */
static ssize_t decode_link(const uint8_t *p, size_t left, GuestLink *ret) {
        size_t n;
        int r;

        if (left < 9)
                return -EBADMSG;
        n = p[8];
        if (left - 9 < n)
                return -EBADMSG;
        r = message_get_text(p + 9, n, LINK_NAME_SIZE_MAX, is_link_name_char, ret->name);
        if (r < 0)
                return r;

        ret->index = wire_get_u32(p);
        ret->flags = wire_get_u32(p + 4);
        return (ssize_t) (9 + n);
}

int message_decode_links(const Frame *frame, LinksMessage *ret) {
        LinksMessage m = {0};
        size_t at = 0;
        ssize_t n;
        int r;

        r = message_check_type(frame, FRAME_LINKS);
        if (r < 0)
                return r;

        while (at < frame->size) {
                if (m.n_links == LINKS_MAX)
                        return -EBADMSG;
                n = decode_link(frame->data + at, frame->size - at, &m.links[m.n_links]);
                if (n < 0)
                        return (int) n;
                m.n_links++;
                at += (size_t) n;
        }

        *ret = m;
        return 0;
}

ssize_t message_encode_start(uint8_t ret[START_FRAME_SIZE], const StartMessage *m) {
        uint8_t *p = ret + FRAME_HEADER_SIZE;
        StartMessage check;
        Frame frame;

        p = wire_put_u32(p, m->uid);
        p = wire_put_u32(p, m->gid);
        p = wire_put_u32(p, m->flags);

        frame = frame_of(FRAME_START, ret, p);
        if (message_decode_start(&frame, &check) < 0)
                return -EINVAL;
        return seal(ret, FRAME_START, frame.size);
}

int message_decode_start(const Frame *frame, StartMessage *ret) {
        StartMessage m;
        int r;

        r = message_check_type(frame, FRAME_START);
        if (r < 0)
                return r;

        m.uid = wire_get_u32(frame->data);
        m.gid = wire_get_u32(frame->data + 4);
        m.flags = wire_get_u32(frame->data + 8);
        /* (uid_t) -1 means "leave as it is" to setresuid(2). */
        if (m.uid == UINT32_MAX || m.gid == UINT32_MAX || (m.flags & ~START_STDIN))
                return -EBADMSG;

        *ret = m;
        return 0;
}

ssize_t message_encode_started(uint8_t ret[STARTED_FRAME_SIZE], uint32_t pid) {
        if (pid == 0)
                return -EINVAL;
        wire_put_u32(ret + FRAME_HEADER_SIZE, pid);
        return seal(ret, FRAME_STARTED, 4);
}

int message_decode_started(const Frame *frame, uint32_t *ret_pid) {
        int r;

        r = message_check_type(frame, FRAME_STARTED);
        if (r < 0)
                return r;
        if (wire_get_u32(frame->data) == 0)
                return -EBADMSG;

        *ret_pid = wire_get_u32(frame->data);
        return 0;
}

ssize_t message_encode_exited(uint8_t ret[EXITED_FRAME_SIZE], const ExitedMessage *m) {
        uint8_t *p = ret + FRAME_HEADER_SIZE;
        ExitedMessage check;
        Frame frame;

        *p++ = m->how;
        p = wire_put_u32(p, m->status);
        p = wire_put_u64(p, m->user_usec);
        p = wire_put_u64(p, m->system_usec);
        p = wire_put_u64(p, m->max_rss_kib);
        p = wire_put_u64(p, m->duration_usec);

        frame = frame_of(FRAME_EXITED, ret, p);
        if (message_decode_exited(&frame, &check) < 0)
                return -EINVAL;
        return seal(ret, FRAME_EXITED, frame.size);
}

static bool exited_is_possible(uint8_t how, uint32_t status) {
        switch (how) {
        case EXITED_NORMALLY:
                return status <= 255;
        case EXITED_BY_SIGNAL:
                return status >= 1 && status <= 64;
        case EXITED_NO_EXEC:
                return status >= 1 && status <= 4095;
        default:
                return false;
        }
}

int message_decode_exited(const Frame *frame, ExitedMessage *ret) {
        int r;

        r = message_check_type(frame, FRAME_EXITED);
        if (r < 0)
                return r;
        if (!exited_is_possible(frame->data[0], wire_get_u32(frame->data + 1)))
                return -EBADMSG;

        *ret = (ExitedMessage){
                .how = frame->data[0],
                .status = wire_get_u32(frame->data + 1),
                .user_usec = wire_get_u64(frame->data + 5),
                .system_usec = wire_get_u64(frame->data + 13),
                .max_rss_kib = wire_get_u64(frame->data + 21),
                .duration_usec = wire_get_u64(frame->data + 29),
        };
        return 0;
}

ssize_t message_encode_stdin_credit(uint8_t ret[CREDIT_FRAME_SIZE], uint32_t bytes) {
        if (bytes == 0 || bytes > STDIN_WINDOW_BYTES)
                return -EINVAL;
        wire_put_u32(ret + FRAME_HEADER_SIZE, bytes);
        return seal(ret, FRAME_STDIN_CREDIT, 4);
}

int message_decode_stdin_credit(const Frame *frame, uint32_t *ret_bytes) {
        uint32_t bytes;
        int r;

        r = message_check_type(frame, FRAME_STDIN_CREDIT);
        if (r < 0)
                return r;
        bytes = wire_get_u32(frame->data);
        if (bytes == 0 || bytes > STDIN_WINDOW_BYTES)
                return -EBADMSG;

        *ret_bytes = bytes;
        return 0;
}

ssize_t message_encode_signal(uint8_t ret[SIGNAL_FRAME_SIZE], uint8_t signal) {
        if (signal < 1 || signal > 64)
                return -EINVAL;
        ret[FRAME_HEADER_SIZE] = signal;
        return seal(ret, FRAME_SIGNAL, 1);
}

int message_decode_signal(const Frame *frame, uint8_t *ret_signal) {
        int r;

        r = message_check_type(frame, FRAME_SIGNAL);
        if (r < 0)
                return r;
        if (frame->data[0] < 1 || frame->data[0] > 64)
                return -EBADMSG;

        *ret_signal = frame->data[0];
        return 0;
}
