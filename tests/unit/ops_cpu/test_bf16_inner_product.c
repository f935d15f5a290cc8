/* Inner products of bf16 and of fp32 numbers in all their passes, on every instruction set, bit by
 * bit against the definition. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/bf16_trial.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/thread.h"

struct scene {
    int64_t m, k, n;
    bool f32;                         /* of fp32 numbers, else of bf16 */
    bool transpose, bias, relu, wide; /* wide: y or dx is fp32 */
    float slope;
    float *x, *w, *y;
    float *stored; /* (optional) weights that w is when they are rounded */
    float *b;
};

enum pass { TO_Y, TO_X, TO_W };

static size_t weight_at(const struct scene *scene, int64_t n, int64_t k)
{
    return (size_t)(scene->transpose ? k * scene->n + n : n * scene->k + k);
}

/* ---- The definition -------------------------------------------------------------------------- */

static float finish(const struct scene *scene, float sum, bool forward, int64_t column)
{
    volatile float z = sum;
    if (forward && scene->bias)
        z = z + scene->b[column];
    if (forward && scene->relu && z <= 0) {
        volatile float bent = scene->slope * z;
        z = scene->slope == 0 ? 0 : bent;
    }
    return scene->wide ? z : bf16_widened(bf16_rounded(z));
}

static void define_y(const struct scene *scene, float *y)
{
    for (int64_t m = 0; m < scene->m; m++)
        for (int64_t n = 0; n < scene->n; n++) {
            struct ls_product_sum sum = {.sum = 0};
            for (int64_t k = 0; k < scene->k; k++)
                ls_product_sum_add(&sum, scene->x[m * scene->k + k],
                                   scene->w[weight_at(scene, n, k)]);
            *y++ = finish(scene, ls_product_sum_end(&sum), true, n);
        }
}

static void define_x(const struct scene *scene, float *dx)
{
    for (int64_t m = 0; m < scene->m; m++)
        for (int64_t k = 0; k < scene->k; k++) {
            struct ls_product_sum sum = {.sum = 0};
            for (int64_t n = 0; n < scene->n; n++)
                ls_product_sum_add(&sum, scene->y[m * scene->n + n],
                                   scene->w[weight_at(scene, n, k)]);
            *dx++ = finish(scene, ls_product_sum_end(&sum), false, k);
        }
}

static void define_w(const struct scene *scene, float *dw, float *db)
{
    for (int64_t n = 0; n < scene->n; n++) {
        struct ls_product_sum bias = {.sum = 0};
        for (int64_t m = 0; m < scene->m; m++)
            ls_product_sum_add(&bias, scene->y[m * scene->n + n], 1);
        db[n] = ls_product_sum_end(&bias);
        for (int64_t k = 0; k < scene->k; k++) {
            struct ls_product_sum sum = {.sum = 0};
            for (int64_t m = 0; m < scene->m; m++)
                ls_product_sum_add(&sum, scene->y[m * scene->n + n], scene->x[m * scene->k + k]);
            dw[weight_at(scene, n, k)] = ls_product_sum_end(&sum);
        }
    }
}

/* ---- Trials ---------------------------------------------------------------------------------- */

static void copy_weights(const struct bf16_trial *trial, const struct ls_layout *layout,
                         const float *from, float *to)
{
    const struct scene *scene = trial->user;
    assert_ptr_equal(layout, &ls_layout_plain);
    memcpy(to, from, (size_t)(scene->n * scene->k) * sizeof *to);
}

static struct ls_shape matrix_shape(int64_t rows, int64_t columns)
{
    return (struct ls_shape){.rank = 2, .dim = {rows, columns}};
}

static void set_values(struct bf16_trial *trial, const struct scene *scene, enum pass pass)
{
    struct ls_value *value = trial->value;
    value[TRIAL_X].shape = matrix_shape(scene->m, scene->k);
    value[TRIAL_Y].shape = matrix_shape(scene->m, scene->n);
    value[TRIAL_W].shape =
        scene->transpose ? matrix_shape(scene->k, scene->n) : matrix_shape(scene->n, scene->k);
    value[TRIAL_B].shape = (struct ls_shape){.rank = 1, .dim = {scene->n}};
    const enum ls_dtype type = scene->f32 ? LS_F32 : LS_BF16;
    value[TRIAL_X].type = pass == TO_X && scene->wide ? LS_F32 : type;
    value[TRIAL_Y].type = pass == TO_Y && scene->wide ? LS_F32 : type;
    value[TRIAL_W].type = pass == TO_W || scene->stored != NULL ? LS_F32 : type;
    value[TRIAL_W].storage = LS_STORE_PARAMETER;
    value[TRIAL_B].type = LS_F32;
    bf16_trial_in(trial, pass == TO_X ? TRIAL_Y : TRIAL_X);
    bf16_trial_in(trial, pass == TO_W ? TRIAL_Y : TRIAL_W);
    if (pass == TO_Y && scene->bias)
        bf16_trial_in(trial, TRIAL_B);
    bf16_trial_out(trial, pass == TO_Y ? TRIAL_Y : pass == TO_X ? TRIAL_X : TRIAL_W);
    if (pass == TO_W && scene->bias)
        bf16_trial_out(trial, TRIAL_B);
}

