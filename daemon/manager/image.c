/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Opens the files of an image for a run. The caller names the image, so nothing but a name gets in: no path, no link, no
 * device, nothing that others than root may change. What was checked is what QEMU gets: each file is opened once, checked by
 * its fd, and the fd is passed on.
 *
 * Sizes are compared with the manifest's, contents are not: to hash some hundred MiB would cost every run more than its boot.
 * A copy cut short or mixed from two builds is found; what root itself does to the bytes is root's. So `digest` is what the
 * manifest says the image was when it was built.
 */
#include "manager/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/errors.h"
#include "common/fd.h"

/* Where the errors are told and which image it is about. */
typedef struct ImageOpening {
        const char *dir;
        int dir_fd;
        sd_bus_error *reterr_error;
} ImageOpening;

__attribute__((format(printf, 3, 4))) static int fail(const ImageOpening *opening,
                                                      const char *file,
                                                      const char *format,
                                                      ...) {
        char what[256];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        return error_set(opening->reterr_error, ERROR_IMAGE_UNREADABLE, "%s%s%s: %s", opening->dir, *file ? "/" : "",
                         file, what);
}

/* Only root (or, in tests, who runs this) may be able to change it. */
static int check_owner(const ImageOpening *opening, const char *file, const struct stat *st) {
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return fail(opening, file, "belongs to uid %u; an image must belong to root", st->st_uid);
        if (st->st_mode & (S_IWGRP | S_IWOTH))
                return fail(opening, file, "is writable by its group or by everyone (mode %04o); chmod go-w it",
                            st->st_mode & 07777);
        return 0;
}

static int open_file(const ImageOpening *opening, const char *file, struct stat *ret_st) {
        _cleanup_(fd_closep) int fd =
                openat(opening->dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r;

        if (fd < 0 && errno == ELOOP)
                return fail(opening, file, "is a symbolic link; expected a regular file");
        if (fd < 0)
                return fail(opening, file, "%s", strerror(errno));
        if (fstat(fd, ret_st) < 0)
                return fail(opening, file, "%s", strerror(errno));
        if (!S_ISREG(ret_st->st_mode))
                return fail(opening, file, "is not a regular file");
        r = check_owner(opening, file, ret_st);
        return r < 0 ? r : TAKE_FD(fd);
}

static int open_sized(const ImageOpening *opening, const char *file, uint64_t size, int *ret_fd) {
        struct stat st;
        int fd;

        fd = open_file(opening, file, &st);
        if (fd < 0)
                return fd;
        if ((uint64_t) st.st_size != size) {
                fd_close(fd);
                return fail(opening, file,
                            "has %" PRIu64 " bytes, its manifest says %" PRIu64 "; build the image again",
                            (uint64_t) st.st_size, size);
        }
        *ret_fd = fd;
        return 0;
}

static int read_manifest(const ImageOpening *opening, const char *name, ImageManifest *ret) {
        _cleanup_(image_manifest_done) ImageManifest manifest = {0};
        _cleanup_(freep) char *text = NULL, *error = NULL;
        _cleanup_(fd_closep) int fd = -EBADF;
        char file[PATH_MAX + 16];
        struct stat st;
        size_t size;
        int r;

        fd = open_file(opening, "manifest.json", &st);
        if (fd < 0)
                return fd;
        r = fd_read_file(fd, IMAGE_MANIFEST_SIZE_MAX, &text, &size);
        if (r < 0)
                return fail(opening, "manifest.json", "%s", r == -EFBIG ? "larger than 1 MiB" : strerror(-r));
        (void) snprintf(file, sizeof(file), "%s/manifest.json", opening->dir);
        r = image_manifest_parse(file, text, size, &manifest, &error);
        if (r < 0)
                return error ? error_set(opening->reterr_error, ERROR_IMAGE_UNREADABLE, "%s", error) : r;
        if (strcmp(manifest.name, name) != 0)
                return fail(opening, "manifest.json", "key 'name': expected \"%s\", as the directory is called", name);
        *ret = manifest;
        manifest = (ImageManifest){0};
        return 0;
}

static int open_files(const ImageOpening *opening, const char *name, Image **ret) {
        _cleanup_(image_manifest_done) ImageManifest manifest = {0};
        _cleanup_(image_freep) Image *image = NULL;
        int r;

        r = read_manifest(opening, name, &manifest);
        if (r < 0)
                return r;
        image = malloc(sizeof(Image));
        if (!image)
                return -ENOMEM;
        *image = (Image){.root_fd = -EBADF, .kernel_fd = -EBADF, .initrd_fd = -EBADF};
        r = open_sized(opening, "root.erofs", manifest.sizes[IMAGE_ROOT], &image->root_fd);
        if (r < 0)
                return r;
        r = open_sized(opening, "kernel", manifest.sizes[IMAGE_KERNEL], &image->kernel_fd);
        if (r < 0)
                return r;
        r = open_sized(opening, "initrd", manifest.sizes[IMAGE_INITRD], &image->initrd_fd);
        if (r < 0)
                return r;
        image->name = TAKE_PTR(manifest.name);
        image->kernel_release = TAKE_PTR(manifest.kernel_release);
        image->digest = strdup(manifest.digest);
        image->dir = strdup(opening->dir);
        if (!image->digest || !image->dir)
                return -ENOMEM;
        *ret = TAKE_PTR(image);
        return 0;
}

/* 1 when it is there and opened, 0 when dir does not exist. */
static int try_directory(const char *dir, const char *name, Image **ret, sd_bus_error *reterr_error) {
        _cleanup_(fd_closep) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        ImageOpening opening = {.dir = dir, .dir_fd = dir_fd, .reterr_error = reterr_error};
        struct stat st;
        int r;

        if (dir_fd < 0 && errno == ENOENT)
                return 0;
        if (dir_fd < 0 && (errno == ELOOP || errno == ENOTDIR))
                return fail(&opening, "", "is not a directory");
        if (dir_fd < 0 || fstat(dir_fd, &st) < 0)
                return fail(&opening, "", "%s", strerror(errno));
        r = check_owner(&opening, "", &st);
        if (r < 0)
                return r;
        r = open_files(&opening, name, ret);
        return r < 0 ? r : 1;
}

int image_open(const char *search, const char *name, Image **ret, sd_bus_error *reterr_error) {
        char dir[PATH_MAX];

        if (!image_name_is_valid(name))
                return error_set(reterr_error, ERROR_INVALID_REQUEST,
                                 "not a name of an image; expected letters a-z, digits, '.', '_' and '-', at most %u, "
                                 "a letter or digit first",
                                 IMAGE_NAME_MAX);
        for (const char *at = search; *at;) {
                size_t n = strcspn(at, ":");
                int r;

                if (snprintf(dir, sizeof(dir), "%.*s/%s", (int) n, at, name) >= (int) sizeof(dir))
                        return error_set(reterr_error, ERROR_IMAGE_UNREADABLE, "a directory of images is too long");
                r = n > 0 ? try_directory(dir, name, ret, reterr_error) : 0;
                if (r != 0)
                        return r < 0 ? r : 0;
                at += n + (at[n] == ':');
        }
        return error_set(reterr_error, ERROR_NO_SUCH_IMAGE,
                         "no image '%s' in %s; make one with: ephemeralctl image build", name, search);
}

Image *image_free(Image *image) {
        if (!image)
                return NULL;
        fd_close(image->root_fd);
        fd_close(image->kernel_fd);
        fd_close(image->initrd_fd);
        free(image->name);
        free(image->digest);
        free(image->kernel_release);
        free(image->dir);
        free(image);
        return NULL;
}
