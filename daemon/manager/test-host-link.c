/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The guest's control port against a guest that is played here, byte by byte. Every order that is not the contract's is refused once.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "manager/host-link.h"

typedef struct Fixture {
        sd_event *event;
        HostLink *link;
        int guest;
        unsigned n_hello, n_links, n_started, n_exited, n_closed, n_broken, n_drained;
        size_t n_output;
        char reason[256];
        FrameReader reader;
} Fixture;

static void on_hello(void *userdata, const HelloMessage *m) {
        ((Fixture *) userdata)->n_hello++;
}

static void on_links(void *userdata, const LinksMessage *m) {
        ((Fixture *) userdata)->n_links++;
}

static void on_started(void *userdata, uint32_t pid) {
        ((Fixture *) userdata)->n_started++;
}

static void on_output(void *userdata, int stream, const uint8_t *data, size_t size) {
        ((Fixture *) userdata)->n_output += size;
}

static void on_exited(void *userdata, const ExitedMessage *m) {
        ((Fixture *) userdata)->n_exited++;
}

static void on_log(void *userdata, const char *text, size_t size) {
}

static void on_drained(void *userdata) {
        ((Fixture *) userdata)->n_drained++;
}

static void on_closed(void *userdata) {
        ((Fixture *) userdata)->n_closed++;
}

static void on_broken(void *userdata, const char *reason) {
        Fixture *f = userdata;

        f->n_broken++;
        strncpy(f->reason, reason, sizeof(f->reason) - 1);
}

static Fixture *fixture_new(void) {
        Fixture *f = calloc(1, sizeof(*f));
        HostLinkHandlers handlers = {on_hello, on_links,   on_started, on_output, on_exited,
                                     on_log,   on_drained, on_closed,  on_broken, f};
        int pair[2];

        assert(f && sd_event_new(&f->event) == 0);
        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        f->guest = pair[1];
        frame_reader_init(&f->reader);
        assert(host_link_new(f->event, pair[0], &handlers, &f->link) == 0);
        return f;
}

static void fixture_free(Fixture *f) {
        host_link_free(f->link);
        frame_reader_done(&f->reader);
        fd_close(f->guest);
        sd_event_unref(f->event);
        free(f);
}

static void settle(Fixture *f) {
        int r;

        while ((r = sd_event_run(f->event, 0)) > 0)
                ;
        assert(r == 0);
}

static void say(Fixture *f, uint8_t type, const void *data, size_t size) {
        uint8_t header[FRAME_HEADER_SIZE];

        frame_encode_header(header, type, size);
        assert(fd_write_all(f->guest, header, sizeof(header)) == 0);
        assert(fd_write_all(f->guest, data, size) == 0);
        settle(f);
}

static void say_hello(Fixture *f) {
        uint8_t frame[HELLO_FRAME_SIZE_MAX];
        ssize_t n = message_encode_hello(frame, &(HelloMessage){MESSAGE_PROTOCOL_VERSION, "6.1.0"});

        assert(n > 0 && fd_write_all(f->guest, frame, (size_t) n) == 0);
        settle(f);
}

static void say_links(Fixture *f) {
        uint8_t frame[LINKS_FRAME_SIZE_MAX];
        ssize_t n = message_encode_links(frame, &(LinksMessage){.n_links = 1, .links = {{1, 9, "lo"}}});

        assert(n > 0 && fd_write_all(f->guest, frame, (size_t) n) == 0);
        settle(f);
}

static void say_started(Fixture *f) {
        uint8_t frame[STARTED_FRAME_SIZE];
        ssize_t n = message_encode_started(frame, 42);

        assert(n > 0 && fd_write_all(f->guest, frame, (size_t) n) == 0);
        settle(f);
}

static void say_exited(Fixture *f) {
        uint8_t frame[EXITED_FRAME_SIZE];
        ssize_t n = message_encode_exited(frame, &(ExitedMessage){.how = EXITED_NORMALLY, .status = 3});

        assert(n > 0 && fd_write_all(f->guest, frame, (size_t) n) == 0);
        settle(f);
}

static void say_credit(Fixture *f, uint32_t bytes) {
        uint8_t frame[CREDIT_FRAME_SIZE];
        ssize_t n = message_encode_stdin_credit(frame, bytes);

        assert(n > 0 && fd_write_all(f->guest, frame, (size_t) n) == 0);
        settle(f);
}

static void become_ready(Fixture *f) {
        say_hello(f);
        assert(f->n_hello == 1);
        assert(host_link_send_setup(f->link, &(SetupMessage){.realtime_usec = 1, .hostname = "run"}) == 0);
        say_links(f);
        assert(f->n_links == 1);
}

