/* Inner products and their gradients against a double-precision reference, itself checked by
 * finite differences; the same bits per row whatever the number of rows and threads.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_trial.h"

#include <math.h>

#include "support/reference_inner_product.h"

static const struct reference_inner_product cases[] = {
    {13, 800, 500, 0}, {8, 500, 10, 0}, {3, 1, 1, 0},    {1, 17, 33, 0},   {5, 1024, 64, 1},
    {4, 1, 20, 0},     {4, 20, 1, 0},   {7, 50, 3, 1},   {2, 33, 129, 1},  {16, 300, 65, 0},
    {3, 64, 64, 0},    {1, 1, 1, 1},    {6, 5, 1000, 0}, {10, 2304, 7, 0}, {9, 31, 31, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

struct fused {
    bool bias, relu;
    float slope;
};

static const struct ls_kernel *const kernels[] = {
    &ls_kernel_inner_product, &ls_kernel_inner_product_data, &ls_kernel_inner_product_weights};

static struct trial *make_trial(const struct ls_kernel *kernel,
                                const struct reference_inner_product *p, struct fused fused)
{
    struct trial *trial = trial_new(kernel);
    struct ls_shape x = {.rank = 2, .dim = {p->m, p->k}}, y = {.rank = 2, .dim = {p->m, p->n}};
    struct ls_shape w = {.rank = 2, .dim = {p->n, p->k}}, b = {.rank = 1, .dim = {p->n}};
    if (p->transpose)
        w = (struct ls_shape){.rank = 2, .dim = {p->k, p->n}};
    if (p->k % 2 == 0) /* x as a picture */
        x = (struct ls_shape){.rank = 4, .dim = {p->m, p->k / 2, 1, 2}};
    trial->op.attr.inner_product = (struct ls_inner_product_attr){.m = p->m,
                                                                  .k = p->k,
                                                                  .n = p->n,
                                                                  .transpose = p->transpose,
                                                                  .bias = fused.bias,
                                                                  .relu = fused.relu,
                                                                  .relu_slope = fused.slope};
    if (kernel->kind == LS_OP_INNER_PRODUCT) {
        trial_in(trial, &x, 1);
        trial_in(trial, &w, 2);
        if (fused.bias)
            trial_in(trial, &b, 3);
        else
            trial->in[trial->op.inputs++] = NULL;
        trial_out(trial, &y);
    } else if (kernel->kind == LS_OP_INNER_PRODUCT_DATA) {
        trial_in(trial, &y, 4);
        trial_in(trial, &w, 2);
        trial_out(trial, &x);
    } else {
        trial_in(trial, &x, 1);
        trial_in(trial, &y, 4);
        trial_out(trial, &w);
        if (fused.bias)
            trial_out(trial, &b);
        else
            trial->out[trial->op.outputs++] = NULL;
    }
    trial_prepare(trial);
    return trial;
}

/* Computes what the outputs should be, and compares. */
static void check(const struct ls_kernel *kernel, const struct reference_inner_product *p,
                  struct fused fused)
{
    char what[64];
    snprintf(what, sizeof what, "[%d, %d] -> %d%s", p->m, p->k, p->n,
             p->transpose ? ", transposed" : "");
    struct trial *trial = make_trial(kernel, p, fused);
    trial_run(trial);
    double *in0 = trial_doubles(trial, trial->in[0]), *in1 = trial_doubles(trial, trial->in[1]);
    double *out0 = trial_doubles(trial, trial->out[0]), *b = NULL;
    if (kernel->kind == LS_OP_INNER_PRODUCT) {
        b = fused.bias ? trial_doubles(trial, trial->in[2]) : NULL;
        reference_inner_product_forward(p, in0, in1, b, fused.relu, (double)fused.slope, out0);
        trial_compare(trial, trial->out[0], out0, p->k + 1, what);
    } else if (kernel->kind == LS_OP_INNER_PRODUCT_DATA) {
        reference_inner_product_data(p, in0, in1, out0);
        trial_compare(trial, trial->out[0], out0, p->n, what);
    } else {
        b = fused.bias ? trial_doubles(trial, trial->out[1]) : NULL;
        reference_inner_product_weights(p, in0, in1, out0, b);
        trial_compare(trial, trial->out[0], out0, p->m, what);
        if (b != NULL)
            trial_compare(trial, trial->out[1], b, p->m, what);
    }
    assert_false(trial->prepared.slow);
    free(in0);
    free(in1);
    free(out0);
    free(b);
    trial_free(trial);
}

static void named_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct fused fused = {
            .bias = i % 3 != 1, .relu = i % 2 == 0, .slope = i % 4 == 0 ? 0.2f : 0};
        for (int k = 0; k < 3; k++)
            check(kernels[k], &cases[i], fused);
    }
}

