/* Transformations compared with a plain reference, for many random parameters.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/mean_file.h"
#include "data/transform.h"
#include "data_trial.h"

enum { C_MAX = 3, SIDE_MAX = 20 };

/* The record as doubles, padded; ordinals, crop and so on as the header of transform.h says. */
struct reference {
    int c, h, w, pad, crop;
    bool reflect, standardize;
    double scale, mean_value[C_MAX];
    const float *mean;
    bool mirror;
    int top, left;
    double brightness, contrast;
};

static double padded(const struct reference *r, const double *plane, int y, int x)
{
    y -= r->pad;
    x -= r->pad;
    if (y < 0 || x < 0 || y >= r->h || x >= r->w) {
        if (!r->reflect)
            return 0;
        y = y < 0 ? -y : y >= r->h ? 2 * r->h - 2 - y : y;
        x = x < 0 ? -x : x >= r->w ? 2 * r->w - 2 - x : x;
    }
    return plane[y * r->w + x];
}

static void reference_apply(const struct reference *r, const double *record, double *out)
{
    int oh = r->crop > 0 ? r->crop : r->h + 2 * r->pad;
    int ow = r->crop > 0 ? r->crop : r->w + 2 * r->pad;
    double mean_plane[SIDE_MAX * SIDE_MAX];
    for (int c = 0; c < r->c; c++) {
        for (int i = 0; i < r->h * r->w; i++)
            mean_plane[i] =
                r->mean != NULL ? (double)r->mean[c * r->h * r->w + i] : r->mean_value[c];
        double sum = 0;
        for (int y = 0; y < oh; y++)
            for (int x = 0; x < ow; x++)
                sum += padded(r, record + c * r->h * r->w, r->top + y, r->left + x) + r->brightness;
        double m = sum / (oh * ow);
        for (int y = 0; y < oh; y++)
            for (int x = 0; x < ow; x++) {
                int sx = r->mirror ? ow - 1 - x : x;
                double v = padded(r, record + c * r->h * r->w, r->top + y, r->left + sx);
                double mean = r->mean != NULL ? padded(r, mean_plane, r->top + y, r->left + sx)
                                              : r->mean_value[c];
                v = (v + r->brightness - m) * r->contrast + m;
                out[(c * oh + y) * ow + x] = (v - mean) * r->scale;
            }
    }
    if (!r->standardize)
        return;
    int n = r->c * oh * ow;
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++)
        mean += out[i] / n;
    for (int i = 0; i < n; i++)
        squares += (out[i] - mean) * (out[i] - mean) / n;
    for (int i = 0; i < n; i++)
        out[i] = (out[i] - mean) / fmax(sqrt(squares), 1 / sqrt(n));
}

struct dice {
    uint64_t key, trial, next;
};

static int roll(struct dice *dice, int n)
{
    return (int)ls_random_below(dice->key, dice->trial, dice->next++, (uint32_t)n);
}

/* A corner or the centre, also mirrored. */
static void draw_view(struct dice *dice, struct ls_transform *t, struct reference *r, int room_h,
                      int room_w)
{
    static const bool low[] = {false, false, true, true}, right[] = {false, true, false, true};
    t->view = 1 + roll(dice, LS_VIEWS);
    r->mirror = t->view > 5;
    if (r->crop == 0 || t->view % 5 == 0)
        return;
    r->top = low[t->view % 5 - 1] ? room_h : 0;
    r->left = right[t->view % 5 - 1] ? room_w : 0;
}

