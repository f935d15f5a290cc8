/* Products of matrices: against double precision; the same bits on every instruction set and for
 * every way to cut the result; gradients from factors; inner products of large weights.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/kernel_trial.h"

#include <math.h>

#include "base/thread.h"
#include "ops/cpu/bf16/units.h"
#include "ops/cpu/factors.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/product.h"

/* rows, columns, depth */
static const size_t shapes[][3] = {{1, 1, 1},     {6, 64, 32},    {7, 65, 3},    {13, 130, 129},
                                   {4, 16, 1024}, {2, 5, 1025},   {12, 47, 257}, {1, 63, 2100},
                                   {5, 4, 17},    {33, 20, 1040}, {3, 1, 128},   {8, 9, 300}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static float *numbers(size_t n, uint64_t salt)
{
    float *x = ls_alloc_aligned((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)ls_random_below(11, salt, (uint32_t)i, 20001) / 10000.0F - 1;
    return x;
}

static bool next_isa(int *isa)
{
    for (++*isa; *isa < LS_ISAS; ++*isa)
        if (ls_cpu_isa_supported((enum ls_isa) * isa))
            return ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa) * isa), NULL) == 0;
    return false;
}

enum form { COMBINE, COMBINE_ACROSS, DOT, FORMS }; /* ACROSS: p lies transposed */

static struct ls_product make(enum form form, const size_t shape[3], const float *p, const float *q,
                              float *out)
{
    struct ls_product product = {.rows = shape[0],
                                 .columns = shape[1],
                                 .depth = shape[2],
                                 .p = {.data = p, .row = shape[2], .step = 1},
                                 .q = q,
                                 .q_row = form == DOT ? shape[2] : shape[1],
                                 .out = out,
                                 .out_row = shape[1]};
    if (form == COMBINE_ACROSS)
        product.p = (struct ls_matrix){.data = p, .row = 1, .step = shape[0]};
    return product;
}

static void run(enum form form, const struct ls_product *product)
{
    if (form == DOT)
        ls_vector_product()->dot(product);
    else
        ls_vector_product()->combine(product);
}

/* Element by element, each by a call of its own, in the order of `salt`. */
static void run_in_pieces(enum form form, const struct ls_product *all, uint64_t salt)
{
    size_t done = 0, step = 1 + ls_random_below(12, salt, 0, 9);
    for (size_t i = all->rows; i-- > 0;)
        for (size_t j = 0; j < all->columns; j += done) {
            struct ls_product one = *all;
            one.rows = 1;
            one.columns = done = all->columns - j < step ? all->columns - j : step;
            one.p.data += i * all->p.row;
            one.q += form == DOT ? j * all->q_row : j;
            one.out += i * all->out_row + j;
            run(form, &one);
        }
}

static double expected(enum form form, const struct ls_product *product, size_t i, size_t j)
{
    double sum = 0;
    for (size_t r = 0; r < product->depth; r++) {
        float q =
            form == DOT ? product->q[j * product->q_row + r] : product->q[r * product->q_row + j];
        sum += (double)product->p.data[i * product->p.row + r * product->p.step] * (double)q;
    }
    return sum;
}

static void check_shape(enum form form, const size_t shape[3])
{
    float *p = numbers(shape[0] * shape[2], 1), *q = numbers(shape[1] * shape[2], 2);
    size_t elements = shape[0] * shape[1];
    float *first = NULL, *out = numbers(elements, 3);
    for (int isa = -1; next_isa(&isa);) {
        struct ls_product product = make(form, shape, p, q, out);
        memset(out, 0xff, elements * sizeof *out);
        run(form, &product);
        for (size_t e = 0; e < elements; e++) {
            double wanted = expected(form, &product, e / shape[1], e % shape[1]);
            if (!(fabs((double)out[e] - wanted) <= 1e-6 * sqrt((double)shape[2]) + 1e-7))
                fail_msg("form %d, %zu x %zu x %zu: element %zu is %g, not %g", form, shape[0],
                         shape[1], shape[2], e, (double)out[e], wanted);
        }
        if (first == NULL) {
            first = numbers(elements, 4);
            memcpy(first, out, elements * sizeof *out);
        }
        assert_memory_equal(out, first, elements * sizeof *out);
        memset(out, 0xff, elements * sizeof *out);
        run_in_pieces(form, &product, shape[1]);
        assert_memory_equal(out, first, elements * sizeof *out);
    }
    ls_free_aligned(p);
    ls_free_aligned(q);
    ls_free_aligned(out);
    ls_free_aligned(first);
}

