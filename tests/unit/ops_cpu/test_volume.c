/* Convolutions of volumes by Winograd's algorithm: against the definition, the same bits on every
 * instruction set and for any number of samples, and which ops they are.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/convolution_trial.h"

#include <math.h>

#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/volume.h"
#include "support/support.h"

struct volume_case {
    int n, c, o, in[3], pad[3];
    bool bias, relu;
    float slope;
};

static const struct volume_case cases[] = {
    {2, 16, 16, {4, 4, 4}, {1, 1, 1}, true, false, 0},
    {1, 16, 32, {6, 8, 32}, {1, 1, 1}, true, true, 0},
    {2, 20, 17, {5, 7, 9}, {1, 0, 1}, true, true, 0.1F},
    {1, 33, 16, {7, 18, 6}, {0, 1, 0}, false, true, 0},
    {1, 16, 16, {5, 21, 31}, {1, 1, 0}, true, false, 0},
    {3, 32, 48, {6, 6, 10}, {0, 0, 1}, false, false, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static const struct ls_kernel *const kernels[] = {&ls_kernel_volume, &ls_kernel_volume_data,
                                                  &ls_kernel_volume_weights};

static struct convolution_size size_of_case(const struct volume_case *shape)
{
    struct convolution_size c = {.n = shape->n, .c = shape->c, .o = shape->o, .group = 1};
    for (int i = 0; i < 3; i++) {
        c.in[i] = shape->in[i];
        c.kernel[i] = 3;
        c.stride[i] = c.dilation[i] = 1;
        c.pad[i] = shape->pad[i];
    }
    assert_true(set_extents(&c));
    return c;
}

static struct trial *start(const struct volume_case *shape, int pass)
{
    struct convolution_size c = size_of_case(shape);
    struct trial *trial = trial_new(kernels[pass]);
    struct ls_shape x = tensor_shape(c.n, c.c, c.in, 3), y = tensor_shape(c.n, c.o, c.out, 3);
    struct ls_shape w = tensor_shape(c.o, c.c, c.kernel, 3), b = {.rank = 1, .dim = {c.o}};
    set_attributes(&trial->op.attr.convolution, &c, 3, shape->bias);
    trial->op.attr.convolution.relu = shape->relu;
    trial->op.attr.convolution.relu_slope = shape->slope;
    add_tensors(trial, (enum trial_pass)pass, &x, &y, &w, shape->bias ? &b : NULL);
    return trial;
}

static struct trial *run(const struct volume_case *shape, int pass)
{
    struct trial *trial = start(shape, pass);
    assert_true(trial->kernel->accepts(&trial->op));
    trial_prepare(trial);
    trial_run(trial);
    return trial;
}

static bool is_there(void)
{
    return ls_cpu_isa() >= LS_ISA_AVX2;
}

static void check_pass(const struct volume_case *shape, int pass, const char *what)
{
    struct convolution_size c = size_of_case(shape);
    const double terms[] = {27.0 * c.c, 27.0 * c.o, c.n * product(c.out)};
    struct trial *trial = run(shape, pass);
    /* the transformations add up four numbers each way */
    trial_near_reference(trial, (double[2]){4 * terms[pass], terms[pass]}, what);
    trial_free(trial);
}

static void results(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("this instruction set has no blocked layouts");
    for (int i = 0; i < CASES; i++)
        for (int pass = 0; pass < 3; pass++) {
            char what[40];
            snprintf(what, sizeof what, "case %d", i);
            check_pass(&cases[i], pass, what);
        }
}

/* Random extents and channels. */
static void random_shapes(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("this instruction set has no blocked layouts");
    for (uint64_t round = 0; round < 25; round++) {
        struct volume_case shape = {.n = 1 + (int)ls_random_below(9, round, 0, 2),
                                    .c = 16 + (int)ls_random_below(9, round, 1, 20),
                                    .o = 16 + (int)ls_random_below(9, round, 2, 20),
                                    .bias = round % 2 == 0,
                                    .relu = round % 3 == 0};
        for (int i = 0; i < 3; i++) {
            shape.in[i] = 6 + (int)ls_random_below(9, round, 3 + (uint64_t)i, i == 2 ? 20 : 6);
            shape.pad[i] = (int)ls_random_below(9, round, 6 + (uint64_t)i, 2);
        }
        char what[80];
        snprintf(what, sizeof what, "%d to %d at %d %d %d, pad %d %d %d", shape.c, shape.o,
                 shape.in[0], shape.in[1], shape.in[2], shape.pad[0], shape.pad[1], shape.pad[2]);
        for (int pass = 0; pass < 3; pass++)
            check_pass(&shape, pass, what);
    }
}

