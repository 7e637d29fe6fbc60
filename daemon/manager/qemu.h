/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is known of the QEMU that is installed: where it is, which one it is, and which files it needs to run. */

#include <stdbool.h>

#include "common/cleanup.h"

#define QEMU_BINARY        "/usr/bin/qemu-system-x86_64"
#define QEMU_VERSION_MAJOR 7 /* the oldest that is known to freeze and clone a microvm */
#define QEMU_VERSION_MINOR 2

typedef struct Qemu Qemu;

/* Blocks for the time that three short programs take (about 50 ms): call it at the start, and again when qemu_is_current() says
 * so. 0; -ENOENT no such program, -EOPNOTSUPP too old or without a firmware for microvm, or -errno. *reterr_text says what was wrong
 * and what cures it; the caller frees it. */
int qemu_probe(const char *binary, Qemu **ret, char **reterr_text);

Qemu *qemu_free(Qemu *q);
DEFINE_CLEANUP(Qemu *, qemu_free);

const char *qemu_binary(const Qemu *q);
const char *qemu_version(const Qemu *q); /* "7.2.22" */
const char *qemu_build(const Qemu *q);   /* names this very file: changes whenever the package does; [0-9a-f-] only */
const char *qemu_firmware(
        const Qemu *q); /* the file, for -bios; it needs no -L and no option ROM (x-option-roms=off) */

/* The files to bind into the jail, one for each --bind=. With kvm, the module that emulates is left out, so that QEMU cannot
 * fall back to it. The caller frees. 0 or -ENOMEM. */
int qemu_binds(const Qemu *q, bool kvm, char ***ret);

/* Is the program on disk still the one that was probed? One stat(2). */
bool qemu_is_current(const Qemu *q);