static void become_started(Fixture *f) {
        become_ready(f);
        assert(host_link_send_bytes(f->link, FRAME_ARG, "true", 4) == 0);
        assert(host_link_send_start(f->link, &(StartMessage){1000, 1000, START_STDIN}) == 0);
        say_started(f);
        assert(f->n_started == 1);
}

/* The bytes of STDIN frames that the guest has been sent. */
static size_t take_input(Fixture *f) {
        size_t n = 0;
        Frame frame;

        assert(fd_set_nonblocking(f->guest, true) == 0);
        while (frame_reader_fill(&f->reader, f->guest) > 0)
                while (frame_reader_next(&f->reader, &frame) > 0)
                        if (frame.type == FRAME_STDIN)
                                n += frame.size;
        assert(fd_set_nonblocking(f->guest, false) == 0);
        return n;
}

static void a_run_in_order_is_heard_whole(void) {
        Fixture *f = fixture_new();

        become_started(f);
        say(f, FRAME_STDOUT, "hello", 5);
        say(f, FRAME_STDERR, "oops", 4);
        say_exited(f);
        assert(f->n_output == 9 && f->n_exited == 1 && f->n_broken == 0);
        fd_close(f->guest);
        f->guest = -EBADF;
        settle(f);
        assert(f->n_closed == 1 && f->n_broken == 0);
        fixture_free(f);
}

static void a_guest_takes_one_command_after_another(void) {
        Fixture *f = fixture_new();
        static uint8_t data[STDIN_WINDOW_BYTES + 1];

        become_started(f);
        assert(host_link_send_stdin(f->link, data, sizeof(data)) == 0); /* a byte waits for the window */
        say_exited(f);
        assert(take_input(f) == STDIN_WINDOW_BYTES);
        assert(host_link_send_stdin(f->link, "x", 1) == -EPROTO);

        assert(host_link_send_setup(f->link, &(SetupMessage){.realtime_usec = 1, .hostname = "again"}) == 0);
        say_links(f);
        assert(f->n_links == 2);
        assert(host_link_send_bytes(f->link, FRAME_ARG, "cat", 3) == 0);
        assert(host_link_send_start(f->link, &(StartMessage){1000, 1000, START_STDIN}) == 0);
        say_started(f);
        assert(host_link_send_stdin(f->link, data, STDIN_WINDOW_BYTES) == 1); /* the window is whole again */
        assert(take_input(f) == STDIN_WINDOW_BYTES);
        say_exited(f);
        assert(f->n_started == 2 && f->n_exited == 2 && f->n_broken == 0);
        fixture_free(f);
}

static void a_clone_is_greeted_without_hello(void) {
        Fixture *f = fixture_new();

        host_link_skip_hello(f->link);
        assert(host_link_send_setup(f->link, &(SetupMessage){.realtime_usec = 1, .hostname = "clone"}) == 0);
        say_links(f);
        assert(f->n_links == 1 && f->n_broken == 0);
        fixture_free(f);
}

static void expect_broken(Fixture *f, const char *words) {
        assert(f->n_broken == 1 && strstr(f->reason, words));
        settle(f);
        assert(f->n_broken == 1 && f->n_closed == 0);
        fixture_free(f);
}

static void frames_out_of_order_end_the_link(void) {
        Fixture *f;

        f = fixture_new();
        say(f, FRAME_STDOUT, "x", 1);
        expect_broken(f, "out of order");
        f = fixture_new();
        say_hello(f);
        say_hello(f);
        expect_broken(f, "out of order");
        f = fixture_new();
        say_hello(f);
        say_links(f);
        expect_broken(f, "out of order");
        f = fixture_new();
        become_ready(f);
        say_started(f);
        expect_broken(f, "out of order");
        f = fixture_new();
        become_started(f);
        say_exited(f);
        say(f, FRAME_STDOUT, "x", 1);
        assert(f->n_output == 0);
        expect_broken(f, "out of order");
        f = fixture_new();
        become_started(f);
        say_exited(f);
        say_exited(f);
        assert(f->n_exited == 1);
        expect_broken(f, "out of order");
}

static void frames_that_are_the_hosts_or_nobodys_end_the_link(void) {
        Fixture *f;

        f = fixture_new();
        become_started(f);
        say(f, FRAME_SIGNAL, "\x09", 1);
        expect_broken(f, "cannot be");
        f = fixture_new();
        say(f, 0xff, "x", 1);
        expect_broken(f, "cannot be");
        f = fixture_new();
        become_started(f);
        say(f, FRAME_STDOUT, NULL, 0);
        expect_broken(f, "cannot be");
}

