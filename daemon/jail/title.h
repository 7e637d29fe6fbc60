/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "jail/options.h"

/* What `systemctl status` and ps show of the outer half from now on, in place of a command line of a hundred options. All strings
 * that came with it are gone afterwards. */
void title_set(const Options *options);
