/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemerald.conf and its drop-ins, read by libinih. The administrator wrote them: an error is told with file and line and
 * the service does not start on half of a configuration; a key of another version is only warned about, so that a
 * downgrade starts.
 *
 * libinih does not tell its handler the line, so the lines are counted where they are handed to it.
 */
#include "common/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <systemd/sd-daemon.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/strv.h"

#define CONFIG_SIZE_MAX           (64U * 1024U)
#define CONFIG_LINE_MAX           190 /* libinih's buffer has 200, with line ends and NUL */
#define CONFIG_FILES_MAX          256U
#define CONFIG_RUNS_MAX           4096U
#define CONFIG_QUEUE_MAX          65536U
#define CONFIG_TEMPLATES_MAX      64U
#define CONFIG_STANDBY_MAX        64U
#define CONFIG_IDLE_MAX           (24U * 3600U)
#define QUEUE_MAX_DEFAULT         256U
#define TEMPLATES_MAX_DEFAULT     4U
#define STANDBY_DEFAULT           1U
#define IDLE_DEFAULT_USEC         (30U * USEC_PER_SEC)
#define STANDBY_IDLE_DEFAULT_USEC (10U * 60U * USEC_PER_SEC)

typedef struct ConfigFile {
        const char *path;
        const char *at; /* the rest of the text */
        unsigned line;
        Config *config;
        char *error; /* the first */
} ConfigFile;

typedef int (*ConfigParse)(const char *value, void *ret, uint64_t max);

typedef struct ConfigKey {
        const char *name;
        ConfigParse parse;
        size_t offset;
        uint64_t max;
        const char *expected;
} ConfigKey;

static int parse_number(const char *value, uint64_t max, uint64_t *ret) {
        char *end;
        unsigned long long n;

        if (*value < '0' || *value > '9')
                return -EINVAL;
        errno = 0;
        n = strtoull(value, &end, 10);
        if (errno != 0 || *end || n > max)
                return -EINVAL;
        *ret = n;
        return 0;
}

static int parse_u32(const char *value, void *ret, uint64_t max) {
        uint64_t n;
        int r;

        r = parse_number(value, max, &n);
        if (r < 0)
                return r;
        *(uint32_t *) ret = (uint32_t) n;
        return 0;
}

static int parse_seconds(const char *value, void *ret, uint64_t max) {
        uint64_t n;
        int r;

        r = parse_number(value, max, &n);
        if (r < 0)
                return r;
        *(uint64_t *) ret = n * USEC_PER_SEC;
        return 0;
}

static int parse_bool(const char *value, void *ret, uint64_t max) {
        static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcasecmp(value, words[i]) == 0) {
                        *(bool *) ret = i % 2;
                        return 0;
                }
        return -EINVAL;
}

static int parse_accelerator(const char *value, void *ret, uint64_t max) {
        static const char *const words[] = {
                [ACCELERATOR_AUTO] = "auto", [ACCELERATOR_KVM] = "kvm", [ACCELERATOR_TCG] = "tcg"};

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcmp(value, words[i]) == 0) {
                        *(AcceleratorChoice *) ret = (AcceleratorChoice) i;
                        return 0;
                }
        return -EINVAL;
}

static int replace(char **to, const char *value) {
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
}

static int parse_text(const char *value, void *ret, uint64_t max) {
        return *value ? replace(ret, value) : -EINVAL;
}

static int parse_path(const char *value, void *ret, uint64_t max) {
        return *value == '/' ? replace(ret, value) : -EINVAL;
}