static void products(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++)
        for (int s = 0; s < SHAPES; s++)
            check_shape((enum form)form, shapes[s]);
}

/* Magnitudes of all kinds, and sums that cancel: one rounding, as a fused operation has. */
static void one_rounding(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    static float p[2], q[2][COUNT], out[COUNT];
    for (int round = 0; round < 40; round++) {
        uint32_t bits[2] = {ls_random_u32(7, 1, (uint32_t)round), 0};
        memcpy(p, bits, sizeof p);
        p[1] = 1.0F;
        if (!isfinite(p[0]))
            continue;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t any = ls_random_u32(8, (uint64_t)round, i);
            memcpy(&q[1][i], &any, sizeof any);
            float near = -p[0] * q[1][i];
            q[0][i] = i % 2 ? near : (float)ldexp((double)near, (int)(i % 60) - 30);
            if (!isfinite(q[1][i]) || !isfinite(q[0][i]))
                q[0][i] = q[1][i] = 0;
        }
        /* q[0] * 1, and then p * q[1] on top of it */
        float factors[2] = {1.0F, p[0]};
        struct ls_product product = {.rows = 1,
                                     .columns = COUNT,
                                     .depth = 2,
                                     .p = {.data = factors, .row = 2, .step = 1},
                                     .q = q[0],
                                     .q_row = COUNT,
                                     .out = out,
                                     .out_row = COUNT};
        for (int isa = -1; next_isa(&isa);) {
            ls_vector_product()->combine(&product);
            for (uint32_t i = 0; i < COUNT; i++) {
                float wanted = fmaf(p[0], q[1][i], q[0][i]);
                if (memcmp(&wanted, &out[i], sizeof wanted) != 0 && !(wanted == 0 && out[i] == 0))
                    fail_msg("%s: %a * %a + %a is %a, not %a", ls_cpu_isa_name((enum ls_isa)isa),
                             (double)p[0], (double)q[1][i], (double)q[0][i], (double)out[i],
                             (double)wanted);
            }
        }
    }
}

