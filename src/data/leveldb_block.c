/* Blocks of LevelDB's tables. See data/leveldb_block.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/leveldb_block.h"

#include "data/snappy.h"

int ls_leveldb_open_block(const struct ls_leveldb_file *file, const uint8_t *bytes, bool checks,
                          struct ls_buffer *plain, struct ls_leveldb_block *block,
                          struct ls_error *error)
{
    const uint64_t room = file->size - LS_LEVELDB_FOOTER;
    static const char wrong[] = "a block is damaged";
    if (block->place > room || block->stored > room - block->place ||
        room - block->place - block->stored < LS_LEVELDB_TRAILER || block->stored > UINT32_MAX)
        return ls_leveldb_damaged(file->path, block->place, "a block lies outside the file", error);
    const uint8_t *at = bytes + block->place, *trailer = at + block->stored;
    size_t size = block->stored;
    block->packed = trailer[0] == 1;
    if (trailer[0] > 1 || (checks && ls_leveldb_fixed(trailer + 1, 4) !=
                                         ls_leveldb_checksum(at, block->stored, trailer[0])))
        return ls_leveldb_damaged(file->path, block->place, wrong, error);
    if (block->packed) {
        if (!ls_snappy_size(at, block->stored, &size))
            return ls_leveldb_damaged(file->path, block->place, wrong, error);
        uint8_t *out = ls_buffer_reserve(plain, size + 1, 1);
        if (out == NULL)
            return ls_fail_memory(error, "the index of a database");
        if (!ls_snappy_read(at, block->stored, out, size))
            return ls_leveldb_damaged(file->path, block->place, wrong, error);
        at = out;
    }
    uint64_t places = size >= 4 ? ls_leveldb_fixed(at + size - 4, 4) : UINT64_MAX;
    if (size < 4 || places > (size - 4) / 4)
        return ls_leveldb_damaged(file->path, block->place, wrong, error);
    block->content = (struct ls_leveldb_bytes){at, at + size - 4 - 4 * places};
    return 0;
}

bool ls_leveldb_next_entry(struct ls_leveldb_bytes *in, struct ls_text *key,
                           struct ls_leveldb_bytes *value)
{
    uint32_t shared, more, size;
    if (!ls_leveldb_take_small(in, &shared) || !ls_leveldb_take_small(in, &more) ||
        !ls_leveldb_take_small(in, &size) || shared > key->length ||
        more > (size_t)(in->end - in->at) || size > (size_t)(in->end - in->at) - more)
        return false;
    key->length = shared;
    ls_text_add_bytes(key, in->at, more);
    *value = (struct ls_leveldb_bytes){in->at + more, in->at + more + size};
    in->at = value->end;
    return true;
}
