/* Products of matrices of the devices: the same bits on all instruction sets and term by term, in
 * odd shapes, whole and in parts; near what they are in double.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/products.h"
#include "support/support.h"

enum { MOST = 200, GUARD = 64 };

static float a[MOST * MOST], b[MOST * MOST], expected[MOST * MOST], found[MOST * MOST + GUARD];

static void fill(void)
{
    for (uint32_t i = 0; i < MOST * MOST; i++) {
        a[i] = 2 * ls_random_uniform(1, 0, i) - 1;
        b[i] = 2 * ls_random_uniform(2, 0, i) - 1;
    }
    a[0] = 1e-42F; /* flushed */
    b[3] = -0.0F;
}

/* Rows [begin, end) of a product, with scratch for all of it. */
static void multiply(const struct ls_device_products *products,
                     const struct ls_matrix_product *whole, int64_t begin, int64_t end)
{
    const size_t bytes = products->scratch(whole->rows, whole->columns, whole->depth);
    unsigned char *scratch = ls_alloc_aligned(bytes + GUARD);
    struct ls_matrix_product part = *whole;
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes); /* NaNs */
    memset(scratch + bytes, 0x5a, GUARD);
    part.a += begin * whole->depth;
    part.out += begin * whole->columns;
    part.rows = end - begin;
    products->multiply(&part, scratch);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(scratch[bytes + (size_t)i], 0x5a);
    ls_free_aligned(scratch);
}

static void check_values(const struct ls_matrix_product *product)
{
    const int64_t line = product->by_term ? 1 : product->depth;
    const int64_t term = product->by_term ? product->columns : 1;
    for (int64_t i = 0; i < product->rows; i++)
        for (int64_t j = 0; j < product->columns; j++) {
            double sum = 0, size = 1e-30;
            for (int64_t k = 0; k < product->depth; k++) {
                const double one =
                    (double)a[i * product->depth + k] * (double)b[j * line + k * term];
                sum += one;
                size += fabs(one);
            }
            assert_true(fabs((double)product->out[i * product->columns + j] - sum) <= 2e-6 * size);
        }
}

static void check_product(struct ls_matrix_product product)
{
    const size_t size = (size_t)(product.rows * product.columns);
    product.out = expected;
    multiply(&ls_plain_products, &product, 0, product.rows);
    check_values(&product);
    product.out = found;
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        for (int64_t parts = 1; parts <= 3 && parts <= product.rows; parts++) {
            memset(found, 0x5a, sizeof found);
            for (int64_t part = 0; part < parts; part++)
                multiply(&ls_cpu_products, &product, product.rows * part / parts,
                         product.rows * (part + 1) / parts);
            if (memcmp(found, expected, size * sizeof *found) != 0)
                fail_msg("%s: %lld x %lld, %lld terms in %lld parts",
                         ls_cpu_isa_name((enum ls_isa)isa), (long long)product.rows,
                         (long long)product.columns, (long long)product.depth, (long long)parts);
            for (size_t i = 0; i < GUARD * sizeof *found; i++)
                assert_int_equal(((unsigned char *)(found + size))[i], 0x5a);
        }
    }
}

static void any_shape_has_the_same_bits(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {1, 1, 1},   {1, 1, 200},  {1, 200, 1},  {200, 1, 1},  {1, 37, 65},  {37, 1, 33},
        {2, 3, 31},  {3, 2, 32},   {5, 7, 33},   {16, 16, 64}, {17, 15, 63}, {33, 65, 97},
        {64, 64, 9}, {65, 17, 16}, {7, 129, 40}, {130, 9, 71}, {200, 31, 5}, {12, 200, 199}};
    fill();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int by_term = 0; by_term < 2; by_term++)
            check_product((struct ls_matrix_product){.rows = shapes[i][0],
                                                     .columns = shapes[i][1],
                                                     .depth = shapes[i][2],
                                                     .a = a,
                                                     .b = b,
                                                     .by_term = by_term == 1});
}

/* A matrix by itself is symmetric to the bit. */
static void squares_are_symmetric(void **state)
{
    (void)state;
    enum { N = 37 };
    fill();
    const struct ls_matrix_product square = {
        .rows = N, .columns = N, .depth = 51, .a = a, .b = a, .out = found};
    multiply(&ls_cpu_products, &square, 0, N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            assert_memory_equal(&found[i * N + j], &found[j * N + i], sizeof *found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_shape_has_the_same_bits),
                                       cmocka_unit_test(squares_are_symmetric)};
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
