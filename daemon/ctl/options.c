/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Options and help of every verb, from the verb's one table. getopt_long(3) does the reading, with its usual manners:
 * options may stand before or after the operands, names may be shortened, "--" ends them; a verb that takes somebody
 * else's command line stops at its first word.
 */
#include "ctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/help.h"

enum {
        OPTIONS_BAD = -2,
        OPTIONS_HELP_SHOWN = -1,

        ID_JSON = 1000, /* past all ids of verbs */
        ID_NO_ASK_PASSWORD,
        ID_HELP,
        ID_VERSION,
};

const Option options_common[] = {
        {ID_JSON,            0,   "json",            NULL, "Print JSON, one object a line"},
        {ID_NO_ASK_PASSWORD, 0,   "no-ask-password", NULL, "Do not ask for authentication"},
        {ID_HELP,            'h', "help",            NULL, "Show this help"               },
        {0,                  0,   NULL,              NULL, NULL                           },
};

const Option options_global_only[] = {
        {ID_VERSION, 0, "version", NULL, "Show the version of this program"},
        {0,          0, NULL,      NULL, NULL                              },
};

/* getopt_long()'s two tables, made from ours. */
typedef struct GetoptTables {
        struct option names[OPTIONS_PER_VERB_MAX];
        char letters[2 * OPTIONS_PER_VERB_MAX + 2];
        size_t n;
} GetoptTables;

static void tables_add(GetoptTables *t, const Option *options) {
        char *p = t->letters + strlen(t->letters);

        for (; options && options->id > 0 && t->n + 1 < OPTIONS_PER_VERB_MAX; options++) {
                t->names[t->n++] = (struct option){
                        .name = options->name,
                        .has_arg = options->argument ? required_argument : no_argument,
                        .val = options->id,
                };
                if (options->letter == 0)
                        continue;
                *p++ = (char) options->letter;
                if (options->argument)
                        *p++ = ':';
        }
}

static int id_of_letter(const Option *options, int letter) {
        for (; options && options->id > 0; options++)
                if (options->letter == letter)
                        return options->id;
        return 0;
}

static int options_bad(const Ctl *ctl) {
        fprintf(stderr, "Try 'ephemeralctl %s%s--help'.\n", ctl->verb ? ctl->verb->name : "", ctl->verb ? " " : "");
        return OPTIONS_BAD;
}

/* 1: taken care of, read on; else as options_next(). */
static int options_take_common(Ctl *ctl, int id) {
        switch (id) {
        case ID_JSON:
                ctl->json = true;
                return 1;
        case ID_NO_ASK_PASSWORD:
                ctl->ask_password = false;
                return 1;
        case ID_HELP:
                if (ctl->verb)
                        help_verb(ctl->verb);
                else
                        help_program();
                return OPTIONS_HELP_SHOWN;
        case ID_VERSION:
                help_version();
                return OPTIONS_HELP_SHOWN;
        default:
                return 0;
        }
}

static int options_read(Ctl *ctl, int argc, char *argv[], const Option *own, const char **ret_value) {
        GetoptTables t = {.letters = "+"};
        int r, id;

        if (ctl->verb && !ctl->verb->command_follows)
                t.letters[0] = 0;
        tables_add(&t, own);
        tables_add(&t, options_common);

        for (;;) {
                id = getopt_long(argc, argv, t.letters, t.names, NULL);
                if (id < 0)
                        return 0;
                if (id == '?')
                        return options_bad(ctl);
                if (id < ID_JSON && id > ' ' && (r = id_of_letter(own, id)) > 0)
                        id = r;
                else if (id == 'h')
                        id = ID_HELP;
                r = options_take_common(ctl, id);
                if (r < 0)
                        return r;
                if (r == 0) {
                        *ret_value = optarg;
                        return id;
                }
        }
}

int options_next(Ctl *ctl, int argc, char *argv[], const char **ret_value) {
        return options_read(ctl, argc, argv, ctl->verb->options, ret_value);
}

int options_global(Ctl *ctl, int argc, char *argv[]) {
        const char *value;

        return options_read(ctl, argc, argv, options_global_only, &value);
}

int options_exit_code(const Ctl *ctl, int result) {
        if (result == OPTIONS_HELP_SHOWN)
                return EXIT_SUCCESS;
        return ctl->verb ? ctl->verb->usage_exit_code : EXIT_CODE_USAGE;
}

int options_only_operands(Ctl *ctl, int argc, char *argv[], int min, int max) {
        const char *value;
        int r, n;

        r = options_next(ctl, argc, argv, &value);
        if (r < 0)
                return r;
        n = argc - optind;
        if (n >= min && n <= max)
                return 0;
        if (n < min)
                usage_error(ctl, "Too few arguments, expected %s", ctl->verb->arguments);
        else if (max == 0)
                usage_error(ctl, "It takes no arguments.");
        else
                usage_error(ctl, "Too many arguments, expected %s", ctl->verb->arguments);
        return OPTIONS_BAD;
}

int usage_error(const Ctl *ctl, const char *format, ...) {
        va_list ap;

        fprintf(stderr, "ephemeralctl %s: ", ctl->verb->name);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        options_bad(ctl);
        return ctl->verb->usage_exit_code;
}

typedef struct Suffix {
        const char *name;
        int64_t factor;
} Suffix;

static int parse_with_suffix(const char *text, const Suffix *suffixes, int64_t *ret) {
        long long v;
        char *end;

        errno = 0;
        v = strtoll(text, &end, 10);
        if (end == text || errno != 0)
                return -EINVAL;
        for (; suffixes->name; suffixes++)
                if (strcmp(end, suffixes->name) == 0)
                        return __builtin_mul_overflow((int64_t) v, suffixes->factor, ret) ? -EINVAL : 0;
        return -EINVAL;
}

int parse_number(const char *text, int64_t *ret) {
        static const Suffix none[] = {
                {"",   1},
                {NULL, 0}
        };

        return parse_with_suffix(text, none, ret);
}

int parse_seconds(const char *text, int64_t *ret) {
        static const Suffix time[] = {
                {"",    1    },
                {"s",   1    },
                {"m",   60   },
                {"min", 60   },
                {"h",   3600 },
                {"d",   86400},
                {NULL,  0    }
        };

        return parse_with_suffix(text, time, ret);
}

int parse_mebibytes(const char *text, int64_t *ret) {
        static const Suffix size[] = {
                {"",    1   },
                {"M",   1   },
                {"MiB", 1   },
                {"G",   1024},
                {"GiB", 1024},
                {NULL,  0   }
        };

        return parse_with_suffix(text, size, ret);
}
