/* Factors of gradients: the place of each row, and numbers that are not finite, in a factor or
 * in their product.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/factors.h"
#include "ops/devices.h"
#include "support/contribute.h"

enum { INPUTS = 5, OUTPUTS = 3, MICRO_BATCHES = 4 };

struct scene {
    struct ls_parameter sum, weight, bias;
    struct ls_parameter *items[3];
    struct ls_parameter_set set;
    struct ls_graph *graphs[MICRO_BATCHES];
    struct ls_factors *factors;
    float x[MICRO_BATCHES * 4 * INPUTS], dy[MICRO_BATCHES * 4 * OUTPUTS];
};

/* Micro-batch m has m + 1 rows. */
static void open_scene_on(struct scene *scene, const struct ls_device *device)
{
    *scene = (struct scene){.sum = {.index = 0},
                            .bias = {.index = 1, .shape = {.rank = 1, .dim = {OUTPUTS}}},
                            .weight = {.index = 2, .shape = {.rank = 2, .dim = {OUTPUTS, INPUTS}}}};
    scene->items[0] = &scene->sum;
    scene->items[1] = &scene->bias;
    scene->items[2] = &scene->weight;
    scene->set = (struct ls_parameter_set){.items = scene->items, .count = 3};
    struct ls_factoring factoring = {
        .weight = &scene->weight, .bias = &scene->bias, .size = {INPUTS, OUTPUTS}, .rows = 10};
    for (int m = 0; m < MICRO_BATCHES; m++) {
        struct ls_shape shape = {.rank = 2, .dim = {m + 1, INPUTS}};
        scene->graphs[m] = ls_graph_new();
        assert_non_null(scene->graphs[m]);
        struct ls_value *value = ls_graph_value(scene->graphs[m], "x", &shape, NULL);
        ls_graph_factors(scene->graphs[m], &factoring, m + 1, value, value);
    }
    for (int i = 0; i < MICRO_BATCHES * 4 * INPUTS; i++)
        scene->x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < MICRO_BATCHES * 4 * OUTPUTS; i++)
        scene->dy[i] = (float)(i % 5) - 2;
    assert_int_equal(ls_factors_create(device, &scene->set, 2, &scene->factors, NULL), 0);
    assert_int_equal(ls_factors_count(scene->factors), 1);
}

static void open_scene(struct scene *scene)
{
    open_scene_on(scene, ls_device_default());
}

static void close_scene(struct scene *scene)
{
    ls_factors_free(scene->factors);
    for (int m = 0; m < MICRO_BATCHES; m++)
        ls_graph_free(scene->graphs[m]);
}

/* Records all rows, the last micro-batch first. */
static void record(struct scene *scene, int micro_batches)
{
    assert_int_equal(ls_factors_place(scene->factors, (const struct ls_graph *const *)scene->graphs,
                                      MICRO_BATCHES, NULL),
                     0);
    assert_int_equal(ls_factors_begin(scene->factors, NULL), 0);
    for (int m = micro_batches; m-- > 0;) {
        size_t first = (size_t)(m * (m + 1) / 2), rows = (size_t)m + 1;
        contribute_rows(ls_device_default(), scene->factors, m, &scene->weight, LS_FACTOR_OUTPUT,
                        scene->dy + first * OUTPUTS, rows);
        contribute_rows(ls_device_default(), scene->factors, m, &scene->weight, LS_FACTOR_INPUT,
                        scene->x + first * INPUTS, rows);
    }
    assert_int_equal(ls_factors_collect(scene->factors, NULL), 0);
}

static void check(struct scene *scene, int micro_batch, int parameter)
{
    int which = -1, first = -1;
    record(scene, MICRO_BATCHES);
    assert_int_equal(ls_factors_find_not_finite(scene->factors, true, &which, &first, NULL), 0);
    assert_int_equal(first, micro_batch);
    assert_int_equal(which, parameter);
}

