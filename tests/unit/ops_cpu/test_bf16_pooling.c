/* Pooling of bf16 numbers has, on every instruction set, the bits of pooling of the same numbers in
 * fp32, rounded once. SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ir/convert.h"
#include "ir/kernel.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/kernels.h"

struct pooling_case {
    int axes, n, c;
    int size[3], kernel[3], stride[3], pad[3];
};

static const struct pooling_case named_cases[] = {
    {2, 2, 5, {32, 32}, {3, 3}, {2, 2}, {0, 0}},
    {2, 2, 5, {16, 16}, {3, 3}, {2, 2}, {0, 0}},
    {2, 2, 3, {8, 8}, {3, 3}, {2, 2}, {0, 0}},
    {2, 2, 3, {24, 24}, {2, 2}, {2, 2}, {0, 0}},
    {2, 1, 3, {7, 9}, {2, 2}, {2, 2}, {0, 0}},
    {2, 1, 2, {6, 94}, {2, 2}, {2, 2}, {0, 0}},
    {2, 2, 3, {112, 112}, {3, 3}, {2, 2}, {1, 1}},
    {2, 1, 3, {28, 28}, {3, 3}, {1, 1}, {1, 1}},
    {2, 1, 2, {5, 300}, {5, 5}, {1, 1}, {2, 2}},
    {2, 1, 2, {5, 70}, {3, 7}, {2, 2}, {0, 6}},
    {2, 1, 2, {9, 40}, {2, 1}, {3, 2}, {0, 0}},
    {2, 1, 2, {4, 33}, {2, 8}, {1, 1}, {1, 4}},
    {2, 1, 2, {3, 1030}, {2, 2}, {2, 2}, {0, 0}},
    {2, 1, 2, {4, 40}, {2, 9}, {1, 2}, {0, 3}},
    {1, 2, 3, {65}, {3}, {2}, {1}},
    {3, 1, 2, {6, 8, 16}, {2, 2, 2}, {2, 2, 2}, {0}},
    {3, 1, 2, {5, 6, 18}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}},
};

/* An op with its values and their memory. */
struct scene {
    struct ls_op op;
    struct ls_value x, y, index;
    struct ls_value *in[2], *out[2];
    float *from;      /* what is read, in fp32 */
    int32_t *winners; /* what is read, or written */
    int64_t x_count, y_count;
};

static void set_shapes(struct scene *scene, const struct pooling_case *c)
{
    scene->x.shape = (struct ls_shape){.rank = c->axes + 2, .dim = {c->n, c->c}};
    scene->y.shape = scene->x.shape;
    for (int a = 0; a < c->axes; a++) {
        int out = (c->size[a] + 2 * c->pad[a] - c->kernel[a] + c->stride[a] - 1) / c->stride[a] + 1;
        if (c->pad[a] > 0 && (out - 1) * c->stride[a] >= c->size[a] + c->pad[a])
            out--;
        scene->x.shape.dim[2 + a] = c->size[a];
        scene->y.shape.dim[2 + a] = out;
    }
    scene->index = (struct ls_value){.shape = scene->y.shape, .type = LS_I32};
    scene->x.layout = scene->y.layout = scene->index.layout = &ls_layout_plain;
    scene->x_count = ls_shape_size(&scene->x.shape);
    scene->y_count = ls_shape_size(&scene->y.shape);
}

