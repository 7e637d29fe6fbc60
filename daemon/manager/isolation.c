/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pure judgement over what jail, QEMU and guest said; vm.c asks them. What is not expected is refused, also when it is less than
 * was planned: a machine that differs from its plan is not understood.
 */
#include "manager/isolation.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
        QOM_LIST_MAX = 1024,
};

/* What the board itself is made of; anything else in /machine/unattached is refused. */
static const char *const board_types[] = {
        "System",   "acpi-ged",      "acpi-ged-x86",  "ioapic",      "irq",     "isa-i8259",
        "isa-pit",  "isabus-bridge", "kvm-i8259",     "kvm-ioapic",  "kvm-pit", "kvmclock",
        "kvmvapic", "mc146818rtc",   "memory-region", "virtio-mmio",
};

void isolation_done(Isolation *i) {
        json_object_put(i->devices);
        json_object_put(i->guest);
        *i = (Isolation){0};
}

static int refuse(char **reterr, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (vasprintf(reterr, format, ap) < 0)
                *reterr = NULL;
        va_end(ap);
        return -EPERM;
}

int isolation_check_namespace(Isolation *i, const char *facts, char **reterr) {
        char expected[96];

        snprintf(expected, sizeof(expected), "uid=%u links=lo:down addresses=0 routes=0", (unsigned) i->uid);
        if (strcmp(facts, expected) != 0)
                return refuse(reterr, "the jail is not as planned: it reports \"%.200s\", expected \"%s\"", facts,
                              expected);
        i->namespace_verified = true;
        return 0;
}

/* The type in "child<TYPE>", into a buffer; NULL for what is no child (properties, links). */
static const char *child_type(json_object *entry, char buffer[static 64]) {
        json_object *type;
        const char *text;
        size_t size;

        if (!json_object_object_get_ex(entry, "type", &type))
                return NULL;
        text = json_object_get_string(type);
        if (!text || strncmp(text, "child<", 6) != 0)
                return NULL;
        size = strcspn(text + 6, ">");
        snprintf(buffer, 64, "%.*s", (int) (size > 63 ? 63 : size), text + 6);
        return buffer;
}

static const char *entry_name(json_object *entry) {
        json_object *name;

        return json_object_object_get_ex(entry, "name", &name) ? json_object_get_string(name) : "";
}

static bool is_list(json_object *o) {
        return json_object_is_type(o, json_type_array) && json_object_array_length(o) <= QOM_LIST_MAX;
}

static bool is_planned(const char *id, const char *type) {
        for (const PlanDevice *d = plan_devices; d->id; d++)
                if (strcmp(d->id, id) == 0 && strcmp(d->type, type) == 0)
                        return true;
        return false;
}

static int check_peripheral(Isolation *i, json_object *list, char **reterr) {
        size_t planned = 0, found = 0;
        char type[64];

        for (const PlanDevice *d = plan_devices; d->id; d++)
                planned++;
        for (size_t n = 0; n < json_object_array_length(list); n++) {
                json_object *entry = json_object_array_get_idx(list, n);

                if (!child_type(entry, type))
                        continue;
                if (!is_planned(entry_name(entry), type))
                        return refuse(reterr, "the machine has a device that was not planned: %.64s (%s)",
                                      entry_name(entry), type);
                if (json_object_array_add(i->devices, json_object_new_string(type)) < 0)
                        return refuse(reterr, "out of memory");
                found++;
        }
        if (found != planned)
                return refuse(reterr, "the machine has %zu of its %zu planned devices", found, planned);
        return 0;
}

static bool is_board_type(const char *type) {
        size_t size = strlen(type);

        for (size_t n = 0; n < sizeof(board_types) / sizeof(board_types[0]); n++)
                if (strcmp(board_types[n], type) == 0)
                        return true;
        return size > 11 && strcmp(type + size - 11, "-x86_64-cpu") == 0;
}

static int check_board(json_object *unattached, json_object *anonymous, char **reterr) {
        char type[64];

        for (size_t n = 0; n < json_object_array_length(unattached); n++) {
                json_object *entry = json_object_array_get_idx(unattached, n);

                if (child_type(entry, type) && !is_board_type(type))
                        return refuse(reterr, "the machine's board has a device that was not planned: %.64s (%s)",
                                      entry_name(entry), type);
        }
        for (size_t n = 0; n < json_object_array_length(anonymous); n++)
                if (child_type(json_object_array_get_idx(anonymous, n), type))
                        return refuse(reterr, "the machine has a device that was not planned: %s, without a name",
                                      type);
        return 0;
}

int isolation_check_devices(Isolation *i, const IsolationDevices *answers, char **reterr) {
        json_object *enabled;
        int r;

        if (!is_list(answers->peripheral) || !is_list(answers->anonymous) || !is_list(answers->unattached) ||
            !is_list(answers->rx_filter) || !json_object_object_get_ex(answers->kvm, "enabled", &enabled))
                return refuse(reterr, "QEMU does not tell its devices");
        if (json_object_array_length(answers->rx_filter) > 0)
                return refuse(reterr, "the machine has a network device");
        if (json_object_get_boolean(enabled) != i->kvm)
                return refuse(reterr, "the machine runs %s KVM, and was planned otherwise",
                              i->kvm ? "without" : "with");
        json_object_put(i->devices);
        i->devices = json_object_new_array();
        if (!i->devices)
                return refuse(reterr, "out of memory");
        r = check_peripheral(i, answers->peripheral, reterr);
        if (r < 0)
                return r;
        r = check_board(answers->unattached, answers->anonymous, reterr);
        if (r < 0)
                return r;
        i->devices_verified = true;
        return 0;
}

static json_object *link_object(const char *name, bool up) {
        json_object *o = json_object_new_object();

        json_object_object_add(o, "name", json_object_new_string(name));
        json_object_object_add(o, "up", json_object_new_boolean(up));
        return o;
}

int isolation_check_guest(Isolation *i, const LinksMessage *links, char **reterr) {
        json_object_put(i->guest);
        i->guest = json_object_new_array();
        for (size_t n = 0; n < links->n_links; n++) {
                const GuestLink *l = &links->links[n];

                if (strcmp(l->name, "lo") != 0 || !(l->flags & IFF_LOOPBACK))
                        return refuse(reterr, "the guest has a network interface: %s", l->name);
                json_object_array_add(i->guest, link_object(l->name, l->flags & IFF_UP));
        }
        i->guest_verified = true;
        return 0;
}

bool isolation_is_verified(const Isolation *i) {
        return i->namespace_verified && i->devices_verified && i->guest_verified;
}

json_object *isolation_to_json(const Isolation *i) {
        json_object *o = json_object_new_object(), *names = json_object_new_object(), *links = json_object_new_array();
        json_object *guest = json_object_new_object();

        /* exactly what isolation_check_namespace() let through */
        json_object_array_add(links, link_object("lo", false));
        json_object_object_add(names, "links", links);
        json_object_object_add(names, "addresses", json_object_new_int(0));
        json_object_object_add(names, "routes", json_object_new_int(0));
        json_object_object_add(guest, "links", json_object_get(i->guest));

        json_object_object_add(o, "namespace", names);
        json_object_object_add(o, "devices", json_object_get(i->devices));
        json_object_object_add(o, "guest", guest);
        json_object_object_add(o, "uid", json_object_new_int64(i->uid));
        json_object_object_add(o, "accelerator", json_object_new_string(i->kvm ? "kvm" : "tcg"));
        json_object_object_add(o, "hardware_virtualization", json_object_new_boolean(i->kvm));
        return o;
}
