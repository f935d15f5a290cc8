/* CRC-32C, half a byte at a time. See base/crc32c.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/crc32c.h"

uint32_t ls_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    static const uint32_t half[16] = {0x00000000U, 0x105ec76fU, 0x20bd8edeU, 0x30e349b1U,
                                      0x417b1dbcU, 0x5125dad3U, 0x61c69362U, 0x7198540dU,
                                      0x82f63b78U, 0x92a8fc17U, 0xa24bb5a6U, 0xb21572c9U,
                                      0xc38d26c4U, 0xd3d3e1abU, 0xe330a81aU, 0xf36e6f75U};
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ half[crc & 15];
        crc = crc >> 4 ^ half[crc & 15];
    }
    return ~crc;
}

uint32_t ls_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}