static void try_pass(const struct scene *scene, enum pass pass, const char *what)
{
    static const enum ls_op_kind kinds[] = {LS_OP_INNER_PRODUCT, LS_OP_INNER_PRODUCT_DATA,
                                            LS_OP_INNER_PRODUCT_WEIGHTS};
    const int64_t terms[] = {scene->k, scene->n, scene->m};
    const size_t most = (size_t)(scene->m * scene->k + scene->m * scene->n + scene->n * scene->k);
    struct bf16_trial trial = {.op = {.kind = kinds[pass]},
                               .f32 = scene->f32,
                               .given = {[TRIAL_X] = pass != TO_X ? scene->x : NULL,
                                         [TRIAL_Y] = pass != TO_Y ? scene->y : NULL,
                                         [TRIAL_W] = pass == TO_W            ? NULL
                                                     : scene->stored != NULL ? scene->stored
                                                                             : scene->w,
                                         [TRIAL_B] = pass != TO_W ? scene->b : NULL},
                               .lay_out = copy_weights,
                               .user = scene,
                               .terms = terms[pass],
                               .what = what};
    trial.op.attr.inner_product = (struct ls_inner_product_attr){.m = scene->m,
                                                                 .k = scene->k,
                                                                 .n = scene->n,
                                                                 .portable = scene->f32,
                                                                 .bias = scene->bias,
                                                                 .transpose = scene->transpose,
                                                                 .relu = scene->relu,
                                                                 .relu_slope = scene->slope};
    for (int i = 0; i < 2; i++) {
        trial.expected[i] = ls_alloc(most, sizeof(float));
        assert_non_null(trial.expected[i]);
    }
    if (pass == TO_Y)
        define_y(scene, trial.expected[0]);
    else if (pass == TO_X)
        define_x(scene, trial.expected[0]);
    else
        define_w(scene, trial.expected[0], trial.expected[1]);
    set_values(&trial, scene, pass);
    bf16_trial_all(&trial);
    ls_free(trial.expected[0]);
    ls_free(trial.expected[1]);
}

static void try_type(int64_t m, int64_t k, int64_t n, bool f32, uint64_t salt)
{
    char what[128];
    struct scene scene = {.m = m,
                          .k = k,
                          .n = n,
                          .f32 = f32,
                          .transpose = salt % 2,
                          .bias = salt % 3 != 0,
                          .relu = salt % 3 == 1,
                          .slope = salt % 9 == 1 ? 0.1F : 0,
                          .wide = f32 || salt % 5 == 0,
                          .x = bf16_trial_numbers(f32, m * k, salt),
                          .w = bf16_trial_numbers(f32, n * k, ~salt),
                          .y = bf16_trial_numbers(f32, m * n, salt ^ 0x5555),
                          .b = bf16_trial_biases(n, salt ^ 0x77)};
    const uint64_t mode = ls_float_mode();
    snprintf(what, sizeof what, "%s, %d rows, %d to %d, salt %d", f32 ? "fp32" : "bf16", (int)m,
             (int)k, (int)n, (int)salt);
    ls_set_float_mode();
    for (int pass = TO_Y; pass <= TO_W; pass++)
        try_pass(&scene, (enum pass)pass, what);
    ls_restore_float_mode(mode);
    ls_free(scene.x);
    ls_free(scene.w);
    ls_free(scene.y);
    ls_free(scene.b);
}

static void try_all(int64_t m, int64_t k, int64_t n, uint64_t salt)
{
    try_type(m, k, n, false, salt);
    try_type(m, k, n, true, salt);
}

static void random_sizes_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        const uint32_t most = round % 3 == 0 ? 12 : 70;
        try_all(1 + ls_random_below(80, round, 0, most),
                1 + ls_random_below(80, round, 1, 2 * most),
                1 + ls_random_below(80, round, 2, 2 * most), round);
    }
}

/* More rows, inputs or outputs than are computed together. */
static void large_sizes_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    for (uint64_t salt = 0; salt < 2; salt++) {
        try_all(3, 700, 5, salt);
        try_all(2, 40, 1100, salt);
        try_all(600, 3, 9, salt);
    }
}

/* Large weights are read as they are stored, in fp32, and rounded on the way. */
static void large_weights_are_rounded_while_they_are_read(void **state)
{
    (void)state;
    const uint64_t mode = ls_float_mode();
    enum { M = 2, K = 1499, N = 1400 };
    ls_set_float_mode();
    for (int transpose = 0; transpose < 2; transpose++) {
        struct scene scene = {.m = M,
                              .k = K,
                              .n = N,
                              .transpose = transpose != 0,
                              .bias = true,
                              .x = bf16_trial_numbers(false, M * K, 1),
                              .w = bf16_trial_numbers(false, N * K, 2),
                              .y = bf16_trial_numbers(false, M * N, 3),
                              .stored = bf16_trial_numbers(false, N * K, 2),
                              .b = bf16_trial_biases(N, 4)};
        for (int i = 0; i < N * K; i++)
            scene.stored[i] *= i % 2 == 0 ? 1 - 0x1p-20F : 1 + 0x1p-20F;
        try_pass(&scene, TO_Y, "large weights");
        try_pass(&scene, TO_X, "large weights");
        ls_free(scene.x);
        ls_free(scene.w);
        ls_free(scene.y);
        ls_free(scene.stored);
        ls_free(scene.b);
    }
    ls_restore_float_mode(mode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sizes_have_the_bits_of_the_definition),
        cmocka_unit_test(large_sizes_have_the_bits_of_the_definition),
        cmocka_unit_test(large_weights_are_rounded_while_they_are_read),
    };
    return cmocka_run_group_tests_name("ops_cpu_bf16_inner_product", tests, NULL, NULL);
}