static void random_shapes(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 150; round++) {
        struct reference_inner_product p = {
            .m = 1 + (int)ls_random_below(5, round, 0, 20),
            .k = 1 + (int)ls_random_below(5, round, 1, round % 2 ? 400 : 40),
            .n = 1 + (int)ls_random_below(5, round, 2, round % 3 ? 150 : 20),
            .transpose = (int)ls_random_below(5, round, 3, 2)};
        struct fused fused = {.bias = round % 2, .relu = round % 5 < 2, .slope = round % 3 * 0.3f};
        for (int k = 0; k < 3; k++)
            check(kernels[k], &p, fused);
    }
}

/* oneDNN's batch-reduce kernels for AVX-512 sum each row in one order whatever the number of rows.
 * Its plain matrix product and the kernels for AVX2 that 3.x has do not promise that, and need not:
 * the size of a micro-batch belongs to the definition of a training. */
static bool row_by_row(const struct trial *trial)
{
    const char *name = trial->prepared.implementation;
    return strstr(name, "brgemm") != NULL && strstr(name, "avx512") != NULL;
}

static void bits_of_a_row(void **state)
{
    static const int rows[] = {1, 2, 8, 13, 16, 20};
    int compared = 0;
    (void)state;
    for (int i = 0; i < CASES; i++)
        for (int k = 0; k < 2; k++) {
            struct reference_inner_product p = cases[i];
            struct fused fused = {.bias = true, .relu = i % 2};
            p.m = 33;
            struct trial *all = make_trial(kernels[k], &p, fused);
            trial_run(all);
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                p.m = rows[r];
                struct trial *some = make_trial(kernels[k], &p, fused);
                trial_run(some);
                assert_ptr_equal(some->in[1]->layout, all->in[1]->layout);
                size_t bytes = (size_t)ls_shape_size(&some->out[0]->shape) * sizeof(float);
                compared += row_by_row(some) && row_by_row(all);
                if (row_by_row(some) && row_by_row(all) &&
                    memcmp(some->plain[some->out[0]->index], all->plain[all->out[0]->index],
                           bytes) != 0)
                    fail_msg("%d -> %d: %s (%s, %s): %d rows give other bits than 33", p.k, p.n,
                             kernels[k]->name, some->prepared.implementation,
                             all->prepared.implementation, p.m);
                trial_free(some);
            }
            trial_free(all);
        }
    if (ls_cpu_isa() == LS_ISA_AVX512)
        assert_true(compared > CASES);
}

static void threads_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct trial *trial = make_trial(kernels[i % 3], &cases[i], (struct fused){.bias = true});
        trial_run(trial);
        trial_concurrently(trial);
        trial_free(trial);
    }
}

/* All three passes use the weights as they lie: nothing is copied. */
static void one_layout_of_weights(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct trial *trial[3];
        for (int k = 0; k < 3; k++)
            trial[k] = make_trial(kernels[k], &cases[i], (struct fused){0});
        assert_ptr_equal(trial[1]->in[1]->layout, trial[0]->in[1]->layout);
        assert_ptr_equal(trial[2]->out[0]->layout, trial[0]->in[1]->layout);
        for (int k = 0; k < 3; k++)
            trial_free(trial[k]);
    }
}

/* sum(y r) is linear in each element: a central difference is exact but for rounding. */
static double derivative(const struct reference_inner_product *p, double *x, double *w, double *b,
                         const double *r, double *y, double *element)
{
    double sum[2] = {0}, kept = *element;
    for (int side = 0; side < 2; side++) {
        *element = kept + (side ? -0.5 : 0.5);
        reference_inner_product_forward(p, x, w, b, 0, 0, y);
        for (int i = 0; i < p->m * p->n; i++)
            sum[side] += y[i] * r[i];
    }
    *element = kept;
    return sum[0] - sum[1];
}

static void fill(double *values, int count, uint64_t salt)
{
    for (int i = 0; i < count; i++)
        values[i] = 2.0 * (double)ls_random_uniform(salt, 0, (uint64_t)i) - 1;
}

static void reference_by_finite_differences(void **state)
{
    (void)state;
    for (int transpose = 0; transpose < 2; transpose++) {
        struct reference_inner_product p = {3, 4, 5, transpose};
        double x[12], w[20], b[5], r[15], y[15], dx[12], dw[20], db[5];
        fill(x, 12, 1);
        fill(w, 20, 2);
        fill(b, 5, 3);
        fill(r, 15, 4);
        reference_inner_product_data(&p, r, w, dx);
        reference_inner_product_weights(&p, x, r, dw, db);
        for (int i = 0; i < 12; i++)
            assert_true(fabs(derivative(&p, x, w, b, r, y, &x[i]) - dx[i]) < 1e-12);
        for (int i = 0; i < 20; i++)
            assert_true(fabs(derivative(&p, x, w, b, r, y, &w[i]) - dw[i]) < 1e-12);
        for (int i = 0; i < 5; i++)
            assert_true(fabs(derivative(&p, x, w, b, r, y, &b[i]) - db[i]) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_by_finite_differences),
        cmocka_unit_test(named_shapes),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(bits_of_a_row),
        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(one_layout_of_weights),
    };
    return trial_main(tests);
}
