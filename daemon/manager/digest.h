/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* SHA-256 (FIPS 180-4) by libgcrypt, written as lower-case hex. */

#include <gcrypt.h>

enum {
        DIGEST_SIZE = 65, /* with the NUL */
};

/* 0 or -ENOMEM. Then gcry_md_write(). */
int digest_open(gcry_md_hd_t *ret);

/* The digest of what was written; hash is gone. */
void digest_close(gcry_md_hd_t hash, char ret[static DIGEST_SIZE]);
