/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A workflow is refused with a text, or its defaults are within its limits.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "manager/workflow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(workflow_freep) Workflow *w = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        r = workflow_parse("/w/command.json", "command", (const char *) data, size, &w, &error);
        if (r < 0) {
                assert(r == -EBADMSG && error && !w);
                return 0;
        }
        assert(!error && strcmp(w->name, "command") == 0 && w->description);
        assert(w->defaults.timeout_seconds <= w->limits.timeout_seconds && w->defaults.vcpus <= w->limits.vcpus);
        assert(w->defaults.memory_mib <= w->limits.memory_mib && w->defaults.disk_mib <= w->defaults.memory_mib);
        assert(w->limits.memory_mib <= WORKFLOW_MEMORY_MAX && w->defaults.memory_mib >= WORKFLOW_MEMORY_MIN);
        return 0;
}
