/* Every kind of op on random shapes: the CPU gives what the reference device gives, to the bit
 * where nothing is rounded, else within rounding; in portable nets to the bit in any case. A kind
 * without an entry fails.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "kernels/op_compare.h"
#include "kernels/op_makers.h"

#include "ir/op_type.h"

enum { ROUNDS = 100 };

static const struct ls_device *cpu(void)
{
    return ls_device_default();
}

static bool is_elsewhere(enum ls_op_kind kind)
{
    return kind == LS_OP_ACCUMULATE || kind == LS_OP_RECORD || ls_op_type(kind)->by_engine;
}

static void test_kind(void **state)
{
    static const struct ls_layout *const layouts[] = {&ls_layout_plain, &ls_layout_blocked8,
                                                      &ls_layout_blocked16};
    const enum ls_op_kind kind = *(const enum ls_op_kind *)*state;
    if (op_makers[kind] == NULL && is_elsewhere(kind))
        return;
    if (op_makers[kind] == NULL)
        fail_msg("this table has no entry for %s", ls_op_kind_name(kind));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct op_scene scene = {.round = round, .normalizers = {2.5}};
        struct op_result got, want;
        scene.op.kind = kind;
        op_makers[kind](&scene);
        scene_run(&scene, reference_device(), &ls_layout_plain, &want);
        scene_run(&scene, cpu(), layouts[round % 3], &got);
        compare_near(&scene, &got, &want);
        result_free(&got);
        result_free(&want);
        scene_free(&scene);
    }
}

/* ---- Portable nets --------------------------------------------------------------------------- */

static void test_portable(void **state)
{
    const enum ls_op_kind kind = *(const enum ls_op_kind *)*state;
    for (uint64_t round = 0; op_makers[kind] != NULL && round < 2 * ROUNDS; round++) {
        struct op_scene scene = {.round = round, .normalizers = {2.5}};
        struct op_result got, want;
        scene.op.kind = kind;
        op_makers[kind](&scene);
        make_portable(&scene);
        scene_run(&scene, cpu(), &ls_layout_plain, &want);
        scene_run(&scene, reference_device(), &ls_layout_plain, &got);
        compare_bits(&scene, "CPU", &want, &got);
        result_free(&got);
        result_free(&want);
        scene_free(&scene);
    }
}

int main(void)
{
    static struct CMUnitTest tests[2 * LS_OP_KINDS];
    static char names[LS_OP_KINDS][64];
    static enum ls_op_kind kinds[LS_OP_KINDS];
    for (int k = 0; k < LS_OP_KINDS; k++) {
        kinds[k] = (enum ls_op_kind)k;
        tests[k] = (struct CMUnitTest){
            .name = ls_op_kind_name(kinds[k]), .test_func = test_kind, .initial_state = &kinds[k]};
        snprintf(names[k], sizeof names[k], "portable %s", ls_op_kind_name(kinds[k]));
        tests[LS_OP_KINDS + k] = (struct CMUnitTest){
            .name = names[k], .test_func = test_portable, .initial_state = &kinds[k]};
    }
    for (int i = 0; i < ls_device_count; i++) {
        if (ls_devices[i]->take_thread != NULL)
            ls_devices[i]->take_thread();
        ls_devices[i]->enter_thread();
    }
    return _cmocka_run_group_tests("devices", tests, 2 * LS_OP_KINDS, NULL, NULL);
}
