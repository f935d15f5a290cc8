/* A 64-bit hash for keys and fingerprints (not against adversaries). The same on every machine.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HASH_H
#define LS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t ls_hash(const void *bytes, size_t length, uint64_t seed);
/* Another hash, as fast as memory can be read, for large blocks. Snapshots hold sums of its values
 * (data/digest.h): it must not change. */
uint64_t ls_hash_wide(const void *bytes, size_t length, uint64_t seed);
uint64_t ls_hash_string(const char *text, uint64_t seed);
/* A bijective mix of 64 bits: every input bit moves every output bit. */
uint64_t ls_mix(uint64_t x);

#endif
