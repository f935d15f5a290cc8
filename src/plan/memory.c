/* Memory: when each value is alive, which values may share bytes, and where in the arena they lie.
 *
 * A value lives from the step that writes it to the last that reads it. A view lies where its
 * source lies; a kernel that can work in place does so when nobody reads its input afterwards.
 * What remains is packed greedily, the largest first, each at the lowest offset that is free
 * during its life: in the worker's arena what lives within one segment, and what crosses a sync
 * point in memory that the micro-batch holds.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "plan/plan.h"

enum { ALIGNMENT = 64 };

/* A piece of the arena: a group of values in the same memory, or a step's scratch. */
struct block {
    int first, last; /* steps during which it is needed */
    size_t bytes, offset;
    int value; /* the root value's index; -1: scratch of step `first` */
    bool held; /* lives across a sync point */
};

struct memory_pass {
    struct ls_plan *plan;
    int *root;       /* by value: whose memory it shares */
    int *first_step; /* by root value */
    int *last_step;
    struct block *blocks;
    size_t block_count;
};

static int find_root(const struct memory_pass *pass, const struct ls_value *value)
{
    int index = value->index;
    while (pass->root[index] != index)
        index = pass->root[index];
    return index;
}

static bool in_arena(const struct ls_value *value)
{
    return value != NULL && value->storage == LS_STORE_ARENA;
}

/* The last step that touches each value by itself, before anything shares memory. */
static void find_lives(struct memory_pass *pass)
{
    struct ls_plan *plan = pass->plan;
    for (size_t v = 0; v < plan->graph->value_count; v++) {
        pass->root[v] = (int)v;
        pass->first_step[v] = -1;
        pass->last_step[v] = -1;
    }
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_op *op = plan->steps[s].prepared.op;
        for (int i = 0; i < op->outputs; i++)
            if (op->output[i] != NULL) {
                int v = op->output[i]->index;
                if (pass->first_step[v] < 0)
                    pass->first_step[v] = (int)s;
                pass->last_step[v] = (int)s;
            }
        for (int i = 0; i < op->inputs; i++)
            if (op->input[i] != NULL)
                pass->last_step[op->input[i]->index] = (int)s;
    }
}

static void merge(struct memory_pass *pass, int into, struct ls_value *value)
{
    int v = value->index;
    pass->root[v] = into;
    value->same_memory = pass->plan->graph->values[into];
    if (pass->last_step[v] > pass->last_step[into])
        pass->last_step[into] = pass->last_step[v];
}

/* Views, and outputs that may overwrite an input which nobody needs any more. */
static void share_memory(struct memory_pass *pass)
{
    struct ls_plan *plan = pass->plan;
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_op *op = plan->steps[s].prepared.op;
        if (op->outputs == 0 || !in_arena(op->output[0]))
            continue;
        if (op->kind == LS_OP_VIEW) {
            merge(pass, find_root(pass, op->input[0]), op->output[0]);
            continue;
        }
        int place = plan->steps[s].prepared.kernel->in_place;
        if (place < 0 || place >= op->inputs || !in_arena(op->input[place]))
            continue;
        int root = find_root(pass, op->input[place]);
        bool same_size = ls_value_bytes(op->output[0]) == ls_value_bytes(op->input[place]);
        bool twice = false; /* the same memory under another input would be overwritten too */
        for (int i = 0; i < op->inputs; i++)
            twice |= i != place && in_arena(op->input[i]) && find_root(pass, op->input[i]) == root;
        if (same_size && !twice && pass->last_step[root] == (int)s &&
            plan->graph->values[root]->storage == LS_STORE_ARENA)
            merge(pass, root, op->output[0]);
    }
}

/* Whether a sync point lies between two steps, so that other micro-batches run in between. */
static bool crosses_cut(const struct ls_plan *plan, int first, int last)
{
    for (size_t i = 1; i < plan->segments; i++)
        if ((size_t)first < plan->segment[i] && (size_t)last >= plan->segment[i])
            return true;
    return false;
}

