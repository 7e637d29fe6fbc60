/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bytes of a hostile peer, in pieces whose size the first byte gives: through the reader, the check and every decoder. */

#include <stdint.h>
#include <unistd.h>

#include "protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_all(const Frame *frame) {
        union {
                HelloMessage hello;
                SetupMessage setup;
                LinksMessage links;
                StartMessage start;
                ExitedMessage exited;
                OutputMessage output;
                EventMessage event;
                uint64_t u64;
                uint32_t u32;
                uint8_t u8;
        } m;

        message_check(frame);
        message_decode_hello(frame, &m.hello);
        message_decode_setup(frame, &m.setup);
        message_decode_links(frame, &m.links);
        message_decode_start(frame, &m.start);
        message_decode_started(frame, &m.u32);
        message_decode_exited(frame, &m.exited);
        message_decode_stdin_credit(frame, &m.u32);
        message_decode_signal(frame, &m.u8);
        message_decode_output(frame, &m.output);
        message_decode_event(frame, &m.event);
        message_decode_lost(frame, &m.u64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t step, at = 1;
        FrameReader reader;
        Frame frame;
        int fds[2];

        if (size < 2 || pipe(fds) < 0)
                return 0;
        step = (size_t) data[0] + 1;

        frame_reader_init(&reader);
        while (at < size) {
                size_t n = size - at < step ? size - at : step;

                if (write(fds[1], data + at, n) != (ssize_t) n || frame_reader_fill(&reader, fds[0]) < 0)
                        break;
                at += n;
                while (frame_reader_next(&reader, &frame) == 1)
                        decode_all(&frame);
        }
        frame_reader_done(&reader);
        close(fds[0]);
        close(fds[1]);
        return 0;
}
