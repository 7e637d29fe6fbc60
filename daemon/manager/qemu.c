/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The installed QEMU. Asked at the start of the service: which version (--version), where it looks for firmware (-L help), and which
 * libraries it loads (the loader's own --list, ld.so(8)). All three are documented and answer on every version since 7.2; nothing
 * is guessed from a distribution's name.
 *
 * Debian 12 has software emulation in a module with libraries of its own; Debian 13 has it built in. Where it is a module, it is
 * left out of the jail under KVM.
 */
#include "manager/qemu.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/strv.h"
#include "manager/capture.h"

#define OUTPUT_MAX   (64 * 1024)
#define HEADERS_MAX  64 /* program headers of an ELF file */
#define FIRMWARE     "qboot.rom"
#define ACCEL_MODULE "accel-tcg-x86_64.so"

struct Qemu {
        char *binary;
        char *version;
        char *build;
        char *firmware;
        struct stat st;
        char **files;     /* binary, loader, libraries, firmware */
        char **tcg_files; /* the module, and libraries that only it has; empty where it is built in */
};

static int explain(char **reterr_text, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int explain(char **reterr_text, int error, const char *format, ...) {
        char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;
        *reterr_text = text;
        return error;
}

static bool strv_has(char *const *v, const char *s) {
        for (size_t i = 0; v && v[i]; i++)
                if (strcmp(v[i], s) == 0)
                        return true;
        return false;
}

static int add_once(char ***v, const char *s) {
        return strv_has(*v, s) ? 0 : strv_add(v, s);
}

/* PT_INTERP of the binary: the loader it asks the kernel for (elf(5)). */
static int find_interpreter(int fd, char ret[PATH_MAX]) {
        Elf64_Phdr headers[HEADERS_MAX];
        Elf64_Ehdr elf;

        if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
            elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(*headers) || elf.e_phnum > HEADERS_MAX)
                return -ENOEXEC;
        if (pread(fd, headers, elf.e_phnum * sizeof(*headers), (off_t) elf.e_phoff) !=
            (ssize_t) (elf.e_phnum * sizeof(*headers)))
                return -ENOEXEC;
        for (size_t i = 0; i < elf.e_phnum; i++) {
                size_t size = headers[i].p_filesz;

                if (headers[i].p_type != PT_INTERP)
                        continue;
                if (size < 2 || size > PATH_MAX ||
                    pread(fd, ret, size, (off_t) headers[i].p_offset) != (ssize_t) size || ret[0] != '/' ||
                    memchr(ret, 0, size) != ret + size - 1)
                        return -ENOEXEC;
                return 0;
        }
        return -ENOEXEC;
}

/* Adds the absolute paths of `loader --list`: "\tNAME => PATH (0x…)" or, for the loader itself, "\tPATH (0x…)". */
static int add_libraries(char *loader, char *file, char ***v) {
        _cleanup_(freep) char *text = NULL;
        char *rest, *argv[] = {loader, (char *) "--list", file, NULL};
        int r;

        r = capture(argv, OUTPUT_MAX, &text);
        if (r < 0)
                return r;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                char *path = strstr(line, " => "), *end = strstr(line, " (0x");

                if (strstr(line, " => not found"))
                        return -ELIBACC;
                path = path ? path + strlen(" => ") : line + strspn(line, "\t ");
                if (!end || end < path || path[0] != '/') /* the kernel's vdso has no path */
                        continue;
                *end = 0;
                r = add_once(v, path);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int find_libraries(Qemu *q, int fd, char loader[PATH_MAX], char **reterr_text) {
        int r = find_interpreter(fd, loader);

        if (r < 0)
                return explain(reterr_text, r, "%s is no dynamically linked x86-64 program", q->binary);
        r = strv_add(&q->files, q->binary);
        if (r >= 0)
                r = add_once(&q->files, loader);
        if (r >= 0)
                r = add_libraries(loader, q->binary, &q->files);
        if (r < 0)
                return explain(reterr_text, r, "%s --list %s: %s (reinstall the package of QEMU)", loader, q->binary,
                               strerror(-r));
        return 0;
}

/* The module, where there is one, lies in qemu/ beside a library of the C library's directory: QEMU's modules are installed in
 * LIBDIR/qemu, and LIBDIR is where the loader finds libraries. */
static int find_module(const Qemu *q, char ret[PATH_MAX]) {
        for (size_t i = 0; q->files[i]; i++) {
                const char *slash = strrchr(q->files[i], '/');
                int length = (int) (slash - q->files[i]);

                if (!strstr(slash, "/libc.so."))
                        continue;
                /* With merged /usr the loader answers /lib/…, while QEMU looks in /usr/lib/…. */
                snprintf(ret, PATH_MAX, "%s%.*s/qemu/" ACCEL_MODULE,
                         strncmp(q->files[i], "/usr/", 5) == 0 ? "" : "/usr", length, q->files[i]);
                return access(ret, R_OK) == 0 ? 1 : 0;
        }
        return 0;
}

static int find_tcg_files(Qemu *q, char *loader, char **reterr_text) {
        _cleanup_(strv_freep) char **all = NULL;
        char module[PATH_MAX];
        int r = find_module(q, module);

        if (r <= 0)
                return r;
        r = strv_add(&all, module);
        if (r >= 0)
                r = add_libraries(loader, module, &all);
        if (r < 0)
                return explain(reterr_text, r, "%s --list %s: %s (reinstall the package of QEMU)", loader, module,
                               strerror(-r));
        for (size_t i = 0; all[i]; i++) {
                if (strv_has(q->files, all[i]))
                        continue;
                r = strv_add(&q->tcg_files, all[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The first of the directories of `-L help` that has the firmware; the same order that QEMU searches them in. qboot comes with QEMU
 * and boots a kernel by itself. (bios-microvm.bin, the default, is qboot on Debian 12, but SeaBIOS on Debian 13, which is slower and
 * wants option ROMs besides.) */
static int find_firmware(Qemu *q, char **reterr_text) {
        _cleanup_(freep) char *text = NULL;
        char *rest, *argv[] = {q->binary, (char *) "-L", (char *) "help", NULL};
        int r;

        r = capture(argv, OUTPUT_MAX, &text);
        if (r < 0)
                return explain(reterr_text, r, "%s -L help: %s", q->binary, strerror(-r));
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                _cleanup_(freep) char *dir = realpath(line, NULL), *path = NULL;

                if (!dir)
                        continue;
                if (asprintf(&path, "%s/" FIRMWARE, dir) < 0)
                        return -ENOMEM;
                if (access(path, R_OK) < 0)
                        continue;
                q->firmware = TAKE_PTR(path);
                return strv_add(&q->files, q->firmware);
        }
        return explain(reterr_text, -EOPNOTSUPP, "%s has no " FIRMWARE " (install qemu-system-data)", q->binary);
}

/* "QEMU emulator version 7.2.22 (Debian …)" */
static int find_version(Qemu *q, char **reterr_text) {
        static const char prefix[] = "QEMU emulator version ";
        _cleanup_(freep) char *text = NULL;
        char *number, *argv[] = {q->binary, (char *) "--version", NULL};
        unsigned major, minor;
        int r;

        r = capture(argv, OUTPUT_MAX, &text);
        if (r < 0)
                return explain(reterr_text, r, "%s --version: %s", q->binary, strerror(-r));
        number = text + strlen(prefix);
        if (strncmp(text, prefix, strlen(prefix)) != 0 || sscanf(number, "%u.%u", &major, &minor) != 2)
                return explain(reterr_text, -EOPNOTSUPP, "%s --version does not answer as QEMU does", q->binary);
        if (major < QEMU_VERSION_MAJOR || (major == QEMU_VERSION_MAJOR && minor < QEMU_VERSION_MINOR))
                return explain(reterr_text, -EOPNOTSUPP, "%s is version %u.%u: install QEMU %d.%d or later", q->binary,
                               major, minor, QEMU_VERSION_MAJOR, QEMU_VERSION_MINOR);
        q->version = strndup(number, strspn(number, "0123456789."));
        return q->version ? 0 : -ENOMEM;
}

static int probe(Qemu *q, const char *binary, char **reterr_text) {
        _cleanup_(fd_closep) int fd = open(binary, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        char loader[PATH_MAX];
        int r;

        if (fd < 0)
                return explain(reterr_text, -errno, "%s: %s (install qemu-system-x86)", binary, strerror(errno));
        if (fstat(fd, &q->st) < 0)
                return explain(reterr_text, -errno, "%s: %s", binary, strerror(errno));
        q->binary = strdup(binary);
        if (!q->binary || asprintf(&q->build, "%jx-%jx-%jx-%lx", (uintmax_t) q->st.st_ino, (uintmax_t) q->st.st_size,
                                   (uintmax_t) q->st.st_mtim.tv_sec, q->st.st_mtim.tv_nsec) < 0)
                return -ENOMEM;
        r = find_version(q, reterr_text);
        if (r < 0)
                return r;
        r = find_libraries(q, fd, loader, reterr_text);
        if (r < 0)
                return r;
        r = find_firmware(q, reterr_text);
        if (r < 0)
                return r;
        return find_tcg_files(q, loader, reterr_text);
}

int qemu_probe(const char *binary, Qemu **ret, char **reterr_text) {
        _cleanup_(qemu_freep) Qemu *q = calloc(1, sizeof(Qemu));
        int r;

        if (!q)
                return -ENOMEM;
        r = probe(q, binary, reterr_text);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(q);
        return 0;
}

Qemu *qemu_free(Qemu *q) {
        if (!q)
                return NULL;
        free(q->binary);
        free(q->version);
        free(q->build);
        free(q->firmware);
        strv_free(q->files);
        strv_free(q->tcg_files);
        free(q);
        return NULL;
}

const char *qemu_binary(const Qemu *q) {
        return q->binary;
}

const char *qemu_version(const Qemu *q) {
        return q->version;
}

const char *qemu_build(const Qemu *q) {
        return q->build;
}

const char *qemu_firmware(const Qemu *q) {
        return q->firmware;
}

int qemu_binds(const Qemu *q, bool kvm, char ***ret) {
        _cleanup_(strv_freep) char **binds = NULL;
        int r;

        r = strv_add_all(&binds, q->files);
        if (r >= 0 && !kvm)
                r = strv_add_all(&binds, q->tcg_files);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(binds);
        return 0;
}

bool qemu_is_current(const Qemu *q) {
        struct stat st;

        return stat(q->binary, &st) == 0 && st.st_dev == q->st.st_dev && st.st_ino == q->st.st_ino &&
               st.st_size == q->st.st_size && st.st_mtim.tv_sec == q->st.st_mtim.tv_sec &&
               st.st_mtim.tv_nsec == q->st.st_mtim.tv_nsec;
}
