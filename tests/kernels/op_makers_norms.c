/* Normalisations and recurrent cells: see kernels/op_makers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers_inner.h"

/* ---- Normalisation ----------------------------------------------------------------------------
 */

/* Two parts of a group each, and what was merged for them. */
static void make_statistics(struct op_scene *scene, const struct ls_shape *x)
{
    const int64_t padded = ls_sync_round(x->dim[1]);
    for (int s = 0; s < 2; s++) {
        scene->sync[s] = (struct ls_sync){
            .kind = s == 0 ? LS_SYNC_MOMENTS : LS_SYNC_SUMS, .channels = x->dim[1], .eps = 1e-5F};
        const int64_t arrays = s == 0 ? 4 : 2;
        scene->merged[s] = ls_alloc((size_t)(SCENE_PARTS * arrays * padded), sizeof(float));
        assert_non_null(scene->merged[s]);
        for (int64_t i = 0; i < SCENE_PARTS * arrays * padded; i++)
            if (i % padded < x->dim[1] && (s == 1 || i / padded % 4 != 1))
                scene->merged[s][i] = 0.5F + ls_random_uniform(81, scene->round, (uint64_t)i);
    }
    const int64_t first = scene_draw(scene, 1, x->dim[0] - 1);
    scene->part[0] = (struct ls_part){0, first, 0, 0};
    scene->part[1] = (struct ls_part){first, x->dim[0] - first, 1, 1};
    scene->parts = (struct ls_parts){scene->part, SCENE_PARTS};
    scene->graph.syncs = scene->sync;
    scene->graph.sync_count = 2;
    scene->layer.graph = &scene->graph;
    scene->op.layer = &scene->layer;
}

void make_batch_norm(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    struct ls_shape x = scene_shape(scene, 2, 5);
    const struct ls_shape channels = {1, {x.dim[1]}}, one = {1, {1}};
    const bool backward = kind == LS_OP_BATCH_NORM_SUMS || kind == LS_OP_BATCH_NORM_BACKWARD;
    const bool saved = kind != LS_OP_MOMENTS && scene_draw(scene, 0, 2) == 0;
    const bool many = x.rank == 2 && scene->round % 3 == 0; /* more than are measured at a time */
    x.dim[0] = many ? scene_draw(scene, 4200, 5200) : scene_draw(scene, 2, 6);
    make_statistics(scene, &x);
    struct ls_batch_norm_attr *attr = &scene->op.attr.batch_norm;
    *attr = (struct ls_batch_norm_attr){.moments = saved ? -1 : 0,
                                        .sums = backward && !saved ? 1 : -1,
                                        .eps = 1e-3F,
                                        .relu = kind != LS_OP_MOMENTS && scene_draw(scene, 0, 1),
                                        .relu_slope = scene_draw(scene, 0, 1) ? 0.25F : 0};
    if (backward)
        scene_in(scene, x, -1, 1);
    scene_in(scene, x, 0, 2);
    if (backward && attr->relu && (saved || scene_draw(scene, 0, 1)))
        scene_in(scene, x, -1, 1);
    else if (backward)
        scene_no_in(scene);
    for (int i = 0; i < 3 && kind != LS_OP_MOMENTS; i++)
        if (saved)
            scene_in(scene, i < 2 ? channels : one, 0.5F, 1.5F);
        else
            scene_no_in(scene);
    for (int i = 0; i < 2 && kind != LS_OP_MOMENTS; i++)
        if (scene_draw(scene, 0, 1))
            scene_in(scene, channels, -1, 1);
        else
            scene_no_in(scene);
    if (kind == LS_OP_BATCH_NORM_SUMS) {
        scene_out(scene, channels);
        scene_out(scene, channels);
    } else if (kind != LS_OP_MOMENTS) {
        scene_out(scene, x);
    }
}

void make_normalize(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    struct ls_shape x = scene_shape(scene, 2, 4);
    struct ls_normalize_attr *attr = &scene->op.attr.normalize;
    attr->axis = (int)scene_draw(scene, 0, x.rank - 1);
    attr->groups = scene_draw(scene, 1, 2);
    x.dim[attr->axis] *= attr->groups;
    attr->variance = scene_draw(scene, 0, 2) > 0;
    attr->behind = scene_draw(scene, 0, 1);
    attr->eps = 1e-2F;
    attr->elements = attr->groups == 1 && scene_draw(scene, 0, 1);
    attr->around_zero = attr->elements && attr->variance && scene_draw(scene, 0, 1);
    attr->behind = attr->behind && !attr->around_zero;
    struct ls_shape factor = {.rank = attr->elements ? x.rank - attr->axis : 1};
    memcpy(factor.dim, x.dim + attr->axis, (size_t)factor.rank * sizeof *factor.dim);
    const struct ls_shape stats = {2, {ls_shape_count(&x, 0, attr->axis), 4 * attr->groups}};
    scene_in(scene, x, -1, 1);
    if (kind != LS_OP_NORMALIZE) {
        scene_in(scene, x, -1, 1);
        scene_in(scene, stats, 0.5F, 1.5F);
    }
    const bool factors = scene_draw(scene, 0, 1);
    const int count = kind == LS_OP_NORMALIZE && !attr->around_zero ? 2 : 1;
    for (int i = 0; factors && i < count; i++)
        if (kind != LS_OP_NORMALIZE_SUMS)
            scene_in(scene, factor, -1, 1);
    scene_out(scene, kind == LS_OP_NORMALIZE_SUMS ? factor : x);
    if (kind == LS_OP_NORMALIZE || (kind == LS_OP_NORMALIZE_SUMS && !attr->around_zero))
        scene_out(scene, kind == LS_OP_NORMALIZE ? stats : factor);
}

