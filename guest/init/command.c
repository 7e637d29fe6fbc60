/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "init/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/fd.h"

void command_init(Command *command) {
        *command = (Command){.script_fd = -EBADF};
}

static void free_strings(char **strings) {
        for (char **s = strings; s && *s; s++)
                free(*s);
        free(strings);
}

void command_done(Command *command) {
        free_strings(command->argv);
        free_strings(command->env);
        command_close_script(command);
        command_init(command);
}

static int add_string(char ***strings, size_t *n, char *string) {
        char **grown = realloc(*strings, (*n + 2) * sizeof(char *));

        if (!grown)
                return -ENOMEM;
        grown[(*n)++] = string;
        grown[*n] = NULL;
        *strings = grown;
        return 0;
}

/* Charges the limits and copies. */
static int take_string(Command *command, const uint8_t *data, size_t size, char **ret) {
        if (command->n_argv + command->n_env >= ARGUMENTS_MAX || size + 1 > ARGUMENTS_BYTES_MAX - command->bytes)
                return -E2BIG;

        *ret = strndup((const char *) data, size);
        if (!*ret)
                return -ENOMEM;
        command->bytes += size + 1;
        return 0;
}

int command_add_argument(Command *command, const uint8_t *data, size_t size) {
        _cleanup_(freep) char *string = NULL;
        int r;

        r = take_string(command, data, size, &string);
        if (r < 0)
                return r;
        r = add_string(&command->argv, &command->n_argv, string);
        if (r < 0)
                return r;
        TAKE_PTR(string);
        return 0;
}

/* The slot that holds the variable of that name, or NULL. */
static char **find_environment(const Command *command, const char *name, size_t name_size) {
        for (size_t i = 0; i < command->n_env; i++)
                if (strncmp(command->env[i], name, name_size) == 0 && command->env[i][name_size] == '=')
                        return &command->env[i];
        return NULL;
}

int command_add_environment(Command *command, const uint8_t *data, size_t size) {
        _cleanup_(freep) char *string = NULL;
        char **slot;
        int r;

        r = take_string(command, data, size, &string);
        if (r < 0)
                return r;

        slot = find_environment(command, string, strcspn(string, "="));
        if (slot) {
                free(*slot);
                *slot = TAKE_PTR(string);
                return 0;
        }
        r = add_string(&command->env, &command->n_env, string);
        if (r < 0)
                return r;
        TAKE_PTR(string);
        return 0;
}

const char *command_getenv(const Command *command, const char *name) {
        char **slot = find_environment(command, name, strlen(name));

        return slot ? *slot + strlen(name) + 1 : NULL;
}

int command_add_defaults(Command *command, uint32_t uid) {
        const struct {
                const char *name;
                const char *value;
        } defaults[] = {
                {"PATH",    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                {"HOME",    uid == 0 ? "/root" : "/home/user"                             },
                {"USER",    uid == 0 ? "root" : "user"                                    },
                {"LOGNAME", uid == 0 ? "root" : "user"                                    },
                {"SHELL",   "/bin/sh"                                                     },
                {"LANG",    "C.UTF-8"                                                     },
                {"TERM",    "dumb"                                                        },
        };

        for (size_t i = 0; i < ELEMENTSOF(defaults); i++) {
                _cleanup_(freep) char *entry = NULL;
                int r;

                if (command_getenv(command, defaults[i].name))
                        continue;
                if (asprintf(&entry, "%s=%s", defaults[i].name, defaults[i].value) < 0)
                        return -ENOMEM;
                r = add_string(&command->env, &command->n_env, entry);
                if (r < 0)
                        return r;
                TAKE_PTR(entry);
        }
        return 0;
}

int command_add_script(Command *command, const char *path, const uint8_t *data, size_t size) {
        if (size > SCRIPT_BYTES_MAX - command->script_bytes)
                return -E2BIG;
        if (command->script_fd < 0) {
                command->script_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
                if (command->script_fd < 0)
                        return -errno;
                if (fchmod(command->script_fd, 0555) < 0)
                        return -errno;
        }
        command->script_bytes += size;
        return fd_write_all(command->script_fd, data, size);
}

void command_close_script(Command *command) {
        command->script_fd = fd_close(command->script_fd);
}
