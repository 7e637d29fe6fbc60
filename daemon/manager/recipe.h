/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a machine is made of before anybody's command is in it: this image, this QEMU, this size. Two requests with equal recipes get
 * machines that do not differ; so a template belongs to a recipe, and the recipe's key names it. */

#include "manager/digest.h"
#include "manager/image.h"
#include "manager/plan.h"
#include "manager/qemu.h"
#include "manager/vm.h"

enum {
        RECIPE_KEY_LENGTH = DIGEST_SIZE - 1,
        RECIPE_KEY_SHORT_LENGTH = 12, /* of it, in names of units and messages */
};

typedef struct RecipeSettings {
        const Qemu *qemu;
        bool kvm;
        unsigned vcpus;
        uint64_t memory_mib, disk_mib;
        uint64_t tsc_khz;      /* no part of the key: it is measured anew at each start */
        const char *processor; /* Host.processor */
} RecipeSettings;

typedef struct Recipe {
        Image *image; /* holds the files open, also when others have taken their place on disk */
        char *qemu, *firmware;
        char **binds;
        PlanInput input; /* kind and tsc_khz aside, the same for all of this key */
        char key[RECIPE_KEY_LENGTH + 1];
} Recipe;

/* Takes image over, also by a failure. 0 or -errno. */
int recipe_new(const RecipeSettings *settings, Image *image, Recipe **ret);
Recipe *recipe_free(Recipe *r);

/* Fills in plan, binds, and the files that come from the image; a template and a clone need more (template.h). 0 or -errno. */
int recipe_fill(const Recipe *recipe, PlanKind kind, VmSettings *settings);

DEFINE_CLEANUP(Recipe *, recipe_free);
