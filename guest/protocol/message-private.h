/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by message.c and message-output.c. Both: 0, or -EBADMSG. */

#include <stdbool.h>

#include "protocol/message.h"

/* message_check() of a frame that must be of that type. */
int message_check_type(const Frame *frame, FrameType type);

/* Text of 1 ... max allowed bytes into a field of max + 1. */
int message_get_text(const uint8_t *data, size_t size, size_t max, bool (*is_allowed)(uint8_t c), char *ret);
