/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The key is a hash over all that a guest's memory could tell apart: the template's plan (QEMU's own words, so nothing that is
 * changed there can be forgotten here), the image's digest and the very files, the build of QEMU and the processor.
 */
#include "manager/recipe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/strv.h"
#include "manager/digest.h"

/* When what is kept in a template's files, or done to its guest before it is frozen, changes in a way that this file does not see. */
#define TEMPLATE_FORMAT "1"

static void hash_text(gcry_md_hd_t hash, const char *text) {
        gcry_md_write(hash, text, strlen(text) + 1);
}

/* A file that was replaced by another is another, whatever its manifest says. */
static int hash_file(gcry_md_hd_t hash, int fd) {
        char text[160];
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        (void) snprintf(text, sizeof(text), "%jx %jx %jx %jx.%lx %jx.%lx", (uintmax_t) st.st_dev,
                        (uintmax_t) st.st_ino, (uintmax_t) st.st_size, (uintmax_t) st.st_mtim.tv_sec,
                        st.st_mtim.tv_nsec, (uintmax_t) st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        hash_text(hash, text);
        return 0;
}

static int hash_plan(gcry_md_hd_t hash, const Recipe *recipe) {
        _cleanup_(plan_freep) Plan *plan = NULL;
        PlanInput input = recipe->input;
        int r;

        input.kind = PLAN_TEMPLATE;
        input.tsc_khz = 0;
        r = plan_make(&input, &plan);
        for (char **argument = r < 0 ? NULL : plan->arguments; argument && *argument; argument++)
                hash_text(hash, *argument);
        return r;
}

static int hash_all(gcry_md_hd_t hash, const Recipe *recipe, const RecipeSettings *settings) {
        int r;

        hash_text(hash, TEMPLATE_FORMAT);
        hash_text(hash, qemu_build(settings->qemu));
        if (settings->kvm) /* -cpu host: the guest has seen it */
                hash_text(hash, settings->processor);
        hash_text(hash, recipe->image->digest);
        r = hash_plan(hash, recipe);
        if (r >= 0)
                r = hash_file(hash, recipe->image->root_fd);
        if (r >= 0)
                r = hash_file(hash, recipe->image->kernel_fd);
        if (r >= 0)
                r = hash_file(hash, recipe->image->initrd_fd);
        return r;
}

static int make_key(Recipe *recipe, const RecipeSettings *settings) {
        gcry_md_hd_t hash;
        int r;

        r = digest_open(&hash);
        if (r < 0)
                return r;
        r = hash_all(hash, recipe, settings);
        digest_close(hash, recipe->key);
        return r;
}

int recipe_new(const RecipeSettings *settings, Image *image, Recipe **ret) {
        _cleanup_(image_freep) Image *owned = image;
        _cleanup_(recipe_freep) Recipe *recipe = calloc(1, sizeof(*recipe));
        int r;

        if (!recipe)
                return -ENOMEM;
        recipe->image = TAKE_PTR(owned);
        recipe->qemu = strdup(qemu_binary(settings->qemu));
        recipe->firmware = strdup(qemu_firmware(settings->qemu));
        if (!recipe->qemu || !recipe->firmware)
                return -ENOMEM;
        recipe->input = (PlanInput){
                .qemu = recipe->qemu,
                .firmware = recipe->firmware,
                .kvm = settings->kvm,
                .vcpus = settings->vcpus,
                .memory_mib = settings->memory_mib,
                .disk_mib = settings->disk_mib,
                .tsc_khz = settings->tsc_khz,
        };
        r = qemu_binds(settings->qemu, settings->kvm, &recipe->binds);
        if (r >= 0)
                r = make_key(recipe, settings);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(recipe);
        return 0;
}

int recipe_fill(const Recipe *recipe, PlanKind kind, VmSettings *settings) {
        PlanInput input = recipe->input;

        input.kind = kind;
        settings->binds = recipe->binds;
        settings->files[PLAN_FD_IMAGE] = recipe->image->root_fd;
        settings->files[PLAN_FD_KERNEL] = recipe->image->kernel_fd;
        settings->files[PLAN_FD_INITRD] = recipe->image->initrd_fd;
        return plan_make(&input, &settings->plan);
}

Recipe *recipe_free(Recipe *recipe) {
        if (!recipe)
                return NULL;
        image_free(recipe->image);
        free(recipe->qemu);
        free(recipe->firmware);
        strv_free(recipe->binds);
        free(recipe);
        return NULL;
}
