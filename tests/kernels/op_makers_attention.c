/* Attention: see kernels/op_makers.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers_inner.h"

#include "ir/attention.h"

static bool sometimes(struct op_scene *scene)
{
    return scene_draw(scene, 0, 2) == 0;
}

/* Zeros and ones, mostly ones; some rows are all zeros. */
static void put_mask(struct op_scene *scene, struct ls_shape shape)
{
    const int64_t n = ls_shape_size(&shape), row = shape.dim[shape.rank - 1];
    float *mask = scene_in(scene, shape, 0, 1);
    for (int64_t i = 0; i < n; i++)
        mask[i] = mask[i] < 0.3F || i / row % 5 == 3 ? 0 : 1;
}

static void put_pairs(struct op_scene *scene, int64_t samples)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t of = sometimes(scene) ? 1 : samples;
    const int64_t heads = sometimes(scene) ? attr->heads : 1;
    const struct ls_shape shape = heads > 1 || sometimes(scene)
                                      ? shape_of(4, of, heads, attr->queries, attr->keys)
                                      : shape_of(3, of, attr->queries, attr->keys, 0);
    if (attr->added)
        scene_in(scene, shape, -2, 2);
    else
        put_mask(scene, shape);
}

/* The bottoms behind q, k and v, each there or not. */
static void put_extras(struct op_scene *scene, int64_t samples)
{
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t keys = attr->keys;
    const bool square = attr->queries == keys;
    if (sometimes(scene))
        scene_labels(scene, shape_of(1, samples, 0, 0, 0), 0, (int)keys);
    else
        scene_no_in(scene);
    if (sometimes(scene))
        put_mask(scene, shape_of(2, samples, keys, 0, 0));
    else
        scene_no_in(scene);
    if (attr->added || sometimes(scene))
        put_pairs(scene, samples);
    else
        scene_no_in(scene);
    if (square && sometimes(scene))
        scene_labels(scene, shape_of(2, samples, keys, 0, 0), 0, 2);
    else
        scene_no_in(scene);
    if (square && attr->rotary.dims > 0 && sometimes(scene)) /* also beyond the table */
        scene_labels(scene, shape_of(2, samples, keys, 0, 0), -1, (int)keys + 2);
    else
        scene_no_in(scene);
}

static void draw_attributes(struct op_scene *scene)
{
    struct ls_attention_attr *attr = &scene->op.attr.attention;
    const bool wide = scene_draw(scene, 0, 7) == 0;
    const int64_t kv_heads = scene_draw(scene, 1, 2), most = wide ? 150 : 20;
    *attr = (struct ls_attention_attr){.heads = kv_heads * scene_draw(scene, 1, 3),
                                       .kv_heads = kv_heads,
                                       .queries = scene_draw(scene, 1, most),
                                       .keys = scene_draw(scene, 1, most),
                                       .depth = scene_draw(scene, 1, wide ? 70 : 12),
                                       .value_depth = scene_draw(scene, 1, wide ? 70 : 12),
                                       .fused = sometimes(scene),
                                       .causal = sometimes(scene),
                                       .window = sometimes(scene) ? scene_draw(scene, 1, 30) : 0,
                                       .scale = sometimes(scene) ? 1.5F : 0.3F,
                                       .added = sometimes(scene),
                                       .bf16 = scene_draw(scene, 0, 3) == 0};
    if (attr->fused || scene_draw(scene, 0, 1) == 0)
        attr->keys = attr->queries;
    if (attr->fused)
        attr->value_depth = attr->depth;
    if (sometimes(scene))
        attr->dropout = (struct ls_dropout_attr){.ratio = 0.3F, .key = 17 + scene->round};
    if (attr->queries <= attr->keys && attr->depth > 1 && sometimes(scene))
        attr->rotary = (struct ls_rotary_attr){.dims = 2 * scene_draw(scene, 1, attr->depth / 2),
                                               .base = 100,
                                               .neighbours = sometimes(scene)};
}

/* Makes it an op that goes on with a text: the inputs are behind what a cache holds. */
static void put_cache(struct op_scene *scene, int64_t samples)
{
    struct ls_attention_attr *attr = &scene->op.attr.attention;
    scene->position = scene_draw(scene, 0, 70);
    attr->cache = scene->position + attr->queries + scene_draw(scene, 0, 9);
    attr->keys = attr->cache;
    scene_in(scene, shape_of(3, samples, attr->cache, attr->kv_heads * attr->depth, 0), -1, 1);
    scene_in(scene, shape_of(3, samples, attr->cache, attr->kv_heads * attr->value_depth, 0), -1,
             1);
}

/* What generates texts has no bottoms besides q, k and v. */
static void put_no_extras(struct op_scene *scene)
{
    scene->op.attr.attention.added = false;
    for (int k = LS_ATTENTION_LENGTHS; k < LS_ATTENTION_INPUTS; k++)
        scene_no_in(scene);
}

void make_attention(struct op_scene *scene)
{
    draw_attributes(scene);
    const bool cached = !scene->usual && scene->op.kind == LS_OP_ATTENTION &&
                        scene->op.attr.attention.queries == scene->op.attr.attention.keys &&
                        sometimes(scene);
    const struct ls_attention_attr *attr = &scene->op.attr.attention;
    const int64_t samples = scene_draw(scene, 1, 3), d = attr->depth, v = attr->value_depth;
    const struct ls_shape y = shape_of(3, samples, attr->queries, attr->heads * v, 0);
    const struct ls_shape log_sum = shape_of(3, samples, attr->heads, attr->queries, 0);
    const struct ls_shape q =
        shape_of(3, samples, attr->queries,
                 attr->fused ? (attr->heads + 2 * attr->kv_heads) * d : attr->heads * d, 0);
    const struct ls_shape rest[] = {shape_of(3, samples, attr->keys, attr->kv_heads * d, 0),
                                    shape_of(3, samples, attr->keys, attr->kv_heads * v, 0)};
    const bool back = scene->op.kind == LS_OP_ATTENTION_BACKWARD;
    if (back) {
        scene_in(scene, y, -1, 1);
        scene_in(scene, y, -1, 1);
        scene_in(scene, log_sum, 0, 3);
    }
    scene_in(scene, q, -1, 1);
    for (int k = 0; k < 2; k++)
        if (attr->fused)
            scene_no_in(scene);
        else
            scene_in(scene, rest[k], -1, 1);
    if (cached)
        put_no_extras(scene);
    else
        put_extras(scene, samples);
    if (cached)
        put_cache(scene, samples);
    if (!back) {
        scene_out(scene, y);
        scene_out(scene, log_sum);
        return;
    }
    scene_out(scene, q);
    for (int k = 0; k < 2 && !attr->fused; k++)
        if (scene_draw(scene, 0, 3) > 0)
            scene_out(scene, rest[k]);
        else
            scene->out[scene->op.outputs++] = NULL;
}
