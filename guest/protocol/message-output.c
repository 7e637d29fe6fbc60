/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The frames that OpenOutput's readers get: events, output, and how much of it they missed. */

#include <errno.h>
#include <string.h>

#include "protocol/message-private.h"
#include "protocol/message.h"
#include "protocol/wire.h"

static bool is_event_type_char(uint8_t c) {
        return (c >= 'a' && c <= 'z') || c == '-' || c == '.';
}

ssize_t message_encode_output_head(uint8_t ret[FRAME_HEADER_SIZE + OUTPUT_HEAD_SIZE], const OutputMessage *m) {
        uint8_t *p = ret + FRAME_HEADER_SIZE;

        if (m->size < 1 || m->size > OUTPUT_DATA_SIZE_MAX || m->stream < 1 || m->stream > 2)
                return -EINVAL;

        p = wire_put_u64(p, m->seq);
        p = wire_put_u64(p, m->realtime_usec);
        *p = m->stream;
        frame_encode_header(ret, FRAME_OUTPUT, OUTPUT_HEAD_SIZE + m->size);
        return FRAME_HEADER_SIZE + OUTPUT_HEAD_SIZE;
}

int message_decode_output(const Frame *frame, OutputMessage *ret) {
        int r;

        r = message_check_type(frame, FRAME_OUTPUT);
        if (r < 0)
                return r;
        if (frame->data[16] < 1 || frame->data[16] > 2)
                return -EBADMSG;

        *ret = (OutputMessage){
                .seq = wire_get_u64(frame->data),
                .realtime_usec = wire_get_u64(frame->data + 8),
                .stream = frame->data[16],
                .data = frame->data + OUTPUT_HEAD_SIZE,
                .size = frame->size - OUTPUT_HEAD_SIZE,
        };
        return 0;
}

ssize_t message_encode_event_head(uint8_t ret[FRAME_HEADER_SIZE + EVENT_HEAD_SIZE_MAX], const EventMessage *m) {
        size_t n = strnlen(m->type, sizeof(m->type));
        uint8_t *p = ret + FRAME_HEADER_SIZE;
        char check[EVENT_TYPE_SIZE_MAX + 1];

        if (m->json_size > EVENT_JSON_SIZE_MAX)
                return -EINVAL;
        if (message_get_text((const uint8_t *) m->type, n, EVENT_TYPE_SIZE_MAX, is_event_type_char, check) < 0)
                return -EINVAL;

        p = wire_put_u64(p, m->seq);
        p = wire_put_u64(p, m->realtime_usec);
        *p++ = (uint8_t) n;
        memcpy(p, m->type, n);
        frame_encode_header(ret, FRAME_EVENT, 17 + n + m->json_size);
        return (ssize_t) (FRAME_HEADER_SIZE + 17 + n);
}

int message_decode_event(const Frame *frame, EventMessage *ret) {
        EventMessage m = {0};
        size_t n;
        int r;

        r = message_check_type(frame, FRAME_EVENT);
        if (r < 0)
                return r;
        n = frame->data[16];
        if (frame->size - 17 < n)
                return -EBADMSG;
        r = message_get_text(frame->data + 17, n, EVENT_TYPE_SIZE_MAX, is_event_type_char, m.type);
        if (r < 0)
                return r;

        m.seq = wire_get_u64(frame->data);
        m.realtime_usec = wire_get_u64(frame->data + 8);
        m.json = (const char *) frame->data + 17 + n;
        m.json_size = frame->size - 17 - n;
        *ret = m;
        return 0;
}

ssize_t message_encode_lost(uint8_t ret[LOST_FRAME_SIZE], uint64_t bytes) {
        wire_put_u64(ret + FRAME_HEADER_SIZE, bytes);
        frame_encode_header(ret, FRAME_LOST, 8);
        return LOST_FRAME_SIZE;
}

int message_decode_lost(const Frame *frame, uint64_t *ret_bytes) {
        int r;

        r = message_check_type(frame, FRAME_LOST);
        if (r < 0)
                return r;

        *ret_bytes = wire_get_u64(frame->data);
        return 0;
}
