/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager/warm-up.h"

#include <stddef.h>

/* An image may lack python3: then the shell is what gets warm. */
char *const warm_up_argv[] = {
        (char *) "sh",
        (char *) "-c",
        (char *) "python3 -c 'import json, os, re, subprocess, sys' 2>/dev/null; ls / | cat >/dev/null",
        NULL,
};
