/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the frames say: the payloads of docs/design.md, section 17.1.
 *
 * Whoever takes frames calls message_check() on each of them first. It refuses what cannot be, so that bytes-only frames
 * (ARG, ENV, SCRIPT, STDIN, STDOUT, STDERR, LOG, FAILED) may then be used as they are; the others have a decoder.
 * Decoders: 0, or -EBADMSG. Encoders write a whole frame, header included, and return its size, or -EINVAL for what the
 * other side would refuse. Frames of plain bytes: frame_encode_header(), then the bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/frame.h"

#define MESSAGE_PROTOCOL_VERSION 2U

typedef enum FrameType {
        /* host to guest */
        FRAME_SETUP = 0x01,
        FRAME_ARG = 0x02,
        FRAME_ENV = 0x03,
        FRAME_SCRIPT = 0x04,
        FRAME_START = 0x05,
        FRAME_STDIN = 0x06,
        FRAME_STDIN_EOF = 0x07,
        FRAME_SIGNAL = 0x08,
        /* host to the client of OpenOutput */
        FRAME_EVENT = 0x41,
        FRAME_OUTPUT = 0x42,
        FRAME_LOST = 0x43,
        /* guest to host */
        FRAME_HELLO = 0x81,
        FRAME_LINKS = 0x82,
        FRAME_STARTED = 0x83,
        FRAME_STDOUT = 0x84,
        FRAME_STDERR = 0x85,
        FRAME_EXITED = 0x86,
        FRAME_STDIN_CREDIT = 0x87,
        FRAME_LOG = 0x88,
        FRAME_FAILED = 0x89,
} FrameType;

/* What init takes before START; past it the run is refused with FAILED. */
#define ARGUMENTS_MAX       4096U           /* ARG and ENV frames together */
#define ARGUMENTS_BYTES_MAX (1024U * 1024U) /* and their bytes, with a NUL each */
#define SCRIPT_BYTES_MAX    (16U * 1024U * 1024U)

#define ARGUMENT_SIZE_MAX       (FRAME_PAYLOAD_MAX - 1U) /* MAX_ARG_STRLEN of execve(2), without the NUL */
#define STDIN_WINDOW_BYTES      65536U
#define TEXT_SIZE_MAX           4096U /* LOG, FAILED */
#define SETUP_ENTROPY_SIZE      64U
#define SETUP_HOSTNAME_SIZE_MAX 64U /* HOST_NAME_MAX */
#define KERNEL_RELEASE_SIZE_MAX 64U
#define LINK_NAME_SIZE_MAX      15U /* IFNAMSIZ without the NUL */
#define LINKS_MAX               64U
#define EVENT_TYPE_SIZE_MAX     64U

/* Sizes of encoded frames. */
#define HELLO_FRAME_SIZE_MAX (FRAME_HEADER_SIZE + 4U + KERNEL_RELEASE_SIZE_MAX)
#define SETUP_FRAME_SIZE_MAX (FRAME_HEADER_SIZE + 8U + SETUP_ENTROPY_SIZE + SETUP_HOSTNAME_SIZE_MAX)
#define LINKS_FRAME_SIZE_MAX (FRAME_HEADER_SIZE + LINKS_MAX * (9U + LINK_NAME_SIZE_MAX))
#define START_FRAME_SIZE     (FRAME_HEADER_SIZE + 12U)
#define STARTED_FRAME_SIZE   (FRAME_HEADER_SIZE + 4U)
#define EXITED_FRAME_SIZE    (FRAME_HEADER_SIZE + 37U)
#define CREDIT_FRAME_SIZE    (FRAME_HEADER_SIZE + 4U)
#define SIGNAL_FRAME_SIZE    (FRAME_HEADER_SIZE + 1U)
#define LOST_FRAME_SIZE      (FRAME_HEADER_SIZE + 8U)
#define OUTPUT_HEAD_SIZE     17U
#define EVENT_HEAD_SIZE_MAX  (17U + EVENT_TYPE_SIZE_MAX)
#define OUTPUT_DATA_SIZE_MAX (FRAME_PAYLOAD_MAX - OUTPUT_HEAD_SIZE)
#define EVENT_JSON_SIZE_MAX  (FRAME_PAYLOAD_MAX - EVENT_HEAD_SIZE_MAX)

typedef struct HelloMessage {
        uint32_t version;                                 /* decoding does not judge it */
        char kernel_release[KERNEL_RELEASE_SIZE_MAX + 1]; /* printable ASCII */
} HelloMessage;

