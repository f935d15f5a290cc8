/* Conversion of elements by the loops of every instruction set, reorders to other types, and views
 * of parameters in other types.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ir/kernel.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parameter_layout.h"

static void *buffer(size_t bytes)
{
    void *memory = ls_alloc_aligned(bytes + 1);
    assert_non_null(memory);
    memset(memory, 0xa5, bytes + 1);
    return memory;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* On every instruction set of this processor, as workers compute, for lengths that fill no
 * register. */
static void check_loops(enum ls_dtype from, const void *in, enum ls_dtype to, size_t n)
{
    size_t bytes = n * ls_dtype_size(to);
    unsigned char *expected = buffer(bytes), *found = buffer(bytes);
    ls_dtype_convert(from, in, to, expected, n);
    uint64_t mode = ls_float_mode();
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        memset(found, 0xa5, bytes + 1);
        ls_set_float_mode();
        ls_cpu_convert(from, in, to, found, n);
        ls_restore_float_mode(mode);
        for (size_t i = 0; i < bytes; i++)
            if (found[i] != expected[i])
                fail_msg("%s to %s on %s: byte %zu is %02x, not %02x", ls_dtype_name(from),
                         ls_dtype_name(to), ls_cpu_isa_name((enum ls_isa)isa), i, found[i],
                         expected[i]);
        assert_int_equal(found[bytes], 0xa5);
    }
    ls_free_aligned(expected);
    ls_free_aligned(found);
}

static void all_numbers_of_16_bits_are_widened(void **state)
{
    (void)state;
    uint16_t *all = buffer(0x10000 * sizeof *all);
    for (unsigned i = 0; i < 0x10000; i++)
        all[i] = (uint16_t)i;
    for (size_t n = 0; n < 40; n++) {
        check_loops(LS_F16, all + 0x3e0, LS_F32, n);
        check_loops(LS_BF16, all + 0x3e0, LS_F32, n);
    }
    check_loops(LS_F16, all, LS_F32, 0x10000);
    check_loops(LS_BF16, all, LS_F32, 0x10000);
    ls_free_aligned(all);
}

/* All signs, exponents and first bits of fractions, with what decides about rounding behind. */
static void floats_are_narrowed(void **state)
{
    (void)state;
    static const uint16_t lower[] = {0,      1,      2,      0xfff,  0x1000, 0x1001,
                                     0x1fff, 0x2000, 0x2001, 0x3000, 0x7fff, 0x8000,
                                     0x8001, 0xefff, 0xf000, 0xf001, 0xffff};
    enum { LOWER = sizeof lower / sizeof *lower };
    uint32_t *hard = buffer((size_t)0x10000 * LOWER * sizeof *hard);
    for (uint32_t i = 0; i < 0x10000; i++)
        for (uint32_t l = 0; l < LOWER; l++)
            hard[i * LOWER + l] = i << 16 | lower[l];
    for (size_t n = 0; n < 40; n++) {
        check_loops(LS_F32, hard + 0x3800 * LOWER, LS_F16, n);
        check_loops(LS_F32, hard, LS_BF16, n);
    }
    check_loops(LS_F32, hard, LS_F16, (size_t)0x10000 * LOWER);
    check_loops(LS_F32, hard, LS_BF16, (size_t)0x10000 * LOWER);
    ls_free_aligned(hard);
}

/* ---- Reorders -------------------------------------------------------------------------------- */

static const struct ls_layout *const known[] = {&ls_layout_plain, &ls_layout_blocked8,
                                                &ls_layout_blocked16};
static const struct ls_shape shapes[] = {
    {4, {2, 20, 3, 5}}, {4, {3, 1, 4, 4}},     {4, {2, 32, 2, 5}}, {2, {7, 50}},
    {3, {2, 16, 9}},    {5, {2, 17, 2, 3, 4}}, {1, {5}},           {0, {0}},
};

/* Where element `index` (Caffe's order) lies in a blocked layout, as ir/layout.h says. */
static size_t place(const struct ls_layout *layout, const struct ls_shape *shape, int64_t index)
{
    if (layout->block == 1 || shape->rank < 2)
        return (size_t)index;
    int64_t points = ls_shape_count(shape, 2, shape->rank), channels = shape->dim[1];
    int64_t block = layout->block, blocks = (channels + block - 1) / block;
    int64_t p = index % points, c = index / points % channels, n = index / points / channels;
    return (size_t)(((n * blocks + c / block) * points + p) * block + c % block);
}

