/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Finding images. An image whose manifest is missing or wrong is listed too, with what is wrong: it hides one of the
 * same name further down.
 */
#include "ctl/images.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "ctl/output.h"

const char *const image_directories[] = {
        "/etc/ephemeral/images",
        "/var/lib/ephemeral/images",
        "/usr/lib/ephemeral/images",
        NULL,
};

static void dir_closep(DIR **dir) {
        if (*dir)
                closedir(*dir);
}

void image_list_done(ImageList *list) {
        for (size_t i = 0; i < list->n; i++) {
                free(list->entries[i].name);
                free(list->entries[i].directory);
                free(list->entries[i].error);
                json_object_put(list->entries[i].manifest);
        }
        free(list->entries);
        *list = (ImageList){0};
}

const ImageEntry *image_list_find(const ImageList *list, const char *name) {
        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->entries[i].name, name) == 0)
                        return &list->entries[i];
        return NULL;
}

static bool name_is_valid(const char *name) {
        const char *first = "abcdefghijklmnopqrstuvwxyz0123456789", *more = "abcdefghijklmnopqrstuvwxyz0123456789._-";

        return name[0] && strchr(first, name[0]) && strspn(name, more) == strlen(name) && strlen(name) <= 64;
}

static int read_manifest(int dir_fd, ImageEntry *entry) {
        _cleanup_(freep) char *path = NULL, *text = NULL;
        size_t size;
        int r;

        if (asprintf(&path, "%s/manifest.json", entry->name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = fd_read_file_at(dir_fd, path, MANIFEST_SIZE_MAX, &text, &size);
        if (r < 0)
                entry->error = strdup(r == -ENOENT ? "no manifest.json: the build did not finish" : strerror(-r));
        else {
                entry->manifest = parse_object(text, size);
                if (!entry->manifest)
                        entry->error = strdup("manifest.json is no JSON object");
        }
        return entry->manifest || entry->error ? 0 : -ENOMEM;
}

static int image_list_add(ImageList *list, const char *directory, int dir_fd, const char *name) {
        ImageEntry *grown = reallocarray(list->entries, list->n + 1, sizeof(*grown)), *entry;

        if (!grown)
                return -ENOMEM;
        list->entries = grown;
        entry = &grown[list->n++];
        *entry = (ImageEntry){.name = strdup(name)};
        if (asprintf(&entry->directory, "%s/%s", directory, name) < 0)
                entry->directory = NULL;
        return entry->name && entry->directory ? read_manifest(dir_fd, entry) : -ENOMEM;
}

static int read_directory(ImageList *list, const char *directory) {
        _cleanup_(dir_closep) DIR *dir = opendir(directory);
        size_t limit = list->n + IMAGES_PER_DIRECTORY_MAX;
        struct dirent *d;
        int r;

        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        while ((d = readdir(dir)) && list->n < limit) {
                if (!name_is_valid(d->d_name) || image_list_find(list, d->d_name))
                        continue;
                if (d->d_type != DT_DIR && d->d_type != DT_LNK && d->d_type != DT_UNKNOWN)
                        continue;
                r = image_list_add(list, directory, dirfd(dir), d->d_name);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const ImageEntry *) a)->name, ((const ImageEntry *) b)->name);
}

int image_list_read(const char *const *directories, ImageList *ret) {
        _cleanup_(image_list_done) ImageList list = {0};
        int r;

        for (size_t i = 0; directories[i]; i++) {
                r = read_directory(&list, directories[i]);
                if (r < 0)
                        return r;
        }
        if (list.n > 0)
                qsort(list.entries, list.n, sizeof(*list.entries), by_name);
        *ret = list;
        list = (ImageList){0};
        return 0;
}
