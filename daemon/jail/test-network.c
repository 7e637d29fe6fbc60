/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about the check that a network namespace is empty: on made-up answers, and, as root, on real namespaces that hold one thing
 * too many. A namespace lives in a child and goes with it.
 */
#undef NDEBUG
#include "jail/network.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

#define SKIP 77

static const Network empty = {.links = {{"lo", false}}, .n_links = 1};

static void assert_refused(const Network *network, const char *word) {
        Failure failure = {0};

        assert(network_check(network, &failure) == -ENOTUNIQ);
        if (!strstr(failure.text, word))
                fprintf(stderr, "%s: expected %s\n", failure.text, word);
        assert(strstr(failure.text, word));
}

static void only_lo_and_down_is_nothing(void) {
        Failure failure = {0};
        Network n;

        assert(network_check(&empty, &failure) == 0);
        n = (Network){0};
        assert_refused(&n, "no lo");
        n = empty;
        n.links[0].up = true;
        assert_refused(&n, "lo is up");
        n = empty;
        strcpy(n.links[0].name, "lo0");
        assert_refused(&n, "lo0");
        n = empty;
        n.n_links = 2;
        strcpy(n.links[1].name, "eth0");
        assert_refused(&n, "eth0");
        strcpy(n.links[1].name, "lo");
        assert_refused(&n, "2 links");
        n = empty;
        n.n_links = NETWORK_LINKS_MAX + 1;
        assert_refused(&n, "besides lo");
        n = empty;
        n.n_addresses = 1;
        assert_refused(&n, "1 addresses");
        n = empty;
        n.n_routes = 3;
        assert_refused(&n, "3 routes");
}

static struct nl_sock *open_socket(void) {
        struct nl_sock *sock = nl_socket_alloc();

        assert(sock && nl_connect(sock, NETLINK_ROUTE) == 0);
        return sock;
}

static void gather(Network *network) {
        Failure failure = {0};

        assert(network_gather(network, &failure) == 0);
}

static void a_new_namespace_is_empty(void) {
        Failure failure = {0};
        Network network;

        gather(&network);
        if (network_check(&network, &failure) < 0)
                fprintf(stderr, "%s\n", failure.text);
        assert(network_check(&network, &failure) == 0);
}

static void lo_that_is_up_is_refused(void) {
        struct nl_sock *sock = open_socket();
        struct rtnl_link *change = rtnl_link_alloc(), *lo;
        Network network;

        assert(rtnl_link_get_kernel(sock, 0, "lo", &lo) == 0);
        rtnl_link_set_flags(change, IFF_UP);
        assert(rtnl_link_change(sock, lo, change, 0) == 0);
        gather(&network);
        assert(network.n_addresses > 0 && network.n_routes > 0); /* both come with it */
        assert_refused(&network, "lo is up");
        network.links[0].up = false;
        assert_refused(&network, "addresses");
        network.n_addresses = 0;
        assert_refused(&network, "routes");
        rtnl_link_put(lo);
        rtnl_link_put(change);
        nl_socket_free(sock);
}

/* Which types of link a kernel has differs; one is enough. */
static void a_second_link_is_refused(void) {
        static const char *const types[] = {"veth", "dummy", "bridge", "ifb"};
        struct nl_sock *sock = open_socket();
        int r = -1;

        for (size_t i = 0; i < ELEMENTSOF(types) && r < 0; i++) {
                struct rtnl_link *link = rtnl_link_alloc();

                assert(rtnl_link_set_type(link, types[i]) == 0);
                rtnl_link_set_name(link, "second");
                r = rtnl_link_add(sock, link, NLM_F_CREATE | NLM_F_EXCL);
                rtnl_link_put(link);
        }
        nl_socket_free(sock);
        if (r < 0) {
                fprintf(stderr, "not tried: the kernel has no virtual link to add\n");
        } else {
                Network network;

                gather(&network);
                assert(network.n_links >= 2 && network.n_addresses == 0 && network.n_routes == 0);
                assert_refused(&network, "besides lo");
        }
}

static void an_address_is_refused(void) {
        struct nl_sock *sock = open_socket();
        struct rtnl_addr *address = rtnl_addr_alloc();
        struct nl_addr *local;
        Network network;

        assert(nl_addr_parse("192.0.2.1/32", AF_INET, &local) == 0);
        rtnl_addr_set_ifindex(address, 1);
        assert(rtnl_addr_set_local(address, local) == 0 && rtnl_addr_add(sock, address, 0) == 0);
        gather(&network);
        assert(network.n_links == 1 && !network.links[0].up && network.n_addresses == 1);
        assert_refused(&network, "1 addresses");
        rtnl_addr_put(address);
        nl_addr_put(local);
        nl_socket_free(sock);
}

static void a_route_is_refused(void) {
        struct nl_sock *sock = open_socket();
        struct rtnl_route *route = rtnl_route_alloc();
        struct nl_addr *destination;
        Network network;

        assert(nl_addr_parse("203.0.113.0/24", AF_INET, &destination) == 0);
        assert(rtnl_route_set_dst(route, destination) == 0 && rtnl_route_set_type(route, RTN_BLACKHOLE) == 0);
        assert(rtnl_route_add(sock, route, NLM_F_CREATE) == 0);
        gather(&network);
        assert(network.n_links == 1 && network.n_addresses == 0 && network.n_routes == 1);
        assert_refused(&network, "1 routes");
        rtnl_route_put(route);
        nl_addr_put(destination);
        nl_socket_free(sock);
}

/* false when we may not make a namespace. */
static bool in_new_namespace(void (*claim)(void)) {
        int status;
        pid_t pid = fork();

        assert(pid >= 0);
        if (pid == 0) {
                if (unshare(CLONE_NEWNET) < 0)
                        _exit(SKIP);
                claim();
                _exit(0);
        }
        assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIP);
        return WEXITSTATUS(status) == 0;
}

int main(void) {
        only_lo_and_down_is_nothing();
        if (!in_new_namespace(a_new_namespace_is_empty)) {
                fprintf(stderr, "skipped in part: making a network namespace takes root\n");
                return SKIP;
        }
        assert(in_new_namespace(lo_that_is_up_is_refused));
        assert(in_new_namespace(a_second_link_is_refused));
        assert(in_new_namespace(an_address_is_refused));
        assert(in_new_namespace(a_route_is_refused));
        return 0;
}