static void check_reorder(const struct ls_shape *shape, enum ls_dtype from_type,
                          const struct ls_layout *from, enum ls_dtype to_type,
                          const struct ls_layout *to)
{
    struct ls_value x = {.shape = *shape, .type = from_type, .layout = from};
    struct ls_value y = {.shape = *shape, .type = to_type, .layout = to};
    struct ls_value *in[1] = {&x}, *out[1] = {&y};
    struct ls_op op = {
        .kind = LS_OP_REORDER, .inputs = 1, .outputs = 1, .input = in, .output = out};
    struct ls_prepared prepared = {.op = &op, .kernel = &ls_kernel_convert};
    size_t size = ls_dtype_size(from_type), elements = (size_t)ls_shape_size(shape);
    assert_true(ls_kernel_convert.accepts(&op));
    assert_int_equal(ls_kernel_convert.prepare(&prepared, NULL), 0);
    unsigned char *plain = buffer(elements * size), *converted = buffer(elements * 8);
    unsigned char *source = buffer(ls_value_bytes(&x)), *target = buffer(ls_value_bytes(&y));
    unsigned char *expected = buffer(ls_value_bytes(&y)), *scratch = buffer(prepared.scratch_bytes);
    for (size_t i = 0; i < elements * size; i++)
        plain[i] = (unsigned char)ls_random_below(4, 0, i, 256);
    memset(source, 0, ls_value_bytes(&x));
    memset(expected, 0, ls_value_bytes(&y));
    ls_dtype_convert(from_type, plain, to_type, converted, elements);
    for (size_t i = 0; i < elements; i++) {
        memcpy(source + place(from, shape, (int64_t)i) * size, plain + i * size, size);
        memcpy(expected + place(to, shape, (int64_t)i) * ls_dtype_size(to_type),
               converted + i * ls_dtype_size(to_type), ls_dtype_size(to_type));
    }
    void *data[2] = {source, target};
    assert_int_equal(ls_kernel_convert.run(&prepared, NULL, data, data + 1, scratch, NULL), 0);
    assert_memory_equal(target, expected, ls_value_bytes(&y));
    assert_int_equal(target[ls_value_bytes(&y)], 0xa5);
    assert_int_equal(scratch[prepared.scratch_bytes], 0xa5);
    unsigned char *all[] = {plain, converted, source, target, expected, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ls_free_aligned(all[i]);
}

static void reorders_change_layout_and_type(void **state)
{
    (void)state;
    static const enum ls_dtype types[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8, LS_I32, LS_U8};
    enum { TYPES = sizeof types / sizeof *types };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int a = 0; a < TYPES; a++)
            for (int b = 0; b < TYPES; b++)
                for (int from = 0; from < 3 && ls_dtype_converts(types[a], types[b]); from++)
                    for (int to = 0; to < 3; to++)
                        check_reorder(&shapes[s], types[a], known[from], types[b], known[to]);
}

static void numbers_are_not_made_integers(void **state)
{
    (void)state;
    struct ls_value x = {.layout = &ls_layout_plain},
                    y = {.type = LS_I8, .layout = &ls_layout_plain};
    struct ls_value *in[1] = {&x}, *out[1] = {&y};
    struct ls_op op = {
        .kind = LS_OP_REORDER, .inputs = 1, .outputs = 1, .input = in, .output = out};
    assert_false(ls_kernel_convert.accepts(&op));
}

/* ---- Views of parameters --------------------------------------------------------------------- */

/* The view is what the fp32 view is, element by element, padding included. */
static void check_view(const struct ls_shape *shape, const struct ls_layout *from,
                       const struct ls_layout *to, enum ls_dtype type)
{
    size_t size = (size_t)ls_shape_size(shape), elements = ls_layout_elements(to, shape);
    float *plain = buffer(size * sizeof *plain), *numbers = buffer(elements * sizeof *numbers);
    float *own = buffer(ls_layout_bytes(from, shape, LS_F32));
    unsigned char *view = buffer(elements * 8), *expected = buffer(elements * 8);
    struct ls_converter *converter;
    struct ls_error error = {0};
    assert_int_equal(ls_cpu_converter_new(from, to, shape, type, &converter, &error), 0);
    for (int round = 0; round < 2; round++) { /* it runs after every update */
        for (size_t i = 0; i < size; i++)
            plain[i] = 2 * ls_random_uniform(5, (uint64_t)round, i) - 1;
        assert_int_equal(ls_cpu_parameter_from_plain(from, shape, plain, own, &error), 0);
        assert_int_equal(ls_cpu_parameter_from_plain(to, shape, plain, numbers, &error), 0);
        ls_dtype_convert(LS_F32, numbers, type, expected, elements);
        assert_int_equal(ls_cpu_converter_run(converter, own, view, &error), 0);
        assert_memory_equal(view, expected, elements * ls_dtype_size(type));
    }
    ls_cpu_converter_free(converter);
    ls_free_aligned(plain);
    ls_free_aligned(numbers);
    ls_free_aligned(own);
    ls_free_aligned(view);
    ls_free_aligned(expected);
}

static void views_have_any_layout_and_type(void **state)
{
    (void)state;
    static const enum ls_dtype types[] = {LS_F32, LS_BF16, LS_F16, LS_F64};
    for (size_t s = 0; s < 6; s++)
        for (int t = 0; t < 4; t++)
            for (int from = 0; from < 3; from++)
                for (int to = 0; to < 3; to++)
                    check_view(&shapes[s], known[from], known[to], types[t]);
}

static void views_of_integers_are_refused(void **state)
{
    (void)state;
    static const enum ls_dtype types[] = {LS_I8, LS_I32, LS_U8};
    for (int t = 0; t < 3; t++) {
        struct ls_converter *converter;
        struct ls_error error = {0};
        assert_int_equal(ls_cpu_converter_new(&ls_layout_plain, &ls_layout_plain, &shapes[0],
                                              types[t], &converter, &error),
                         LOCKSTEP_INTERNAL);
        assert_null(converter);
        assert_non_null(strstr(error.problems[0].message, "from F32 to"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_numbers_of_16_bits_are_widened),
        cmocka_unit_test(floats_are_narrowed),
        cmocka_unit_test(reorders_change_layout_and_type),
        cmocka_unit_test(numbers_are_not_made_integers),
        cmocka_unit_test(views_have_any_layout_and_type),
        cmocka_unit_test(views_of_integers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
