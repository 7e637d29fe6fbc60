/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Properties of a run's object: one table of name → what of the run it shows.
 */
#include "manager/run-properties.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "manager/run.h"

static const char *accelerator_of(const Run *run) {
        json_object *name;

        return json_object_object_get_ex(run->isolation, "accelerator", &name) ? json_object_get_string(name) : "";
}

static const char *text_of(const Run *run, const char *property) {
        const struct {
                const char *name, *value;
        } texts[] = {
                {"Id",          run->id                                        },
                {"Workflow",    run->request->workflow                         },
                {"State",       run_state_name(run->state)                     },
                {"Outcome",     outcome_name(run->outcome)                     },
                {"Unit",        run->unit                                      },
                {"Account",     run->account                                   },
                {"Image",       run->request->image                            },
                {"Accelerator", accelerator_of(run)                            },
                {"Isolation",   run->isolation ? json_text(run->isolation) : ""},
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (strcmp(texts[i].name, property) == 0)
                        return texts[i].value;
        return NULL;
}

static const uint64_t *time_of(const Run *run, const char *property) {
        const struct {
                const char *name;
                const uint64_t *value;
        } times[] = {
                {"CreatedUSec", &run->created_usec         },
                {"StartedUSec", &run->started_usec         },
                {"EndedUSec",   &run->ended_usec           },
                {"TimeoutUSec", &run->request->timeout_usec},
        };

        for (size_t i = 0; i < ELEMENTSOF(times); i++)
                if (strcmp(times[i].name, property) == 0)
                        return times[i].value;
        return NULL;
}

static int append_labels(const Run *run, sd_bus_message *reply) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{ss}");
        for (char **l = run->request->labels; r >= 0 && l[0]; l += 2)
                r = sd_bus_message_append(reply, "{ss}", l[0], l[1]);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

int run_property_get(sd_bus *bus,
                     const char *path,
                     const char *interface,
                     const char *property,
                     sd_bus_message *reply,
                     void *userdata,
                     sd_bus_error *reterr_error) {
        const Run *run = userdata;
        const char *text = text_of(run, property);
        const uint64_t *usec = time_of(run, property);

        if (text)
                return sd_bus_message_append(reply, "s", text);
        if (usec)
                return sd_bus_message_append(reply, "t", *usec);
        if (strcmp(property, "ExitStatus") == 0)
                return sd_bus_message_append(reply, "i", run_exit_status(run));
        if (strcmp(property, "Labels") == 0)
                return append_labels(run, reply);
        return -ENODATA;
}
