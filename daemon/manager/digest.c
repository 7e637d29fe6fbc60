/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager/digest.h"

#include <errno.h>
#include <stdio.h>

/* libgcrypt wants to be asked for its version first. No secret is ever in its hands. */
static void initialize_once(void) {
        if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
                return;
        (void) gcry_check_version(NULL);
        (void) gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
        (void) gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

int digest_open(gcry_md_hd_t *ret) {
        initialize_once();
        return gcry_md_open(ret, GCRY_MD_SHA256, 0) == 0 ? 0 : -ENOMEM;
}

void digest_close(gcry_md_hd_t hash, char ret[static DIGEST_SIZE]) {
        const unsigned char *bytes = gcry_md_read(hash, GCRY_MD_SHA256);

        for (size_t i = 0; i < DIGEST_SIZE / 2; i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
        gcry_md_close(hash);
}