/* Samples do not depend on how many come with them; threads do not disturb each other. */
static void samples_and_threads(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("this instruction set has no blocked layouts");
    for (int pass = 0; pass < 3; pass++) {
        struct volume_case shape = cases[2];
        shape.n = 5;
        struct trial *all = run(&shape, pass);
        for (shape.n = 1; shape.n < 4 && pass < 2; shape.n++) {
            struct trial *some = run(&shape, pass);
            compare_samples(all, some, shape.n, "samples");
            trial_free(some);
        }
        trial_concurrently(all);
        trial_free(all);
    }
}

/* ---- Instruction sets ------------------------------------------------------------------------ */

enum { IN = 20, OUT = 17, SAMPLES = 2 };
static const int64_t extent_in[3] = {5, 11, 21}, extent_out[3] = {5, 9, 21};

static int64_t points(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

static int64_t blocks(int64_t channels, int64_t block)
{
    return (channels + block - 1) / block;
}

/* Numbers as functions of sample, channel and point, in blocks. */
static float *lay_out(uint64_t salt, int64_t channels, const int64_t extent[3], int64_t block)
{
    const int64_t padded = blocks(channels, block) * block;
    float *data = ls_alloc((size_t)(SAMPLES * padded * points(extent)), sizeof *data);
    assert_non_null(data);
    for (int64_t n = 0; n < SAMPLES; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < points(extent); p++)
                data[((n * padded + c / block * block) * points(extent)) + p * block + c % block] =
                    ls_random_uniform(salt, (uint64_t)(n * channels + c), (uint64_t)p) - 0.5F;
    return data;
}

static int64_t weight_place(int64_t o, int64_t i, int64_t tap, int64_t block)
{
    int64_t at = (o / block * blocks(IN, block) + i / block) * LS_VOLUME_TAPS + tap;
    return (at * block + i % block) * block + o % block;
}

/* Adds the bits of what stands in blocks to a list of all numbers in Caffe's order. */
static float *read_back(const float *data, int64_t channels, const int64_t extent[3], int64_t block,
                        float *to)
{
    const int64_t padded = blocks(channels, block) * block;
    for (int64_t n = 0; n < SAMPLES; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < points(extent); p++)
                *to++ = data[((n * padded + c / block * block) * points(extent)) + p * block +
                             c % block];
    return to;
}

/* y and dw of one set of loops, in Caffe's order; returns how many numbers that are. */
static size_t run_loops(const struct ls_vector_volume *loops, float *result)
{
    const int64_t block = loops->block;
    struct ls_volume volume = {.samples = SAMPLES,
                               .in_blocks = blocks(IN, block),
                               .out_blocks = blocks(OUT, block),
                               .pad = {1, 0, 1}};
    memcpy(volume.in, extent_in, sizeof extent_in);
    memcpy(volume.out, extent_out, sizeof extent_out);
    const struct ls_volume_weights weights = {.out_blocks = volume.out_blocks,
                                              .in_blocks = volume.in_blocks,
                                              .out_step = volume.in_blocks,
                                              .in_step = 1};
    size_t size = loops->transformed_size(volume.out_blocks, volume.in_blocks);
    float *x = lay_out(1, IN, extent_in, block), *dy = lay_out(2, OUT, extent_out, block);
    float *y = lay_out(3, OUT, extent_out, block), *u = ls_alloc_aligned(size * sizeof *u);
    float *w = ls_alloc_aligned(size * sizeof *w), *db = ls_alloc_aligned(64 * sizeof *db);
    float *scratch = ls_alloc_aligned(loops->differentiate_scratch(&volume) * sizeof *scratch);
    assert_true(u != NULL && w != NULL && db != NULL && scratch != NULL);
    memset(w, 0, size * sizeof *w);
    for (int64_t o = 0; o < OUT; o++)
        for (int64_t i = 0; i < IN; i++)
            for (int64_t tap = 0; tap < LS_VOLUME_TAPS; tap++)
                w[weight_place(o, i, tap, block)] =
                    ls_random_uniform(4, (uint64_t)(o * IN + i), (uint64_t)tap) - 0.5F;
    const struct ls_volume_end end = {.relu = true, .slope = 0.25F};
    loops->transform(&weights, w, u);
    loops->convolve(&volume, x, u, &end, scratch, y);
    float *to = read_back(y, OUT, extent_out, block, result);
    loops->differentiate(&volume, x, dy, scratch, w, db);
    for (int64_t o = 0; o < OUT; o++)
        for (int64_t i = 0; i < IN; i++)
            for (int64_t tap = 0; tap < LS_VOLUME_TAPS; tap++)
                *to++ = w[weight_place(o, i, tap, block)];
    memcpy(to, db, OUT * sizeof *to);
    to += OUT;
    ls_free(x);
    ls_free(dy);
    ls_free(y);
    ls_free_aligned(u);
    ls_free_aligned(w);
    ls_free_aligned(db);
    ls_free_aligned(scratch);
    return (size_t)(to - result);
}

static void instruction_sets(void **state)
{
    (void)state;
    enum { MOST = 100000 };
    float *first = calloc(MOST, sizeof *first), *other = calloc(MOST, sizeof *other);
    assert_true(first != NULL && other != NULL);
    size_t count = run_loops(&ls_vector_volume_generic, first);
    assert_true(count < MOST);
#if defined(__x86_64__)
    static const struct ls_vector_volume *const loops[LS_ISAS] = {
        [LS_ISA_AVX2] = &ls_vector_volume_avx2, [LS_ISA_AVX512] = &ls_vector_volume_avx512};
    for (int isa = LS_ISA_AVX2; isa < LS_ISAS; isa++) {
        if (!ls_cpu_isa_supported((enum ls_isa)isa))
            continue;
        assert_int_equal(run_loops(loops[isa], other), count);
        if (memcmp(first, other, count * sizeof *first) != 0)
            fail_msg("%s gives other bits", ls_cpu_isa_name((enum ls_isa)isa));
    }
#endif
    free(first);
    free(other);
}

/* ---- The rule -------------------------------------------------------------------------------- */

static bool is_accepted(const struct volume_case *shape, int pass,
                        enum ls_convolution_algorithm algorithm, int64_t stride)
{
    struct trial *trial = start(shape, pass);
    trial->op.attr.convolution.algorithm = algorithm;
    trial->op.attr.convolution.window.stride[1] = stride;
    bool accepted = trial->kernel->accepts(&trial->op);
    trial_free(trial);
    return accepted;
}

/* All passes alike; what it is not for is left to oneDNN. */
static void what_is_accepted(void **state)
{
    (void)state;
    for (int pass = 0; pass < 3; pass++) {
        struct volume_case few = cases[0], small = cases[0];
        few.c = 15;
        small.in[2] = 3;
        assert_int_equal(is_accepted(&cases[0], pass, LS_CONVOLUTION_AUTO, 1), is_there());
        assert_int_equal(is_accepted(&cases[0], pass, LS_CONVOLUTION_WINOGRAD, 1), is_there());
        assert_false(is_accepted(&cases[0], pass, LS_CONVOLUTION_DIRECT, 1));
        assert_false(is_accepted(&cases[0], pass, LS_CONVOLUTION_AUTO, 2));
        assert_false(is_accepted(&few, pass, LS_CONVOLUTION_AUTO, 1));
        assert_false(is_accepted(&small, pass, LS_CONVOLUTION_AUTO, 1));
    }
}

static int set_up(void **state)
{
    (void)state;
    ls_set_float_mode();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(samples_and_threads),
        cmocka_unit_test(instruction_sets),
        cmocka_unit_test(what_is_accepted),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
