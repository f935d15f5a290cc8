/* Every kind of op that the cards' device has a kernel for, on random shapes, on the fake of CUDA's
 * runtime: what the reference device gives, to the bit where nothing is rounded, else within
 * rounding; in portable nets to the bit, but for kinds that are named below.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cuda/fake/fake.h"
#include "kernels/op_compare.h"
#include "kernels/op_makers.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

enum { ROUNDS = 12, MANY = 100, CARD_BYTES = 1 << 28 };

static int rounds(void)
{
    return getenv("LOCKSTEP_ALL") != NULL ? MANY : ROUNDS;
}

/* Kinds whose kernels are declared to lie within rounding of the CPU's bits in portable nets. */
static bool is_declared_near(enum ls_op_kind kind)
{
    (void)kind;
    return false;
}

/* Plugins, which are refused with the place of their layer: they have no layer here. */
static bool is_refused(enum ls_op_kind kind)
{
    return kind == LS_OP_PLUGIN || kind == LS_OP_PLUGIN_BACKWARD;
}

/* Kinds that move numbers of any size; in some rounds they have those of 2 bytes. */
static bool moves_any(enum ls_op_kind kind)
{
    return kind == LS_OP_CONCAT || kind == LS_OP_SLICE || kind == LS_OP_TILE ||
           kind == LS_OP_CROP || kind == LS_OP_CROP_BACKWARD || kind == LS_OP_UPSAMPLE ||
           kind == LS_OP_UNPOOL || kind == LS_OP_UNPOOL_BACKWARD;
}

/* Makes the op of a round; false: the device has no kernel for it. */
static bool make_scene(struct op_scene *scene, enum ls_op_kind kind, int round, bool portable)
{
    *scene = (struct op_scene){.round = (uint64_t)round, .normalizers = {2.5}};
    scene->op.kind = kind;
    op_makers[kind](scene);
    if (portable)
        make_portable(scene);
    scene->op.input = scene->in;
    scene->op.output = scene->out;
    for (int i = 0; i < scene->values; i++) {
        scene->value[i].layout = &ls_layout_plain;
        if (moves_any(kind) && round % 3 == 2 && scene->value[i].type == LS_F32)
            scene->value[i].type = LS_BF16;
    }
    return !is_refused(kind) && ls_kernel_find(ls_device_cuda.kernels(), &scene->op) != NULL;
}

static int covered;

static void test_kind(enum ls_op_kind kind, bool portable)
{
    int there = 0;
    for (int round = 0; op_makers[kind] != NULL && round < rounds(); round++) {
        struct op_scene scene;
        struct op_result got, want;
        if (make_scene(&scene, kind, round, portable)) {
            fake_begin(1, CARD_BYTES, (uint64_t)round);
            scene_run(&scene, reference_device(), &ls_layout_plain, &want);
            scene_run(&scene, &ls_device_cuda, &ls_layout_plain, &got);
            if (portable && !is_declared_near(kind))
                compare_bits(&scene, "card", &got, &want);
            else
                compare_near(&scene, &got, &want);
            result_free(&got);
            result_free(&want);
            ls_card_end_thread();
            fake_end();
            there++;
        }
        scene_free(&scene);
    }
    if (there == 0)
        skip();
    covered++;
}

static void test_near(void **state)
{
    test_kind(*(const enum ls_op_kind *)*state, false);
}

static void test_portable(void **state)
{
    test_kind(*(const enum ls_op_kind *)*state, true);
}

int main(void)
{
    static struct CMUnitTest tests[2 * LS_OP_KINDS];
    static char names[LS_OP_KINDS][64];
    static enum ls_op_kind kinds[LS_OP_KINDS];
    for (int k = 0; k < LS_OP_KINDS; k++) {
        kinds[k] = (enum ls_op_kind)k;
        tests[k] = (struct CMUnitTest){
            .name = ls_op_kind_name(kinds[k]), .test_func = test_near, .initial_state = &kinds[k]};
        snprintf(names[k], sizeof names[k], "portable %s", ls_op_kind_name(kinds[k]));
        tests[LS_OP_KINDS + k] = (struct CMUnitTest){
            .name = names[k], .test_func = test_portable, .initial_state = &kinds[k]};
    }
    reference_device()->enter_thread();
    const int failed = _cmocka_run_group_tests("cards", tests, 2 * LS_OP_KINDS, NULL, NULL);
    printf("%d of %d kinds of op, in portable nets and others\n", covered, 2 * LS_OP_KINDS);
    return failed;
}