void make_lrn(struct op_scene *scene)
{
    static const float betas[] = {0.75F, 0.5F, 1, 0.6F};
    const struct ls_shape x = scene_shape(scene, 4, 4);
    struct ls_lrn_attr *attr = &scene->op.attr.lrn;
    *attr = (struct ls_lrn_attr){.within = scene_draw(scene, 0, 1),
                                 .size = 2 * scene_draw(scene, 0, 2) + 1,
                                 .alpha = (float)scene_draw(scene, 1, 4),
                                 .beta = betas[scene_draw(scene, 0, 3)],
                                 .k = 1.5F};
    for (int i = 0; i < (scene->op.kind == LS_OP_LRN ? 1 : 3); i++)
        scene_in(scene, x, -1, 1);
    if (scene->op.kind == LS_OP_LRN_BACKWARD && !attr->within)
        scene_in(scene, x, 1, 2);
    scene_out(scene, x);
    if (scene->op.kind == LS_OP_LRN && !attr->within)
        scene_out(scene, x);
}

/* ---- Recurrent cells --------------------------------------------------------------------------
 */

static void some_in(struct op_scene *scene, bool there, struct ls_shape shape, float low)
{
    if (there)
        scene_in(scene, shape, low, 1);
    else
        scene_no_in(scene);
}

static void some_out(struct op_scene *scene, bool there, struct ls_shape shape)
{
    if (there)
        scene_out(scene, shape);
    else
        scene->out[scene->op.outputs++] = NULL;
}

/* Mostly 1, where a sequence goes on. */
static void put_cont(struct op_scene *scene, int64_t steps, int64_t rows)
{
    float *cont = scene_in(scene, shape_of(2, steps, rows, 0, 0), 0, 1);
    for (int64_t i = 0; i < steps * rows; i++)
        cont[i] = cont[i] < 0.3F ? 0 : 1;
}

void make_recurrent(struct op_scene *scene)
{
    struct ls_recurrent_attr *attr = &scene->op.attr.recurrent;
    const bool wide = scene_draw(scene, 0, 7) == 0;
    *attr = (struct ls_recurrent_attr){.cell = (enum ls_cell)scene_draw(scene, 0, 2),
                                       .steps = scene_draw(scene, 1, wide ? 2 : 5),
                                       .rows = scene_draw(scene, 1, wide ? 18 : 5),
                                       .hidden = scene_draw(scene, 1, wide ? 70 : 12),
                                       .bf16 = scene_draw(scene, 0, 3) == 0};
    const int64_t t = attr->steps, n = attr->rows, h = attr->hidden;
    const int64_t width = ls_cell_parts(attr->cell) * h;
    const bool lstm = attr->cell == LS_CELL_LSTM, gru = attr->cell == LS_CELL_GRU;
    const struct ls_shape hidden = shape_of(3, t, n, h, 0), last = shape_of(3, 1, n, h, 0);
    const struct ls_shape z = shape_of(3, t, n, width, 0), gates = shape_of(3, t, n, 4 * h, 0);
    const struct ls_shape w = shape_of(2, width, h, 0, 0), still = shape_of(2, n, width, 0, 0);
    const bool product = gru || scene_draw(scene, 0, 5) > 0;
    if (scene->op.kind == LS_OP_RECURRENT) {
        const bool training = scene_draw(scene, 0, 2) > 0, starts = scene_draw(scene, 0, 3) > 0;
        scene_in(scene, z, -2, 2);
        put_cont(scene, t, n);
        some_in(scene, scene_draw(scene, 0, 1), still, -1);
        some_in(scene, product, w, -0.5F);
        some_in(scene, gru, shape_of(1, width, 0, 0, 0), -1);
        some_in(scene, starts, last, -1);
        some_in(scene, lstm && starts, last, -1);
        scene_out(scene, hidden);
        some_out(scene, training && attr->cell != LS_CELL_RNN, gates);
        some_out(scene, training, hidden);
        some_out(scene, training && lstm, hidden);
        some_out(scene, scene_draw(scene, 0, 1), last);
        some_out(scene, lstm && scene_draw(scene, 0, 1), last);
        return;
    }
    some_in(scene, scene_draw(scene, 0, 3) > 0, hidden, -1);
    some_in(scene, scene_draw(scene, 0, 1), last, -1);
    some_in(scene, lstm && scene_draw(scene, 0, 1), last, -1);
    some_in(scene, attr->cell != LS_CELL_RNN, gates, 0);
    some_in(scene, attr->cell == LS_CELL_RNN, hidden, -1);
    some_in(scene, gru, hidden, -1);
    some_in(scene, lstm, hidden, -1);
    some_in(scene, lstm && scene_draw(scene, 0, 1), last, -1);
    put_cont(scene, t, n);
    some_in(scene, product, w, -0.5F);
    scene_out(scene, z);
    some_out(scene, gru && scene_draw(scene, 0, 2) > 0, z);
    some_out(scene, scene_draw(scene, 0, 1), still);
    some_out(scene, scene_draw(scene, 0, 1), last);
    some_out(scene, lstm && scene_draw(scene, 0, 1), last);
}
