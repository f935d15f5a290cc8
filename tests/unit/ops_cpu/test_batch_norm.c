/* Batch normalisation and its gradient against a double-precision reference, itself checked by
 * finite differences: batches in micro-batches and groups that are cut differently, every layout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/batch_norm_scene.h"

#include "ops/cpu/vector/batch_norm.h"
#include "support/gradient.h"

static int draw(uint64_t round, uint64_t number, int from, int to)
{
    return from + (int)ls_random_below(93, round, number, (uint32_t)(to - from + 1));
}

static void check_batch(const struct norm_case *how)
{
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        if (how->h == 0 && own_layouts[layout] != &ls_layout_plain)
            continue;
        struct norm_scene *scene = norm_scene_new(how);
        norm_scene_expect(scene);
        norm_check_moments(scene, own_layouts[layout]);
        norm_check_forward(scene, own_layouts[layout], 0);
        norm_check_sums(scene, own_layouts[layout], 0);
        norm_scene_merge(scene, 1);
        norm_check_backward(scene, own_layouts[layout], 0);
        norm_scene_free(scene);
    }
}

static void test_batch(void **state)
{
    (void)state;
    for (int i = 0; i < NORM_CASES; i++)
        check_batch(&norm_cases[i]);
}

static void draw_cuts(uint64_t round, uint64_t number, int total, int *end)
{
    int at = 0;
    for (int i = 0; at < total; i++) {
        at += draw(round, number + (uint64_t)i, 1, 5);
        end[i] = at < total && i < CUTS - 1 ? at : total;
        at = end[i];
    }
}

static void test_random(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 20, 50, 8, 16, 33};
    for (uint64_t round = 0; round < 40; round++) {
        struct norm_case how = {.name = "random",
                                .n = draw(round, 0, 1, 12),
                                .c = channels[draw(round, 1, 0, 6)],
                                .h = draw(round, 2, 0, 7),
                                .w = draw(round, 3, 1, 7),
                                .mean = draw(round, 4, -30, 30),
                                .spread = draw(round, 5, 1, 30) / 10.0,
                                .relu = draw(round, 6, 0, 2),
                                .slope = draw(round, 7, 0, 2) / 10.0,
                                .scale = draw(round, 8, 0, 1),
                                .bias = draw(round, 9, 0, 1)};
        draw_cuts(round, 100, how.n, how.micro_batch);
        draw_cuts(round, 200, how.n, how.group);
        check_batch(&how);
    }
}

/* ---- The reference --------------------------------------------------------------------------- */

struct slope {
    struct reference_batch_norm norm;
    const double *x, *dy;
    double *y;
    double **varied; /* what x stands for: NULL x itself, else norm.scale or norm.bias */
};

static double objective(const double *v, void *data)
{
    struct slope *slope = data;
    double sum = 0;
    const double *x = slope->varied == NULL ? v : slope->x;
    reference_batch_norm_forward(&slope->norm, x, slope->y);
    for (int i = 0; i < slope->norm.n * slope->norm.c * slope->norm.points; i++)
        sum += slope->y[i] * slope->dy[i];
    return sum;
}

static void check_reference(const struct norm_case *how, bool saved)
{
    struct norm_scene *scene = norm_scene_new(how);
    double *mean = norm_numbers(how->c, 5, 0.1, 0.5), *variance = norm_numbers(how->c, 6, 2, 1);
    if (saved) {
        scene->norm.saved_mean = mean;
        scene->norm.saved_variance = variance;
    }
    norm_scene_expect(scene);
    double *y = norm_zeros((size_t)scene->count, sizeof *y);
    struct slope slope = {scene->norm, scene->x, scene->dy, y, NULL};
    size_t channels = (size_t)how->c;
    check_gradient(objective, &slope, scene->x, (size_t)scene->count, scene->dx, 1e-6, how->name);
    slope.varied = &scene->scale; /* norm.scale and norm.bias point to what is varied */
    check_gradient(objective, &slope, scene->scale, channels, scene->dscale, 1e-6, how->name);
    slope.varied = &scene->bias;
    check_gradient(objective, &slope, scene->bias, channels, scene->dbias, 1e-6, how->name);
    free(y);
    free(mean);
    free(variance);
    norm_scene_free(scene);
}