static void a_broken_header_ends_the_link(void) {
        static const uint8_t headers[][FRAME_HEADER_SIZE] = {
                {0xff, 0xff, 0xff, 0xff, FRAME_HELLO, 1, 0, 0},
                {0x00, 0x00, 0x00, 0x80, FRAME_HELLO, 1, 0, 0},
                {0x01, 0x00, 0x02, 0x00, FRAME_HELLO, 1, 0, 0},
                {0x04, 0x00, 0x00, 0x00, FRAME_HELLO, 2, 0, 0},
                {0x04, 0x00, 0x00, 0x00, FRAME_HELLO, 1, 1, 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(headers); i++) {
                Fixture *f = fixture_new();

                assert(fd_write_all(f->guest, headers[i], FRAME_HEADER_SIZE) == 0);
                settle(f);
                expect_broken(f, "framing");
        }
}

static void the_guests_own_failure_is_the_reason(void) {
        Fixture *f = fixture_new();

        say(f, FRAME_FAILED, "no root", 7);
        expect_broken(f, "cannot go on: no root");
}

static void another_version_of_the_protocol_is_told(void) {
        Fixture *f = fixture_new();
        uint8_t frame[HELLO_FRAME_SIZE_MAX];
        ssize_t n = message_encode_hello(frame, &(HelloMessage){MESSAGE_PROTOCOL_VERSION + 1, "6.1.0"});

        assert(n > 0 && fd_write_all(f->guest, frame, (size_t) n) == 0);
        settle(f);
        expect_broken(f, "build the image again");
}

static void input_waits_for_the_window(void) {
        static uint8_t data[STDIN_WINDOW_BYTES + 1000];
        Fixture *f = fixture_new();

        become_started(f);
        assert(host_link_send_stdin(f->link, data, sizeof(data)) == 0);
        assert(host_link_send_stdin(f->link, data, 1) == -EBUSY);
        settle(f);
        assert(take_input(f) == STDIN_WINDOW_BYTES && f->n_drained == 0);
        say_credit(f, 600);
        assert(take_input(f) == 600 && f->n_drained == 0);
        say_credit(f, 5000);
        assert(take_input(f) == 400 && f->n_drained == 1);
        assert(host_link_send_stdin(f->link, data, 10) == 1);
        assert(host_link_send_stdin(f->link, NULL, 0) == 1);
        assert(host_link_send_stdin(f->link, data, 1) == -EPROTO);
        fixture_free(f);
}

static void a_guest_that_gives_back_more_than_it_had_is_refused(void) {
        Fixture *f = fixture_new();

        become_started(f);
        say_credit(f, 1);
        expect_broken(f, "more of the stdin window");
}

static void while_paused_nothing_is_heard_and_nothing_is_lost(void) {
        static uint8_t data[1000];
        Fixture *f = fixture_new();

        become_started(f);
        assert(host_link_set_paused(f->link, true) >= 0);
        for (unsigned i = 0; i < 50; i++)
                say(f, FRAME_STDOUT, data, sizeof(data));
        assert(f->n_output == 0);
        fd_close(f->guest);
        f->guest = -EBADF;
        settle(f);
        assert(f->n_closed == 0);
        assert(host_link_set_paused(f->link, false) >= 0);
        settle(f);
        assert(f->n_output == 50 * sizeof(data) && f->n_closed == 1);
        fixture_free(f);
}

static void what_is_not_its_turn_cannot_be_sent(void) {
        Fixture *f = fixture_new();

        assert(host_link_send_setup(f->link, &(SetupMessage){.hostname = "x"}) == -EPROTO);
        assert(host_link_send_bytes(f->link, FRAME_ARG, "x", 1) == -EPROTO);
        assert(host_link_send_start(f->link, &(StartMessage){0}) == -EPROTO);
        assert(host_link_send_signal(f->link, 15) == -EPROTO);
        assert(host_link_send_stdin(f->link, "x", 1) == -EPROTO);
        fixture_free(f);
}

int main(void) {
        a_run_in_order_is_heard_whole();
        a_guest_takes_one_command_after_another();
        a_clone_is_greeted_without_hello();
        frames_out_of_order_end_the_link();
        frames_that_are_the_hosts_or_nobodys_end_the_link();
        a_broken_header_ends_the_link();
        the_guests_own_failure_is_the_reason();
        another_version_of_the_protocol_is_told();
        input_waits_for_the_window();
        a_guest_that_gives_back_more_than_it_had_is_refused();
        while_paused_nothing_is_heard_and_nothing_is_lost();
        what_is_not_its_turn_cannot_be_sent();
        return 0;
}