static void set_op(struct scene *scene, const struct pooling_case *c, enum ls_pooling method,
                   bool backward)
{
    struct ls_window *window = &scene->op.attr.pooling.window;
    scene->op.kind = backward ? LS_OP_POOLING_BACKWARD : LS_OP_POOLING;
    scene->op.attr.pooling.method = method;
    *window = (struct ls_window){
        .axes = c->axes, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    for (int a = 0; a < c->axes; a++) {
        window->kernel[a] = c->kernel[a];
        window->stride[a] = c->stride[a];
        window->pad[a] = c->pad[a];
    }
    struct ls_value *index = method == LS_POOL_MAX ? &scene->index : NULL;
    scene->in[0] = backward ? &scene->y : &scene->x;
    scene->in[1] = backward ? index : NULL;
    scene->out[0] = backward ? &scene->x : &scene->y;
    scene->out[1] = backward ? NULL : index;
    scene->op.input = scene->in;
    scene->op.output = scene->out;
    scene->op.inputs = backward ? 2 : 1;
    scene->op.outputs = backward ? 1 : 2;
}

/* Numbers that bf16 has, many of them equal in every second round, with sums half-way between two
 * such numbers in the others; now and then one that is treated otherwise. */
static float number(uint64_t salt, uint64_t i)
{
    static const float unusual[] = {-0.0F, 0x1p-130F, 0x1.fep127F, -INFINITY, INFINITY, NAN};
    const uint32_t bits = ls_random_u32(7, salt, i);
    if (salt % 2 == 1 && bits % 64 == 0)
        return unusual[bits / 64 % 6];
    return salt / 8 % 4 < 2 ? (float)((int)(bits >> 16 & 31) - 16) / 8
                            : (float)((int)(bits >> 16 & 255) - 128) / 8;
}

/* In the given type, with the instruction set in use; outputs hold no numbers before. */
static void run(struct scene *scene, enum ls_dtype type, void *to, int32_t *winners)
{
    const bool backward = scene->op.kind == LS_OP_POOLING_BACKWARD;
    const struct ls_kernel *kernel = backward ? &ls_kernel_pooling_backward : &ls_kernel_pooling;
    const int64_t read = backward ? scene->y_count : scene->x_count;
    const int64_t written = backward ? scene->x_count : scene->y_count;
    const struct ls_context context = {.samples = 1};
    struct ls_prepared prepared = {.kernel = kernel, .op = &scene->op};
    scene->x.type = scene->y.type = type;
    void *from = ls_alloc_aligned((size_t)read * sizeof(float));
    assert_non_null(from);
    ls_dtype_convert(LS_F32, scene->from, type, from, (size_t)read);
    memset(to, 0xff, (size_t)written * ls_dtype_size(type));
    assert_int_equal(kernel->prepare(&prepared, NULL), 0);
    unsigned char *scratch = ls_alloc_aligned(prepared.scratch_bytes + 1);
    assert_non_null(scratch);
    memset(scratch, 0xff, prepared.scratch_bytes);
    scratch[prepared.scratch_bytes] = 0xa5;
    void *in[2] = {from, winners}, *out[2] = {to, backward ? NULL : winners};
    assert_int_equal(kernel->run(&prepared, NULL, in, out, scratch, &context), 0);
    assert_int_equal(scratch[prepared.scratch_bytes], 0xa5);
    kernel->release(&prepared);
    ls_free_aligned(scratch);
    ls_free_aligned(from);
}

static bool same(uint16_t a, uint16_t b)
{
    const uint16_t infinite = 0x7f80, size = 0x7fff;
    return a == b || ((a & size) > infinite && (b & size) > infinite);
}

/* What pooling in fp32 gives, rounded; and which numbers won. */
static void expect(struct scene *scene, uint16_t *expected, int32_t *winners, int64_t count)
{
    float *wide = ls_alloc_aligned((size_t)count * sizeof *wide);
    assert_non_null(wide);
    assert_int_equal(ls_cpu_isa_select("generic", NULL), 0);
    run(scene, LS_F32, wide, winners);
    ls_dtype_convert(LS_F32, wide, LS_BF16, expected, (size_t)count);
    ls_free_aligned(wide);
}

static void check(struct scene *scene, int round, bool backward)
{
    const int64_t written = backward ? scene->x_count : scene->y_count;
    const size_t winner_bytes = (size_t)scene->y_count * sizeof(int32_t);
    uint16_t *expected = ls_alloc((size_t)written, sizeof *expected);
    uint16_t *found = ls_alloc_aligned((size_t)written * sizeof *found);
    int32_t *winners = ls_alloc_aligned(winner_bytes);
    assert_true(expected != NULL && found != NULL && winners != NULL);
    const bool maximum = scene->op.attr.pooling.method == LS_POOL_MAX;
    expect(scene, expected, maximum ? scene->winners : NULL, written);
    for (int isa = 0; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa)isa), NULL), 0);
        memcpy(winners, scene->winners, winner_bytes);
        run(scene, LS_BF16, found, maximum ? winners : NULL);
        for (int64_t i = 0; i < written; i++)
            if (!same(found[i], expected[i]))
                fail_msg("case %d, %s, %s: element %lld is %04x, not %04x", round,
                         ls_cpu_isa_name((enum ls_isa)isa), backward ? "backward" : "forward",
                         (long long)i, found[i], expected[i]);
        if (maximum)
            assert_memory_equal(winners, scene->winners, winner_bytes);
    }
    ls_free(expected);
    ls_free_aligned(found);
    ls_free_aligned(winners);
}