static void test_reference(void **state)
{
    (void)state;
    static const struct norm_case small[] = {
        {"plain", 4, 3, 2, 3, {4}, {4}, 0.3, 1, 0, 0, 1, 1, 0},
        {"groups", 7, 2, 1, 2, {7}, {2, 5, 7}, 0, 2, 0, 0, 1, 1, 0},
        {"leaky ReLU", 4, 3, 2, 2, {4}, {1, 4}, 0, 1, 1, 0.1, 1, 1, 0},
        {"rank 2", 9, 4, 0, 0, {9}, {9}, 0, 1, 1, 0, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        check_reference(&small[i], false);
        check_reference(&small[i], true);
    }
}

/* Blocks of 8 and of 16 channels: the same rows. */
static void test_blocks(void **state)
{
    (void)state;
    struct norm_scene *scene = norm_scene_new(&norm_cases[4]);
    size_t bytes = (size_t)(ls_sync_row(&scene->sync[0]) * scene->parts[0]) * sizeof(double);
    double *kept = norm_zeros(bytes, 1);
    norm_check_moments(scene, &ls_layout_blocked8);
    memcpy(kept, scene->rows[0][0], bytes);
    norm_check_moments(scene, &ls_layout_blocked16);
    assert_memory_equal(kept, scene->rows[0][0], bytes);
    free(kept);
    norm_scene_free(scene);
}

/* What the loops find with y and without: the same bytes. The first value of a channel gives 0. */
static void check_gate(const struct ls_batch_norm_view *view, float slope)
{
    enum { C = 32, COUNT = C * 3 * 21 };
    static float x[COUNT], dy[COUNT], y[COUNT], dx[2][COUNT], channel[7][C];
    double sum[2][2][C];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)draw((uint64_t)i, 1, -1000, 1000) / 1000;
        dy[i] = (float)draw((uint64_t)i, 2, -1000, 1000) / 1000;
    }
    for (int i = 0; i < 7 * C; i++)
        channel[i / C][i % C] = (float)draw((uint64_t)i, 3, -1000, 1000) / 500;
    const struct ls_batch_norm_channels channels = {.mean = channel[0],
                                                    .rest = channel[1],
                                                    .inv_std = channel[2],
                                                    .scale = channel[3],
                                                    .bias = channel[4],
                                                    .factor = channel[2],
                                                    .mean_dz = channel[5],
                                                    .mean_dzx = channel[6],
                                                    .relu = true,
                                                    .slope = slope};
    for (int c = 0; c < C; c++) {
        x[c / view->block * view->block_stride + c % view->block] = channel[0][c];
        channel[1][c] = 0;
        channel[4][c] = c % 2 == 0 ? 0 : channel[4][c];
    }
    const struct ls_vector_batch_norm *vector = ls_vector_batch_norm();
    vector->forward(view, &channels, x, y);
    for (int i = 0; i < 2; i++) {
        const float *seen = i == 0 ? y : NULL;
        vector->sums(view, &channels, dy, x, seen, sum[i][0], sum[i][1]);
        vector->backward(view, &channels, dy, x, seen, dx[i]);
    }
    assert_memory_equal(sum[0], sum[1], sizeof sum[0]);
    assert_memory_equal(dx[0], dx[1], sizeof dx[0]);
}

static void test_gate(void **state)
{
    (void)state;
    const struct ls_batch_norm_view blocked = {32, 16, 16 * 21, 3, 32 * 21, 21, 16, false};
    const struct ls_batch_norm_view plain = {32, 1, 21, 3, 32 * 21, 21, 1, false};
    const char *before = ls_cpu_isa_name(ls_cpu_isa());
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        for (int leaky = 0; leaky < 2; leaky++) {
            check_gate(&blocked, 0.25F * (float)leaky);
            check_gate(&plain, 0.25F * (float)leaky);
        }
    }
    assert_int_equal(ls_cpu_isa_select(before, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_batch),
        cmocka_unit_test(test_random),    cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
