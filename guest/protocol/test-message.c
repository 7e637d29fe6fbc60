/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/message.h"

/* The frame that an encoder wrote. */
static Frame parse(const uint8_t *encoded, ssize_t size) {
        assert(size >= (ssize_t) FRAME_HEADER_SIZE);
        assert(encoded[5] == FRAME_VERSION && encoded[6] == 0 && encoded[7] == 0);
        size_t payload = encoded[0] | ((size_t) encoded[1] << 8) | ((size_t) encoded[2] << 16);
        assert(payload == (size_t) size - FRAME_HEADER_SIZE);

        Frame frame = {encoded[4], encoded + FRAME_HEADER_SIZE, payload};
        assert(message_check(&frame) == 0);
        return frame;
}

static int check(uint8_t type, const void *data, size_t size) {
        Frame frame = {type, data, size};
        return message_check(&frame);
}

static void hello_and_setup_come_back_as_they_were_sent(void) {
        HelloMessage hello = {1, "6.1.0-50-cloud-amd64"}, hello_back;
        SetupMessage setup = {.realtime_usec = 1700000000123456, .hostname = "run-01abc"}, setup_back;
        uint8_t buffer[SETUP_FRAME_SIZE_MAX];
        Frame frame;

        frame = parse(buffer, message_encode_hello(buffer, &hello));
        assert(message_decode_hello(&frame, &hello_back) == 0);
        assert(hello_back.version == 1 && strcmp(hello_back.kernel_release, hello.kernel_release) == 0);
        memset(hello.kernel_release, 'x', 64);
        frame = parse(buffer, message_encode_hello(buffer, &hello));
        hello.kernel_release[0] = '\n';
        assert(message_encode_hello(buffer, &hello) == -EINVAL);
        hello.kernel_release[0] = 0;
        assert(message_encode_hello(buffer, &hello) == -EINVAL);

        for (unsigned i = 0; i < SETUP_ENTROPY_SIZE; i++)
                setup.entropy[i] = (uint8_t) (i * 3);
        frame = parse(buffer, message_encode_setup(buffer, &setup));
        assert(message_decode_setup(&frame, &setup_back) == 0);
        assert(setup_back.realtime_usec == setup.realtime_usec);
        assert(memcmp(setup_back.entropy, setup.entropy, SETUP_ENTROPY_SIZE) == 0);
        assert(strcmp(setup_back.hostname, "run-01abc") == 0);
        strcpy(setup.hostname, "no blanks");
        assert(message_encode_setup(buffer, &setup) == -EINVAL);
        setup.hostname[0] = 0;
        assert(message_encode_setup(buffer, &setup) == -EINVAL);
}

static void links_come_back_and_odd_ones_are_refused(void) {
        uint8_t buffer[LINKS_FRAME_SIZE_MAX];
        LinksMessage m =
                             {
                                     2, {{1, 8, "lo"}, {2, 0x1003, "fifteen-chars-x"}}
        },
                     back;
        Frame frame;

        frame = parse(buffer, message_encode_links(buffer, &m));
        assert(message_decode_links(&frame, &back) == 0);
        assert(back.n_links == 2 && back.links[1].index == 2 && back.links[1].flags == 0x1003);
        assert(strcmp(back.links[0].name, "lo") == 0 && strcmp(back.links[1].name, "fifteen-chars-x") == 0);

        for (size_t cut = 1; cut < frame.size; cut++) {
                frame.size--;
                /* Whole only at the end of the first link. */
                assert(message_decode_links(&frame, &back) == (frame.size == 11 ? 0 : -EBADMSG));
        }
        frame.size = 0;
        assert(message_decode_links(&frame, &back) == 0 && back.n_links == 0);

        m.n_links = LINKS_MAX;
        for (size_t i = 0; i < LINKS_MAX; i++)
                m.links[i] = m.links[1];
        frame = parse(buffer, message_encode_links(buffer, &m));
        assert(message_decode_links(&frame, &back) == 0 && back.n_links == LINKS_MAX);
        m.n_links++;
        assert(message_encode_links(buffer, &m) == -EINVAL);
        m.n_links = 1;
        strcpy(m.links[0].name, "a/b");
        assert(message_encode_links(buffer, &m) == -EINVAL);
        strcpy(m.links[0].name, "\033[m");
        assert(message_encode_links(buffer, &m) == -EINVAL);
}

