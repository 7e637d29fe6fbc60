/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Options of the bus's methods. Every method that may grow has an a{sv}; a name that is not known is an error and not a wish that
 * is silently dropped.
 */
#include "manager/bus-options.h"

#include <string.h>

#include "common/errors.h"

static int read_option(sd_bus_message *m, const BusOption *options, sd_bus_error *reterr_error) {
        const char *name, *contents;
        char type;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        while (options->name && strcmp(options->name, name) != 0)
                options++;
        if (!options->name)
                return error_set(reterr_error, ERROR_INVALID_REQUEST, "Option '%s' is not known to this method", name);
        r = sd_bus_message_peek_type(m, &type, &contents);
        if (r < 0)
                return r;
        if (strlen(contents) != 1 || contents[0] != options->type)
                return error_set(reterr_error, ERROR_INVALID_REQUEST,
                                 "Option '%s' must be of D-Bus type '%c', not '%s'", name, options->type, contents);
        return sd_bus_message_read(m, "v", (char[]){options->type, 0}, options->value);
}

int bus_read_options(sd_bus_message *m, const BusOption *options, sd_bus_error *reterr_error) {
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_option(m, options, reterr_error);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}
