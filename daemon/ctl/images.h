/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The images on this machine (docs/design.md, section 17.3), read from their manifests. */

#include <json-c/json.h>
#include <stddef.h>

#include "common/cleanup.h"

#define IMAGES_PER_DIRECTORY_MAX 4096U
#define MANIFEST_SIZE_MAX        (4U << 20)

/* Where images are looked for, in this order; ends with NULL. */
extern const char *const image_directories[];

typedef struct ImageEntry {
        char *name;
        char *directory;       /* "/var/lib/ephemeral/images/NAME" */
        json_object *manifest; /* NULL: it cannot be used, and error says why */
        char *error;
} ImageEntry;

typedef struct ImageList {
        ImageEntry *entries;
        size_t n;
} ImageList;

/* All images, sorted by name; of two with the same name the first found. 0 or -errno. */
int image_list_read(const char *const *directories, ImageList *ret);
void image_list_done(ImageList *list);

/* Borrowed; NULL: there is none. */
const ImageEntry *image_list_find(const ImageList *list, const char *name);
