/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl image: list and show read the manifests; build hands over to the builder that the package brings.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/strv.h"
#include "ctl/images.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/table.h"
#include "ctl/terminal.h"
#include "ctl/text.h"

#define IMAGE_BUILDER EPHEMERAL_LIBEXECDIR "/image-build"
#define IMAGE_OUTPUT  "/var/lib/ephemeral/images"

enum { IMAGE_SUITE = 1 };

static const Option image_options[] = {
        {IMAGE_SUITE, 0, "suite", "NAME", "build: release of the distribution (default: this machine's)"},
        {0,           0, NULL,    NULL,   NULL                                                          },
};

static int64_t image_bytes(json_object *manifest) {
        json_object *files = NULL;
        int64_t sum = 0;

        if (!json_object_object_get_ex(manifest, "files", &files) || !json_object_is_type(files, json_type_object))
                return 0;
        json_object_object_foreach (files, key, file) {
                sum += get_int(file, "size", 0);
                (void) key;
        }
        return sum;
}

static void print_image_json(const ImageEntry *entry) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();
        static const char *const keys[] = {"distribution", "suite", "architecture", "kernel_release", "digest"};

        if (!o || json_add_string(o, "name", entry->name) < 0 || json_add_string(o, "directory", entry->directory) < 0)
                return;
        for (size_t i = 0; entry->manifest && i < ELEMENTSOF(keys); i++)
                if (json_add_string(o, keys[i], get_string(entry->manifest, keys[i], "")) < 0)
                        return;
        if (entry->manifest && json_add_u64(o, "bytes", (uint64_t) image_bytes(entry->manifest)) < 0)
                return;
        if (entry->error && json_add_string(o, "error", entry->error) < 0)
                return;
        print_json(o);
}

static void add_image(Table *table, const ImageEntry *entry) {
        json_object *m = entry->manifest;
        char suite[TEXT_SIZE], size[TEXT_SIZE], digest[13] = "";

        table_add(table, entry->name, COLOUR_NONE);
        if (!m) {
                table_add(table, entry->error, COLOUR_RED);
                for (int i = 0; i < 3; i++)
                        table_add(table, NULL, COLOUR_NONE);
                return;
        }
        snprintf(suite, sizeof(suite), "%.24s %.24s", get_string(m, "distribution", ""), get_string(m, "suite", ""));
        snprintf(digest, sizeof(digest), "%s", get_string(m, "digest", ""));
        table_add(table, suite, COLOUR_NONE);
        table_add(table, get_string(m, "kernel_release", NULL), COLOUR_NONE);
        table_add(table, text_bytes(size, (uint64_t) image_bytes(m)), COLOUR_NONE);
        table_add(table, digest, COLOUR_DIM);
}

static int image_list(Ctl *ctl, const ImageList *list) {
        static const char *const header[] = {"IMAGE", "DISTRIBUTION", "KERNEL", "SIZE", "DIGEST", NULL};
        _cleanup_(table_freep) Table *table = table_new(header);

        if (!table)
                return EXIT_FAILURE;
        for (size_t i = 0; i < list->n; i++)
                if (ctl->json)
                        print_image_json(&list->entries[i]);
                else
                        add_image(table, &list->entries[i]);
        if (ctl->json)
                return EXIT_SUCCESS;
        if (list->n > 0)
                table_print(table);
        else
                puts("No images. 'ephemeralctl image build' makes one (as root).");
        return EXIT_SUCCESS;
}

static void print_packages(json_object *manifest) {
        _cleanup_(freep) char *text = NULL;
        json_object *packages = NULL;
        size_t size;
        FILE *f;

        if (!json_object_object_get_ex(manifest, "packages", &packages) ||
            !json_object_is_type(packages, json_type_array))
                return;
        f = open_memstream(&text, &size);
        if (!f)
                return;
        for (size_t i = 0; i < json_object_array_length(packages); i++)
                fprintf(f, "%s%s", i > 0 ? "\n" : "",
                        text_or(json_object_get_string(json_object_array_get_idx(packages, i)), "?"));
        fclose(f);
        print_field("Packages", text);
}