static void more_links_than_the_limit_are_refused(void) {
        uint8_t payload[(LINKS_MAX + 1) * 10] = {0};
        Frame frame = {FRAME_LINKS, payload, sizeof(payload)};
        LinksMessage back;

        for (size_t i = 0; i <= LINKS_MAX; i++) {
                payload[i * 10 + 8] = 1;
                payload[i * 10 + 9] = 'x';
        }
        assert(message_decode_links(&frame, &back) == -EBADMSG);
        frame.size -= 10;
        assert(message_decode_links(&frame, &back) == 0 && back.n_links == LINKS_MAX);
}

static void small_messages_come_back_as_they_were_sent(void) {
        StartMessage start = {1000, 1001, START_STDIN}, start_back;
        uint8_t buffer[EXITED_FRAME_SIZE], signal;
        uint32_t number;
        uint64_t bytes;
        Frame frame;

        frame = parse(buffer, message_encode_start(buffer, &start));
        assert(message_decode_start(&frame, &start_back) == 0);
        assert(start_back.uid == 1000 && start_back.gid == 1001 && start_back.flags == START_STDIN);
        start.flags = 2;
        assert(message_encode_start(buffer, &start) == -EINVAL);
        start.flags = 0;
        start.uid = UINT32_MAX;
        assert(message_encode_start(buffer, &start) == -EINVAL);

        frame = parse(buffer, message_encode_started(buffer, 77));
        assert(message_decode_started(&frame, &number) == 0 && number == 77);
        assert(message_encode_started(buffer, 0) == -EINVAL);

        frame = parse(buffer, message_encode_stdin_credit(buffer, 65536));
        assert(message_decode_stdin_credit(&frame, &number) == 0 && number == 65536);
        assert(message_encode_stdin_credit(buffer, 0) == -EINVAL);
        assert(message_encode_stdin_credit(buffer, 65537) == -EINVAL);

        frame = parse(buffer, message_encode_signal(buffer, 15));
        assert(message_decode_signal(&frame, &signal) == 0 && signal == 15);
        assert(message_encode_signal(buffer, 0) == -EINVAL);
        assert(message_encode_signal(buffer, 65) == -EINVAL);

        frame = parse(buffer, message_encode_lost(buffer, 1ULL << 40));
        assert(message_decode_lost(&frame, &bytes) == 0 && bytes == 1ULL << 40);
}

static void an_end_is_one_that_can_be(void) {
        static const struct {
                uint8_t how;
                uint32_t status;
                bool possible;
        } ends[] = {
                {0,   0,    true },
                {0,   255,  true },
                {0,   256,  false},
                {1,   0,    false},
                {1,   9,    true },
                {1,   64,   true },
                {1,   65,   false},
                {2,   0,    false},
                {2,   2,    true },
                {2,   4095, true },
                {3,   0,    false},
                {3,   1,    false},
                {255, 1,    false},
                {2,   4096, false},
        };
        uint8_t buffer[EXITED_FRAME_SIZE];
        ExitedMessage back;

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                ExitedMessage m = {ends[i].how, ends[i].status, 1, 2, 3, 1ULL << 50};
                ssize_t n = message_encode_exited(buffer, &m);

                assert((n > 0) == ends[i].possible);
                if (n < 0)
                        continue;
                Frame frame = parse(buffer, n);
                assert(message_decode_exited(&frame, &back) == 0);
                assert(back.how == m.how && back.status == m.status && back.user_usec == 1 && back.system_usec == 2);
                assert(back.max_rss_kib == 3 && back.duration_usec == 1ULL << 50);
        }
}