/* One random transformation of one random record. */
static void run_trial(struct dice *dice)
{
    Lockstep__TransformationParameter p = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    struct reference r = {.c = 1 + roll(dice, C_MAX),
                          .h = 5 + roll(dice, 12),
                          .w = 5 + roll(dice, 12),
                          .scale = 1,
                          .contrast = 1};
    bool augment = roll(dice, 2) == 1;
    p.pad = (uint32_t)(roll(dice, 2) * roll(dice, 5));
    p.pad_mode = roll(dice, 2);
    p.crop_size = roll(dice, 3) == 0 ? 0 : (uint32_t)(1 + roll(dice, (r.h < r.w ? r.h : r.w)));
    p.mirror = roll(dice, 2);
    p.scale = roll(dice, 2) == 0 ? 1 : 0.00390625F * (float)(1 + roll(dice, 9));
    p.standardize = roll(dice, 3) == 0;
    p.brightness = roll(dice, 2) == 0 ? 0 : 63;
    if (roll(dice, 2) == 0) {
        p.contrast_lower = 0.2F;
        p.contrast_upper = 1.8F;
    }
    float values[C_MAX] = {100, 117.5F, 123};
    int mean_kind = roll(dice, 4);
    p.mean_value = values;
    p.n_mean_value = mean_kind == 1 ? 1 : mean_kind == 2 ? (size_t)r.c : 0;
    struct ls_transform t;
    struct ls_transform_options options = {.param = &p,
                                           .layer = "data",
                                           .seed = dice->trial,
                                           .augment = augment,
                                           .record = {r.c, r.h, r.w}};
    assert_int_equal(ls_transform_open(&options, &t, NULL), 0);
    float mean[C_MAX * SIDE_MAX * SIDE_MAX];
    if (mean_kind == 3) {
        for (int i = 0; i < r.c * r.h * r.w; i++)
            mean[i] = (float)roll(dice, 200) + 0.25F;
        t.mean = mean;
        r.mean = mean;
    }
    r.pad = (int)p.pad;
    r.crop = (int)p.crop_size;
    r.reflect = p.pad_mode == LOCKSTEP__TRANSFORMATION_PARAMETER__PAD_MODE__REFLECT;
    r.standardize = p.standardize;
    r.scale = (double)p.scale;
    for (int c = 0; c < r.c && p.n_mean_value > 0; c++)
        r.mean_value[c] = (double)values[p.n_mean_value == 1 ? 0 : c];
    uint64_t ordinal = (uint64_t)roll(dice, 100000);
    uint64_t key = ls_random_key(dice->trial, LS_RANDOM_AUGMENT, "data");
    int room_h = r.h + 2 * r.pad - r.crop, room_w = r.w + 2 * r.pad - r.crop;
    if (r.crop > 0) {
        r.top = augment ? (int)ls_random_below(key, ordinal, 1, (uint32_t)room_h + 1) : room_h / 2;
        r.left = augment ? (int)ls_random_below(key, ordinal, 2, (uint32_t)room_w + 1) : room_w / 2;
    }
    if (!augment && roll(dice, 2) == 0)
        draw_view(dice, &t, &r, room_h, room_w);
    if (augment) {
        r.mirror = p.mirror && ls_random_below(key, ordinal, 0, 2) == 1;
        r.brightness = (2 * (double)ls_random_uniform(key, ordinal, 3) - 1) * (double)p.brightness;
        r.contrast = (double)p.contrast_lower + (double)ls_random_uniform(key, ordinal, 4) *
                                                    (double)(p.contrast_upper - p.contrast_lower);
    }
    /* A record of bytes or of floats. */
    int n = r.c * r.h * r.w;
    uint8_t bytes[C_MAX * SIDE_MAX * SIDE_MAX];
    float floats[C_MAX * SIDE_MAX * SIDE_MAX];
    double exact[C_MAX * SIDE_MAX * SIDE_MAX];
    for (int i = 0; i < n; i++) {
        bytes[i] = (uint8_t)roll(dice, 256);
        floats[i] = (float)bytes[i];
        exact[i] = bytes[i];
    }
    bool is_bytes = roll(dice, 2) == 0;
    struct ls_record_tensor record = {.type = is_bytes ? LS_U8 : LS_F32,
                                      .shape = {3, {r.c, r.h, r.w}},
                                      .data = is_bytes ? (const void *)bytes : floats};
    static float sample[C_MAX * 40 * 40];
    static double expected[C_MAX * 40 * 40];
    struct ls_augment_room room = {.row = {0}};
    assert_int_equal(ls_transform_apply(&t, &record, NULL, ordinal, true, &room, sample, NULL), 0);
    reference_apply(&r, exact, expected);
    int64_t size = ls_record_size(t.output);
    for (int64_t i = 0; i < size; i++)
        if (fabs((double)sample[i] - expected[i]) > 2e-4 * (1 + fabs(expected[i])))
            fail_msg("trial %llu, number %lld: %g, not %g", (unsigned long long)dice->trial,
                     (long long)i, (double)sample[i], expected[i]);
    /* Plain transformations are Caffe's float arithmetic, bit for bit. */
    if (!p.standardize && (!augment || (p.brightness == 0 && p.contrast_lower == 1)) &&
        mean_kind != 3 && r.pad == 0)
        for (int64_t i = 0; i < size; i++) {
            int c = (int)(i / (t.output[1] * t.output[2]));
            int y = (int)(i / t.output[2] % t.output[1]), x = (int)(i % t.output[2]);
            int sx = r.mirror ? (int)t.output[2] - 1 - x : x;
            float v = floats[(c * r.h + r.top + y) * r.w + r.left + sx];
            v = (v - (float)r.mean_value[c]) * p.scale;
            assert_memory_equal(&sample[i], &v, sizeof v);
        }
    if (mean_kind == 3)
        t.mean = NULL;
    ls_transform_free(&t);
    ls_augment_room_free(&room);
}