static const ConfigKey keys[] = {
        {"Accelerator",                   parse_accelerator, offsetof(Config, accelerator),                     0,                    "auto, kvm or tcg"                       },
        {"RequireHardwareVirtualization", parse_bool,        offsetof(Config, require_hardware_virtualization), 0,
         "yes or no"                                                                                                                                                           },
        {"RunsMax",                       parse_u32,         offsetof(Config, runs_max),                        CONFIG_RUNS_MAX,      "a whole number, 0 for automatic, from 0"},
        {"QueueMax",                      parse_u32,         offsetof(Config, queue_max),                       CONFIG_QUEUE_MAX,     "a whole number from 0"                  },
        {"IdleSec",                       parse_seconds,     offsetof(Config, idle_usec),                       CONFIG_IDLE_MAX,      "whole seconds, 0 for never, from 0"     },
        {"Templates",                     parse_bool,        offsetof(Config, templates),                       0,                    "yes or no"                              },
        {"TemplatesMax",                  parse_u32,         offsetof(Config, templates_max),                   CONFIG_TEMPLATES_MAX, "a whole number from 0"                  },
        {"Standby",                       parse_u32,         offsetof(Config, standby),                         CONFIG_STANDBY_MAX,   "a whole number, 0 for none, from 0"     },
        {"StandbyIdleSec",                parse_seconds,     offsetof(Config, standby_idle_usec),               CONFIG_IDLE_MAX,
         "whole seconds, 0 for never, from 0"                                                                                                                                  },
        {"Image",                         parse_text,        offsetof(Config, image),                           0,                    "the name of an image"                   },
        {"JailPath",                      parse_path,        offsetof(Config, jail_path),                       0,                    "an absolute path"                       },
        {"QemuPath",                      parse_path,        offsetof(Config, qemu_path),                       0,                    "an absolute path"                       },
        {"WorkflowsPath",                 parse_path,        offsetof(Config, workflows_path),                  0,                    "an absolute path"                       },
        {"ImagesPath",                    parse_path,        offsetof(Config, images_path),                     0,                    "absolute paths with ':' between them"   },
        {"TemplatesPath",                 parse_path,        offsetof(Config, templates_path),                  0,                    "an absolute path"                       },
        {"MemoryPressurePath",            parse_path,        offsetof(Config, memory_pressure_path),            0,                    "an absolute path"                       },
};

__attribute__((format(printf, 2, 3))) static void note_error(ConfigFile *file, const char *format, ...) {
        _cleanup_(freep) char *what = NULL;
        va_list ap;
        int r;

        if (file->error)
                return;
        va_start(ap, format);
        r = vasprintf(&what, format, ap);
        va_end(ap);
        if (r < 0)
                what = NULL;
        if (asprintf(&file->error, "%s:%u: %s", file->path, file->line, what ? what : "out of memory") < 0)
                file->error = NULL;
}

static void assign(ConfigFile *file, const ConfigKey *key, const char *value) {
        char range[32] = "";

        if (key->parse(value, (char *) file->config + key->offset, key->max) >= 0)
                return;
        if (key->max > 0)
                (void) snprintf(range, sizeof(range), " to %" PRIu64, key->max);
        note_error(file, "%s=%s: expected %s%s", key->name, value, key->expected, range);
}

/* libinih calls it for each assignment; 0 would only make it remember the line's number. */
static int on_assignment(void *userdata, const char *section, const char *name, const char *value) {
        ConfigFile *file = userdata;

        if (strcmp(section, "Manager") != 0) {
                fprintf(stderr, SD_WARNING "%s:%u: %s= stands in section [%s], not in [Manager]: ignored\n",
                        file->path, file->line, name, section);
                return 1;
        }
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (strcmp(name, keys[i].name) == 0) {
                        assign(file, &keys[i], value);
                        return 1;
                }
        fprintf(stderr, SD_WARNING "%s:%u: no such key: %s=, ignored\n", file->path, file->line, name);
        return 1;
}

/* As fgets(), from memory. Blanks at the start are left out: to libinih they would make the line go on the one before. */
static char *next_line(char *buffer, int size, void *userdata) {
        ConfigFile *file = userdata;
        size_t n;

        file->at += strspn(file->at, " \t");
        if (!*file->at)
                return NULL;
        n = strcspn(file->at, "\n");
        file->line++;
        if (n > CONFIG_LINE_MAX || n + 2 > (size_t) size) {
                note_error(file, "a line of more than %d characters", CONFIG_LINE_MAX);
                return NULL;
        }
        n += file->at[n] == '\n';
        memcpy(buffer, file->at, n);
        buffer[n] = 0;
        file->at += n;
        return buffer;
}

