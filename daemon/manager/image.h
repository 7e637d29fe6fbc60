/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finding an image and opening its files, checked (design 17.3). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "common/cleanup.h"
#include "manager/digest.h"

#define IMAGE_NAME_MAX          64U
#define IMAGE_MANIFEST_SIZE_MAX (1024U * 1024U)
#define IMAGE_PACKAGES_MAX      8192U
#define IMAGE_FILE_SIZE_MAX     (64ULL * 1024ULL * 1024ULL * 1024ULL)

typedef enum ImageFile {
        IMAGE_ROOT,
        IMAGE_KERNEL,
        IMAGE_INITRD,
        IMAGE_FILES, /* how many there are */
} ImageFile;

typedef struct ImageManifest {
        char *name;
        char *architecture;
        char *kernel_release;
        char digest[DIGEST_SIZE]; /* of the image */
        uint64_t sizes[IMAGE_FILES];
} ImageManifest;

typedef struct Image {
        char *name;
        char *digest;
        char *kernel_release;
        char *dir;
        int root_fd, kernel_fd, initrd_fd; /* read-only, O_CLOEXEC */
} Image;

/* [a-z0-9][a-z0-9._-]{0,63} */
bool image_name_is_valid(const char *name);

/* file is what errors call it. 0; -EBADMSG with a text the caller frees; -ENOMEM. */
int image_manifest_parse(const char *file, const char *text, size_t size, ImageManifest *ret, char **reterr_text);
void image_manifest_done(ImageManifest *manifest);

/* search is a list of directories with ':' between, the first that holds NAME wins: Config.images_path. 0, or -errno with
 * InvalidRequest (no name of an image), NoSuchImage (says how to make one) or ImageUnreadable (names the file). */
int image_open(const char *search, const char *name, Image **ret, sd_bus_error *reterr_error);

/* Closes the fds that are still there: take what you keep with TAKE_FD(). */
Image *image_free(Image *image);
DEFINE_CLEANUP(Image *, image_free);
