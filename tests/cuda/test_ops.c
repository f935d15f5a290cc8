/* Every kind of op that the cards' device has a kernel for, on random shapes, on the fake of CUDA's
 * runtime: what the reference device gives, to the bit where nothing is rounded, else within
 * rounding; in portable nets to the bit, but for kinds that are named below. Values in
 * channels-last give the bits of plain ones, and values in bf16 those of fp32, rounded once, in
 * both layouts. SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cuda/fake/fake.h"
#include "ir/op_type.h"
#include "kernels/op_bf16.h"
#include "kernels/op_compare.h"
#include "kernels/op_makers.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"
#include "ops/cuda/ops.h"

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

/* Carries it out on a card, in an order of work that follows from the round. */
static void run_on_card(struct op_scene *scene, const struct ls_layout *offered,
                        struct op_result *result)
{
    fake_begin(1, CARD_BYTES, scene->round);
    scene_run(scene, &ls_device_cuda, offered, result);
    ls_card_end_thread();
    fake_end();
}

static void check_numbers(struct op_scene *scene, bool portable)
{
    struct op_result got, want;
    scene_run(scene, reference_device(), &ls_layout_plain, &want);
    run_on_card(scene, &ls_layout_plain, &got);
    if (portable && !is_declared_near(scene->op.kind))
        compare_bits(scene, "card", &got, &want);
    else
        compare_near(scene, &got, &want);
    result_free(&got);
    result_free(&want);
}

static bool check_near(struct op_scene *scene)
{
    check_numbers(scene, false);
    return true;
}

static bool check_portable(struct op_scene *scene)
{
    check_numbers(scene, true);
    return true;
}

/* Whether some value with channels that are not last in Caffe's order has them last. */
static bool is_last(const struct op_scene *scene)
{
    for (int i = 0; i < scene->values; i++)
        if (scene->value[i].layout == &ls_layout_channels_last && scene->value[i].shape.rank > 2)
            return true;
    return false;
}

static bool check_layouts(struct op_scene *scene)
{
    struct op_result plain, last;
    run_on_card(scene, &ls_layout_channels_last, &last);
    const bool takes = is_last(scene);
    run_on_card(scene, &ls_layout_plain, &plain);
    if (takes)
        compare_bits(scene, "card in channels-last", &last, &plain);
    result_free(&plain);
    result_free(&last);
    return takes;
}

/* A product that rounds weights itself. */
static bool is_loss(enum ls_op_kind kind)
{
    return kind == LS_OP_LINEAR_LOSS || kind == LS_OP_LINEAR_LOSS_GRADIENT;
}

static bool check_bf16(struct op_scene *scene)
{
    const struct ls_kernel *kernel;
    const bool product = ls_op_type(scene->op.kind)->rounded_inputs > 0;
    if (scene->op.kind == LS_OP_REORDER || scene->op.kind == LS_OP_RECORD)
        return false; /* which have tests of their own */
    if (product)
        make_portable(scene); /* others need not add up alike */
    scene->op.bf16 = product;
    scene_narrow(scene);
    kernel = ls_kernel_find(ls_device_cuda.kernels(), &scene->op);
    if (kernel == NULL || kernel->takes_bf16 == NULL || !kernel->takes_bf16(&scene->op))
        return false;
    struct op_result native, last, wide;
    const struct op_scene types = *scene;
    run_on_card(scene, &ls_layout_plain, &native);
    run_on_card(scene, &ls_layout_channels_last, &last);
    scene_widen(scene);
    scene->op.bf16 = product && is_loss(scene->op.kind);
    run_on_card(scene, &ls_layout_plain, &wide);
    for (int v = 0; v < scene->values; v++)
        scene->value[v].type = types.value[v].type;
    compare_rounded(scene, &native, &wide);
    compare_rounded(scene, &last, &wide);
    result_free(&native);
    result_free(&last);
    result_free(&wide);
    return true;
}

static void test_kind(enum ls_op_kind kind, bool portable, bool (*check)(struct op_scene *scene))
{
    int there = 0;
    for (int round = 0; op_makers[kind] != NULL && round < rounds(); round++) {
        struct op_scene scene;
        if (make_scene(&scene, kind, round, portable))
            there += check(&scene);
        scene_free(&scene);
    }
    if (there == 0)
        skip();
    covered++;
}

static void test_near(void **state)
{
    test_kind(*(const enum ls_op_kind *)*state, false, check_near);
}

static void test_portable(void **state)
{
    test_kind(*(const enum ls_op_kind *)*state, true, check_portable);
}

static void test_layouts(void **state)
{
    test_kind(*(const enum ls_op_kind *)*state, false, check_layouts);
}

static void test_bf16(void **state)
{
    test_kind(*(const enum ls_op_kind *)*state, false, check_bf16);
}

/* Kinds that networks of images have between their convolutions: reorders around them would cost
 * more than the op. */
static void check_taken(enum ls_op_kind kind)
{
    const struct ls_card_op *families[] = {ls_card_elements, ls_card_windows, ls_card_norms};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        if (families[f][kind].layouts != NULL && families[f][kind].takes_bf16 != NULL)
            return;
    fail_msg("%s takes no channels-last or no bf16", ls_op_kind_name(kind));
}