static void every_row_of_an_update_has_its_place(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    check(&scene, INT_MAX, -1);
    float gradient[OUTPUTS * INPUTS], bias[OUTPUTS];
    struct ls_gradient_piece all = {.rows = OUTPUTS, .columns = INPUTS, .row = INPUTS};
    struct ls_gradient_piece row = {.rows = 1, .columns = OUTPUTS};
    assert_int_equal(ls_factors_gradient(scene.factors, &scene.weight, &all, gradient, NULL), 0);
    assert_int_equal(ls_factors_gradient(scene.factors, &scene.bias, &row, bias, NULL), 0);
    for (int n = 0; n < OUTPUTS; n++) {
        float sum = 0;
        for (int k = 0; k < INPUTS; k++) {
            float wanted = 0;
            for (int r = 0; r < 10; r++)
                wanted += scene.dy[r * OUTPUTS + n] * scene.x[r * INPUTS + k];
            assert_true(gradient[n * INPUTS + k] == wanted);
        }
        for (int r = 0; r < 10; r++)
            sum += scene.dy[r * OUTPUTS + n];
        assert_true(bias[n] == sum);
    }
    close_scene(&scene);
}

static void factors_that_are_not_finite_name_their_micro_batch(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    scene.x[4 * INPUTS] = INFINITY; /* rows 3 to 5 are those of micro-batch 2 */
    check(&scene, 2, 2);
    scene.dy[OUTPUTS] = NAN; /* row 1 is of micro-batch 1 */
    check(&scene, 1, 2);
    close_scene(&scene);
    open_scene(&scene);
    scene.dy[9 * OUTPUTS] = FLT_MAX; /* finite, but not times 3 */
    scene.x[9 * INPUTS] = 3;
    check(&scene, 3, 2);
    scene.x[9 * INPUTS] = 1; /* large, but finite: a check finds nothing */
    for (int i = 0; i < 10 * INPUTS; i++)
        scene.x[i] = 0.5F;
    check(&scene, INT_MAX, -1);
    for (int i = 0; i < 10 * INPUTS; i++)
        scene.x[i] = 0;
    for (int r = 0; r < 10; r++) /* products are 0; the bias overflows with rows 0 and 1 */
        scene.dy[r * OUTPUTS] = 3e38F;
    check(&scene, 1, 1);
    close_scene(&scene);
}

/* While the first micro-batch is run by itself nothing reads the rows of others. */
static void measuring_reads_no_rows_of_other_micro_batches(void **state)
{
    (void)state;
    struct scene scene;
    int which = -1, first = -1;
    open_scene(&scene);
    scene.dy[OUTPUTS] = NAN;
    record(&scene, MICRO_BATCHES);
    scene.dy[0] = FLT_MAX;
    record(&scene, 1);
    assert_int_equal(ls_factors_find_not_finite(scene.factors, false, &which, &first, NULL), 0);
    assert_int_equal(first, INT_MAX);
    close_scene(&scene);
}

static int cannot_measure(const float *x, size_t n, uint32_t *bits, struct ls_error *error)
{
    (void)x;
    (void)n;
    *bits = 0;
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "cannot measure");
}

static int cannot_multiply(const struct ls_factoring *factoring,
                           const struct ls_factor_rows *factors,
                           const struct ls_gradient_piece *piece, float *gradient,
                           struct ls_error *error)
{
    (void)factoring;
    (void)factors;
    (void)piece;
    (void)gradient;
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "cannot multiply");
}

/* A gradient that the device cannot compute, or look at, is not taken for a finite one. */
static void a_gradient_that_cannot_be_looked_at_is_a_failure(void **state)
{
    (void)state;
    const struct ls_device_sums sums = {.largest = cannot_measure};
    struct ls_error *error = calloc(1, sizeof *error);
    struct scene scene;
    int which = -1, first = -1;
    for (int failure = 0; failure < 3; failure++) {
        struct ls_device device = *ls_device_default();
        if (failure == 0)
            device.sums = &sums;
        else if (failure == 1)
            device.weight_gradient = cannot_multiply;
        else
            device.bias_gradient = cannot_multiply;
        open_scene_on(&scene, &device);
        scene.dy[0] = FLT_MAX; /* finite; the product may not be */
        record(&scene, MICRO_BATCHES);
        ls_error_clear(error);
        int status = ls_factors_find_not_finite(scene.factors, true, &which, &first, error);
        assert_int_equal(status, failure == 0 ? LOCKSTEP_INTERNAL : LOCKSTEP_RESOURCE);
        assert_string_equal(error->problems[0].message,
                            failure == 0 ? "cannot measure" : "cannot multiply");
        close_scene(&scene);
    }
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_an_update_has_its_place),
        cmocka_unit_test(factors_that_are_not_finite_name_their_micro_batch),
        cmocka_unit_test(measuring_reads_no_rows_of_other_micro_batches),
        cmocka_unit_test(a_gradient_that_cannot_be_looked_at_is_a_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
