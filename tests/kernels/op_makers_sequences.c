/* Ops of sequences: gated units, products of matrices, places that are taken, added or numbered,
 * bags of rows. See kernels/op_makers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers_inner.h"

void make_glu(struct op_scene *scene)
{
    static const enum ls_activation gates[] = {LS_SIGMOID, LS_SWISH, LS_GELU, LS_GELU_TANH,
                                               LS_RELU};
    const bool backward = scene->op.kind == LS_OP_GLU_BACKWARD;
    const bool halves = scene_draw(scene, 0, 1);
    struct ls_shape y = scene_shape(scene, 1, 4), x = y;
    struct ls_glu_attr *attr = &scene->op.attr.glu;
    *attr = (struct ls_glu_attr){.axis = (int)scene_draw(scene, 0, y.rank - 1),
                                 .gate_first = scene_draw(scene, 0, 1),
                                 .linear = scene_draw(scene, 0, 5) == 0,
                                 .gate = {.function = gates[scene_draw(scene, 0, 4)]}};
    attr->gate.slope = attr->gate.function == LS_SWISH;
    x.dim[attr->axis] *= halves ? 2 : 1;
    if (backward)
        scene_in(scene, y, -1, 1);
    for (int i = 0; i < (halves ? 1 : 2); i++)
        scene_in(scene, x, -2, 2);
    const int64_t absent = scene_draw(scene, 0, 4); /* one of the gradients may not be wanted */
    for (int i = 0; i < (backward && !halves ? 2 : 1); i++)
        if (backward && !halves && absent == i)
            scene->out[scene->op.outputs++] = NULL;
        else
            scene_out(scene, backward ? x : y);
}

/* Outer axes of which one operand, or y, has one place. */
void make_matmul(struct op_scene *scene)
{
    const bool wide = scene_draw(scene, 0, 3) == 0;
    const int64_t m = scene_draw(scene, 1, wide ? 40 : 9), n = scene_draw(scene, 1, wide ? 70 : 9);
    const int64_t k = scene_draw(scene, 1, wide ? 150 : 40);
    const int outer = (int)scene_draw(scene, 0, 3);
    struct ls_matmul_attr *attr = &scene->op.attr.matmul;
    *attr = (struct ls_matmul_attr){scene_draw(scene, 0, 1), scene_draw(scene, 0, 1),
                                    (float)scene_draw(scene, -1, 3) / 2};
    struct ls_shape a = {.rank = outer + 2}, b = a, y = a;
    for (int i = 0; i < outer; i++) {
        a.dim[i] = b.dim[i] = y.dim[i] = scene_draw(scene, 1, 3);
        struct ls_shape *const ones[] = {&a, &b, &y, NULL};
        struct ls_shape *const one = ones[scene_draw(scene, 0, 3)];
        if (one != NULL)
            one->dim[i] = 1;
    }
    a.dim[outer] = attr->transpose_a ? k : m;
    a.dim[outer + 1] = attr->transpose_a ? m : k;
    b.dim[outer] = attr->transpose_b ? n : k;
    b.dim[outer + 1] = attr->transpose_b ? k : n;
    y.dim[outer] = m;
    y.dim[outer + 1] = n;
    scene_in(scene, a, -1, 1);
    scene_in(scene, b, -1, 1);
    scene_out(scene, y);
}

void make_gather(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 2, 4);
    struct ls_shape y = x;
    struct ls_gather_attr *attr = &scene->op.attr.gather;
    *attr = (struct ls_gather_attr){(int)scene_draw(scene, 1, x.rank - 1), scene_draw(scene, 0, 1)};
    const int64_t picks = scene_draw(scene, 1, 9);
    const struct ls_shape all = {1, {picks}}, each = {2, {x.dim[0], picks}};
    y.dim[attr->axis] = picks;
    scene_in(scene, scene->op.kind == LS_OP_GATHER ? x : y, -1, 1);
    scene_labels(scene, attr->shared ? all : each, 0, (int)x.dim[attr->axis] - 1);
    scene_out(scene, scene->op.kind == LS_OP_GATHER ? y : x);
}

void make_pad(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 1, 4);
    struct ls_shape y = x;
    struct ls_pad_attr *attr = &scene->op.attr.pad;
    attr->mode = (enum ls_pad_mode)scene_draw(scene, 0, 2);
    attr->value = (float)scene_draw(scene, 0, 2) / 2;
    for (int axis = 0; axis < x.rank; axis++) {
        const int64_t most = attr->mode == LS_PAD_REFLECT ? x.dim[axis] - 1 : 3;
        const bool padded = scene_draw(scene, 0, 1) && most > 0;
        attr->before[axis] = padded ? scene_draw(scene, 0, most < 4 ? most : 4) : 0;
        y.dim[axis] += attr->before[axis];
        y.dim[axis] += padded ? scene_draw(scene, 0, most < 4 ? most : 4) : 0;
    }
    scene_in(scene, scene->op.kind == LS_OP_PAD ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_PAD ? y : x);
}

void make_positions(struct op_scene *scene)
{
    const struct ls_shape y = {2, {scene_draw(scene, 1, 4), scene_draw(scene, 1, 20)}};
    scene->op.attr.offset = (int)scene_draw(scene, -1, 2);
    if (scene_draw(scene, 0, 1))
        scene_labels(scene, y, 0, 1);
    scene_out(scene, y);
}

void make_bag(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const struct ls_shape table = {2, {scene_draw(scene, 1, 9), scene_draw(scene, 1, 20)}};
    const struct ls_shape index = {2, {scene_draw(scene, 1, 4), scene_draw(scene, 1, 6)}};
    const struct ls_shape y = {2, {index.dim[0], table.dim[1]}};
    const struct ls_shape rows = {3, {index.dim[0], index.dim[1], table.dim[1]}};
    const struct ls_shape lengths = {1, {index.dim[0]}};
    const bool weights = kind != LS_OP_EMBED_BAG_FACTORS && scene_draw(scene, 0, 1);
    scene->op.attr.bag = (struct ls_bag_attr){.mean = !weights && kind != LS_OP_EMBED_BAG_FACTORS &&
                                                      scene_draw(scene, 0, 1),
                                              .has_padding = scene_draw(scene, 0, 1),
                                              .padding = (int)scene_draw(scene, -1, 0)};
    if (kind != LS_OP_EMBED_BAG)
        scene_in(scene, y, -1, 1);
    if (kind != LS_OP_EMBED_BAG_ROWS)
        scene_in(scene, table, -1, 1);
    const bool padded = scene->op.attr.bag.has_padding && scene->op.attr.bag.padding < 0;
    scene_labels(scene, index, padded ? -1 : 0, (int)table.dim[0] - 1);
    if (scene_draw(scene, 0, 1))
        scene_labels(scene, lengths, 0, (int)index.dim[1]);
    else
        scene_no_in(scene);
    if (weights)
        scene_in(scene, index, -1, 1);
    scene_out(scene, kind == LS_OP_EMBED_BAG ? y : kind == LS_OP_EMBED_BAG_ROWS ? rows : index);
}
