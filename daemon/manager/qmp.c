/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * QMP over a socket pair, event driven. vm.c uses it to look at the planned devices, to let the machine go, and to learn why it
 * ended. Commands are answered in order by QEMU when they carry no "oob", so the calls are a ring and need no ids.
 */
#include "manager/qmp.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/fd.h"

typedef struct QmpCall {
        QmpReplyHandler handler;
        void *userdata;
} QmpCall;

struct Qmp {
        int fd;
        sd_event_source *io;
        QmpHandlers handlers;

        char *line; /* QMP_LINE_MAX, filled up to `filled` */
        size_t filled;

        QmpCall calls[QMP_CALLS_MAX];
        size_t first, n_calls;
        bool closed;
        bool *freed; /* set by qmp_free() while a handler runs */
};

Qmp *qmp_free(Qmp *q) {
        if (!q)
                return NULL;
        if (q->freed)
                *q->freed = true;
        sd_event_source_disable_unref(q->io);
        fd_close(q->fd);
        free(q->line);
        free(q);
        return NULL;
}

static void qmp_close(Qmp *q, int error) {
        if (q->closed)
                return;
        q->closed = true;
        q->io = sd_event_source_disable_unref(q->io);
        if (q->handlers.on_close)
                q->handlers.on_close(q, error, q->handlers.userdata);
}

static void on_reply(Qmp *q, json_object *message) {
        json_object *result = NULL, *error = NULL, *text = NULL;
        QmpCall call;

        if (q->n_calls == 0)
                return; /* an answer nobody asked for */
        call = q->calls[q->first];
        q->first = (q->first + 1) % QMP_CALLS_MAX;
        q->n_calls--;

        if (!json_object_object_get_ex(message, "return", &result) &&
            json_object_object_get_ex(message, "error", &error))
                json_object_object_get_ex(error, "desc", &text);
        if (call.handler)
                call.handler(q, result,
                             result ? NULL
                             : text ? json_object_get_string(text)
                                    : "unknown error",
                             call.userdata);
}

static int on_message(Qmp *q, json_object *message) {
        json_object *name, *data = NULL;

        if (!json_object_is_type(message, json_type_object))
                return -EBADMSG;
        if (json_object_object_get_ex(message, "event", &name)) {
                json_object_object_get_ex(message, "data", &data);
                if (q->handlers.on_event)
                        q->handlers.on_event(q, json_object_get_string(name), data, q->handlers.userdata);
        } else if (json_object_object_get_ex(message, "return", NULL) ||
                   json_object_object_get_ex(message, "error", NULL))
                on_reply(q, message);
        return 0; /* the greeting needs no answer: qmp_capabilities is on its way */
}

static int parse_line(Qmp *q, const char *line, size_t size) {
        json_tokener *tokener;
        json_object *message;
        int r;

        if (size == 0)
                return 0;
        tokener = json_tokener_new_ex(16);
        if (!tokener)
                return -ENOMEM;
        message = json_tokener_parse_ex(tokener, line, (int) size);
        r = message ? on_message(q, message) : -EBADMSG;
        json_object_put(message);
        json_tokener_free(tokener);
        return r;
}

/* Handles every whole line that has arrived. 1 when a handler freed q. */
static int parse_lines(Qmp *q) {
        bool freed = false;
        int r = 0;

        q->freed = &freed;
        while (r == 0 && !q->closed) {
                char *end = memchr(q->line, '\n', q->filled);
                size_t size;

                if (!end)
                        break;
                size = (size_t) (end - q->line);
                r = parse_line(q, q->line, size > 0 && end[-1] == '\r' ? size - 1 : size);
                if (freed)
                        return 1;
                q->filled -= size + 1;
                memmove(q->line, end + 1, q->filled);
        }
        q->freed = NULL;
        if (r == 0 && q->filled == QMP_LINE_MAX)
                r = -EMSGSIZE;
        return r;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Qmp *q = userdata;
        ssize_t n = recv(fd, q->line + q->filled, QMP_LINE_MAX - q->filled, MSG_DONTWAIT);
        int r;

        if (n < 0 && errno != ECONNRESET) {
                if (errno != EAGAIN && errno != EINTR)
                        qmp_close(q, -errno);
                return 0;
        }
        if (n <= 0) { /* reset: it went without having read all that it was told */
                qmp_close(q, 0);
                return 0;
        }
        q->filled += (size_t) n;
        r = parse_lines(q);
        if (r < 0)
                qmp_close(q, r);
        return 0;
}

/* The socket takes far more than QMP_CALLS_MAX commands: what it does not take at once is an error. */
static int send_line(int fd, const char *text, size_t size, int passed_fd) {
        struct iovec parts[] = {
                {(char *) text, size},
                {(char *) "\n", 1   }
        };
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n;

        if (passed_fd >= 0) {
                control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
                memcpy(CMSG_DATA(&control.header), &passed_fd, sizeof(int));
                message.msg_control = &control;
                message.msg_controllen = sizeof(control);
        }
        n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
                return -errno;
        return (size_t) n < size + 1 ? -EAGAIN : 0;
}

int qmp_call(Qmp *q, const char *command, json_object *arguments, QmpReplyHandler handler, void *userdata) {
        return qmp_call_with_fd(q, command, arguments, -EBADF, handler, userdata);
}

int qmp_call_with_fd(
        Qmp *q, const char *command, json_object *arguments, int fd, QmpReplyHandler handler, void *userdata) {
        json_object *message;
        const char *text;
        size_t size = 0;
        int r;

        if (q->closed)
                return -ENOTCONN;
        if (q->n_calls == QMP_CALLS_MAX)
                return -EBUSY;
        message = json_object_new_object();
        if (!message)
                return -ENOMEM;
        json_object_object_add(message, "execute", json_object_new_string(command));
        if (arguments)
                json_object_object_add(message, "arguments", json_object_get(arguments));
        text = json_object_to_json_string_length(message, JSON_C_TO_STRING_PLAIN, &size);
        r = text ? send_line(q->fd, text, size, fd) : -ENOMEM;
        json_object_put(message);
        if (r < 0)
                return r;
        q->calls[(q->first + q->n_calls++) % QMP_CALLS_MAX] = (QmpCall){handler, userdata};
        return 0;
}

int qmp_fd(const Qmp *q) {
        return q->fd;
}

int qmp_new(sd_event *event, int fd, const QmpHandlers *handlers, Qmp **ret) {
        _cleanup_(fd_closep) int owned = fd;
        _cleanup_(qmp_freep) Qmp *q = calloc(1, sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        q->fd = TAKE_FD(owned);
        q->handlers = *handlers;
        q->line = malloc(QMP_LINE_MAX);
        if (!q->line)
                return -ENOMEM;
        r = sd_event_add_io(event, &q->io, q->fd, EPOLLIN, on_io, q);
        if (r < 0)
                return r;
        r = qmp_call(q, "qmp_capabilities", NULL, NULL, NULL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(q);
        return 0;
}