static void print_image(const ImageEntry *entry) {
        json_object *m = entry->manifest;
        char text[TEXT_SIZE];

        print_field("Image", entry->name);
        print_field("Directory", entry->directory);
        print_field("Distribution", get_string(m, "distribution", NULL));
        print_field("Suite", get_string(m, "suite", NULL));
        print_field("Architecture", get_string(m, "architecture", NULL));
        print_field("Kernel", get_string(m, "kernel_release", NULL));
        print_field("Size", text_bytes(text, (uint64_t) image_bytes(m)));
        print_field("Digest", get_string(m, "digest", NULL));
        print_packages(m);
}

static int image_show(Ctl *ctl, const ImageList *list, const char *name) {
        const ImageEntry *entry = image_list_find(list, name);

        if (!entry) {
                print_error("There is no image '%s'. 'ephemeralctl image list' shows those there are.", name);
                return EXIT_FAILURE;
        }
        if (!entry->manifest) {
                print_error("The image in %s cannot be used: %s.", entry->directory, entry->error);
                return EXIT_FAILURE;
        }
        if (ctl->json)
                print_json(entry->manifest);
        else
                print_image(entry);
        return EXIT_SUCCESS;
}

static int add_pair(char ***argv, const char *option, const char *value) {
        int r = value ? strv_add(argv, option) : 0;

        return r < 0 || !value ? r : strv_add(argv, value);
}

/* Does not return when it works. */
static int image_build(const char *name, const char *suite) {
        _cleanup_(strv_freep) char **argv = NULL;
        int r;

        if (geteuid() != 0) {
                print_error("Images are built as root: sudo ephemeralctl image build%s%s", name ? " " : "",
                            text_or(name, ""));
                return EXIT_FAILURE;
        }
        r = strv_add(&argv, IMAGE_BUILDER);
        if (r >= 0)
                r = add_pair(&argv, "--output", IMAGE_OUTPUT);
        if (r >= 0)
                r = add_pair(&argv, "--name", name);
        if (r >= 0)
                r = add_pair(&argv, "--suite", suite);
        if (r >= 0) {
                execv(argv[0], argv);
                r = -errno;
        }
        print_error("Cannot run %s: %s.", IMAGE_BUILDER, strerror(-r));
        return EXIT_FAILURE;
}

static int image_with_list(Ctl *ctl, const char *name) {
        _cleanup_(image_list_done) ImageList list = {0};
        int r = image_list_read(image_directories, &list);

        if (r < 0) {
                print_error("Cannot read the images: %s.", strerror(-r));
                return EXIT_FAILURE;
        }
        return name ? image_show(ctl, &list, name) : image_list(ctl, &list);
}

static int image(Ctl *ctl, int argc, char *argv[]) {
        const char *value, *suite = NULL, *what, *name;
        int option, n;

        while ((option = options_next(ctl, argc, argv, &value)) > 0)
                suite = value;
        if (option < 0)
                return options_exit_code(ctl, option);
        n = argc - optind;
        what = n > 0 ? argv[optind] : "list";
        name = n > 1 ? argv[optind + 1] : NULL;
        if (n > 2)
                return usage_error(ctl, "Too many arguments.");
        if (strcmp(what, "build") == 0)
                return image_build(name, suite);
        if (suite)
                return usage_error(ctl, "--suite goes with 'image build'.");
        if (strcmp(what, "list") == 0 && !name)
                return image_with_list(ctl, NULL);
        if (strcmp(what, "show") == 0 && name)
                return image_with_list(ctl, name);
        return usage_error(ctl, "Say 'image list', 'image show NAME' or 'image build [NAME]'.");
}

const Verb verb_image = {
        .name = "image",
        .arguments = "list|show|build [NAME]",
        .summary = "List, show or build images",
        .more = "An image is what a microVM boots: a read-only root with its kernel, built from packages of the\n"
                "distribution. 'build' needs root.",
        .options = image_options,
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = image,
};