static void collect_blocks(struct memory_pass *pass)
{
    struct ls_plan *plan = pass->plan;
    for (size_t v = 0; v < plan->graph->value_count; v++) {
        const struct ls_value *value = plan->graph->values[v];
        if (!in_arena(value) || pass->root[v] != (int)v || pass->first_step[v] < 0)
            continue;
        int first = pass->first_step[v], last = pass->last_step[v];
        pass->blocks[pass->block_count++] = (struct block){.first = first,
                                                           .last = last,
                                                           .bytes = ls_value_bytes(value),
                                                           .value = (int)v,
                                                           .held = crosses_cut(plan, first, last)};
    }
    for (size_t s = 0; s < plan->step_count; s++) {
        size_t bytes = plan->steps[s].prepared.scratch_bytes;
        if (bytes > plan->scratch_bytes)
            plan->scratch_bytes = bytes;
        if (bytes > 0)
            pass->blocks[pass->block_count++] =
                (struct block){.first = (int)s, .last = (int)s, .bytes = bytes, .value = -1};
    }
}

/* Largest first; ties by age, so that the result is the same everywhere. */
static int by_size(const void *a, const void *b)
{
    const struct block *first = a, *second = b;
    if (first->bytes != second->bytes)
        return first->bytes > second->bytes ? -1 : 1;
    if (first->first != second->first)
        return first->first - second->first;
    return first->value - second->value;
}

/* The lowest offset at which a block fits among those placed already and alive with it. */
static size_t find_offset(const struct block *placed, size_t count, const struct block *block)
{
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < count; i++) {
            const struct block *other = &placed[i];
            if (other->held != block->held || other->last < block->first ||
                other->first > block->last)
                continue;
            if (offset < other->offset + other->bytes && other->offset < offset + block->bytes) {
                offset = (other->offset + other->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                moved = true;
            }
        }
    }
    return offset;
}

static void place_blocks(struct memory_pass *pass)
{
    struct ls_plan *plan = pass->plan;
    qsort(pass->blocks, pass->block_count, sizeof *pass->blocks, by_size);
    for (size_t i = 0; i < pass->block_count; i++) {
        struct block *block = &pass->blocks[i];
        block->offset = find_offset(pass->blocks, i, block);
        size_t *total = block->held ? &plan->held_bytes : &plan->arena_bytes;
        if (block->offset + block->bytes > *total)
            *total = block->offset + block->bytes;
        if (block->value < 0) {
            plan->steps[block->first].scratch_offset = block->offset;
            continue;
        }
        plan->offset[block->value] = block->offset;
        plan->held[block->value] = block->held;
    }
    for (size_t v = 0; v < plan->graph->value_count; v++) {
        int root = find_root(pass, plan->graph->values[v]);
        plan->offset[v] = plan->offset[root];
        plan->held[v] = plan->held[root];
    }
}

int ls_plan_memory(struct ls_plan *plan, struct ls_value *const *keep, size_t keep_count,
                   struct ls_error *error)
{
    size_t values = plan->graph->value_count + 1;
    struct memory_pass pass = {.plan = plan,
                               .root = ls_alloc(values, sizeof(int)),
                               .first_step = ls_alloc(values, sizeof(int)),
                               .last_step = ls_alloc(values, sizeof(int)),
                               .blocks = ls_alloc(values + plan->step_count, sizeof(struct block))};
    plan->offset = ls_alloc(values, sizeof *plan->offset);
    plan->held = ls_alloc(values, sizeof *plan->held);
    bool ready = pass.root != NULL && pass.first_step != NULL && pass.last_step != NULL &&
                 pass.blocks != NULL && plan->offset != NULL && plan->held != NULL;
    if (ready) {
        for (size_t v = 0; v < values; v++)
            plan->offset[v] = SIZE_MAX;
        find_lives(&pass);
        for (size_t i = 0; i < keep_count; i++)
            if (keep[i] != NULL)
                pass.last_step[keep[i]->index] = (int)plan->step_count;
        share_memory(&pass);
        collect_blocks(&pass);
        place_blocks(&pass);
    }
    ls_free(pass.root);
    ls_free(pass.first_step);
    ls_free(pass.last_step);
    ls_free(pass.blocks);
    return ready ? 0 : ls_fail_memory(error, "a plan");
}
