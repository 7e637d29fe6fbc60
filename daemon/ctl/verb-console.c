/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl console: what the guest's kernel and init say, to look at (Attach gives a read-only fd).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <string.h>

#include "common/fd.h"
#include "common/neutral.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/terminal.h"

enum { CONSOLE_RAW = 1 };

static const Option console_options[] = {
        {CONSOLE_RAW, 0, "raw", NULL, "Control characters reach the terminal as they are"},
        {0,           0, NULL,  NULL, NULL                                               },
};

static int write_piece(Neutraliser *neutraliser, const char *data, size_t size) {
        _cleanup_(freep) char *text = NULL;

        if (!neutraliser)
                return fd_write_all(STDOUT_FILENO, data, size);
        text = size > 0 ? neutraliser_feed(neutraliser, data, size) : neutraliser_finish(neutraliser);
        return text ? fd_write_all(STDOUT_FILENO, text, strlen(text)) : -ENOMEM;
}

/* A serial console ends its lines with CR LF; neutralised, the CR would show. */
static size_t drop_carriage_returns(char *data, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++)
                if (data[i] != '\r')
                        data[n++] = data[i];
        return n;
}

static int console_copy(int fd, bool raw) {
        Neutraliser neutraliser = {0}, *n = raw ? NULL : &neutraliser;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char data[4096];
        int r = 0;

        while (r >= 0) {
                ssize_t size;

                if (poll(&p, 1, -1) < 0)
                        continue;
                size = read(fd, data, sizeof(data));
                if (size < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (size <= 0)
                        break;
                if (n)
                        size = (ssize_t) drop_carriage_returns(data, (size_t) size);
                if (size > 0)
                        r = write_piece(n, data, (size_t) size);
        }
        return r < 0 || !n ? r : write_piece(n, NULL, 0);
}

static int console(Ctl *ctl, int argc, char *argv[]) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(freep) char *id = NULL, *path = NULL;
        bool raw = !isatty(STDOUT_FILENO);
        const char *value;
        int option, r, fd;

        while ((option = options_next(ctl, argc, argv, &value)) > 0)
                raw = true;
        if (option < 0)
                return options_exit_code(ctl, option);
        if (argc - optind != 1)
                return usage_error(ctl, "It takes one run.");
        r = client_open(ctl);
        if (r == 0)
                r = client_resolve_run(ctl, argv[optind], &id, &path);
        if (r == 0)
                r = client_call(ctl, RUN_METHOD(path, "Attach"), &reply, NULL);
        if (r != 0)
                return r;
        r = sd_bus_message_read(reply, "h", &fd);
        if (r < 0)
                return client_bad_answer(r);
        r = console_copy(fd, raw);
        if (r < 0)
                print_error("Cannot write to standard output: %s.", strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

const Verb verb_console = {
        .name = "console",
        .arguments = "RUN",
        .summary = "Show the console of a run: its kernel and init",
        .more = "It goes on until the run has ended. What the command writes is not there: that is its output.",
        .options = console_options,
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = console,
};
