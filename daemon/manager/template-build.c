/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The build of a template. Nothing of any run is in it: it executes our own warm-up and nothing else.
 */
#include "manager/template-build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/console.h"
#include "manager/warm-up.h"

struct TemplateBuild {
        TemplateBuildHandlers handlers;
        Vm *vm;
        Console *console;
        TemplateFiles files;
        char *kernel;
        bool frozen;
};

static void on_ready(Vm *vm, const char *kernel, uint64_t boot_usec, void *userdata) {
        TemplateBuild *b = userdata;

        b->kernel = strdup(kernel);
        if (!b->kernel || vm_warm_up(vm, warm_up_argv) < 0)
                vm_stop(vm);
}

static void on_warm(Vm *vm, void *userdata) {
        TemplateBuild *b = userdata;

        if (vm_freeze(vm, b->files.state_fd) < 0)
                vm_stop(vm);
}

static void on_frozen(Vm *vm, void *userdata) {
        TemplateBuild *b = userdata;

        b->frozen = true;
        vm_stop(vm);
}

static void on_claimed(Vm *vm, int error, void *userdata) {
}

static void on_console(Vm *vm, const void *data, size_t size, void *userdata) {
        TemplateBuild *b = userdata;

        console_write(b->console, data, size);
}

static void fail(TemplateBuild *b, const char *reason) {
        _cleanup_(freep) char *text = console_explain(b->console, reason);

        b->handlers.on_failed(b->handlers.userdata, text ? text : "out of memory");
}

/* Only now does nobody map the memory for writing any more. */
static void on_gone(Vm *vm, const VmEnd *end, void *userdata) {
        TemplateBuild *b = userdata;
        TemplateFiles files = b->files;
        int r;

        if (!b->frozen) {
                fail(b, end->reason ? end->reason : "the machine was ended before it was frozen");
                return;
        }
        r = template_file_seal(files.ram_fd);
        if (r >= 0)
                r = template_file_seal(files.state_fd);
        if (r < 0) {
                fail(b, "its memory cannot be sealed");
                return;
        }
        b->files = TEMPLATE_NO_FILES;
        b->handlers.on_built(b->handlers.userdata, files, b->kernel);
}

static const VmHandlers vm_handlers = {
        .on_ready = on_ready,
        .on_warm = on_warm,
        .on_frozen = on_frozen,
        .on_claimed = on_claimed,
        .on_console = on_console,
        .on_gone = on_gone,
};

static int name_unit(const TemplateBuildSettings *settings, char **ret_unit, char **ret_description) {
        const Recipe *recipe = settings->recipe;
        char again[16] = "";

        if (settings->attempt > 1)
                (void) snprintf(again, sizeof(again), "-%u", settings->attempt);
        if (asprintf(ret_unit, "ephemeral-template-%.*s%s.scope", RECIPE_KEY_SHORT_LENGTH, recipe->key, again) < 0)
                return -ENOMEM;
        if (asprintf(ret_description, "Template of image %s (%u vcpus, %llu MiB)", recipe->image->name,
                     recipe->input.vcpus, (unsigned long long) recipe->input.memory_mib) < 0)
                return -ENOMEM;
        return 0;
}

static int launch(TemplateBuild *b,
                  const VmEnvironment *environment,
                  const TemplateBuildSettings *settings,
                  char **reterr_text) {
        _cleanup_(freep) char *unit = NULL, *description = NULL;
        VmHandlers handlers = vm_handlers;
        VmSettings vm = {
                .id = "template",
                .files = VM_NO_FILES,
                .boot_usec = settings->boot_usec,
                .life_usec = 4 * settings->boot_usec, /* there are three steps */
        };
        int r;

        r = name_unit(settings, &unit, &description);
        if (r >= 0)
                r = recipe_fill(settings->recipe, PLAN_TEMPLATE, &vm);
        if (r < 0)
                return r;
        vm.unit = unit;
        vm.description = description;
        vm.files[PLAN_FD_RAM] = b->files.ram_fd;
        handlers.userdata = b;
        return vm_start(environment, &vm, &handlers, &b->vm, reterr_text);
}

int template_build_start(const VmEnvironment *environment,
                         const TemplateBuildSettings *settings,
                         const TemplateBuildHandlers *handlers,
                         TemplateBuild **ret,
                         char **reterr_text) {
        _cleanup_(template_build_freep) TemplateBuild *b = calloc(1, sizeof(*b));
        uint64_t ram_bytes = settings->recipe->input.memory_mib * 1024 * 1024;
        int r;

        if (!b)
                return -ENOMEM;
        b->handlers = *handlers;
        b->files = TEMPLATE_NO_FILES;
        r = console_new(&b->console);
        if (r >= 0)
                r = template_file_new("ram", ram_bytes, &b->files.ram_fd);
        if (r >= 0)
                r = template_file_new("state", 0, &b->files.state_fd);
        if (r >= 0)
                r = launch(b, environment, settings, reterr_text);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

TemplateBuild *template_build_free(TemplateBuild *b) {
        if (!b)
                return NULL;
        vm_free(b->vm);
        console_free(b->console);
        template_files_done(&b->files);
        free(b->kernel);
        free(b);
        return NULL;
}
