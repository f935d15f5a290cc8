/* Batch normalisation and its gradient against a double-precision reference, itself checked by
 * finite differences: batches in micro-batches and groups that are cut differently, every layout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "batch_norm_scene.h"

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
        struct scene *scene = scene_new(how);
        expect(scene);
        check_moments(scene, own_layouts[layout]);
        check_forward(scene, own_layouts[layout], 0);
        check_sums(scene, own_layouts[layout], 0);
        merge(scene, 1);
        check_backward(scene, own_layouts[layout], 0);
        scene_free(scene);
    }
}

static void test_batch(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++)
        check_batch(&cases[i]);
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
                                .relu = draw(round, 6, 0, 1),
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
    struct scene *scene = scene_new(how);
    double *mean = numbers(how->c, 5, 0.1, 0.5), *variance = numbers(how->c, 6, 2, 1);
    if (saved) {
        scene->norm.saved_mean = mean;
        scene->norm.saved_variance = variance;
    }
    expect(scene);
    double *y = zeros((size_t)scene->count, sizeof *y);
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
    scene_free(scene);
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
    struct scene *scene = scene_new(&cases[4]);
    size_t bytes = (size_t)(ls_sync_row(&scene->sync[0]) * scene->parts[0]) * sizeof(double);
    double *kept = zeros(bytes, 1);
    check_moments(scene, &ls_layout_blocked8);
    memcpy(kept, scene->rows[0][0], bytes);
    check_moments(scene, &ls_layout_blocked16);
    assert_memory_equal(kept, scene->rows[0][0], bytes);
    free(kept);
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
