/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Stdin to the run. Pipes and terminals are waited for; a regular file is always ready, which epoll refuses to say, so
 * it is read from a deferred source. A run that ends before its input does is no error.
 */
#include "ctl/input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/errors.h"
#include "ctl/terminal.h"

#define INPUT_SIZE 32768 /* half the guest's window */

struct Input {
        Ctl *ctl;
        char *path;
        sd_event_source *source;
        sd_bus_slot *call;
        bool at_end;
};

static int input_send(Input *input, const void *data, size_t size);

static void input_stop(Input *input) {
        input->source = sd_event_source_disable_unref(input->source);
        input->call = sd_bus_slot_unref(input->call);
}

static int input_read(Input *input) {
        char data[INPUT_SIZE];
        ssize_t n = read(STDIN_FILENO, data, sizeof(data));
        int r;

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return 0;
        if (n < 0)
                print_error("Cannot read standard input: %s.", strerror(errno));
        input->at_end = n <= 0;
        sd_event_source_set_enabled(input->source, SD_EVENT_OFF);
        r = input_send(input, data, n > 0 ? (size_t) n : 0);
        if (r < 0) {
                client_failed(NULL, r);
                input_stop(input);
        }
        return 0;
}

static int on_stdin(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        return input_read(userdata);
}

static int on_ready(sd_event_source *s, void *userdata) {
        return input_read(userdata);
}

static int on_sent(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Input *input = userdata;

        if (error &&
            !sd_bus_error_has_names(error, ERROR_PREFIX "RunEnded", ERROR_PREFIX "NoSuchRun", SD_BUS_ERROR_NO_REPLY))
                client_failed(error, -EIO);
        if (error || input->at_end) {
                input_stop(input);
                return 0;
        }
        input->call = sd_bus_slot_unref(input->call);
        return sd_event_source_set_enabled(input->source, SD_EVENT_ON);
}

static int input_send(Input *input, const void *data, size_t size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = client_message(input->ctl, RUN_METHOD(input->path, "SendInput"), &m);
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'y', data, size);
        return r < 0 ? r : sd_bus_call_async(input->ctl->bus, &input->call, m, on_sent, input, UINT64_MAX);
}

int input_new(Ctl *ctl, sd_event *event, const char *path, Input **ret) {
        _cleanup_(input_freep) Input *input = calloc(1, sizeof(*input));
        int r;

        if (!input)
                return -ENOMEM;
        input->ctl = ctl;
        input->path = strdup(path);
        if (!input->path)
                return -ENOMEM;
        r = sd_event_add_io(event, &input->source, STDIN_FILENO, EPOLLIN, on_stdin, input);
        if (r == -EPERM) {
                r = sd_event_add_defer(event, &input->source, on_ready, input);
                if (r >= 0)
                        r = sd_event_source_set_enabled(input->source, SD_EVENT_ON);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(input);
        return 0;
}

Input *input_free(Input *input) {
        if (!input)
                return NULL;
        input_stop(input);
        free(input->path);
        free(input);
        return NULL;
}
