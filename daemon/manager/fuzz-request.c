/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A request is refused with an error that D-Bus can carry, or accepted within its limits, and what was accepted asks for the
 * same when it is parsed again.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/json.h"
#include "common/strv.h"
#include "manager/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const Request *request, const WorkflowSet *workflows) {
        const char *text = request_to_json(request);
        _cleanup_(request_freep) Request *again = NULL;

        assert(strv_length(request->argv) >= 1 && strv_length(request->argv) <= REQUEST_ARGV_MAX);
        assert(strv_length(request->env) <= REQUEST_ENV_MAX);
        assert(request->timeout_usec >= 1000000 && request->timeout_usec <= 3600000000);
        assert(request->vcpus >= 1 && request->vcpus <= 4);
        assert(request->memory_mib >= 64 && request->memory_mib <= 4096);
        assert(request->disk_mib >= 4 && request->disk_mib <= request->memory_mib);
        assert(request->output_max_bytes <= 67108864);

        assert(request_parse(text, strlen(text), workflows, "default", &again, NULL) == 0);
        assert(strcmp(request_to_json(again), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static WorkflowSet *workflows;
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        _cleanup_(request_freep) Request *request = NULL;

        if (!workflows)
                assert(workflow_set_load(WORKFLOWS_SOURCE, &workflows) == 0);
        if (request_parse((const char *) data, size, workflows, "default", &request, &e) < 0) {
                assert(e.name && e.message && !request);
                assert(utf8_valid_prefix(e.message, strlen(e.message)) == strlen(e.message));
                return 0;
        }
        check_accepted(request, workflows);
        return 0;
}