/* Numbers of bf16 of all sizes, some of them zeros of both signs or denormal. */
static float *rounded_numbers(size_t n, uint64_t salt)
{
    float *x = ls_alloc_aligned((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        const uint32_t word = ls_random_u32(12, salt, (uint32_t)i), kind = word % 64;
        uint32_t bits = (word & 0x807f0000) | (kind < 2 ? word >> 8 & 0x3f : 80 + kind) << 23;
        if (kind == 63)
            bits = word & 0x80000000;
        memcpy(&x[i], &bits, sizeof bits);
    }
    return x;
}

static void check_rounded(ls_bf16_combine *combine, enum form form, const size_t shape[3])
{
    const size_t elements = shape[0] * shape[1], p_numbers = shape[0] * shape[2];
    const size_t q_numbers = shape[1] * shape[2];
    float *p = rounded_numbers(p_numbers, shape[0]), *q = rounded_numbers(q_numbers, shape[1]);
    float *wanted = numbers(elements, 3), *out = numbers(elements, 4);
    struct ls_product product = make(form, shape, p, q, wanted);
    ls_vector_product()->combine(&product);
    product.out = out;
    for (int k = 0; k < LS_PRODUCT_NEXT; k++)
        product.next[k] = wanted;
    product.next_row = shape[1];
    assert_true(combine(&product));
    assert_memory_equal(out, wanted, elements * sizeof *out);
    uint32_t bits;
    memcpy(&bits, &q[q_numbers - 1], sizeof bits);
    bits |= 0x8000;
    memcpy(&q[q_numbers - 1], &bits, sizeof bits);
    assert_false(combine(&product));
    memcpy(&q[q_numbers - 1], &p[p_numbers - 1], sizeof bits);
    assert_true(combine(&product));
    memcpy(&p[p_numbers - 1], &bits, sizeof bits);
    assert_false(combine(&product));
    ls_free_aligned(p);
    ls_free_aligned(q);
    ls_free_aligned(wanted);
    ls_free_aligned(out);
}

/* The unit for bf16 numbers gives the bits of fused operations, and says where there are others. */
static void rounded(void **state)
{
    (void)state;
    ls_bf16_combine *combine = NULL;
    if (ls_cpu_unit_state(LS_UNIT_AVX512_BF16) == LS_UNIT_THERE) {
        assert_int_equal(ls_cpu_isa_select(ls_cpu_unit_name(LS_UNIT_AVX512_BF16), NULL), 0);
        combine = ls_bf16_unit_combine();
        assert_non_null(combine);
    } else {
        skip();
    }
    const uint64_t mode = ls_float_mode();
    ls_set_float_mode();
    for (int s = 0; s < SHAPES; s++) {
        check_rounded(combine, COMBINE, shapes[s]);
        check_rounded(combine, COMBINE_ACROSS, shapes[s]);
    }
    ls_restore_float_mode(mode);
    assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name(ls_cpu_isa_widest()), NULL), 0);
}

/* Tiles of a gradient, computed in any order, are the gradient. */
static void gradients(void **state)
{
    (void)state;
    enum { ROWS = 150, K = 70, N = 45 };
    struct ls_parameter weight = {0};
    float *x = numbers(ROWS * K, 5), *dy = numbers(ROWS * N, 6);
    float *whole = numbers(K * N, 7), *tile = numbers(K * N, 8);
    for (int transpose = 0; transpose < 2; transpose++) {
        const struct ls_factoring factoring = {
            .weight = &weight, .size = {K, N}, .rows = ROWS, .transpose = transpose};
        const struct ls_factor_rows factors = {.side = {x, dy}, .rows = ROWS};
        size_t width = transpose ? N : K, height = transpose ? K : N;
        struct ls_gradient_piece all = {.rows = height, .columns = width, .row = width};
        assert_int_equal(ls_factors_weight_gradient(&factoring, &factors, &all, whole, NULL), 0);
        for (size_t e = 0; e < K * N; e++) {
            size_t n = transpose ? e % N : e / K, k = transpose ? e / N : e % K;
            double wanted = 0;
            for (size_t r = 0; r < ROWS; r++)
                wanted += (double)dy[r * N + n] * (double)x[r * K + k];
            assert_true(fabs((double)whole[e] - wanted) < 2e-5);
        }
        for (size_t i = 0; i < height; i += 12)
            for (size_t j = 0; j < width; j += 32) {
                struct ls_gradient_piece piece = {.begin = i * width + j, .row = width};
                piece.rows = height - i < 12 ? height - i : 12;
                piece.columns = width - j < 32 ? width - j : 32;
                assert_int_equal(
                    ls_factors_weight_gradient(&factoring, &factors, &piece, tile, NULL), 0);
                for (size_t r = 0; r < piece.rows; r++)
                    assert_memory_equal(tile + r * piece.columns, whole + (i + r) * width + j,
                                        piece.columns * sizeof *tile);
            }
        struct ls_gradient_piece bias = {.begin = 3, .rows = 1, .columns = N - 3};
        assert_int_equal(ls_factors_bias_gradient(&factoring, &factors, &bias, tile, NULL), 0);
        for (size_t n = 3; n < N; n++) {
            double wanted = 0;
            for (size_t r = 0; r < ROWS; r++)
                wanted += (double)dy[r * N + n];
            assert_true(fabs((double)tile[n - 3] - wanted) < 2e-5);
        }
    }
    ls_free_aligned(x);
    ls_free_aligned(dy);
    ls_free_aligned(whole);
    ls_free_aligned(tile);
}

