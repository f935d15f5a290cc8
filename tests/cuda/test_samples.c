/* Samples that kernels make of records and draws, beside the host's transformation, to the bit:
 * random transformations of random records, in random orders of threads and blocks, in each of the
 * ways that samples lie in a micro-batch.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "cuda/immediate.h"
#include "data/transform.h"
#include "device/samples.h"
#include "ir/convert.h"
#include "ops/cuda/kernels/kernels.h"
#include "support/support.h"

enum { TRIALS = 400, RECORDS = 4, SAMPLES = 5, CHANNELS = 3, SIDE = 17, PLACES = 28 };
enum { RECORD = CHANNELS * SIDE * SIDE, SAMPLE = CHANNELS * PLACES * PLACES };

struct dice {
    uint64_t key, trial, next;
};

static int roll(struct dice *dice, int n)
{
    return (int)ls_random_below(dice->key, dice->trial, dice->next++, (uint32_t)n);
}

static uint8_t bytes[RECORDS * RECORD];
static float floats[RECORDS * RECORD], mean[RECORD];
static float expected[SAMPLES * SAMPLE], made[SAMPLES * SAMPLE];

static void draw_transform(struct dice *dice, struct ls_transform *t)
{
    Lockstep__TransformationParameter p = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    float values[CHANNELS] = {100, 117.5F, 123};
    const int c = 1 + roll(dice, CHANNELS), h = 5 + roll(dice, 12), w = 5 + roll(dice, 12);
    const int mean_kind = roll(dice, 4);
    p.pad = (uint32_t)(roll(dice, 2) * roll(dice, 5));
    p.pad_mode = roll(dice, 2);
    p.crop_size = roll(dice, 3) == 0 ? 0 : (uint32_t)(1 + roll(dice, h < w ? h : w));
    p.mirror = roll(dice, 2);
    p.scale = roll(dice, 2) == 0 ? 1 : 0.00390625F * (float)(1 + roll(dice, 9));
    p.standardize = roll(dice, 3) == 0;
    p.brightness = roll(dice, 2) == 0 ? 0 : 63;
    if (roll(dice, 2) == 0) {
        p.contrast_lower = 0.2F;
        p.contrast_upper = 1.8F;
    }
    p.mean_value = values;
    p.n_mean_value = mean_kind == 1 ? 1 : mean_kind == 2 ? (size_t)c : 0;
    const struct ls_transform_options options = {.param = &p,
                                                 .layer = "data",
                                                 .seed = dice->trial,
                                                 .augment = roll(dice, 4) != 0,
                                                 .record = {c, h, w}};
    assert_int_equal(ls_transform_open(&options, t, NULL), 0);
    if (mean_kind == 3)
        t->mean = mean;
    if (!t->augment)
        t->view = roll(dice, LS_VIEWS + 1);
    for (int i = 0; i < RECORDS * RECORD; i++) {
        bytes[i] = (uint8_t)roll(dice, 256);
        floats[i] = (float)roll(dice, 60000) / 64 - 300;
    }
    for (int i = 0; i < RECORD; i++)
        mean[i] = (float)roll(dice, 200) + 0.25F;
}

/* Bits of a sample at its places in the micro-batch. */
static void check_sample(const struct ls_sample_recipe *recipe, int samples, int s,
                         const float *sample, uint64_t trial)
{
    const int64_t numbers = ls_sample_numbers(recipe);
    for (int64_t e = 0; e < numbers; e++) {
        const int64_t place = ls_sample_place_of(recipe, samples, s, e);
        uint16_t rounded;
        ls_dtype_convert(LS_F32, &sample[e], LS_BF16, &rounded, 1);
        const bool same = recipe->rounded
                              ? memcmp(&rounded, (uint16_t *)(void *)made + place, 2) == 0
                              : memcmp(&sample[e], &made[place], 4) == 0;
        if (!same)
            fail_msg("trial %llu, sample %d: number %lld differs", (unsigned long long)trial, s,
                     (long long)e);
    }
}