static void transforms_are_those_of_the_reference(void **state)
{
    (void)state;
    struct dice dice = {.key = ls_random_key(1, LS_RANDOM_TEST, "transform")};
    for (dice.trial = 0; dice.trial < 3000; dice.trial++) {
        dice.next = 0;
        run_trial(&dice);
    }
}

/* Crops reach every place, flips are half, light is spread over its range. */
static void random_draws_are_uniform(void **state)
{
    (void)state;
    Lockstep__TransformationParameter p = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    p.crop_size = 4;
    p.pad = 1;
    struct ls_transform t;
    struct ls_transform_options options = {
        .param = &p, .layer = "data", .seed = 5, .augment = true, .record = {1, 4, 4}};
    assert_int_equal(ls_transform_open(&options, &t, NULL), 0);
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(i + 1);
    struct ls_record_tensor record = {LS_U8, {3, {1, 4, 4}}, bytes, 0};
    int seen[9] = {0};
    for (uint64_t ordinal = 0; ordinal < 9000; ordinal++) {
        float sample[16];
        struct ls_augment_room none = {.row = {0}};
        assert_int_equal(ls_transform_apply(&t, &record, NULL, ordinal, true, &none, sample, NULL),
                         0);
        /* Pixel (1, 1) of the sample tells where the crop lies. */
        int at = (int)sample[5] - 1;
        int y = at / 4, x = at % 4;
        seen[y * 3 + x]++;
    }
    for (int i = 0; i < 9; i++)
        assert_in_range(seen[i], 880, 1120);
    ls_transform_free(&t);
}

static void a_constant_picture_standardizes_to_zero(void **state)
{
    (void)state;
    Lockstep__TransformationParameter p = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    p.standardize = 1;
    struct ls_transform t;
    struct ls_transform_options options = {.param = &p, .layer = "data", .record = {3, 8, 8}};
    assert_int_equal(ls_transform_open(&options, &t, NULL), 0);
    uint8_t bytes[192];
    memset(bytes, 77, sizeof bytes);
    struct ls_record_tensor record = {LS_U8, {3, {3, 8, 8}}, bytes, 0};
    float sample[192];
    struct ls_augment_room none = {.row = {0}};
    assert_int_equal(ls_transform_apply(&t, &record, NULL, 0, true, &none, sample, NULL), 0);
    for (int i = 0; i < 192; i++)
        assert_true(sample[i] == 0);
    ls_transform_free(&t);
}

static void must_fail(Lockstep__TransformationParameter *p, int status, const char *words)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_transform t;
    struct ls_transform_options options = {.param = p, .layer = "data", .record = {3, 8, 10}};
    assert_int_equal(ls_transform_open(&options, &t, error), status);
    assert_says(error, words);
    ls_transform_free(&t);
    free(error);
}

static void parameters_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    float values[4] = {1, 2, 3, NAN};
    Lockstep__TransformationParameter good = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT, p;
    p = good;
    p.crop_size = 9;
    must_fail(&p, LOCKSTEP_DEFINITION, "crop_size 9 is larger than the records (8 x 10)");
    p.pad = 8;
    p.pad_mode = LOCKSTEP__TRANSFORMATION_PARAMETER__PAD_MODE__REFLECT;
    must_fail(&p, LOCKSTEP_DEFINITION, "a reflecting pad must be smaller");
    p = good;
    p.mean_value = values;
    p.n_mean_value = 2;
    must_fail(&p, LOCKSTEP_DEFINITION, "as many as the records have channels");
    p.mean_value = values + 1;
    p.n_mean_value = 3;
    must_fail(&p, LOCKSTEP_DEFINITION, "mean_value is not finite");
    p.mean_file = (char *)(uintptr_t) "mean";
    must_fail(&p, LOCKSTEP_DEFINITION, "cannot both be given");
    p = good;
    p.scale = INFINITY;
    must_fail(&p, LOCKSTEP_DEFINITION, "scale is not");
    p = good;
    p.brightness = -1;
    p.contrast_lower = 2; /* both are reported */
    must_fail(&p, LOCKSTEP_DEFINITION, "brightness must be");
    must_fail(&p, LOCKSTEP_DEFINITION, "0 <= lower <= upper");
}