typedef struct SetupMessage {
        uint64_t realtime_usec;
        uint8_t entropy[SETUP_ENTROPY_SIZE];
        char hostname[SETUP_HOSTNAME_SIZE_MAX + 1]; /* letters, digits, '-' and '.' */
} SetupMessage;

typedef struct GuestLink {
        uint32_t index;
        uint32_t flags;                    /* IFF_*, netdevice(7) */
        char name[LINK_NAME_SIZE_MAX + 1]; /* printable ASCII without blank and '/' */
} GuestLink;

typedef struct LinksMessage {
        size_t n_links;
        GuestLink links[LINKS_MAX];
} LinksMessage;

#define START_STDIN (1U << 0) /* stdin stays open; without it, it is /dev/null */

typedef struct StartMessage {
        uint32_t uid;
        uint32_t gid;
        uint32_t flags; /* START_*; others are refused */
} StartMessage;

typedef enum ExitedHow {
        EXITED_NORMALLY = 0,  /* status: 0 ... 255 */
        EXITED_BY_SIGNAL = 1, /* status: signal number, 1 ... 64 */
        EXITED_NO_EXEC = 2,   /* status: errno, 1 ... 4095: the command could not be executed */
} ExitedHow;

typedef struct ExitedMessage {
        uint8_t how; /* ExitedHow */
        uint32_t status;
        uint64_t user_usec;
        uint64_t system_usec;
        uint64_t max_rss_kib;
        uint64_t duration_usec;
} ExitedMessage;

typedef struct OutputMessage {
        uint64_t seq; /* 0: past output.max_bytes, live only */
        uint64_t realtime_usec;
        uint8_t stream; /* 1 stdout, 2 stderr */
        const uint8_t *data;
        size_t size;
} OutputMessage;

typedef struct EventMessage {
        uint64_t seq;
        uint64_t realtime_usec;
        char type[EVENT_TYPE_SIZE_MAX + 1]; /* lower case letters, '-' and '.' */
        const char *json;                   /* json_size bytes, not terminated */
        size_t json_size;
} EventMessage;

/* 0, or -EBADMSG: a type that is not known, a size that its type cannot have, or bytes that it must not hold. */
int message_check(const Frame *frame);

static inline bool frame_type_from_guest(uint8_t type) {
        return type & 0x80;
}

ssize_t message_encode_hello(uint8_t ret[HELLO_FRAME_SIZE_MAX], const HelloMessage *m);
int message_decode_hello(const Frame *frame, HelloMessage *ret);

ssize_t message_encode_setup(uint8_t ret[SETUP_FRAME_SIZE_MAX], const SetupMessage *m);
int message_decode_setup(const Frame *frame, SetupMessage *ret);

ssize_t message_encode_links(uint8_t ret[LINKS_FRAME_SIZE_MAX], const LinksMessage *m);
int message_decode_links(const Frame *frame, LinksMessage *ret);

ssize_t message_encode_start(uint8_t ret[START_FRAME_SIZE], const StartMessage *m);
int message_decode_start(const Frame *frame, StartMessage *ret);

ssize_t message_encode_started(uint8_t ret[STARTED_FRAME_SIZE], uint32_t pid);
int message_decode_started(const Frame *frame, uint32_t *ret_pid);

ssize_t message_encode_exited(uint8_t ret[EXITED_FRAME_SIZE], const ExitedMessage *m);
int message_decode_exited(const Frame *frame, ExitedMessage *ret);

ssize_t message_encode_stdin_credit(uint8_t ret[CREDIT_FRAME_SIZE], uint32_t bytes);
int message_decode_stdin_credit(const Frame *frame, uint32_t *ret_bytes);

ssize_t message_encode_signal(uint8_t ret[SIGNAL_FRAME_SIZE], uint8_t signal);
int message_decode_signal(const Frame *frame, uint8_t *ret_signal);

/* These two write the header and what stands before the bulk; the caller sends data or json right behind. */
ssize_t message_encode_output_head(uint8_t ret[FRAME_HEADER_SIZE + OUTPUT_HEAD_SIZE], const OutputMessage *m);
ssize_t message_encode_event_head(uint8_t ret[FRAME_HEADER_SIZE + EVENT_HEAD_SIZE_MAX], const EventMessage *m);

/* data and json point into the frame. */
int message_decode_output(const Frame *frame, OutputMessage *ret);
int message_decode_event(const Frame *frame, EventMessage *ret);

ssize_t message_encode_lost(uint8_t ret[LOST_FRAME_SIZE], uint64_t bytes);
int message_decode_lost(const Frame *frame, uint64_t *ret_bytes);
