/* Packing: where in memory each block of a program lies.
 *
 * A block is alive from its first line to its last; two that are alive at once must not overlap.
 * Blocks are placed one after the other, each at the lowest offset that is free during its live.
 * Several orders are tried, and each is improved: the blocks that reach beyond the most that is
 * alive at once are placed earlier the next time. The smallest result wins.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/memory.h"
#include "plan/program.h"

enum { ORDERS = 3, ROUNDS = 12, BLOCKS_FOR_ALL_ROUNDS = 4000 };

struct block {
    int first, last; /* lines during which it is needed */
    size_t bytes, offset;
    size_t weight; /* its place in the order: the largest come first */
    size_t index;  /* in the list as it was collected */
    int value;     /* the root; -1: scratch of line `first` */
};

/* A block that has its place: what the others must know of it. */
struct placed {
    int first, last;
    size_t offset, end;
};

/* Those that share one piece of memory: arenas, or what is stashed. */
struct region {
    struct block *block;
    size_t count;
    size_t bound;         /* the most that is alive at once */
    struct placed *order; /* by offset; scratch memory of `place` */
    size_t placed, bytes;
    size_t *best; /* by index: the offset in the best packing so far */
    size_t best_bytes;
};

static int by_weight(const void *a, const void *b)
{
    const struct block *first = a, *second = b;
    if (first->weight != second->weight)
        return first->weight > second->weight ? -1 : 1;
    return first->index < second->index ? -1 : 1;
}

/* Finds the lowest gap for block `b` among those placed before, which are in order of offset, and
 * keeps them so. */
static void place(struct region *region, size_t b)
{
    struct block *block = &region->block[b];
    const int first = block->first, last = block->last;
    size_t offset = 0, at = region->placed;
    for (size_t i = 0; i < region->placed; i++) {
        const struct placed *other = &region->order[i];
        if (other->last < first || other->first > last)
            continue;
        if (other->offset >= offset + block->bytes)
            break;
        if (other->end > offset)
            offset = other->end;
    }
    block->offset = offset;
    while (at > 0 && region->order[at - 1].offset > offset)
        at--;
    memmove(region->order + at + 1, region->order + at,
            (region->placed - at) * sizeof *region->order);
    region->order[at] = (struct placed){first, last, offset, offset + block->bytes};
    region->placed++;
    if (offset + block->bytes > region->bytes)
        region->bytes = offset + block->bytes;
}

static void place_all(struct region *region)
{
    qsort(region->block, region->count, sizeof *region->block, by_weight);
    region->placed = region->bytes = 0;
    for (size_t i = 0; i < region->count; i++)
        place(region, i);
    if (region->bytes >= region->best_bytes)
        return;
    region->best_bytes = region->bytes;
    for (size_t i = 0; i < region->count; i++)
        region->best[region->block[i].index] = region->block[i].offset;
}

static void weigh(struct region *region, int order)
{
    for (size_t i = 0; i < region->count; i++) {
        struct block *block = &region->block[i];
        size_t live = (size_t)(block->last - block->first) + 1;
        block->weight = order == 0 ? block->bytes : order == 1 ? live : block->bytes / 64 * live;
    }
}

/* Places blocks in several orders until one is as small as can be. */
static void pack_region(struct region *region)
{
    int rounds = region->count > BLOCKS_FOR_ALL_ROUNDS ? 1 : ROUNDS;
    region->best_bytes = SIZE_MAX;
    for (int order = 0; order < ORDERS; order++) {
        weigh(region, order);
        for (int round = 0; round < rounds; round++) {
            place_all(region);
            if (region->best_bytes <= region->bound)
                return;
            for (size_t i = 0; i < region->count; i++)
                if (region->block[i].offset + region->block[i].bytes > region->bound)
                    region->block[i].weight += region->block[0].weight / 2 + 1;
        }
    }
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void add_block(struct region *region, struct block block)
{
    block.index = region->count;
    block.bytes = ls_align(block.bytes);
    region->block[region->count++] = block;
}

static void collect(const struct ls_program *program, struct region *arena, struct region *stashed)
{
    for (size_t v = 0; v < program->value_count; v++) {
        const struct ls_live_range *live = &program->live[v];
        if (live->root != (int)v || live->first < 0 || !ls_program_in_arena(program, (int)v))
            continue;
        struct block block = {.first = live->first,
                              .last = live->last,
                              .bytes = ls_program_bytes(program, (int)v),
                              .value = (int)v};
        add_block(live->stashed ? stashed : arena, block);
    }
    for (size_t l = 0; l < program->line_count; l++) {
        size_t bytes = program->plan->steps[program->line[l].step].prepared.scratch_bytes;
        struct block block = {.first = (int)l, .last = (int)l, .bytes = bytes, .value = -1};
        if (bytes > 0)
            add_block(arena, block);
    }
    arena->bound = program->arena_bytes;
    stashed->bound = program->stashed_bytes;
}

static void take_result(const struct region *region, struct ls_packing *packing, size_t *bytes)
{
    *bytes = region->count > 0 ? region->best_bytes : 0;
    for (size_t i = 0; i < region->count; i++) {
        const struct block *block = &region->block[i];
        size_t *to =
            block->value >= 0 ? &packing->value[block->value] : &packing->scratch[block->first];
        *to = region->best[block->index];
    }
}

static bool create_region(struct region *region, size_t capacity)
{
    region->block = ls_alloc(capacity, sizeof *region->block);
    region->order = ls_alloc(capacity, sizeof *region->order);
    region->best = ls_alloc(capacity, sizeof *region->best);
    return region->block != NULL && region->order != NULL && region->best != NULL;
}

static void free_region(struct region *region)
{
    ls_free(region->block);
    ls_free(region->order);
    ls_free(region->best);
}

int ls_program_pack(const struct ls_program *program, struct ls_packing *packing,
                    struct ls_error *error)
{
    struct region arena = {0}, stashed = {0};
    size_t capacity = program->value_count + program->line_count + 1;
    packing->value = ls_alloc(program->value_count + 1, sizeof *packing->value);
    packing->scratch = ls_alloc(program->line_count + 1, sizeof *packing->scratch);
    bool ready = packing->value != NULL && packing->scratch != NULL;
    ready = create_region(&arena, capacity) && ready;
    ready = create_region(&stashed, capacity) && ready;
    if (ready) {
        for (size_t v = 0; v < program->value_count; v++)
            packing->value[v] = SIZE_MAX;
        collect(program, &arena, &stashed);
        pack_region(&arena);
        pack_region(&stashed);
        take_result(&arena, packing, &packing->arena_bytes);
        take_result(&stashed, packing, &packing->stashed_bytes);
    }
    free_region(&arena);
    free_region(&stashed);
    return ready ? 0 : ls_fail_memory(error, "a plan");
}

void ls_packing_free(struct ls_packing *packing)
{
    ls_free(packing->value);
    ls_free(packing->scratch);
    *packing = (struct ls_packing){0};
}