static void run_trial(struct dice *dice)
{
    struct ls_transform t;
    struct ls_sample_draw draws[SAMPLES];
    struct ls_sample_making making = {.mean = NULL};
    const int samples = 1 + roll(dice, SAMPLES);
    draw_transform(dice, &t);
    const bool is_floats = roll(dice, 2) == 0;
    assert_true(ls_transform_has_recipe(&t));
    ls_transform_recipe(&t, is_floats, &making.recipe);
    making.records = is_floats ? (const void *)floats : bytes;
    making.mean = t.mean != NULL ? t.mean : t.channel_mean;
    making.recipe.runs = roll(dice, 2) == 0 ? 1 : (size_t)(t.output[0] * t.output[1]);
    making.recipe.rounded = !t.standardize && roll(dice, 3) == 0;
    struct ls_augment_room room = {.row = {0}};
    for (int s = 0; s < samples; s++) {
        const uint64_t ordinal = (uint64_t)roll(dice, 100000);
        const int record = roll(dice, RECORDS);
        const struct ls_record_tensor image = {.type = is_floats ? LS_F32 : LS_U8,
                                               .shape = {3, {t.input[0], t.input[1], t.input[2]}},
                                               .data = (const char *)making.records +
                                                       (size_t)record * making.recipe.record_bytes};
        draws[s] = (struct ls_sample_draw){.record = record};
        ls_transform_draw(&t, ordinal, &draws[s]);
        assert_int_equal(
            ls_transform_apply(&t, &image, NULL, ordinal, true, &room, expected + s * SAMPLE, NULL),
            0);
    }
    memset(made, 0xff, sizeof made);
    grid_seed(dice->trial);
    assert_int_equal(ls_cuda_make_samples(NULL, &making, draws, samples, made), 0);
    for (int s = 0; s < samples; s++)
        check_sample(&making.recipe, samples, s, expected + s * SAMPLE, dice->trial);
    t.mean = NULL;
    ls_transform_free(&t);
    ls_augment_room_free(&room);
}

static void images_have_the_bits_of_the_host(void **state)
{
    (void)state;
    struct dice dice = {.key = ls_random_key(1, LS_RANDOM_TEST, "samples")};
    for (dice.trial = 0; dice.trial < TRIALS; dice.trial++) {
        dice.next = 0;
        run_trial(&dice);
    }
}

static void records_are_copied_as_they_are(void **state)
{
    (void)state;
    static const size_t runs[] = {1, 3};
    const struct ls_sample_draw draws[] = {{.record = 3}, {.record = 0}, {.record = 3}};
    enum { NUMBERS = 6, COUNT = 3 };
    for (int i = 0; i < RECORDS * NUMBERS; i++)
        floats[i] = 0.3F * (float)i - 1.7F;
    for (int r = 0; r < 2; r++)
        for (int rounded = 0; rounded < 2; rounded++) {
            const struct ls_sample_making making = {
                .recipe = {.record_bytes = NUMBERS * sizeof(float),
                           .runs = runs[r],
                           .rounded = rounded == 1},
                .records = floats};
            assert_int_equal(ls_cuda_make_samples(NULL, &making, draws, COUNT, made), 0);
            for (int s = 0; s < COUNT; s++)
                check_sample(&making.recipe, COUNT, s, floats + draws[s].record * NUMBERS, 0);
        }
}

static void rounding_is_that_of_conversion(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t bits = ls_random_u32(3, 1, i) ^ (i % 3 == 0 ? 0x7f800000U : 0);
        float x;
        uint16_t here;
        memcpy(&x, &bits, sizeof x);
        ls_dtype_convert(LS_F32, &x, LS_BF16, &here, 1);
        assert_int_equal(ls_sample_bf16(x), here);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_have_the_bits_of_the_host),
        cmocka_unit_test(records_are_copied_as_they_are),
        cmocka_unit_test(rounding_is_that_of_conversion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
