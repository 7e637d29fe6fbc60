/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_PATH "/etc/ephemeral/ephemerald.conf"

typedef enum AcceleratorChoice {
        ACCELERATOR_AUTO,
        ACCELERATOR_KVM,
        ACCELERATOR_TCG,
} AcceleratorChoice;

/* ephemerald.conf, section [Manager]; the keys are the members' names in CamelCase. */
typedef struct Config {
        AcceleratorChoice accelerator;
        bool require_hardware_virtualization;
        uint32_t runs_max;  /* at once; 0: by the machine's memory and processors */
        uint32_t queue_max; /* runs that wait for a slot */
        uint64_t idle_usec; /* IdleSec=: exit after so long with nothing to do; 0: never */
        bool templates;     /* machines are clones of one that has booted */
        uint32_t templates_max;
        uint32_t standby;           /* machines that wait, for each template in use */
        uint64_t standby_idle_usec; /* StandbyIdleSec=: how long a template is in use after a run; 0: for ever */
        char *image;                /* of requests that name none */
        char *jail_path;
        char *qemu_path;
        char *workflows_path;       /* directory */
        char *images_path;          /* directories with ':' between them, first hit wins */
        char *templates_path;       /* directory */
        char *memory_pressure_path; /* a pressure stall file, or a FIFO */
} Config;

/* Fills in the defaults, then path and path.d/ *.conf by name; later lines win. A missing file is no error. Unknown keys are
 * warned about. 0, or -errno with a text that names file and line. */
int config_load(const char *path, Config *ret, char **reterr_text);

void config_done(Config *config);
