/* Batch normalisation by saved averages, and where there is little or nothing to normalise.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/batch_norm_scene.h"

/* ---- By saved averages ----------------------------------------------------------------------- */

/* A case by saved averages, which are `factor` times the mean and the variance (1: no factor). */
static void check_saved(const struct norm_case *how, double factor, double *mean, double *variance)
{
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        if (how->h == 0 && own_layouts[layout] != &ls_layout_plain)
            continue;
        struct norm_scene *scene = norm_scene_new(how);
        scene->norm.saved_mean = mean;
        scene->norm.saved_variance = variance;
        norm_scene_expect(scene);
        norm_check_forward(scene, own_layouts[layout], factor);
        norm_check_sums(scene, own_layouts[layout], factor);
        norm_check_backward(scene, own_layouts[layout], factor);
        norm_scene_free(scene);
    }
}

static void test_saved(void **state)
{
    (void)state;
    static const double factors[] = {1, 999.98, 0.125};
    for (int i = 0; i < NORM_CASES; i++) {
        struct norm_case how = norm_cases[i];
        how.mean = how.mean < 10 && how.mean > -10 ? how.mean : 5; /* averages are rounded */
        double *mean = norm_numbers(how.c, 5, how.mean, 0.5);
        double *variance = norm_numbers(how.c, 6, 2, 1);
        check_saved(&how, factors[i % 3], mean, variance);
        free(mean);
        free(variance);
    }
}

/* What a forward pass by the averages a / c and b / c makes of the number x. */
static float normalised(float x, float a, float b, float c)
{
    const float numbers_of[] = {x, a, b, c};
    const struct ls_shape shape = {4, {1, 1, 1, 1}}, one = {1, {1}};
    struct own *own = own_new(&ls_kernel_batch_norm);
    for (int i = 0; i < 4; i++)
        own->plain[own_in(own, i == 0 ? &shape : &one, 1, 1)->index][0] = numbers_of[i];
    struct ls_value *y = own_out(own, &shape);
    own->op.attr.batch_norm = (struct ls_batch_norm_attr){.moments = -1, .sums = -1, .eps = 0.25f};
    own_run(own, &ls_layout_blocked8);
    float result = own_plain(own, y)[0];
    own_free(own);
    return result;
}

static void test_averages(void **state)
{
    (void)state;
    assert_true(normalised(5, 6, 7.5f, 2) == 1); /* (5 - 3) / sqrt(3.75 + 0.25) */
    norm_near("without averages", (double)normalised(5, 6, 8, 0), 5 / sqrt(1.25), 1e-7);
    assert_true(normalised(5, 3, -1, 1) == 4); /* variance 0: 2 / sqrt(0.25) */
    assert_true(normalised(5, 3, -INFINITY, 1) == 4);
    assert_true(isnan(normalised(5, NAN, 1, 1))); /* is not hidden */
    assert_true(isnan(normalised(5, 3, NAN, 1)));
}

/* ---- Edges ----------------------------------------------------------------------------------- */

/* Without a sync for the sums, or with one output alone: the same gradients. */
static void test_gradients_alone(void **state)
{
    (void)state;
    struct norm_scene *scene = norm_scene_new(&norm_cases[4]);
    float *kept[2] = {NULL, NULL};
    norm_scene_expect(scene);
    norm_check_moments(scene, &ls_layout_plain);
    for (int variant = 0; variant < 4; variant++) {
        struct norm_trial trial;
        norm_trial_start(&trial, &ls_kernel_batch_norm_sums, scene, 1);
        norm_trial_backward_inputs(&trial, scene, 0);
        if (variant > 0)
            trial.own->op.attr.batch_norm.sums = -1;
        for (int i = 0; i < 2; i++) {
            if (variant == 2 + i)
                trial.own->op.outputs++;
            else
                own_out(trial.own, &trial.channels);
        }
        norm_trial_run(&trial, scene, 1, -1, &ls_layout_plain);
        for (int i = 0; i < 2; i++)
            if (trial.own->out[i] != NULL)
                own_keep_or_compare(&kept[i], trial.own, trial.own->out[i]);
        own_free(trial.own);
    }
    free(kept[0]);
    free(kept[1]);
    norm_scene_free(scene);
}

/* Channels that never change have no variance, however large they are; y is the bias, dx is 0 but
 * for dz's distance from its mean. */
static void test_constant(void **state)
{
    (void)state;
    static const struct norm_case how = {"constant", 7,   20, 9, 9, {2, 5, 7}, {7},
                                         0,          0.1, 0,  0, 1, 1,         0};
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct norm_scene *scene = norm_scene_new(&how);
        for (int i = 0; i < scene->count; i++)
            scene->x[i] = (double)(1e4f / 3 * (float)(1 + i / scene->points % 20));
        norm_check_moments(scene, own_layouts[layout]);
        const float *variance = scene->merged[0] + 3 * ls_sync_padded(&scene->sync[0]);
        for (int c = 0; c < how.c; c++) {
            assert_true(variance[c] >= 0 && variance[c] < 1e-18f);
            for (int i = 0; i < scene->count; i++)
                if (i / scene->points % how.c == c)
                    scene->y[i] = (double)(float)scene->bias[c];
        }
        norm_check_forward(scene, own_layouts[layout], 0);
        norm_scene_free(scene);
    }
}

/* A group of one value has no variance at all. */
static void test_single(void **state)
{
    (void)state;
    struct norm_scene *scene = norm_scene_new(&norm_cases[2]);
    norm_scene_expect(scene);
    norm_check_moments(scene, &ls_layout_plain);
    for (int g = 0; g < scene->groups; g++)
        for (int c = 0; c < scene->how->c; c++)
            assert_true(scene->merged[0][g * 64 + 48 + c] == 0);
    norm_scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved),           cmocka_unit_test(test_averages),
        cmocka_unit_test(test_gradients_alone), cmocka_unit_test(test_constant),
        cmocka_unit_test(test_single),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
