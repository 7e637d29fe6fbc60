/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one table of errors that a caller can meet: D-Bus name, HTTP status, exit code of ephemeralctl. */

#include <systemd/sd-bus.h>

#define ERROR_PREFIX "org.ephemeral1.Error."

typedef enum ErrorKind {
        ERROR_INTERNAL,
        ERROR_INVALID_REQUEST,
        ERROR_UNKNOWN_WORKFLOW,
        ERROR_WORKFLOW_UNREADABLE,
        ERROR_NO_SUCH_RUN,
        ERROR_NOT_PERMITTED,
        ERROR_REQUEST_TOO_LARGE,
        ERROR_QUEUE_FULL,
        ERROR_RUN_ENDED,
        ERROR_NOT_SUPPORTED,
        ERROR_NO_SUCH_IMAGE,
        ERROR_IMAGE_UNREADABLE,
        ERROR_NO_QEMU,
        ERROR_QEMU_TOO_OLD,
        ERROR_NO_HARDWARE_VIRTUALIZATION,
        ERROR_INSUFFICIENT_MEMORY,
        ERROR_DISK_FULL,
        ERROR_SYSTEMD_UNAVAILABLE,
        ERROR_KIND_MAX, /* how many there are */
} ErrorKind;

typedef struct ErrorInfo {
        ErrorKind kind;
        const char *name; /* org.ephemeral1.Error.X */
        int http_status;
        int exit_code;   /* of ephemeralctl, design 17.5 */
        int errno_value; /* positive */
} ErrorInfo;

/* The row of a D-Bus error name; for a name that is none of ours (or NULL), NULL. */
const ErrorInfo *error_info(const char *name);

/* The row of a kind; never NULL. */
const ErrorInfo *error_info_by_kind(ErrorKind kind);

/* Fills e (may be NULL) unless an error is in it already, and returns the kind's negative errno: `return error_set(…)`. */
int error_set(sd_bus_error *e, ErrorKind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