static int load_file(const char *path, Config *config, char **reterr_text) {
        _cleanup_(freep) char *text = NULL;
        ConfigFile file = {.path = path, .config = config};
        size_t size;
        int r;

        r = fd_read_file_at(AT_FDCWD, path, CONFIG_SIZE_MAX, &text, &size);
        if (r == -ENOENT)
                return 0;
        if (r < 0) {
                if (asprintf(reterr_text, "%s: %s", path, r == -EFBIG ? "larger than 64 KiB" : strerror(-r)) < 0)
                        *reterr_text = NULL;
                return r;
        }
        file.at = text;
        if (strlen(text) != size)
                note_error(&file, "a NUL byte in the file");
        else {
                int line = ini_parse_stream(next_line, &file, on_assignment, &file);

                if (line > 0) {
                        file.line = (unsigned) line;
                        note_error(&file, "expected [Section] or Key=value");
                } else if (line < 0)
                        note_error(&file, "out of memory");
        }
        if (!file.error)
                return 0;
        *reterr_text = file.error;
        return -EBADMSG;
}

static int is_config(const struct dirent *entry) {
        size_t n = strlen(entry->d_name);

        return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* The drop-ins, sorted by name. */
static int list_drop_ins(const char *dir, char ***ret) {
        _cleanup_(strv_freep) char **paths = NULL;
        struct dirent *entry;
        DIR *d;
        int r = 0;

        d = opendir(dir);
        if (!d)
                return errno == ENOENT ? 0 : -errno;
        for (size_t n = 0; r >= 0 && n < CONFIG_FILES_MAX && (entry = readdir(d));)
                if (is_config(entry)) {
                        r = strv_addf(&paths, "%s/%s", dir, entry->d_name);
                        n++;
                }
        closedir(d);
        if (r < 0)
                return r;
        if (paths)
                qsort(paths, strv_length(paths), sizeof(char *), compare_names);
        *ret = TAKE_PTR(paths);
        return 0;
}

static int set_defaults(Config *c) {
        *c = (Config){.queue_max = QUEUE_MAX_DEFAULT,
                      .idle_usec = IDLE_DEFAULT_USEC,
                      .templates = true,
                      .templates_max = TEMPLATES_MAX_DEFAULT,
                      .standby = STANDBY_DEFAULT,
                      .standby_idle_usec = STANDBY_IDLE_DEFAULT_USEC};
        c->image = strdup("default");
        c->jail_path = strdup(LIBEXECDIR "/ephemeral-jail");
        c->qemu_path = strdup("/usr/bin/qemu-system-x86_64");
        c->workflows_path = strdup(DATADIR "/ephemeral/workflows");
        c->images_path = strdup("/etc/ephemeral/images:/var/lib/ephemeral/images:/usr/lib/ephemeral/images");
        c->templates_path = strdup("/var/cache/ephemeral/templates");
        c->memory_pressure_path = strdup("/proc/pressure/memory");
        return c->image && c->jail_path && c->qemu_path && c->workflows_path && c->images_path && c->templates_path &&
                               c->memory_pressure_path
                       ? 0
                       : -ENOMEM;
}

int config_load(const char *path, Config *ret, char **reterr_text) {
        _cleanup_(config_done) Config config = {0};
        _cleanup_(strv_freep) char **drop_ins = NULL;
        char dir[PATH_MAX];
        int r;

        r = set_defaults(&config);
        if (r < 0)
                return r;
        r = load_file(path, &config, reterr_text);
        if (r < 0)
                return r;
        if (snprintf(dir, sizeof(dir), "%s.d", path) >= (int) sizeof(dir))
                return -ENAMETOOLONG;
        r = list_drop_ins(dir, &drop_ins);
        if (r < 0) {
                if (asprintf(reterr_text, "%s: %s", dir, strerror(-r)) < 0)
                        *reterr_text = NULL;
                return r;
        }
        for (size_t i = 0; drop_ins && drop_ins[i]; i++) {
                r = load_file(drop_ins[i], &config, reterr_text);
                if (r < 0)
                        return r;
        }
        *ret = config;
        config = (Config){0};
        return 0;
}

void config_done(Config *config) {
        free(config->image);
        free(config->jail_path);
        free(config->qemu_path);
        free(config->workflows_path);
        free(config->images_path);
        free(config->templates_path);
        free(config->memory_pressure_path);
        *config = (Config){0};
}
