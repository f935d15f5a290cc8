/* Ops that move, cut, pick and fill: see kernels/op_makers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers_inner.h"

/* ---- Shapes -----------------------------------------------------------------------------------
 */

/* Half of the orders exchange two axes, so that they are their own backward. In some rounds two
 * axes are longer than kernels move at a time. */
void make_permute(struct op_scene *scene)
{
    struct ls_shape x = scene_shape(scene, 0, 5);
    for (int i = 0; i < 2 && i < x.rank && scene->round % 4 == 3; i++)
        x.dim[i] = scene_draw(scene, 30, 70);
    int *order = scene->op.attr.order;
    struct ls_shape y = x;
    for (int i = 0; i < x.rank; i++)
        order[i] = i;
    for (int64_t swaps = x.rank > 0 ? scene_draw(scene, 1, 2) : 0; swaps > 0; swaps--) {
        const int64_t a = scene_draw(scene, 0, x.rank - 1), b = scene_draw(scene, 0, x.rank - 1);
        const int kept = order[a];
        order[a] = order[b];
        order[b] = kept;
    }
    for (int i = 0; i < x.rank; i++)
        y.dim[i] = x.dim[order[i]];
    scene_in(scene, x, -1, 1);
    scene_out(scene, y);
}

void make_columns(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 3, 5);
    struct ls_shape y = x;
    scene->op.attr.window = draw_window(scene, x.rank - 2, x.dim + 2, y.dim + 2, true);
    for (int a = 0; a < x.rank - 2; a++)
        y.dim[1] *= scene->op.attr.window.kernel[a];
    scene_in(scene, scene->op.kind == LS_OP_IM2COL ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_IM2COL ? y : x);
}

void make_constant(struct op_scene *scene)
{
    const struct ls_shape shape = {2, {scene_draw(scene, 1, 8), scene_draw(scene, 1, 8)}};
    for (int i = 0; i < 64; i++)
        scene->list[i] = (float)scene_draw(scene, -9, 9) / 4;
    scene->op.attr.constant.numbers = scene->list;
    scene_out(scene, shape);
}

void make_embed(struct op_scene *scene)
{
    const struct ls_shape table = {2, {scene_draw(scene, 1, 9), scene_draw(scene, 1, 20)}};
    const struct ls_shape index = {2, {scene_draw(scene, 1, 4), scene_draw(scene, 1, 4)}};
    const struct ls_shape y = {3, {index.dim[0], index.dim[1], table.dim[1]}};
    const struct ls_shape bias = {1, {table.dim[1]}};
    const bool biased = scene_draw(scene, 0, 1);
    scene_in(scene, scene->op.kind == LS_OP_EMBED ? table : y, -1, 1);
    scene_labels(scene, index, 0, (int)table.dim[0] - 1);
    if (scene->op.kind == LS_OP_EMBED && biased)
        scene_in(scene, bias, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_EMBED ? y : table);
    if (scene->op.kind == LS_OP_EMBED_WEIGHTS && biased)
        scene_out(scene, bias);
}

/* The rows of a gradient that occur, and room for all that could. */
void make_embed_rows(struct op_scene *scene)
{
    const struct ls_shape index = {2, {scene_draw(scene, 1, 4), scene_draw(scene, 1, 4)}};
    const int64_t positions = index.dim[0] * index.dim[1], columns = scene_draw(scene, 1, 20);
    scene->op.attr.embed_rows = scene_draw(scene, 1, 30);
    scene_in(scene, (struct ls_shape){3, {index.dim[0], index.dim[1], columns}}, -1, 1);
    scene_labels(scene, index, 0, (int)scene->op.attr.embed_rows - 1);
    scene_out(scene, (struct ls_shape){2, {positions, columns}});
    scene_out(scene, (struct ls_shape){1, {positions}})->type = LS_I32;
    if (scene_draw(scene, 0, 1))
        scene_out(scene, (struct ls_shape){1, {columns}});
}

void make_copy(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 0, 5);
    scene_in(scene, shape, -1, 1);
    scene_out(scene, shape);
}

void make_join(struct op_scene *scene)
{
    struct ls_shape whole = scene_shape(scene, 1, 4), part = whole;
    const int axis = scene->op.attr.axis = (int)scene_draw(scene, 0, whole.rank - 1);
    const int parts = (int)scene_draw(scene, 1, 4);
    int64_t length[4], all = 0;
    for (int k = 0; k < parts; k++)
        all += length[k] = axis == 1 ? scene_draw(scene, 1, 2) * 8 : scene_draw(scene, 1, 4);
    whole.dim[axis] = all;
    if (scene->op.kind == LS_OP_SLICE)
        scene_in(scene, whole, -1, 1);
    for (int k = 0; k < parts; k++) {
        part.dim[axis] = length[k];
        if (scene->op.kind == LS_OP_SLICE)
            scene_out(scene, part);
        else
            scene_in(scene, part, -1, 1);
    }
    if (scene->op.kind == LS_OP_CONCAT)
        scene_out(scene, whole);
}

