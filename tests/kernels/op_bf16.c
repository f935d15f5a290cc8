/* See kernels/op_bf16.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_bf16.h"

static float rounded(float x)
{
    uint16_t bits;
    ls_dtype_convert(LS_F32, &x, LS_BF16, &bits, 1);
    ls_dtype_convert(LS_BF16, &bits, LS_F32, &x, 1);
    return x;
}

/* Inputs and outputs that are no values that layers hand on, but learned numbers, their gradients
 * and statistics: a bit each. */
static const struct {
    unsigned in, out;
} stays_wide[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = {.in = 1U << 2},
    [LS_OP_CONVOLUTION_WEIGHTS] = {.out = ~0U},
    [LS_OP_DECONVOLUTION] = {.in = 1U << 2},
    [LS_OP_DECONVOLUTION_WEIGHTS] = {.out = ~0U},
    [LS_OP_INNER_PRODUCT] = {.in = 1U << 2},
    [LS_OP_INNER_PRODUCT_WEIGHTS] = {.out = ~0U},
    [LS_OP_LRN] = {.out = 1U << 1},
    [LS_OP_LRN_BACKWARD] = {.in = 1U << 3},
    [LS_OP_PRELU] = {.in = 1U << 1},
    [LS_OP_PRELU_DATA] = {.in = 1U << 2},
    [LS_OP_PRELU_SLOPE] = {.out = 1U << 0},
    [LS_OP_SCALE] = {.in = 1U << 1 | 1U << 2},
    [LS_OP_SCALE_SUMS] = {.out = 1U << 0 | 1U << 1},
    [LS_OP_NORMALIZE] = {.in = 1U << 1 | 1U << 2, .out = 1U << 1},
    [LS_OP_NORMALIZE_DATA] = {.in = 1U << 2 | 1U << 3},
    [LS_OP_NORMALIZE_SUMS] = {.in = 1U << 2, .out = 1U << 0 | 1U << 1},
    [LS_OP_BATCH_NORM] = {.in = ~0U << 1},
    [LS_OP_BATCH_NORM_SUMS] = {.in = ~0U << 3, .out = ~0U},
    [LS_OP_BATCH_NORM_BACKWARD] = {.in = ~0U << 3},
    [LS_OP_RECURRENT] = {.in = ~0U << 1, .out = ~0U << 1},
    [LS_OP_RECURRENT_BACKWARD] = {.in = ~0U << 1, .out = 1U << 1},
    [LS_OP_SOFTMAX] = {.in = ~0U << 1, .out = 1U << 0},
    [LS_OP_SOFTMAX_BACKWARD] = {.in = 1U << 0 | 1U << 1},
    [LS_OP_SOFTMAX_LOSS] = {.in = ~0U << 1, .out = 1U << 0},
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = {.in = 1U << 0 | 1U << 1},
    [LS_OP_ACCURACY] = {.in = 1U << 1},
    [LS_OP_MEAN_IOU] = {.in = 1U << 1},
    [LS_OP_LINEAR_LOSS] = {.in = ~1U},
    [LS_OP_LINEAR_LOSS_GRADIENT] = {.in = ~1U, .out = ~1U},
    [LS_OP_GATHER] = {.in = 1U << 1},
    [LS_OP_ATTENTION] = {.in = ~0U << 3, .out = 1U << 1},
    [LS_OP_ATTENTION_BACKWARD] = {.in = 1U << 2 | ~0U << 6},
};

/* Finds the values that become bf16. */
static void find_activations(const struct op_scene *scene, bool found[SCENE_VALUES])
{
    const enum ls_op_kind kind = scene->op.kind;
    for (int i = 0; i < scene->op.inputs; i++)
        if (scene->in[i] != NULL && scene->in[i]->type == LS_F32 &&
            (stays_wide[kind].in >> i & 1) == 0)
            found[scene->in[i]->index] = true;
    for (int i = 0; i < scene->op.outputs; i++)
        if (scene->out[i] != NULL && scene->out[i]->type == LS_F32 &&
            (stays_wide[kind].out >> i & 1) == 0)
            found[scene->out[i]->index] = true;
}

/* Numbers that kernels treat otherwise than most: zeros of both signs, denormal ones, the smallest
 * and the largest, and what is not finite. */
static float special(uint64_t random)
{
    static const float numbers[] = {0,          -0.0F,     0x1p-126F,   -0x1p-126F,   0x1p-127F,
                                    -0x1p-130F, 0x1p-133F, 0x1.fep127F, -0x1.fep127F, INFINITY,
                                    -INFINITY,  NAN};
    return numbers[random % (sizeof numbers / sizeof *numbers)];
}

void scene_narrow(struct op_scene *scene)
{
    uint64_t random = scene->round;
    bool found[SCENE_VALUES] = {false};
    find_activations(scene, found);
    for (int v = 0; v < scene->values; v++) {
        for (int64_t i = 0;
             found[v] && scene->plain[v] != NULL && i < ls_shape_size(&scene->value[v].shape);
             i++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            const bool rare = scene->round % 2 == 1 && random >> 60 == 0;
            scene->plain[v][i] = rare ? special(random >> 33) : rounded(scene->plain[v][i]);
        }
        scene->value[v].type = found[v] ? LS_BF16 : scene->value[v].type;
    }
}

void scene_widen(struct op_scene *scene)
{
    for (int v = 0; v < scene->values; v++)
        if (scene->value[v].type == LS_BF16)
            scene->value[v].type = LS_F32;
}

/* What is no number may have any payload. */
static void compare_doubles(const double *native, const double *wide, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(native[i]) || !isnan(wide[i]))
            assert_memory_equal(&native[i], &wide[i], sizeof *wide);
}

void compare_rounded(const struct op_scene *scene, const struct op_result *native,
                     const struct op_result *wide)
{
    for (int k = 0; k < scene->op.outputs; k++) {
        const int64_t n = scene->out[k] != NULL ? ls_shape_size(&scene->out[k]->shape) : 0;
        for (int64_t i = 0; i < n; i++) {
            const bool rounds = scene->out[k]->type == LS_BF16;
            const float want = rounds ? rounded(wide->out[k][i]) : wide->out[k][i];
            const bool nan = isnan(native->out[k][i]) && isnan(want);
            if (!nan && memcmp(&native->out[k][i], &want, sizeof want) != 0)
                fail_msg("%s, round %d, output %d: element %lld is %.9g, not %.9g",
                         ls_op_kind_name(scene->op.kind), (int)scene->round, k, (long long)i,
                         (double)native->out[k][i], (double)want);
        }
    }
    const size_t records = sizeof wide->record / sizeof *wide->record;
    compare_doubles(native->record, wide->record, records);
    for (int s = 0; s < 2; s++)
        compare_doubles(native->partial[s], wide->partial[s], wide->partial_count);
}
