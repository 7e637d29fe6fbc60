/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* pkttyagent(1), which asks on this terminal when polkit wants a password. Without a terminal, for root, or where it is
 * not installed, nothing is started and nothing is said. */
void agent_start(void);
void agent_stop(void);
