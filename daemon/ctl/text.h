/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers as people read them. All write into a buffer of the caller, of TEXT_SIZE bytes, and return it. */

#include <stdint.h>

#define TEXT_SIZE 64

static inline const char *text_or(const char *text, const char *otherwise) {
        return text ? text : otherwise;
}

char *text_duration(char ret[TEXT_SIZE], uint64_t usec);               /* "2.31s", "3min 4s" */
char *text_offset(char ret[TEXT_SIZE], uint64_t from, uint64_t usec);  /* "+2.310s" */
char *text_ago(char ret[TEXT_SIZE], uint64_t now_usec, uint64_t usec); /* "3min ago"; "-" for 0 */
char *text_time(char ret[TEXT_SIZE], uint64_t usec);                   /* local time; "-" for 0 */
char *text_bytes(char ret[TEXT_SIZE], uint64_t bytes);                 /* "31.4 MiB" */
char *text_micros(char ret[TEXT_SIZE], uint64_t micros);               /* "$0.040000" */