/* The same numbers, whether or not it is asked where they were. */
static void check_without_winners(struct scene *scene)
{
    const size_t bytes = (size_t)scene->y_count * sizeof(uint16_t);
    uint16_t *with = ls_alloc_aligned(bytes), *without = ls_alloc_aligned(bytes);
    assert_true(with != NULL && without != NULL);
    run(scene, LS_BF16, with, scene->winners);
    run(scene, LS_BF16, without, NULL);
    assert_memory_equal(with, without, bytes);
    ls_free_aligned(with);
    ls_free_aligned(without);
}

/* Forward, then backward with the winners that were found. */
static void try_method(const struct pooling_case *c, enum ls_pooling method, int round)
{
    struct scene scene = {.from = NULL};
    set_shapes(&scene, c);
    const int64_t most = scene.x_count > scene.y_count ? scene.x_count : scene.y_count;
    scene.from = ls_alloc((size_t)most, sizeof *scene.from);
    scene.winners = ls_alloc_aligned((size_t)scene.y_count * sizeof *scene.winners);
    assert_true(scene.from != NULL && scene.winners != NULL);
    memset(scene.winners, 0, (size_t)scene.y_count * sizeof *scene.winners);
    for (int backward = 0; backward < 2; backward++) {
        for (int64_t i = 0; i < most; i++)
            scene.from[i] =
                number((uint64_t)(8 * round + 2 * backward) + (uint64_t)(round % 2), (uint64_t)i);
        set_op(&scene, c, method, backward != 0);
        check(&scene, round, backward != 0);
        if (method == LS_POOL_MAX && backward == 0)
            check_without_winners(&scene);
    }
    ls_free(scene.from);
    ls_free_aligned(scene.winners);
}

static void try_case(const struct pooling_case *c, int round)
{
    try_method(c, LS_POOL_MAX, round);
    try_method(c, LS_POOL_AVERAGE, round);
}

static void named_windows_give_the_bits_of_fp32_rounded_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++)
        for (int salt = 0; salt < 2; salt++)
            try_case(&named_cases[i], 2 * (int)i + salt);
}

static int draw(uint64_t round, uint64_t place, int from, int to)
{
    return from + (int)ls_random_below(93, round, place, (uint32_t)(to - from + 1));
}

static void random_windows_give_the_bits_of_fp32_rounded_once(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 150; round++) {
        struct pooling_case c = {.axes = draw(round, 0, 1, 3), .n = draw(round, 1, 1, 2)};
        c.c = draw(round, 2, 1, 19);
        for (int a = 0; a < c.axes; a++) {
            const uint64_t base = 10 * (uint64_t)(a + 1);
            c.kernel[a] = draw(round, base, 1, 5);
            c.stride[a] = draw(round, base + 1, 1, 3);
            c.pad[a] = draw(round, base + 2, 0, c.kernel[a] - 1);
            c.size[a] = c.kernel[a] + draw(round, base + 3, 0, a == c.axes - 1 ? 60 : 5);
        }
        try_case(&c, (int)(100 + round));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_windows_give_the_bits_of_fp32_rounded_once),
        cmocka_unit_test(random_windows_give_the_bits_of_fp32_rounded_once),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests_name("ops_cpu_bf16_pooling", tests, NULL, NULL);
}
