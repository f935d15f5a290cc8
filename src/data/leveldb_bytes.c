/* Numbers in LevelDB's files. See data/leveldb_bytes.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/leveldb_bytes.h"

uint64_t ls_leveldb_fixed(const uint8_t *p, int count)
{
    uint64_t number = 0;
    for (int i = 0; i < count; i++)
        number |= (uint64_t)p[i] << (8 * i);
    return number;
}

bool ls_leveldb_take_number(struct ls_leveldb_bytes *in, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

bool ls_leveldb_take_small(struct ls_leveldb_bytes *in, uint32_t *number)
{
    uint64_t wide;
    if (!ls_leveldb_take_number(in, &wide) || wide > UINT32_MAX)
        return false;
    *number = (uint32_t)wide;
    return true;
}

bool ls_leveldb_take_bytes(struct ls_leveldb_bytes *in, struct ls_leveldb_bytes *part)
{
    uint32_t size;
    if (!ls_leveldb_take_small(in, &size) || size > (size_t)(in->end - in->at))
        return false;
    *part = (struct ls_leveldb_bytes){in->at, in->at + size};
    in->at += size;
    return true;
}
