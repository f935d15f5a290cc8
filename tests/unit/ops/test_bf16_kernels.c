/* Kernels that take bf16 give, to the bit, what they give for fp32 with the same numbers, rounded
 * once: which of them do is a matter of speed and memory (ir/kernel.h: takes_bf16).
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "kernels/op_makers.h"

#include "ir/op_type.h"
#include "ops/cpu/isa.h"

enum { ROUNDS = 200 };

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

/* Makes the activations bf16; their numbers become what bf16 has, some of them special ones. */
static void narrow(struct op_scene *scene)
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

static void widen(struct op_scene *scene)
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

static void compare(const struct op_scene *scene, const struct op_result *native,
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

/* Returns whether the kernel of the round takes bf16. */
static bool check_round(const struct ls_device *device, enum ls_op_kind kind, uint64_t round)
{
    struct op_scene scene = {.round = round, .normalizers = {2.5}};
    scene.op.kind = kind;
    op_makers[kind](&scene);
    narrow(&scene);
    scene.op.input = scene.in;
    scene.op.output = scene.out;
    for (int i = 0; i < scene.values; i++)
        scene.value[i].layout = &ls_layout_plain;
    const struct ls_kernel *kernel = ls_kernel_find(device->kernels(), &scene.op);
    const bool takes =
        kernel != NULL && kernel->takes_bf16 != NULL && kernel->takes_bf16(&scene.op);
    if (takes) {
        struct op_result native, wide;
        scene_run(&scene, device, &ls_layout_plain, &native);
        struct op_scene types = scene;
        widen(&scene);
        scene_run(&scene, device, &ls_layout_plain, &wide);
        for (int v = 0; v < scene.values; v++)
            scene.value[v].type = types.value[v].type;
        compare(&scene, &native, &wide);
        result_free(&native);
        result_free(&wide);
    }
    scene_free(&scene);
    return takes;
}

/* Kinds on which a network in bf16 spends its time: conversions around them would cost too much. */
static bool must_take(enum ls_op_kind kind)
{
    switch (kind) {
    case LS_OP_POOLING:
    case LS_OP_POOLING_BACKWARD:
    case LS_OP_ACTIVATION:
    case LS_OP_ACTIVATION_BACKWARD:
    case LS_OP_GLU:
    case LS_OP_GLU_BACKWARD:
    case LS_OP_DROPOUT:
    case LS_OP_CONCAT:
    case LS_OP_SLICE:
    case LS_OP_TILE:
    case LS_OP_TILE_BACKWARD:
    case LS_OP_UPSAMPLE:
    case LS_OP_UNPOOL:
    case LS_OP_UNPOOL_BACKWARD:
    case LS_OP_CROP:
    case LS_OP_CROP_BACKWARD:
    case LS_OP_RESIZE:
    case LS_OP_RESIZE_BACKWARD:
    case LS_OP_PRELU:
    case LS_OP_PRELU_DATA:
    case LS_OP_PRELU_SLOPE:
    case LS_OP_SCALE:
    case LS_OP_SCALE_SUMS:
    case LS_OP_NORMALIZE:
    case LS_OP_NORMALIZE_DATA:
    case LS_OP_NORMALIZE_SUMS:
    case LS_OP_ELTWISE:
    case LS_OP_ELTWISE_BACKWARD:
    case LS_OP_LRN:
    case LS_OP_LRN_BACKWARD:
    case LS_OP_MOMENTS:
    case LS_OP_BATCH_NORM:
    case LS_OP_BATCH_NORM_SUMS:
    case LS_OP_BATCH_NORM_BACKWARD:
        return true;
    default:
        return false;
    }
}

static void check_kinds(void)
{
    for (int kind = 0; kind < LS_OP_KINDS; kind++) {
        if (ls_op_type((enum ls_op_kind)kind)->rounded_inputs > 0 || op_makers[kind] == NULL)
            continue; /* products have kernels of their own */
        int taken = 0;
        for (uint64_t round = 0; round < ROUNDS; round++)
            taken += check_round(ls_device_default(), (enum ls_op_kind)kind, round);
        if (taken <= ROUNDS / 4 && must_take((enum ls_op_kind)kind))
            fail_msg("%s: a kernel takes bf16 in only %d of %d rounds",
                     ls_op_kind_name((enum ls_op_kind)kind), taken, ROUNDS);
    }
}

static void bf16_gives_the_bits_of_fp32_rounded_once(void **state)
{
    (void)state;
    for (int isa = 0; isa < LS_ISAS; isa++)
        if (ls_cpu_isa_supported((enum ls_isa)isa)) {
            assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
            check_kinds();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_gives_the_bits_of_fp32_rounded_once),
    };
    ls_device_default()->take_thread();
    ls_device_default()->enter_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
