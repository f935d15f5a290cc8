/* CRC-32C (Castagnoli's polynomial), as LevelDB and TensorBoard's files have it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_CRC32C_H
#define LS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that follow those of `crc`; 0 for the first ones. */
uint32_t ls_crc32c(uint32_t crc, const void *bytes, size_t size);
/* As it is stored: turned by 15 bits, with a constant added, because the CRC of bytes that hold
 * their own CRC says little. */
uint32_t ls_crc32c_masked(uint32_t crc);

#endif
