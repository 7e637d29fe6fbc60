/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "protocol/message.h"

/* Makes this machine one of its own, before anything of the run executes: entropy, clock, host name, boot id. 0, or -errno
 * with the reason logged. */
int identity_apply(const SetupMessage *setup);
