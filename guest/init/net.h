/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "protocol/message.h"

/* Both: 0, or -errno. netdevice(7). */
int net_loopback_up(void);
int net_list_links(LinksMessage *ret);