/* Where records differ in size the first one is checked as all others are. */
static void a_first_record_smaller_than_the_crop_is_refused(void **state)
{
    (void)state;
    static const int64_t sides[][2] = {{8, 10}, {8, 30}, {30, 10}, {12, 12}};
    static uint8_t pixels[30 * 30];
    static float sample[12 * 12];
    Lockstep__TransformationParameter p = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    struct ls_transform t;
    struct ls_transform_options options = {
        .param = &p, .layer = "data", .record = {1, 8, 10}, .varies = true};
    p.crop_size = 12;
    assert_int_equal(ls_transform_open(&options, &t, NULL), 0);
    for (int i = 0; i < 4; i++)
        for (int augment = 0; augment < 2; augment++) {
            struct ls_augment_room none = {.row = {0}};
            struct ls_problem problem;
            const struct ls_record_tensor record = {
                .data = pixels, .type = LS_U8, .shape = {3, {1, sides[i][0], sides[i][1]}}};
            const int status =
                ls_transform_apply(&t, &record, NULL, 0, augment, &none, sample, &problem);
            assert_int_equal(status, i < 3 ? LOCKSTEP_DATA : 0);
            if (status != 0)
                assert_string_equal(problem.message, "it is smaller than the crop");
        }
    ls_transform_free(&t);
}

static void mean_files_are_read_and_checked(void **state)
{
    (void)state;
    const int64_t shape[3] = {3, 8, 10};
    float mean[240];
    for (int i = 0; i < 240; i++)
        mean[i] = (float)i / 3;
    const char *path = ls_test_path("mean.binaryproto");
    assert_int_equal(ls_mean_write(path, shape, mean, NULL), 0);
    float *read;
    assert_int_equal(ls_mean_read(path, shape, &read, NULL), 0);
    assert_memory_equal(read, mean, sizeof mean);
    ls_free(read);
    Lockstep__TransformationParameter p = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    p.mean_file = (char *)(uintptr_t)path;
    struct ls_transform t;
    struct ls_transform_options options = {.param = &p, .layer = "data", .record = {3, 8, 10}};
    assert_int_equal(ls_transform_open(&options, &t, NULL), 0);
    assert_memory_equal(t.mean, mean, sizeof mean);
    ls_transform_free(&t);
    const int64_t other[3] = {3, 10, 8};
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_mean_read(path, other, &read, error), LOCKSTEP_DATA);
    assert_says(error, "is a mean of 3 x 8 x 10 numbers; the records have 3 x 10 x 8");
    assert_null(read);
    /* Cut anywhere: never accepted. */
    size_t size;
    char *bytes = ls_test_read(path, &size);
    for (size_t n = 0; n < size; n += n < 40 ? 1 : 13) {
        ls_test_write(ls_test_path("cut"), bytes, n);
        assert_int_equal(ls_mean_read(ls_test_path("cut"), shape, &read, NULL), LOCKSTEP_DATA);
    }
    free(bytes);
    mean[7] = NAN;
    assert_int_equal(ls_mean_write(path, shape, mean, NULL), 0);
    ls_error_clear(error);
    assert_int_equal(ls_mean_read(path, shape, &read, error), LOCKSTEP_DATA);
    assert_says(error, "number 7 is not finite");
    free(error);
}

/* Extents that no record can have; their product may even be the number of values, here 0. */
static void shapes_of_no_picture_are_refused(void **state)
{
    (void)state;
    static const char *const files[] = {
        "shape { dim: 4 dim: 4294967296 dim: 4294967296 }",
        "shape { dim: 1 dim: 4611686018427387904 dim: 4 }",
        "num: 1 channels: 1 height: 70000 width: 1",
        "num: 1 channels: 1 height: -2 width: -2",
        "num: 1 channels: 0 height: 2 width: 2",
    };
    struct ls_error *error = calloc(1, sizeof *error);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int64_t shape[3];
        ls_test_write(ls_test_path("mean.prototxt"), files[i], strlen(files[i]));
        ls_error_clear(error);
        assert_int_equal(ls_mean_shape(ls_test_path("mean.prototxt"), shape, error), LOCKSTEP_DATA);
        assert_says(error, "is not the mean of pictures");
    }
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_are_those_of_the_reference),
        cmocka_unit_test(random_draws_are_uniform),
        cmocka_unit_test(a_constant_picture_standardizes_to_zero),
        cmocka_unit_test(parameters_that_make_no_sense_are_refused),
        cmocka_unit_test(a_first_record_smaller_than_the_crop_is_refused),
        cmocka_unit_test(mean_files_are_read_and_checked),
        cmocka_unit_test(shapes_of_no_picture_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
