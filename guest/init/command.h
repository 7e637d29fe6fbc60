/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the host wants executed, gathered from ARG, ENV and SCRIPT frames. */

#include <stddef.h>
#include <stdint.h>

#include "protocol/message.h"

typedef struct Command {
        char **argv; /* NULL-terminated */
        size_t n_argv;
        char **env; /* NULL-terminated; of one key, the last one wins */
        size_t n_env;
        size_t bytes;
        size_t script_bytes;
        int script_fd; /* -EBADF while there was no SCRIPT */
} Command;

void command_init(Command *command);
void command_done(Command *command);

/* 0; -E2BIG: past ARGUMENTS_MAX, ARGUMENTS_BYTES_MAX or SCRIPT_BYTES_MAX; or -errno. */
int command_add_argument(Command *command, const uint8_t *data, size_t size);
int command_add_environment(Command *command, const uint8_t *data, size_t size);

/* Appends to the script at path, which is made with the first call. */
int command_add_script(Command *command, const char *path, const uint8_t *data, size_t size);

/* The script is whole: nobody holds it open for writing any longer (ETXTBSY of execve(2)). */
void command_close_script(Command *command);

/* Adds what the host left out: PATH, HOME, USER, LOGNAME, SHELL, LANG, TERM. */
int command_add_defaults(Command *command, uint32_t uid);

/* Value of a variable, or NULL. */
const char *command_getenv(const Command *command, const char *name);
