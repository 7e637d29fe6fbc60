/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Little-endian numbers at any alignment. */

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t wire_get_u32(const uint8_t *p) {
        uint32_t v;
        memcpy(&v, p, sizeof(v));
        return le32toh(v);
}

static inline uint64_t wire_get_u64(const uint8_t *p) {
        uint64_t v;
        memcpy(&v, p, sizeof(v));
        return le64toh(v);
}

static inline uint8_t *wire_put_u32(uint8_t *p, uint32_t v) {
        v = htole32(v);
        memcpy(p, &v, sizeof(v));
        return p + sizeof(v);
}

static inline uint8_t *wire_put_u64(uint8_t *p, uint64_t v) {
        v = htole64(v);
        memcpy(p, &v, sizeof(v));
        return p + sizeof(v);
}
