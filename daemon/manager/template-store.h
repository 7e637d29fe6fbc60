/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Frozen machines on disk, one directory for each recipe: STORE/KEY/{ram,state,meta.json}. They are a cache: whoever deletes one loses
 * the seconds of a boot. A directory appears whole (rename(2)) or not at all, and its files are believed by their digests only.
 * All of this blocks: call it from a Job. */

#include <stdbool.h>

#include "manager/host-link.h"
#include "manager/recipe.h"
#include "manager/template-file.h"

/* What is known of a frozen machine. */
typedef struct TemplateMeta {
        char key[RECIPE_KEY_LENGTH + 1];
        char image[IMAGE_NAME_MAX + 1];
        char image_digest[DIGEST_SIZE];
        char kernel[KERNEL_RELEASE_SIZE_MAX + 1];
        char ram_digest[DIGEST_SIZE], state_digest[DIGEST_SIZE];
        bool kvm;
        uint64_t vcpus, memory_mib, disk_mib;
        uint64_t tsc_khz;      /* the guest's clock counts by it */
        uint64_t created_usec; /* CLOCK_REALTIME */
        uint64_t used_bytes;   /* of the memory: what is not zero */
} TemplateMeta;

/* Of a machine that was frozen just now; its files are not known yet. */
TemplateMeta template_meta_of(const Recipe *recipe, const char *kernel);

/* Both are for the same requests, but the image, the kernel or QEMU of the old one is of the past. */
bool template_meta_replaces(const TemplateMeta *newest, const TemplateMeta *old);

/* 0, -ENOENT when there is none, -EBADMSG when it is damaged, or -errno. */
int template_store_load(const char *store, const char *key, TemplateMeta *ret_meta, TemplateFiles *ret_files);

/* Fills in what meta is to say of the files, and takes the place of whatever bears that key. */
int template_store_save(const char *store, TemplateMeta *meta, const TemplateFiles *files);

/* Deletes what would not be used again: what newest replaces, and those that were not used for longest beyond `max`. */
void template_store_trim(const char *store, const TemplateMeta *newest, unsigned max);

/* What is known of up to `max` of them, last used first; how many. */
size_t template_store_list(const char *store, TemplateMeta *ret, size_t max);

/* 0, -ENOENT when there was none, or -errno. */
int template_store_drop(const char *store, const char *key);

/* Deletes what a crash has left half made. */
void template_store_sweep(const char *store);
