/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The one table of errors. The manager sends the names, the gateway turns them into HTTP statuses and ephemeralctl into exit
 * codes; names are a promise to clients and are never reused for something else.
 */
#include "common/errors.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define ROW(k, n, http, exit_status, e)                                                                               \
        [k] = {.kind = (k),                                                                                           \
               .name = ERROR_PREFIX n,                                                                                \
               .http_status = (http),                                                                                 \
               .exit_code = (exit_status),                                                                            \
               .errno_value = (e)}

static const ErrorInfo error_table[ERROR_KIND_MAX] = {
        ROW(ERROR_INTERNAL, "Internal", 500, 125, EIO),
        ROW(ERROR_INVALID_REQUEST, "InvalidRequest", 400, 126, EINVAL),
        ROW(ERROR_UNKNOWN_WORKFLOW, "UnknownWorkflow", 404, 126, ENOENT),
        ROW(ERROR_WORKFLOW_UNREADABLE, "WorkflowUnreadable", 503, 125, EBADMSG),
        ROW(ERROR_NO_SUCH_RUN, "NoSuchRun", 404, 126, ESRCH),
        ROW(ERROR_NOT_PERMITTED, "NotPermitted", 403, 126, EACCES),
        ROW(ERROR_REQUEST_TOO_LARGE, "RequestTooLarge", 413, 126, EMSGSIZE),
        ROW(ERROR_QUEUE_FULL, "QueueFull", 429, 125, EBUSY),
        ROW(ERROR_RUN_ENDED, "RunEnded", 409, 126, EALREADY),
        ROW(ERROR_NOT_SUPPORTED, "NotSupported", 501, 126, EOPNOTSUPP),
        ROW(ERROR_NO_SUCH_IMAGE, "NoSuchImage", 503, 125, ENOENT),
        ROW(ERROR_IMAGE_UNREADABLE, "ImageUnreadable", 503, 125, EBADMSG),
        ROW(ERROR_NO_QEMU, "NoQemu", 503, 125, ENOENT),
        ROW(ERROR_QEMU_TOO_OLD, "QemuTooOld", 503, 125, EPROTONOSUPPORT),
        ROW(ERROR_NO_HARDWARE_VIRTUALIZATION, "NoHardwareVirtualization", 503, 125, ENODEV),
        ROW(ERROR_INSUFFICIENT_MEMORY, "InsufficientMemory", 507, 125, ENOMEM),
        ROW(ERROR_DISK_FULL, "DiskFull", 507, 125, ENOSPC),
        ROW(ERROR_SYSTEMD_UNAVAILABLE, "SystemdUnavailable", 503, 125, ECONNREFUSED),
};

const ErrorInfo *error_info(const char *name) {
        if (!name)
                return NULL;
        for (size_t i = 0; i < ERROR_KIND_MAX; i++)
                if (strcmp(error_table[i].name, name) == 0)
                        return &error_table[i];
        return NULL;
}

const ErrorInfo *error_info_by_kind(ErrorKind kind) {
        return &error_table[(unsigned) kind < ERROR_KIND_MAX ? kind : ERROR_INTERNAL];
}

int error_set(sd_bus_error *e, ErrorKind kind, const char *format, ...) {
        const ErrorInfo *info = error_info_by_kind(kind);
        va_list ap;

        if (e && !sd_bus_error_is_set(e)) {
                va_start(ap, format);
                /* Its own return value only says that libsystemd does not know the name. */
                (void) sd_bus_error_setfv(e, info->name, format, ap);
                va_end(ap);
        }
        return -info->errno_value;
}
