/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The guest's network: a loopback that is up, and the list of links with which the host checks that there is no other. */

#include "init/net.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"

static int net_socket(void) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd < 0 ? -errno : fd;
}

static void set_name(struct ifreq *request, const char *name) {
        strncpy(request->ifr_name, name, sizeof(request->ifr_name) - 1);
}

int net_loopback_up(void) {
        _cleanup_(fd_closep) int fd = net_socket();
        struct ifreq request = {0};

        if (fd < 0)
                return fd;
        set_name(&request, "lo");
        if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
                return -errno;
        request.ifr_flags |= IFF_UP;
        return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int get_link(int fd, const struct if_nameindex *entry, GuestLink *ret) {
        struct ifreq request = {0};

        set_name(&request, entry->if_name);
        if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
                return -errno;

        *ret = (GuestLink){.index = entry->if_index, .flags = (uint16_t) request.ifr_flags};
        strncpy(ret->name, entry->if_name, sizeof(ret->name) - 1);
        return 0;
}

DEFINE_CLEANUP(struct if_nameindex *, if_freenameindex);

int net_list_links(LinksMessage *ret) {
        _cleanup_(if_freenameindexp) struct if_nameindex *entries = if_nameindex();
        _cleanup_(fd_closep) int fd = net_socket();

        if (!entries)
                return -errno;
        if (fd < 0)
                return fd;

        ret->n_links = 0;
        for (const struct if_nameindex *entry = entries; entry->if_index != 0; entry++) {
                int r;

                if (ret->n_links == LINKS_MAX)
                        return -E2BIG;
                r = get_link(fd, entry, &ret->links[ret->n_links]);
                if (r < 0)
                        return r;
                ret->n_links++;
        }
        return 0;
}
