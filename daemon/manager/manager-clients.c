/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Subscribers of the manager itself: RunNew(s id, o run) and RunEnded(s id, o run, s outcome), for the runs that each of them may read.
 */
#include <errno.h>
#include <string.h>

#include "manager/bus.h"

enum {
        SMALL_SIGNAL_SIZE = 256, /* about what RunNew and RunEnded take */
};

typedef struct ManagerClient ManagerClient;

struct ManagerClient {
        LIST_ENTRY(ManagerClient) clients;
        Manager *manager;
        Subscriber *subscriber;
        uid_t uid;
};

struct ManagerClients {
        LIST_HEAD(, ManagerClient) clients;
};

int manager_clients_new(Manager *m, ManagerClients **ret) {
        ManagerClients *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        LIST_INIT(&c->clients);
        *ret = c;
        return 0;
}

static void client_free(ManagerClient *client) {
        LIST_REMOVE(client, clients);
        client->manager->n_watchers--;
        subscriber_free(client->subscriber);
        free(client);
}

ManagerClients *manager_clients_free(ManagerClients *c) {
        if (!c)
                return NULL;
        while (!LIST_EMPTY(&c->clients))
                client_free(LIST_FIRST(&c->clients));
        free(c);
        return NULL;
}

static void on_gone(Subscriber *s, void *userdata) {
        client_free(userdata);
}

int manager_clients_subscribe(Manager *m, const char *name, uid_t uid) {
        SubscriberOptions options = {
                .name = name, .uid = uid, .path = BUS_ROOT, .interface = BUS_MANAGER, .on_gone = on_gone};
        ManagerClient *client;
        int r;

        LIST_FOREACH (client, &m->clients->clients, clients)
                if (strcmp(subscriber_name(client->subscriber), name) == 0)
                        return 0;
        client = calloc(1, sizeof(*client));
        if (!client)
                return -ENOMEM;
        client->manager = m;
        client->uid = uid;
        options.userdata = client;
        r = subscriber_new(m->hub, &options, &client->subscriber);
        if (r < 0) {
                free(client);
                return r;
        }
        LIST_INSERT_HEAD(&m->clients->clients, client, clients);
        m->n_watchers++;
        return 0;
}

static void tell(Run *run, const char *member, const char *outcome) {
        ManagerClient *client;

        LIST_FOREACH (client, &run->manager->clients->clients, clients) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
                int r;

                if (client->uid != 0 && client->uid != run->owner)
                        continue;
                r = sd_bus_message_new_signal(run->manager->signal_bus, &m, BUS_ROOT, BUS_MANAGER, member);
                if (r >= 0)
                        r = sd_bus_message_append(m, "so", run->id, run->path);
                if (r >= 0 && outcome)
                        r = sd_bus_message_append(m, "s", outcome);
                if (r >= 0)
                        (void) subscriber_send(client->subscriber, m, SMALL_SIGNAL_SIZE);
        }
}

void manager_clients_run_new(Run *run) {
        tell(run, "RunNew", NULL);
}

void manager_clients_run_ended(Run *run) {
        tell(run, "RunEnded", outcome_name(run->outcome));
}
