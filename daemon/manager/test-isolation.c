/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <net/if.h>
#include <string.h>

#include "common/json.h"
#include "manager/isolation.h"

#define GOOD_PERIPHERAL                                                                                               \
        "[{\"name\":\"type\",\"type\":\"string\"},{\"name\":\"image\",\"type\":\"child<virtio-blk-device>\"},"        \
        "{\"name\":\"entropy\",\"type\":\"child<virtio-rng-device>\"},"                                               \
        "{\"name\":\"serial\",\"type\":\"child<virtio-serial-device>\"},"                                             \
        "{\"name\":\"console\",\"type\":\"child<virtconsole>\"}"
#define CONTROL ",{\"name\":\"control\",\"type\":\"child<virtserialport>\"}"
#define GOOD_UNATTACHED                                                                                               \
        "[{\"name\":\"device[0]\",\"type\":\"child<max-x86_64-cpu>\"},{\"name\":\"a\",\"type\":\"child<virtio-mmio>"  \
        "\"}]"

typedef struct Answers {
        const char *peripheral, *anonymous, *unattached, *rx_filter, *kvm;
} Answers;

static const Answers good = {GOOD_PERIPHERAL CONTROL "]", "[{\"name\":\"type\",\"type\":\"string\"}]", GOOD_UNATTACHED,
                             "[]", "{\"enabled\":false,\"present\":true}"};

static int check(const Answers *answers, char **reterr) {
        Isolation i = {.uid = 70000};
        IsolationDevices devices = {
                .peripheral = json_tokener_parse(answers->peripheral),
                .anonymous = json_tokener_parse(answers->anonymous),
                .unattached = json_tokener_parse(answers->unattached),
                .rx_filter = json_tokener_parse(answers->rx_filter),
                .kvm = json_tokener_parse(answers->kvm),
        };
        int r = isolation_check_devices(&i, &devices, reterr);

        assert(i.devices_verified == (r == 0));
        isolation_done(&i);
        json_object_put(devices.peripheral);
        json_object_put(devices.anonymous);
        json_object_put(devices.unattached);
        json_object_put(devices.rx_filter);
        json_object_put(devices.kvm);
        return r;
}

static void expect_refused(const Answers *answers, const char *words) {
        _cleanup_(freep) char *text = NULL;

        assert(check(answers, &text) < 0);
        assert(text && strstr(text, words));
}

static void the_planned_devices_are_let_through(void) {
        _cleanup_(freep) char *text = NULL;

        assert(check(&good, &text) == 0 && !text);
}

static void a_device_too_many_is_refused(void) {
        Answers a = good;

        a.peripheral = GOOD_PERIPHERAL CONTROL ",{\"name\":\"net0\",\"type\":\"child<virtio-net-device>\"}]";
        expect_refused(&a, "net0 (virtio-net-device)");
        a.peripheral = GOOD_PERIPHERAL CONTROL ",{\"name\":\"more\",\"type\":\"child<virtserialport>\"}]";
        expect_refused(&a, "more (virtserialport)");
}

static void a_device_too_few_is_refused(void) {
        Answers a = good;

        a.peripheral = GOOD_PERIPHERAL "]";
        expect_refused(&a, "4 of its 5 planned devices");
}

static void a_device_without_a_name_is_refused(void) {
        Answers a = good;

        a.anonymous = "[{\"name\":\"device[0]\",\"type\":\"child<virtio-9p-device>\"}]";
        expect_refused(&a, "virtio-9p-device");
}

static void a_board_with_more_on_it_is_refused(void) {
        Answers a = good;

        a.unattached = "[{\"name\":\"device[7]\",\"type\":\"child<e1000>\"}]";
        expect_refused(&a, "e1000");
}

static void a_network_filter_is_refused(void) {
        Answers a = good;

        a.rx_filter = "[{\"name\":\"net0\"}]";
        expect_refused(&a, "network device");
}

static void another_accelerator_than_planned_is_refused(void) {
        Answers a = good;

        a.kvm = "{\"enabled\":true,\"present\":true}";
        expect_refused(&a, "KVM");
}

static void no_answer_is_refused(void) {
        Answers a = good;

        a.unattached = "null";
        expect_refused(&a, "does not tell");
        a = good;
        a.kvm = "{}";
        expect_refused(&a, "does not tell");
}

static void only_the_planned_namespace_is_let_through(void) {
        static const char *const bad[] = {"uid=70001 links=lo:down addresses=0 routes=0",
                                          "uid=70000 links=lo:up addresses=0 routes=0",
                                          "uid=70000 links=lo:down,eth0:up addresses=0 routes=0",
                                          "uid=70000 links=lo:down addresses=1 routes=0",
                                          "uid=70000 links=lo:down addresses=0 routes=1",
                                          "uid=70000 links=lo:down addresses=0 routes=0 ",
                                          ""};
        Isolation i = {.uid = 70000};
        _cleanup_(freep) char *none = NULL;

        for (size_t n = 0; n < ELEMENTSOF(bad); n++) {
                _cleanup_(freep) char *text = NULL;

                assert(isolation_check_namespace(&i, bad[n], &text) < 0 && text && !i.namespace_verified);
        }
        assert(isolation_check_namespace(&i, "uid=70000 links=lo:down addresses=0 routes=0", &none) == 0);
        assert(i.namespace_verified && !isolation_is_verified(&i));
        isolation_done(&i);
}

static void a_guest_with_an_interface_is_refused(void) {
        Isolation i = {.uid = 70000};
        LinksMessage links = {
                .n_links = 2, .links = {{1, IFF_UP | IFF_LOOPBACK, "lo"}, {2, IFF_UP, "eth0"}}
        };
        _cleanup_(freep) char *text = NULL, *none = NULL;

        assert(isolation_check_guest(&i, &links, &text) < 0 && strstr(text, "eth0") && !i.guest_verified);
        links.n_links = 1;
        assert(isolation_check_guest(&i, &links, &none) == 0 && i.guest_verified);
        isolation_done(&i);
}

int main(void) {
        the_planned_devices_are_let_through();
        a_device_too_many_is_refused();
        a_device_too_few_is_refused();
        a_device_without_a_name_is_refused();
        a_board_with_more_on_it_is_refused();
        a_network_filter_is_refused();
        another_accelerator_than_planned_is_refused();
        no_answer_is_refused();
        only_the_planned_namespace_is_let_through();
        a_guest_with_an_interface_is_refused();
        return 0;
}
