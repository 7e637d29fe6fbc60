/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a network namespace holds, as rtnetlink tells it, and whether that is nothing. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "jail/failure.h"

#define NETWORK_LINKS_MAX 8

typedef struct NetworkLink {
        char name[IFNAMSIZ];
        bool up;
} NetworkLink;

typedef struct Network {
        NetworkLink links[NETWORK_LINKS_MAX];
        size_t n_links; /* all of them, also those that links had no room for */
        size_t n_addresses;
        size_t n_routes;
} Network;

/* Asks the kernel about the namespace that the caller is in. */
int network_gather(Network *ret, Failure *reterr);

/* 0 when it holds lo, down, and nothing besides: no link, no address, no route; else -ENOTUNIQ and what was found. */
int network_check(const Network *network, Failure *reterr);
