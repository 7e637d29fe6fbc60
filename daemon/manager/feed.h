/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One reader of a run's events and output over a socket (OpenOutput): frames EVENT, OUTPUT and LOST of
 * guest/protocol.
 *
 * A feed holds a place in the timeline, not a copy: it reads on from there at its reader's speed. So nothing that
 * the timeline keeps is ever lost, however slow the reader is. Only live output past the cap (seq 0) must be queued,
 * between the events where it belongs, for at most FEED_QUEUE_MAX bytes; then its bytes are dropped and a LOST frame
 * says how many, at that place. A lossless feed says it is congested long before, so that the run stops reading from
 * the guest. `output` events travel as OUTPUT frames only.
 *
 * An event whose JSON is longer than EVENT_JSON_SIZE_MAX comes in several EVENT frames with the same seq, usec and
 * type: a piece of exactly that size is followed by another, which may be empty. */

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "manager/timeline.h"

#define FEED_QUEUE_MAX        (4U << 20)
#define FEED_QUEUE_HIGH       (1U << 20)   /* congested from here … */
#define FEED_QUEUE_LOW        (256U << 10) /* … until here */
#define FEED_FINISH_IDLE_USEC 30000000U    /* a finished feed waits this long for a reader that does not read */
#define FEED_FINISH_MAX_USEC  600000000U   /* and this long for one that reads slowly */

typedef struct Feed Feed;

typedef struct FeedOptions {
        uint64_t after_seq;
        bool lossless;

        /* Lossless feeds only: called when it changes, from within timeline_output() too. May be NULL. */
        void (*on_congestion)(Feed *feed, bool congested, void *userdata);

        /* The reader hung up, or feed_finish() is done: nothing more will be sent. Called from the event loop, once,
         * never from within another feed_* or timeline_* call; the feed is to be freed, there or later. */
        void (*on_gone)(Feed *feed, void *userdata);
        void *userdata;

        uint64_t finish_idle_usec; /* 0: FEED_FINISH_IDLE_USEC */
} FeedOptions;

/* Takes fd, a connected stream socket, when it succeeds; makes it non-blocking and deaf. 0 or -errno. The timeline
 * must outlive the feed. */
int feed_new(sd_event *event, int fd, Timeline *timeline, const FeedOptions *options, Feed **ret);
Feed *feed_free(Feed *feed);
DEFINE_CLEANUP(Feed *, feed_free);

bool feed_is_congested(const Feed *feed); /* never when gone, nor when not lossless */

/* The run has ended: what is there is sent, then end of file, then on_gone. A reader that does not read is left
 * after FEED_FINISH_IDLE_USEC. 0 or -errno. */
int feed_finish(Feed *feed);

uint64_t feed_lost_bytes(const Feed *feed);
