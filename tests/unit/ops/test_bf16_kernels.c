/* Kernels that take bf16 give, to the bit, what they give for fp32 with the same numbers, rounded
 * once: which of them do is a matter of speed and memory (ir/kernel.h: takes_bf16).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_bf16.h"
#include "kernels/op_makers.h"

#include "ir/op_type.h"
#include "ops/cpu/isa.h"

enum { ROUNDS = 200 };

/* Returns whether the kernel of the round takes bf16. */
static bool check_round(const struct ls_device *device, enum ls_op_kind kind, uint64_t round)
{
    struct op_scene scene = {.round = round, .normalizers = {2.5}};
    scene.op.kind = kind;
    op_makers[kind](&scene);
    scene_narrow(&scene);
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
        scene_widen(&scene);
        scene_run(&scene, device, &ls_layout_plain, &wide);
        for (int v = 0; v < scene.values; v++)
            scene.value[v].type = types.value[v].type;
        compare_rounded(&scene, &native, &wide);
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
