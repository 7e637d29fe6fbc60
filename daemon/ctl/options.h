/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Options of the verbs: one table gives getopt_long(3) its list and the help its lines, so that they cannot differ.
 * --json, --no-ask-password and --help are in every verb and need no entry. */

#include <stdint.h>

#include "ctl/ctl.h"

#define OPTIONS_PER_VERB_MAX 32

/* The next option of the verb: its id, with its value in *ret_value (NULL if it takes none); 0 when all are read: the
 * operands are argv[optind] and on; negative: something was said to the user, return options_exit_code(). */
int options_next(Ctl *ctl, int argc, char *argv[], const char **ret_value);
int options_exit_code(const Ctl *ctl, int result);

/* The options before the verb. As options_next(); 0: argv[optind] is the verb, if there is one. */
int options_global(Ctl *ctl, int argc, char *argv[]);

/* For verbs without options of their own: reads them and checks the number of operands. 0, or negative as above. */
int options_only_operands(Ctl *ctl, int argc, char *argv[], int min, int max);

/* Says what was wrong with the use of the verb and where its help is; returns the exit code for that. */
int usage_error(const Ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whole numbers, also negative ones: what is too small or too large is for the service to say. Units may follow:
 * seconds s, min, h, d; MiB M, G (and MiB, GiB). 0, or -EINVAL. */
int parse_number(const char *text, int64_t *ret);
int parse_seconds(const char *text, int64_t *ret);
int parse_mebibytes(const char *text, int64_t *ret);
