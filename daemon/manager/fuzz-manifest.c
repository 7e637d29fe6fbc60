/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The manifest of an image is refused with a text, or complete.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "manager/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        ImageManifest manifest = {0};
        _cleanup_(freep) char *error = NULL;
        int r;

        r = image_manifest_parse("/i/manifest.json", (const char *) data, size, &manifest, &error);
        if (r < 0) {
                assert(r == -EBADMSG && error && !manifest.name);
                return 0;
        }
        assert(!error && *manifest.name && *manifest.architecture && *manifest.kernel_release);
        assert(strlen(manifest.digest) == 64);
        for (size_t i = 0; i < IMAGE_FILES; i++)
                assert(manifest.sizes[i] >= 1 && manifest.sizes[i] <= IMAGE_FILE_SIZE_MAX);
        image_manifest_done(&manifest);
        return 0;
}
