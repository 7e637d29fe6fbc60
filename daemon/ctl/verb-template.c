/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ephemeralctl template: the frozen machines that runs are clones of.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/table.h"
#include "ctl/text.h"

enum { KEY_SHOWN = 12 }; /* as in the names of units */

typedef struct Row {
        const char *key, *image, *where;
        uint32_t vcpus;
        uint64_t memory_mib, bytes, created_usec;
} Row;

static int print_row_json(const Row *row) {
        _cleanup_(json_putp) json_object *o = json_object_new_object();

        if (!o || json_add_string(o, "key", row->key) < 0 || json_add_string(o, "image", row->image) < 0 ||
            json_add_string(o, "where", row->where) < 0 || json_add_u64(o, "vcpus", row->vcpus) < 0 ||
            json_add_u64(o, "memory_mib", row->memory_mib) < 0 || json_add_u64(o, "bytes", row->bytes) < 0 ||
            json_add_u64(o, "created_usec", row->created_usec) < 0)
                return -ENOMEM;
        print_json(o);
        return 0;
}

static int add_row(Table *table, const Row *row) {
        char key[KEY_SHOWN + 1], vcpus[16], memory[TEXT_SIZE], bytes[TEXT_SIZE], made[TEXT_SIZE];
        const char *cells[] = {row->image, vcpus, memory, row->where, bytes, made, key};
        int r = 0;

        (void) snprintf(key, sizeof(key), "%s", row->key);
        (void) snprintf(vcpus, sizeof(vcpus), "%" PRIu32, row->vcpus);
        text_bytes(memory, row->memory_mib << 20);
        (void) snprintf(bytes, sizeof(bytes), "-");
        if (row->bytes > 0)
                text_bytes(bytes, row->bytes);
        text_ago(made, clock_realtime_usec(), row->created_usec);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(cells); i++)
                r = table_add(table, cells[i], COLOUR_NONE);
        return r;
}

static int list_templates(Ctl *ctl) {
        static const char *const header[] = {"IMAGE", "VCPUS", "MEMORY", "WHERE", "SIZE", "MADE", "TEMPLATE", NULL};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(table_freep) Table *table = table_new(header);
        Row row;
        int r;

        if (!table)
                return client_bad_answer(-ENOMEM);
        r = client_call(ctl, MANAGER_METHOD("ListTemplates"), &reply, NULL);
        if (r != 0)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "(sssuttt)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(sssuttt)", &row.key, &row.image, &row.where, &row.vcpus,
                                                  &row.memory_mib, &row.bytes, &row.created_usec)) > 0)
                r = ctl->json ? print_row_json(&row) : add_row(table, &row);
        if (r < 0)
                return client_bad_answer(r);
        if (!ctl->json)
                table_print(table);
        return EXIT_SUCCESS;
}

static int build_template(Ctl *ctl, const char *image) {
        _cleanup_(freep) char *key = NULL;
        int r;

        r = client_call_string(ctl, MANAGER_METHOD("BuildTemplate"), image, &key);
        if (r != 0)
                return r;
        if (ctl->json) {
                _cleanup_(json_putp) json_object *o = json_object_new_object();

                if (!o || json_add_string(o, "key", key) < 0)
                        return client_bad_answer(-ENOMEM);
                print_json(o);
        } else
                printf("%s\n", key);
        return EXIT_SUCCESS;
}

static int drop_templates(Ctl *ctl) {
        return client_call(ctl, MANAGER_METHOD("DropTemplates"), NULL, NULL);
}

static int template(Ctl *ctl, int argc, char *argv[]) {
        const char *what, *image;
        int n, r;

        r = options_only_operands(ctl, argc, argv, 0, 2);
        if (r < 0)
                return options_exit_code(ctl, r);
        n = argc - optind;
        what = n > 0 ? argv[optind] : "list";
        image = n > 1 ? argv[optind + 1] : NULL;
        if (strcmp(what, "build") != 0 && (image || (strcmp(what, "list") != 0 && strcmp(what, "drop") != 0)))
                return usage_error(ctl, "Say 'template list', 'template build [IMAGE]' or 'template drop'.");
        r = client_open(ctl);
        if (r != 0)
                return r;
        if (strcmp(what, "build") == 0)
                return build_template(ctl, text_or(image, ""));
        return strcmp(what, "drop") == 0 ? drop_templates(ctl) : list_templates(ctl);
}

const Verb verb_template = {
        .name = "template",
        .arguments = "list|build [IMAGE]|drop",
        .summary = "List, build or drop templates",
        .more = "A template is a microVM that was booted once and frozen: runs are clones of it. 'build' makes or "
                "loads the\n"
                "one that a run of the image takes and prints its key; 'drop' forgets all, and the next run makes its "
                "own.",
        .usage_exit_code = EXIT_CODE_USAGE,
        .run = template,
};
