/* Gathering: large inner products are computed for the rows of all micro-batches together.
 *
 * A micro-batch has few rows. Its product with large weights takes as long as it takes to read them
 * from memory, once forward and once backward, and each micro-batch reads them again. Where the
 * micro-batches of a batch wait for each other in front of such a product, all workers share its
 * tiles, and the weights are read once. The plan is cut in front of it and behind it, as at a sync
 * point, so that each micro-batch holds what it has until then: what the other layers kept, too.
 *
 * A row of a product has the same bits whatever rows are computed with it (ir/kernel.h: tile), so
 * that all of this is a matter of time and memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "plan/plan.h"

enum {
    WEIGHTS_MIN = 8 << 20, /* bytes: about what a core may have in its caches */
    ROWS_MAX = 16          /* of a micro-batch: with more of them it takes longer than reading */
};

static size_t weight_bytes(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    return (size_t)attr->k * (size_t)attr->n * ls_dtype_size(op->input[1]->type);
}

/* The rows that a step has in a micro-batch of `samples`. */
static int64_t rows_of(const struct ls_plan *plan, const struct ls_step *step, int64_t samples)
{
    const struct ls_op *op = step->prepared.op;
    int64_t rows = op->attr.inner_product.m;
    return op->input[0]->sample_axis < 0 ? rows : rows / plan->graph->samples * samples;
}

static bool may_be(const struct ls_plan *plan, const struct ls_step *step, int64_t samples)
{
    return step->prepared.kernel->tile != NULL && step->in_pass && !step->before_pass &&
           rows_of(plan, step, samples) <= ROWS_MAX && weight_bytes(step) >= WEIGHTS_MIN;
}

bool ls_plan_gather(struct ls_plan *plan, int64_t samples)
{
    bool any = false;
    for (size_t i = 0; i < plan->step_count; i++) {
        /* What sync points merge may be the worker's own. */
        plan->steps[i].gathered =
            plan->graph->sync_count == 0 && may_be(plan, &plan->steps[i], samples);
        any |= plan->steps[i].gathered;
    }
    return any;
}

void ls_plan_scatter(struct ls_plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        plan->steps[i].gathered = false;
    ls_plan_set_segments(plan);
}

/* What the micro-batches hold must not be more than what they need not read. */
bool ls_plan_gather_pays(const struct ls_plan *plan, size_t arena, size_t stashed,
                         const struct ls_memory_budget *budget)
{
    size_t weights = 0, all = stashed * (size_t)budget->slots;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].gathered)
            weights += weight_bytes(&plan->steps[i]);
    if (budget->bytes > 0 && arena * (size_t)budget->workers + all > budget->bytes)
        return false;
    return all <= weights;
}

struct ls_gathered ls_plan_gathered(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    bool forward = op->kind == LS_OP_INNER_PRODUCT;
    struct ls_gathered row = {
        .in = forward ? attr->k : attr->n, .out = forward ? attr->n : attr->k, .rows = attr->m};
    row.in_bytes = (size_t)row.in * ls_dtype_size(op->input[0]->type);
    row.out_bytes = (size_t)row.out * ls_dtype_size(op->output[0]->type);
    return row;
}

size_t ls_plan_gathered_bytes(const struct ls_plan *plan)
{
    size_t in = 0, out = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        if (!plan->steps[i].gathered)
            continue;
        struct ls_gathered row = ls_plan_gathered(&plan->steps[i]);
        size_t ins = (size_t)row.rows * row.in_bytes, outs = (size_t)row.rows * row.out_bytes;
        in = ins > in ? ins : in;
        out = outs > out ? outs : out;
    }
    return in + out;
}
