/* See kernels/op_compare.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_compare.h"

#include <stdio.h>

#include "ir/op_type.h"

/* Neither device rounds what it only moves, picks, counts or draws. */
static bool is_exact(const struct op_scene *scene)
{
    switch (scene->op.kind) {
    case LS_OP_POOLING:
    case LS_OP_POOLING_BACKWARD:
        return scene->op.kind == LS_OP_POOLING && scene->op.attr.pooling.method == LS_POOL_MAX;
    case LS_OP_REORDER:
    case LS_OP_VIEW:
    case LS_OP_DROPOUT:
    case LS_OP_ACCURACY:
    case LS_OP_MEAN_IOU:
    case LS_OP_COUNT_LABELS:
    case LS_OP_COUNT_MATCHES:
    case LS_OP_PERMUTE:
    case LS_OP_IM2COL:
    case LS_OP_CONSTANT:
    case LS_OP_CONCAT:
    case LS_OP_SLICE:
    case LS_OP_TILE:
    case LS_OP_UPSAMPLE:
    case LS_OP_UPSAMPLE_BACKWARD:
    case LS_OP_UNPOOL:
    case LS_OP_UNPOOL_BACKWARD:
    case LS_OP_CROP:
    case LS_OP_CROP_BACKWARD:
    case LS_OP_ARGMAX:
    case LS_OP_FILL:
    case LS_OP_SELECT:
    case LS_OP_FILTER:
    case LS_OP_PICK:
    case LS_OP_GATHER:
    case LS_OP_GATHER_BACKWARD:
    case LS_OP_PAD:
    case LS_OP_PAD_BACKWARD:
    case LS_OP_POSITIONS:
    case LS_OP_EMBED_BAG:
    case LS_OP_EMBED_BAG_ROWS:
    case LS_OP_EMBED_BAG_FACTORS:
    case LS_OP_MATMUL:
    case LS_OP_PICK_BACKWARD:
    case LS_OP_REGION_MAX:
    case LS_OP_REGION_MAX_BACKWARD:
    case LS_OP_REGION_AVERAGE:
    case LS_OP_REGION_AVERAGE_BACKWARD:
        return true;
    default:
        return false;
    }
}

static bool near(double a, double b, double largest)
{
    return a == b || (a != a && b != b) || fabs(a - b) <= 2e-5 * (1 + largest);
}

void compare_near(const struct op_scene *scene, const struct op_result *got,
                  const struct op_result *want)
{
    for (int k = 0; k < scene->op.outputs; k++) {
        const int64_t n = scene->out[k] != NULL ? ls_shape_size(&scene->out[k]->shape) : 0;
        const bool exact = is_exact(scene) || (n > 0 && scene->out[k]->type != LS_F32);
        double largest = 0;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, fabs((double)want->out[k][i]));
        for (int64_t i = 0; i < n; i++) {
            const float a = got->out[k][i], b = want->out[k][i];
            if (exact ? memcmp(&a, &b, sizeof a) != 0 && a != b && (a == a || b == b)
                      : !near((double)a, (double)b, largest))
                fail_msg("%s (%s), round %d, output %d: element %lld is %.9g, not %.9g",
                         ls_op_kind_name(scene->op.kind), got->kernel->name, (int)scene->round, k,
                         (long long)i, (double)a, (double)b);
        }
    }
    for (int i = 0; i < SCENE_RECORD; i++)
        if (!near(got->record[i], want->record[i], fabs(want->record[i])))
            fail_msg("%s, round %d: figure %d is %.9g, not %.9g", ls_op_kind_name(scene->op.kind),
                     (int)scene->round, i, got->record[i], want->record[i]);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < want->partial_count; i++)
            if (!near(got->partial[s][i], want->partial[s][i], fabs(want->partial[s][i])))
                fail_msg("%s, round %d: partial result %zu is %.9g, not %.9g",
                         ls_op_kind_name(scene->op.kind), (int)scene->round, i, got->partial[s][i],
                         want->partial[s][i]);
}

/* ---- Portable nets --------------------------------------------------------------------------- */

/* Makes an op one of a portable net, with bf16 or PORTABLE products. */
void make_portable(struct op_scene *scene)
{
    struct ls_op *op = &scene->op;
    if (ls_op_type(op->kind)->rounded_inputs > 0 && op->kind <= LS_OP_DECONVOLUTION_WEIGHTS)
        op->attr.convolution.algorithm = LS_CONVOLUTION_PORTABLE;
    else if (op->kind >= LS_OP_INNER_PRODUCT && op->kind <= LS_OP_INNER_PRODUCT_WEIGHTS)
        op->attr.inner_product.portable = true;
    scene->graph.portable = scene->layer.portable = true;
    scene->layer.graph = &scene->graph;
    op->layer = &scene->layer;
}

/* What is no number may have any payload. */
static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

void compare_bits(const struct op_scene *scene, const char *device, const struct op_result *got,
                  const struct op_result *want)
{
    const char *kind = ls_op_kind_name(scene->op.kind);
    const int round = (int)scene->round;
    for (int k = 0; k < scene->op.outputs; k++) {
        const int64_t n = scene->out[k] != NULL ? ls_shape_size(&scene->out[k]->shape) : 0;
        for (int64_t i = 0; i < n; i++)
            if (!same((double)got->out[k][i], (double)want->out[k][i]))
                fail_msg("%s, round %d, output %d: element %lld is %a on the %s, %a on the "
                         "reference device",
                         kind, round, k, (long long)i, (double)got->out[k][i], device,
                         (double)want->out[k][i]);
    }
    for (int i = 0; i < SCENE_RECORD; i++)
        if (!same(got->record[i], want->record[i]))
            fail_msg("%s, round %d: figure %d is %a, not %a", kind, round, i, got->record[i],
                     want->record[i]);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < want->partial_count; i++)
            if (!same(got->partial[s][i], want->partial[s][i]))
                fail_msg("%s, round %d: partial result %zu is %a, not %a", kind, round, i,
                         got->partial[s][i], want->partial[s][i]);
}
