/* Inner products and their gradients against the reference device; the same bits per row whatever
 * the number of rows and threads. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/kernel_trial.h"

#include <math.h>

struct product_size {
    int m, k, n, transpose;
};

static const struct product_size cases[] = {
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

static struct trial *make_trial(const struct ls_kernel *kernel, const struct product_size *p,
                                struct fused fused)
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

static void check(const struct ls_kernel *kernel, const struct product_size *p, struct fused fused)
{
    char what[64];
    snprintf(what, sizeof what, "[%d, %d] -> %d%s", p->m, p->k, p->n,
             p->transpose ? ", transposed" : "");
    struct trial *trial = make_trial(kernel, p, fused);
    trial_run(trial);
    const double terms[] = {p->k + 1, p->n, p->m};
    const int pass = kernel->kind == LS_OP_INNER_PRODUCT        ? 0
                     : kernel->kind == LS_OP_INNER_PRODUCT_DATA ? 1
                                                                : 2;
    trial_near_reference(trial, (double[2]){terms[pass], terms[pass]}, what);
    assert_false(trial->prepared.slow);
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
        struct product_size p = {.m = 1 + (int)ls_random_below(5, round, 0, 20),
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
            struct product_size p = cases[i];
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_shapes),          cmocka_unit_test(random_shapes),
        cmocka_unit_test(bits_of_a_row),         cmocka_unit_test(threads_at_once),
        cmocka_unit_test(one_layout_of_weights),
    };
    return trial_main(tests);
}
