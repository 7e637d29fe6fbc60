/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The ordered events of one run, in memory: seq from 1 without a gap. Whoever passes events on (journal, feeds,
 * subscribers) either listens or reads behind a seq, and gets each event once, as the same bytes.
 *
 * Output is kept up to `output_max_bytes` (both streams together) as `output` events, a chunk an event. What comes
 * after is counted and handed to the listeners with seq 0, but not kept. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/events.h"

#define TIMELINE_EVENTS_MAX     131072U     /* events of all kinds */
#define TIMELINE_JSON_MAX       (16U << 20) /* bytes of JSON */
#define TIMELINE_EVENTS_RESERVE 64U         /* of these, for the final events alone (event_type_is_final()) */
#define TIMELINE_JSON_RESERVE   (256U << 10)
#define TIMELINE_EVENT_JSON_MAX (4U << 20) /* one event */
#define TIMELINE_OUTPUT_MAX     (64U << 20)
#define TIMELINE_CHUNK_MAX      65536U /* fits a frame, a signal and a journal entry */

struct JournalRun;

typedef struct Timeline Timeline;
typedef struct TimelineListener TimelineListener;

/* Called for each event right after it was appended. It may free any listener, its own too; it must not append. */
typedef void (*TimelineCallback)(Timeline *timeline, const Event *event, void *userdata);

/* output_max_bytes above TIMELINE_OUTPUT_MAX is lowered to it. 0 or -ENOMEM. */
int timeline_new(uint64_t output_max_bytes, Timeline **ret);

/* Listeners that are left are detached: they stay the property of whoever made them. */
Timeline *timeline_free(Timeline *timeline);
DEFINE_CLEANUP(Timeline *, timeline_free);

/* Appends and owns `object` (an object; NULL is `{}`) whatever happens. 0, or, counted as dropped: -ENOBUFS (full),
 * -E2BIG, -ENOMEM. `output` events are made by timeline_output() only. */
int timeline_append(Timeline *timeline, EventType type, struct json_object *object);

/* Output, at least a byte, as events of at most TIMELINE_CHUNK_MAX bytes each. 1: all of it is kept; 0: some or all is
 * past the cap (or the timeline is full), delivered but not kept; -ENOMEM: what is left of it is counted, neither kept
 * nor delivered. */
int timeline_output(Timeline *timeline, OutputStream stream, const void *data, size_t size);

/* Appends `output.truncated` with exact counts when output (or an event) was not kept; does nothing when all is
 * whole. To be called once, after the last output. */
int timeline_append_truncated(Timeline *timeline);

typedef struct TimelineCounts {
        uint64_t kept_bytes[3];    /* by OutputStream */
        uint64_t dropped_bytes[3]; /* likewise: not kept */
        uint64_t dropped_events;   /* not kept since full */
} TimelineCounts;

void timeline_get_counts(const Timeline *timeline, TimelineCounts *ret);

/* What it keeps in memory: JSON and output. */
uint64_t timeline_bytes(const Timeline *timeline);

uint64_t timeline_last_seq(const Timeline *timeline); /* 0 when empty */

/* Fetches one event; its pointers are good until the timeline is freed. 0, or -ENOENT when there is no such seq. */
int timeline_get(const Timeline *timeline, uint64_t seq, Event *ret);

/* Calls back for at most max events behind after_seq, in order, until one answers other than 0. That answer, or 0. */
typedef int (*TimelineReadCallback)(const Event *event, void *userdata);
int timeline_read(
        const Timeline *timeline, uint64_t after_seq, size_t max, TimelineReadCallback callback, void *userdata);

/* 0 or -ENOMEM. Listeners are called in the order in which they came. */
int timeline_listen(Timeline *timeline, TimelineCallback callback, void *userdata, TimelineListener **ret);
TimelineListener *timeline_listener_free(TimelineListener *listener);
DEFINE_CLEANUP(TimelineListener *, timeline_listener_free);

/* Listens for the journal. `run` must outlive the listener. */
int timeline_listen_journal(Timeline *timeline, struct JournalRun *run, TimelineListener **ret);