/* ---- Kernels ----------------------------------------------------------------------------------
 */

struct product_size {
    int m, k, n, transpose;
};

static struct trial *make_trial(bool data, const struct product_size *p)
{
    struct trial *trial = trial_new(data ? &ls_kernel_product_data : &ls_kernel_product);
    struct ls_shape x = {.rank = 2, .dim = {p->m, p->k}}, y = {.rank = 2, .dim = {p->m, p->n}};
    struct ls_shape w = {.rank = 2, .dim = {p->n, p->k}}, b = {.rank = 1, .dim = {p->n}};
    if (p->transpose)
        w = (struct ls_shape){.rank = 2, .dim = {p->k, p->n}};
    trial->op.attr.inner_product = (struct ls_inner_product_attr){.m = p->m,
                                                                  .k = p->k,
                                                                  .n = p->n,
                                                                  .transpose = p->transpose,
                                                                  .bias = true,
                                                                  .relu = p->m % 2,
                                                                  .relu_slope = 0.25F,
                                                                  .large = true};
    trial_in(trial, data ? &y : &x, 1);
    trial_in(trial, &w, 2);
    if (!data)
        trial_in(trial, &b, 3);
    trial_out(trial, data ? &x : &y);
    trial_prepare(trial);
    trial_run(trial);
    return trial;
}

static void kernels(void **state)
{
    (void)state;
    static const struct product_size cases[] = {
        {13, 300, 120, 0}, {6, 64, 520, 1}, {1, 1100, 33, 0}, {4, 129, 260, 1}, {31, 40, 40, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int data = 0; data < 2; data++) {
            const struct product_size *p = &cases[c];
            struct trial *trial = make_trial(data, p);
            trial_near_reference(trial, (double[2]){(data ? p->n : p->k) + 1}, "large");
            assert_ptr_equal(trial->in[1]->layout, &ls_layout_plain);
            assert_true(trial->kernel->accepts(&trial->op) == (ls_cpu_isa() >= LS_ISA_AVX2));
            trial->op.attr.inner_product.large = false;
            assert_false(trial->kernel->accepts(&trial->op));
            trial_free(trial);
        }
}

static void infinities(void **state)
{
    (void)state;
    struct trial *trial = trial_new(&ls_kernel_product);
    struct ls_shape x = {.rank = 2, .dim = {1, 4}}, w = {.rank = 2, .dim = {3, 4}};
    struct ls_shape y = {.rank = 2, .dim = {1, 3}};
    trial->op.attr.inner_product =
        (struct ls_inner_product_attr){.m = 1, .k = 4, .n = 3, .relu = true, .large = true};
    float *in = trial->plain[trial_in(trial, &x, 1)->index];
    float *weights = trial->plain[trial_in(trial, &w, 2)->index];
    trial_out(trial, &y);
    memset(weights, 0, 12 * sizeof *weights);
    for (int i = 0; i < 4; i++)
        in[i] = 1;
    weights[0] = -INFINITY;
    weights[4] = NAN;
    weights[8] = INFINITY;
    trial_prepare(trial);
    trial_run(trial);
    const float *out = trial->plain[trial->out[0]->index];
    assert_true(out[0] == 0);
    assert_true(isnan(out[1]));
    assert_true(out[2] == INFINITY);
    trial_free(trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),  cmocka_unit_test(one_rounding), cmocka_unit_test(rounded),
        cmocka_unit_test(gradients), cmocka_unit_test(kernels),      cmocka_unit_test(infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