void make_tile(struct op_scene *scene)
{
    const struct ls_shape once = scene_shape(scene, 1, 4);
    struct ls_shape tiled = once;
    const struct ls_tile_attr attr = {(int)scene_draw(scene, 0, once.rank - 1),
                                      scene_draw(scene, 1, 4)};
    scene->op.attr.tile = attr;
    tiled.dim[attr.axis] *= attr.tiles;
    scene_in(scene, scene->op.kind == LS_OP_TILE ? once : tiled, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_TILE ? tiled : once);
    scene->op.backward = scene->op.kind == LS_OP_TILE_BACKWARD;
}

void make_crop(struct op_scene *scene)
{
    const struct ls_shape whole = scene_shape(scene, 2, 5);
    struct ls_shape part = whole;
    for (int a = 1; a < whole.rank; a++) {
        part.dim[a] = scene_draw(scene, 1, whole.dim[a]);
        scene->op.attr.crop.offset[a] = scene_draw(scene, 0, whole.dim[a] - part.dim[a]);
    }
    scene_in(scene, scene->op.kind == LS_OP_CROP ? whole : part, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_CROP ? part : whole);
}

/* A plugin: y = 2 x, with memory of its own. */
static int double_numbers(const struct ls_op *op, void *const *in, void *const *out, void *scratch,
                          int64_t first_ordinal, struct ls_error *error)
{
    (void)first_ordinal, (void)error;
    float *room = scratch;
    for (int64_t i = 0; i < ls_shape_size(&op->output[0]->shape); i++) {
        room[0] = ((const float *)in[0])[i];
        ((float *)out[0])[i] = 2 * room[0];
    }
    return 0;
}

void make_plugin(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 1, 4);
    scene->op.attr.plugin = (struct ls_plugin_attr){.run = double_numbers, .scratch_bytes = 4};
    scene_in(scene, x, -1, 1);
    scene_out(scene, x);
}

void make_resize(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 4, 4);
    const int room = (int)(x.dim[2] < x.dim[3] ? x.dim[2] : x.dim[3]) - 1;
    struct ls_resize_attr *attr = &scene->op.attr.resize;
    struct ls_shape y = x;
    attr->begin = (int)scene_draw(scene, 0, room);
    attr->end = (int)scene_draw(scene, 0, room - attr->begin);
    y.dim[2] = scene_draw(scene, 1, 9);
    y.dim[3] = scene_draw(scene, 1, 9);
    scene_in(scene, scene->op.kind == LS_OP_RESIZE ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_RESIZE ? y : x);
}

void make_upsample(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 4, 4);
    struct ls_shape y = x;
    for (int a = 0; a < 2; a++) {
        scene->op.attr.upsample.factor[a] = scene_draw(scene, 1, 3);
        y.dim[2 + a] *= scene->op.attr.upsample.factor[a];
    }
    scene_in(scene, scene->op.kind == LS_OP_UPSAMPLE ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_UPSAMPLE ? y : x);
}

/* Places as those of the maxima of windows of 2 x 2 that do not overlap; some have none. */
void make_unpool(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 4, 4);
    struct ls_shape y = x;
    y.dim[2] = 2 * x.dim[2] - scene_draw(scene, 0, 1);
    y.dim[3] = 2 * x.dim[3] - scene_draw(scene, 0, 1);
    scene_in(scene, scene->op.kind == LS_OP_UNPOOL ? x : y, -1, 1);
    float *index = scene_in(scene, x, 0, 1);
    scene->in[scene->op.inputs - 1]->type = LS_I32;
    for (int64_t i = 0; i < ls_shape_size(&x); i++) {
        const int64_t row = 2 * (i / x.dim[3] % x.dim[2]), column = 2 * (i % x.dim[3]);
        const int64_t down = row + 1 < y.dim[2] ? scene_draw(scene, 0, 1) : 0;
        const int64_t along = column + 1 < y.dim[3] ? scene_draw(scene, 0, 1) : 0;
        const bool none = scene_draw(scene, 0, 9) == 0;
        const int32_t at = none ? -1 : (int32_t)((row + down) * y.dim[3] + column + along);
        memcpy(&index[i], &at, sizeof at);
    }
    scene_out(scene, scene->op.kind == LS_OP_UNPOOL ? y : x);
}

void make_argmax(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 2, 4);
    struct ls_argmax_attr *attr = &scene->op.attr.argmax;
    attr->axis = (int)scene_draw(scene, -1, x.rank - 1);
    attr->values = scene_draw(scene, 0, 1);
    attr->top_k =
        scene_draw(scene, 1, attr->axis < 0 ? ls_shape_count(&x, 1, x.rank) : x.dim[attr->axis]);
    struct ls_shape y = {3, {x.dim[0], attr->values ? 2 : 1, attr->top_k}};
    if (attr->axis >= 0) {
        y = x;
        y.dim[attr->axis] = attr->top_k;
    }
    scene_labels(scene, x, -3, 3); /* many are equal */
    scene_out(scene, y);
}

