/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine that boots to become a template: ready, warmed up, frozen, gone; what is left are two sealed files. */

#include "manager/recipe.h"
#include "manager/template-file.h"

typedef struct TemplateBuild TemplateBuild;

typedef struct TemplateBuildHandlers {
        /* files are given away; kernel is the guest's release. */
        void (*on_built)(void *userdata, TemplateFiles files, const char *kernel);
        /* text says why, with the last line of the console. */
        void (*on_failed)(void *userdata, const char *text);
        void *userdata;
} TemplateBuildHandlers;

typedef struct TemplateBuildSettings {
        const Recipe *recipe; /* outlives the build */
        unsigned attempt;     /* from 1: a unit of its own for each */
        uint64_t boot_usec;   /* deadline of each step */
} TemplateBuildSettings;

/* One of the handlers is called when the machine is gone, and may free the build. 0, or -errno with a text (the caller frees). */
int template_build_start(const VmEnvironment *environment,
                         const TemplateBuildSettings *settings,
                         const TemplateBuildHandlers *handlers,
                         TemplateBuild **ret,
                         char **reterr_text);
TemplateBuild *template_build_free(TemplateBuild *b);

DEFINE_CLEANUP(TemplateBuild *, template_build_free);