static void events_and_output_come_back_as_they_were_sent(void) {
        uint8_t buffer[FRAME_HEADER_SIZE + EVENT_HEAD_SIZE_MAX + 16];
        EventMessage event = {5, 6, "command.started", "{\"a\":1}", 7}, event_back;
        OutputMessage output = {8, 9, 2, (const uint8_t *) "bytes", 5}, output_back;
        Frame frame;
        ssize_t n;

        n = message_encode_event_head(buffer, &event);
        assert(n > 0);
        memcpy(buffer + n, event.json, event.json_size);
        frame = parse(buffer, n + (ssize_t) event.json_size);
        assert(message_decode_event(&frame, &event_back) == 0);
        assert(event_back.seq == 5 && event_back.realtime_usec == 6 && strcmp(event_back.type, event.type) == 0);
        assert(event_back.json_size == 7 && memcmp(event_back.json, event.json, 7) == 0);
        frame.size = 17 + 3; /* the type is longer than what is left */
        assert(message_decode_event(&frame, &event_back) == -EBADMSG);
        strcpy(event.type, "Bad");
        assert(message_encode_event_head(buffer, &event) == -EINVAL);
        event = (EventMessage){5, 6, "x", NULL, EVENT_JSON_SIZE_MAX + 1};
        assert(message_encode_event_head(buffer, &event) == -EINVAL);

        n = message_encode_output_head(buffer, &output);
        assert(n == FRAME_HEADER_SIZE + OUTPUT_HEAD_SIZE);
        memcpy(buffer + n, output.data, output.size);
        frame = parse(buffer, n + (ssize_t) output.size);
        assert(message_decode_output(&frame, &output_back) == 0);
        assert(output_back.seq == 8 && output_back.realtime_usec == 9 && output_back.stream == 2);
        assert(output_back.size == 5 && memcmp(output_back.data, "bytes", 5) == 0);
        output.stream = 3;
        assert(message_encode_output_head(buffer, &output) == -EINVAL);
        output = (OutputMessage){1, 1, 1, NULL, OUTPUT_DATA_SIZE_MAX + 1};
        assert(message_encode_output_head(buffer, &output) == -EINVAL);
}

static void bytes_that_a_type_must_not_hold_are_refused(void) {
        static const uint8_t big[FRAME_PAYLOAD_MAX] = {0};

        assert(check(FRAME_ARG, "", 0) == 0);
        assert(check(FRAME_ARG, "a b", 3) == 0);
        assert(check(FRAME_ARG, "a\0b", 3) == -EBADMSG);
        assert(check(FRAME_ENV, "A=", 2) == 0);
        assert(check(FRAME_ENV, "=A", 2) == -EBADMSG);
        assert(check(FRAME_ENV, "AB", 2) == -EBADMSG);
        assert(check(FRAME_STDIN, big, STDIN_WINDOW_BYTES) == 0);
        assert(check(FRAME_STDIN, big, STDIN_WINDOW_BYTES + 1) == -EBADMSG);
        assert(check(FRAME_STDIN_EOF, "x", 1) == -EBADMSG);
        assert(check(FRAME_STDOUT, big, 0) == -EBADMSG);
        assert(check(FRAME_STDOUT, big, FRAME_PAYLOAD_MAX) == 0);
        assert(check(FRAME_LOG, "text", 4) == 0);
        assert(check(FRAME_LOG, "te\0t", 4) == -EBADMSG);
        assert(check(FRAME_LOG, big, TEXT_SIZE_MAX + 1) == -EBADMSG);
        assert(check(0x00, "", 0) == -EBADMSG);
        assert(check(0x8a, "x", 1) == -EBADMSG);
}

static void no_decoder_takes_another_type(void) {
        uint8_t payload[128] = {1};
        Frame frame = {FRAME_SIGNAL, payload, 1};
        HelloMessage hello;
        uint32_t pid;
        uint8_t signal;

        assert(message_decode_signal(&frame, &signal) == 0);
        assert(message_decode_hello(&frame, &hello) == -EBADMSG);
        assert(message_decode_started(&frame, &pid) == -EBADMSG);
        assert(frame_type_from_guest(FRAME_HELLO) && !frame_type_from_guest(FRAME_START));
        assert(!frame_type_from_guest(FRAME_EVENT));
}

int main(void) {
        hello_and_setup_come_back_as_they_were_sent();
        links_come_back_and_odd_ones_are_refused();
        more_links_than_the_limit_are_refused();
        small_messages_come_back_as_they_were_sent();
        an_end_is_one_that_can_be();
        events_and_output_come_back_as_they_were_sent();
        bytes_that_a_type_must_not_hold_are_refused();
        no_decoder_takes_another_type();
        return 0;
}
