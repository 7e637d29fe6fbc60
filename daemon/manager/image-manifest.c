/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * manifest.json of an image (design 17.3). It lies beside the image and may have been copied from anywhere: bounded, every
 * key checked, and what is not used here (the list of packages) is checked for its form all the same.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "manager/image.h"

#define TEXT_MAX 256U

static const char *const file_names[IMAGE_FILES] = {
        [IMAGE_ROOT] = "root.erofs", [IMAGE_KERNEL] = "kernel", [IMAGE_INITRD] = "initrd"};

bool image_name_is_valid(const char *name) {
        size_t n = name ? strnlen(name, IMAGE_NAME_MAX + 1) : 0;

        return n > 0 && n <= IMAGE_NAME_MAX && strchr("abcdefghijklmnopqrstuvwxyz0123456789", name[0]) &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

void image_manifest_done(ImageManifest *manifest) {
        free(manifest->name);
        free(manifest->architecture);
        free(manifest->kernel_release);
        *manifest = (ImageManifest){0};
}

/* A member that must be there and is not empty. */
static int read_text(JsonReader *reader, json_object *o, const char *path, const char **ret) {
        int r;

        r = json_read_string(reader, o, path, TEXT_MAX, ret);
        if (r < 0)
                return r;
        if (r == 0)
                return json_read_fail(reader, o, path, "missing");
        return **ret ? 0 : json_read_fail(reader, o, path, "empty");
}

static int copy_text(JsonReader *reader, json_object *o, const char *path, char **ret) {
        const char *text;
        int r;

        r = read_text(reader, o, path, &text);
        if (r < 0)
                return r;
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

static int read_sha256(JsonReader *reader, json_object *o, const char *path, char ret[static DIGEST_SIZE]) {
        const char *text;
        int r;

        r = read_text(reader, o, path, &text);
        if (r < 0)
                return r;
        if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
                return json_read_fail(reader, o, path, "expected 64 digits of lower-case hexadecimal (sha256)");
        memcpy(ret, text, DIGEST_SIZE);
        return 0;
}

/* The name of a file has a dot in it, which a path takes for a level: so the file's object is taken by hand. */
static int read_file_entry(JsonReader *reader, json_object *files, const char *name, uint64_t *ret_size) {
        static const char *const allowed[] = {"sha256", "size", NULL};
        char where[64], path[80], sha256[DIGEST_SIZE];
        json_object *o;
        int r;

        (void) snprintf(where, sizeof(where), "files.%s", name);
        if (!json_object_object_get_ex(files, name, &o) || !json_object_is_type(o, json_type_object))
                return json_read_fail(reader, files, where, "expected an object with sha256 and size");
        r = json_read_only(reader, o, where, allowed);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "%s.sha256", where);
        r = read_sha256(reader, o, path, sha256);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "%s.size", where);
        r = json_read_u64(reader, o, path, 1, IMAGE_FILE_SIZE_MAX, ret_size);
        return r < 0 ? r : r == 0 ? json_read_fail(reader, o, path, "missing") : 0;
}

static int read_files(JsonReader *reader, json_object *root, ImageManifest *manifest) {
        static const char *const allowed[] = {"root.erofs", "kernel", "initrd", NULL};
        json_object *files;
        int r;

        r = json_read_object(reader, root, "files", &files);
        if (r < 0)
                return r;
        if (r == 0)
                return json_read_fail(reader, root, "files", "missing");
        r = json_read_only(reader, files, "files", allowed);
        for (size_t i = 0; r >= 0 && i < IMAGE_FILES; i++)
                r = read_file_entry(reader, files, file_names[i], &manifest->sizes[i]);
        return r;
}

static int check_packages(JsonReader *reader, json_object *root) {
        json_object *packages;
        const char *text;
        int r;

        r = json_read_array(reader, root, "packages", IMAGE_PACKAGES_MAX, &packages);
        if (r <= 0)
                return r;
        for (size_t i = 0; i < json_object_array_length(packages); i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "packages[%zu]", i);
                r = json_as_string(reader, json_object_array_get_idx(packages, i), path, TEXT_MAX, &text);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_manifest(JsonReader *reader, json_object *root, ImageManifest *manifest) {
        const char *text;
        uint64_t format;
        int r;

        r = json_read_root(reader, root);
        if (r < 0)
                return r;
        /* First: a manifest of a later format may look different in everything else. */
        r = json_read_u64(reader, root, "format", 1, 1, &format);
        if (r < 0)
                return r;
        if (r == 0)
                return json_read_fail(reader, root, "format", "missing");
        r = copy_text(reader, root, "name", &manifest->name);
        if (r < 0)
                return r;
        r = copy_text(reader, root, "architecture", &manifest->architecture);
        if (r < 0)
                return r;
        r = copy_text(reader, root, "kernel_release", &manifest->kernel_release);
        if (r < 0)
                return r;
        r = read_text(reader, root, "distribution", &text);
        if (r < 0)
                return r;
        r = read_text(reader, root, "suite", &text);
        if (r < 0)
                return r;
        r = read_sha256(reader, root, "digest", manifest->digest);
        if (r < 0)
                return r;
        r = read_files(reader, root, manifest);
        return r < 0 ? r : check_packages(reader, root);
}

int image_manifest_parse(const char *file, const char *text, size_t size, ImageManifest *ret, char **reterr_text) {
        _cleanup_(json_reader_done) JsonReader reader = {.what = "key", .file = file};
        _cleanup_(image_manifest_done) ImageManifest manifest = {0};
        _cleanup_(json_putp) json_object *root = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        r = json_parse(text, size, &root, &error);
        if (r < 0) {
                if (error && asprintf(reterr_text, "%s: %s", file, error) < 0)
                        *reterr_text = NULL;
                return r;
        }
        r = read_manifest(&reader, root, &manifest);
        if (r < 0) {
                *reterr_text = TAKE_PTR(reader.error);
                return r;
        }
        *ret = manifest;
        manifest = (ImageManifest){0};
        return 0;
}