void make_fill(struct op_scene *scene)
{
    static const char *const types[] = {"constant", "uniform", "gaussian", "xavier", "msra"};
    lockstep__filler_parameter__init(&scene->filler);
    scene->filler.type = (char *)(uintptr_t)types[scene_draw(scene, 0, 4)];
    scene->op.attr.fill = (struct ls_fill_attr){&scene->filler, 0, 5 + scene->round};
    scene_out(scene, scene_shape(scene, 1, 4));
}

/* ---- Rows and regions by number ---------------------------------------------------------------
 */

void make_pick(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 1, 4);
    struct ls_shape y = x;
    y.dim[0] = scene_draw(scene, 1, 9);
    const struct ls_shape index = {1, {y.dim[0]}};
    scene_in(scene, scene->op.kind == LS_OP_PICK ? x : y, -1, 1);
    scene_labels(scene, index, 0, (int)x.dim[0] - 1);
    scene_out(scene, scene->op.kind == LS_OP_PICK ? y : x);
}

/* About half of the rows are selected. */
void make_filter(struct op_scene *scene)
{
    const bool selects = scene->op.kind == LS_OP_SELECT;
    const struct ls_shape x = scene_shape(scene, 1, selects ? 1 : 4);
    const struct ls_shape rows = {1, {x.dim[0]}};
    if (selects)
        scene_labels(scene, x, -1, 1);
    else
        scene_in(scene, x, -1, 1);
    if (scene_draw(scene, 0, 3) > 0)
        scene_labels(scene, rows, 0, 1);
    if (!selects)
        scene->op.attr.left_out = (float)scene_draw(scene, 0, 1);
    scene_out(scene, x);
}

/* Some lie outside of their picture, some begin behind their end. */
static void put_regions(struct op_scene *scene, int64_t regions, const struct ls_shape *x)
{
    const struct ls_shape shape = {2, {regions, 5}};
    const float length = (float)(x->dim[2] > x->dim[3] ? x->dim[2] : x->dim[3]);
    float *number = scene_in(scene, shape, 0, 1);
    for (int64_t r = 0; r < regions; r++, number += 5) {
        number[0] = floorf(number[0] * (float)x->dim[0]);
        for (int k = 1; k < 5; k++)
            number[k] = (number[k] * 1.5F - 0.25F) * length / scene->op.attr.regions.scale;
    }
}

/* What the maximum over regions x leaves for its gradient. */
static void put_region_winners(struct op_scene *scene, const struct ls_shape *x,
                               const struct ls_shape *y)
{
    struct op_scene forward = {.round = scene->round};
    struct op_result result;
    forward.op.kind = LS_OP_REGION_MAX;
    forward.op.attr = scene->op.attr;
    scene_in(&forward, *x, -1, 1);
    put_regions(&forward, y->dim[0], x);
    scene_out(&forward, *y);
    scene_out(&forward, *y)->type = LS_I32;
    scene_run(&forward, reference_device(), &ls_layout_plain, &result);
    float *index = scene_in(scene, *y, 0, 1);
    scene->in[scene->op.inputs - 1]->type = LS_I32;
    memcpy(index, result.out[1], (size_t)ls_shape_size(y) * sizeof *index);
    /* Its regions are those of the winners. */
    const struct ls_shape shape = {2, {y->dim[0], 5}};
    float *numbers = scene_in(scene, shape, 0, 1);
    memcpy(numbers, forward.plain[1], (size_t)ls_shape_size(&shape) * sizeof *numbers);
    result_free(&result);
    scene_free(&forward);
}

void make_regions(struct op_scene *scene)
{
    static const float scales[] = {1, 0.5F, 0.0625F, 0.3F};
    const enum ls_op_kind kind = scene->op.kind;
    const bool maximum = kind == LS_OP_REGION_MAX || kind == LS_OP_REGION_MAX_BACKWARD;
    struct ls_regions_attr *attr = &scene->op.attr.regions;
    *attr = (struct ls_regions_attr){{scene_draw(scene, 1, 3), scene_draw(scene, 1, 3)},
                                     scales[scene_draw(scene, 0, 3)]};
    const int64_t planes = scene_draw(scene, 1, 5), bins = attr->bins[0] * attr->bins[1];
    const struct ls_shape x = {4,
                               {scene_draw(scene, 1, 3), maximum ? planes : planes * bins,
                                scene_draw(scene, 1, 7), scene_draw(scene, 1, 7)}};
    const struct ls_shape y = {4, {scene_draw(scene, 1, 6), planes, attr->bins[0], attr->bins[1]}};
    const bool forward = kind == LS_OP_REGION_MAX || kind == LS_OP_REGION_AVERAGE;
    scene_in(scene, forward ? x : y, -1, 1);
    if (kind == LS_OP_REGION_MAX_BACKWARD)
        put_region_winners(scene, &x, &y);
    else
        put_regions(scene, y.dim[0], &x);
    scene_out(scene, forward ? y : x);
    if (kind == LS_OP_REGION_MAX && scene_draw(scene, 0, 2) > 0)
        scene_out(scene, y)->type = LS_I32;
}