static void test_taken(void **state)
{
    static const enum ls_op_kind kinds[] = {LS_OP_ACTIVATION,
                                            LS_OP_ACTIVATION_BACKWARD,
                                            LS_OP_DROPOUT,
                                            LS_OP_ELTWISE,
                                            LS_OP_CONCAT,
                                            LS_OP_SLICE,
                                            LS_OP_SCALE,
                                            LS_OP_POOLING,
                                            LS_OP_MOMENTS,
                                            LS_OP_POOLING_BACKWARD,
                                            LS_OP_BATCH_NORM,
                                            LS_OP_LRN,
                                            LS_OP_LRN_BACKWARD,
                                            LS_OP_BATCH_NORM_SUMS,
                                            LS_OP_BATCH_NORM_BACKWARD};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        check_taken(kinds[k]);
}

/* ---- Numbers that name nothing --------------------------------------------------------------- */

/* A card cannot end a run: what such a number should have taken is NaN, and a gradient goes
 * nowhere. In `which` is what names rows or pictures. */
struct naming {
    enum ls_op_kind kind;
    int which;
    bool backward;
};

static void check_naming(const struct naming *naming, float none, int round)
{
    struct op_scene scene;
    struct op_result got, want;
    assert_true(make_scene(&scene, naming->kind, round, true));
    const struct ls_shape *rows = &(naming->backward ? scene.in[0] : scene.out[0])->shape;
    const int64_t run = ls_shape_count(rows, 1, rows->rank);
    const struct ls_shape *y = &scene.out[0]->shape;
    float *first = scene.plain[scene.in[0]->index], *number;
    number = scene.plain[scene.in[naming->which]->index];
    for (int64_t i = 0; naming->backward && i < run; i++)
        first[i] = 0; /* as if the first row had no gradient */
    scene_run(&scene, reference_device(), &ls_layout_plain, &want);
    for (int64_t i = 0; naming->backward && i < run; i++)
        first[i] = 1;
    number[0] = none;
    run_on_card(&scene, &ls_layout_plain, &got);
    for (int64_t i = 0; !naming->backward && i < run; i++) {
        assert_true(isnan(got.out[0][i]));
        got.out[0][i] = want.out[0][i];
    }
    assert_memory_equal(got.out[0], want.out[0], (size_t)ls_shape_size(y) * sizeof(float));
    result_free(&got);
    result_free(&want);
    scene_free(&scene);
}

static void numbers_that_name_nothing_give_none(void **state)
{
    static const struct naming namings[] = {
        {LS_OP_PICK, 1, false},           {LS_OP_PICK_BACKWARD, 1, true},
        {LS_OP_REGION_MAX, 1, false},     {LS_OP_REGION_MAX_BACKWARD, 2, true},
        {LS_OP_REGION_AVERAGE, 1, false}, {LS_OP_REGION_AVERAGE_BACKWARD, 1, true}};
    const float none[] = {-1, 1e6F, 1e30F, NAN, INFINITY};
    (void)state;
    for (size_t k = 0; k < sizeof namings / sizeof *namings; k++)
        for (size_t n = 0; n < sizeof none / sizeof *none; n++)
            check_naming(&namings[k], none[n], (int)n);
}

int main(void)
{
    static const struct {
        const char *name;
        CMUnitTestFunction test;
    } ways[] = {{"", test_near},
                {"portable ", test_portable},
                {"channels-last ", test_layouts},
                {"bf16 ", test_bf16}};
    enum { WAYS = sizeof ways / sizeof *ways };
    static struct CMUnitTest tests[WAYS * LS_OP_KINDS + 2];
    static char names[WAYS * LS_OP_KINDS][64];
    static enum ls_op_kind kinds[LS_OP_KINDS];
    for (int i = 0; i < WAYS * LS_OP_KINDS; i++) {
        const int k = i % LS_OP_KINDS, way = i / LS_OP_KINDS;
        kinds[k] = (enum ls_op_kind)k;
        snprintf(names[i], sizeof names[i], "%s%s", ways[way].name, ls_op_kind_name(kinds[k]));
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = ways[way].test, .initial_state = &kinds[k]};
    }
    tests[WAYS * LS_OP_KINDS] =
        (struct CMUnitTest){.name = "layouts and types", .test_func = test_taken};
    tests[WAYS * LS_OP_KINDS + 1] =
        (struct CMUnitTest)cmocka_unit_test(numbers_that_name_nothing_give_none);
    if (getenv("LOCKSTEP_TEST_FILTER") != NULL)
        cmocka_set_test_filter(getenv("LOCKSTEP_TEST_FILTER"));
    reference_device()->enter_thread();
    const int failed = _cmocka_run_group_tests("cards", tests, WAYS * LS_OP_KINDS + 2, NULL, NULL);
    printf("%d of %d kinds of op, in portable nets and others, in channels-last, of bf16\n",
           covered, WAYS * LS_OP_KINDS);
    return failed;
}
