/* See base/pinning.h. SPDX-License-Identifier: BSD-2-Clause */
#include "base/pinning.h"

#include <string.h>

#include "base/memory.h"

bool ls_pinned_create(struct ls_pinned *block, const struct ls_pinning *pinning, size_t bytes)
{
    *block = (struct ls_pinned){0};
    if (pinning != NULL && bytes > 0 && bytes <= LS_PINNED_MOST)
        block->memory = pinning->create(bytes);
    if (block->memory != NULL) {
        block->by = pinning;
        memset(block->memory, 0, bytes);
        return true;
    }
    block->memory = ls_alloc_aligned(bytes);
    return block->memory != NULL;
}

void ls_pinned_free(struct ls_pinned *block)
{
    if (block->by != NULL)
        block->by->free(block->memory);
    else
        ls_free_aligned(block->memory);
    *block = (struct ls_pinned){0};
}
