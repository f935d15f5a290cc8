/* SHA-256 (FIPS 180-4), for hashes that people compare: the same as sha256sum's.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_SHA256_H
#define LS_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct ls_sha256 {
    uint32_t state[8];
    uint64_t bytes; /* taken so far */
    unsigned char block[64];
};

enum { LS_SHA256_TEXT = 65 }; /* hexadecimal digits and what ends them */

void ls_sha256_begin(struct ls_sha256 *hash);
void ls_sha256_add(struct ls_sha256 *hash, const void *bytes, size_t length);
void ls_sha256_end(struct ls_sha256 *hash, char text[LS_SHA256_TEXT]);

#endif
