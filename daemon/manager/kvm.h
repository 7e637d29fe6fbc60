/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cheap look at /dev/kvm: it opens, speaks the one API version and makes a VM. 0, or -errno and why in *ret_reason (the caller frees).
 * No proof: only the boot of a template is (docs/design.md, section 6). */
int kvm_usable(char **ret_reason);
