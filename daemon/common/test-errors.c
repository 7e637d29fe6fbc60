/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/errors.h"

static void every_kind_has_a_row_of_its_own(void) {
        for (unsigned k = 0; k < ERROR_KIND_MAX; k++) {
                const ErrorInfo *info = error_info_by_kind((ErrorKind) k);

                assert(info->kind == k);
                assert(strncmp(info->name, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0);
                assert(info->http_status >= 400 && info->http_status <= 599);
                assert(info->exit_code == 125 || info->exit_code == 126);
                assert(info->errno_value > 0);
                assert(error_info(info->name) == info);
        }
}

static void foreign_names_have_no_row(void) {
        assert(!error_info(NULL));
        assert(!error_info(""));
        assert(!error_info("org.freedesktop.DBus.Error.Failed"));
        assert(!error_info(ERROR_PREFIX "Nonsense"));
        assert(error_info_by_kind((ErrorKind) 9999)->kind == ERROR_INTERNAL);
}

static void setting_fills_in_name_and_text_and_returns_the_errno(void) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;

        assert(error_set(&e, ERROR_QUEUE_FULL, "%d runs wait", 7) == -EBUSY);
        assert(strcmp(e.name, "org.ephemeral1.Error.QueueFull") == 0);
        assert(strcmp(e.message, "7 runs wait") == 0);
}

static void the_first_error_is_kept(void) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;

        assert(error_set(&e, ERROR_NO_QEMU, "first") < 0);
        assert(error_set(&e, ERROR_INTERNAL, "second") == -EIO);
        assert(strcmp(e.message, "first") == 0);
        assert(error_set(NULL, ERROR_NO_SUCH_RUN, "nobody listens") == -ESRCH);
}

int main(void) {
        every_kind_has_a_row_of_its_own();
        foreign_names_have_no_row();
        setting_fills_in_name_and_text_and_returns_the_errno();
        the_first_error_is_kept();
        return 0;
}
