/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Proof that the network namespace is empty. A new one is; this asks all the same, because everything that is promised about a
 * run's network rests on it, and because a kernel with tunnel modules loaded does put links into new namespaces.
 */
#include "jail/network.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"

DEFINE_CLEANUP(struct nl_sock *, nl_socket_free);
DEFINE_CLEANUP(struct nl_cache *, nl_cache_free);

static void on_link(struct nl_object *object, void *userdata) {
        struct rtnl_link *link = (struct rtnl_link *) object;
        Network *network = userdata;
        const char *name = rtnl_link_get_name(link);

        if (network->n_links < NETWORK_LINKS_MAX) {
                NetworkLink *l = &network->links[network->n_links];

                snprintf(l->name, sizeof(l->name), "%s", name ? name : "?");
                l->up = rtnl_link_get_flags(link) & IFF_UP;
        }
        network->n_links++;
}

static int gather_links(struct nl_sock *sock, Network *network) {
        _cleanup_(nl_cache_freep) struct nl_cache *cache = NULL;
        int r = rtnl_link_alloc_cache(sock, AF_UNSPEC, &cache);

        if (r < 0)
                return r;
        nl_cache_foreach(cache, on_link, network);
        return 0;
}

static int gather_addresses(struct nl_sock *sock, Network *network) {
        _cleanup_(nl_cache_freep) struct nl_cache *cache = NULL;
        int r = rtnl_addr_alloc_cache(sock, &cache);

        if (r < 0)
                return r;
        network->n_addresses = (size_t) nl_cache_nitems(cache);
        return 0;
}

static int gather_routes(struct nl_sock *sock, Network *network) {
        _cleanup_(nl_cache_freep) struct nl_cache *cache = NULL;
        int r = rtnl_route_alloc_cache(sock, AF_UNSPEC, 0, &cache);

        if (r < 0)
                return r;
        network->n_routes = (size_t) nl_cache_nitems(cache);
        return 0;
}

int network_gather(Network *ret, Failure *reterr) {
        _cleanup_(nl_socket_freep) struct nl_sock *sock = nl_socket_alloc();
        Network network = {0};
        int r;

        if (!sock)
                return failure_set(reterr, -ENOMEM, "netlink socket");
        r = nl_connect(sock, NETLINK_ROUTE);
        if (r >= 0)
                r = gather_links(sock, &network);
        if (r >= 0)
                r = gather_addresses(sock, &network);
        if (r >= 0)
                r = gather_routes(sock, &network);
        if (r < 0)
                return failure_set(reterr, -EIO, "asking rtnetlink about the network namespace (%s)", nl_geterror(r));
        *ret = network;
        return 0;
}

int network_check(const Network *network, Failure *reterr) {
        if (network->n_links == 0)
                return failure_set(reterr, -ENOTUNIQ, "the network namespace has no lo");
        for (size_t i = 0; i < network->n_links && i < NETWORK_LINKS_MAX; i++)
                if (strcmp(network->links[i].name, "lo") != 0)
                        return failure_set(
                                reterr, -ENOTUNIQ,
                                "the network namespace has the link %s besides lo (if a tunnel module put it "
                                "there: sysctl net.core.fb_tunnels_only_for_init_net=1)",
                                network->links[i].name);
        if (network->n_links > 1)
                return failure_set(reterr, -ENOTUNIQ, "the network namespace has %zu links", network->n_links);
        if (network->links[0].up)
                return failure_set(reterr, -ENOTUNIQ, "lo is up in the network namespace");
        if (network->n_addresses > 0)
                return failure_set(reterr, -ENOTUNIQ, "the network namespace has %zu addresses", network->n_addresses);
        if (network->n_routes > 0)
                return failure_set(reterr, -ENOTUNIQ, "the network namespace has %zu routes", network->n_routes);
        return 0;
}
