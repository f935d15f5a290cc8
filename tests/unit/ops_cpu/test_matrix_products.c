/* Which kernels compute the convolutions that oneDNN has general products of matrices for: none is
 * slow, all passes of one follow one rule, and it does not see the number of samples.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/matrix_products.h"

#include "kernels/convolution_trial.h"
#include "ops/cpu/device.h"
#include "support/support.h"

/* oneDNN has nothing better for these on any instruction set. */
static const struct shape_case odd_cases[] = {
    {"groups of 7", 2, 3, 21, 21, 3, 9, 3, 1, 1, 1},
    {"groups of 10, a large pad", 2, 3, 30, 30, 3, 9, 3, 1, 5, 1},
    {"groups of 10, strided, to 7", 2, 2, 20, 14, 2, 9, 3, 2, 1, 1},
    {"groups along one axis", 1, 2, 21, 14, 7, 30, 3, 1, 1, 1},
    {"a pad beyond the window", 2, 2, 16, 32, 1, 5, 3, 1, 4, 1},
    {"each channel, one axis", 1, 2, 16, 16, 16, 30, 3, 1, 1, 1},
    {"each channel, one axis, strided", 1, 2, 20, 20, 20, 30, 3, 2, 1, 1},
    {"each channel, three axes", 3, 2, 16, 16, 16, 6, 3, 1, 1, 1},
    {"each channel, a pad beyond the window", 2, 2, 24, 24, 24, 9, 5, 1, 7, 2},
    {"each channel to four", 2, 2, 8, 32, 8, 9, 3, 1, 1, 1},
    {"each channel to three, strided", 2, 2, 24, 72, 24, 9, 3, 2, 1, 1},
    {"volumes in groups of four", 3, 2, 16, 16, 4, 6, 3, 1, 1, 1},
};
enum { ODD = sizeof odd_cases / sizeof *odd_cases };

/* oneDNN, or another kernel of ours, is better there. */
static const struct shape_case good_cases[] = {
    {"a picture", 2, 2, 3, 32, 1, 32, 5, 1, 2, 1},
    {"many channels", 2, 2, 32, 64, 1, 16, 3, 1, 1, 1},
    {"one by one, strided", 2, 2, 32, 64, 1, 16, 1, 2, 0, 1},
    {"two groups", 2, 2, 32, 64, 2, 9, 3, 1, 1, 1},
    {"each channel", 2, 2, 32, 32, 32, 9, 3, 1, 1, 1},
    {"few channels", 2, 2, 20, 50, 1, 12, 5, 1, 0, 1},
    {"volumes", 3, 2, 16, 32, 1, 6, 3, 1, 1, 1},
};
enum { GOOD = sizeof good_cases / sizeof *good_cases };

static struct convolution_size make_case(const struct shape_case *shape)
{
    struct convolution_size size = {
        .n = shape->n, .c = shape->c, .o = shape->o, .group = shape->group};
    set_windows(&size, shape, size.in);
    assert_true(set_extents(&size));
    return size;
}

static const enum ls_op_kind passes[2][3] = {
    {LS_OP_CONVOLUTION, LS_OP_CONVOLUTION_DATA, LS_OP_CONVOLUTION_WEIGHTS},
    {LS_OP_DECONVOLUTION, LS_OP_DECONVOLUTION_DATA, LS_OP_DECONVOLUTION_WEIGHTS}};

/* A pass of a convolution from c to o, or of the deconvolution back, as a plan would compute it. */
static struct trial *make_trial(const struct convolution_size *c, int axes, bool transposed,
                                enum trial_pass pass, enum ls_convolution_algorithm algorithm)
{
    const struct ls_kernel asked = {.kind = passes[transposed][pass]};
    struct trial *trial = trial_new(&asked);
    const struct ls_shape small = tensor_shape(c->n, c->o, c->out, axes);
    const struct ls_shape large = tensor_shape(c->n, c->c, c->in, axes);
    const struct ls_shape w = tensor_shape(c->o, c->c / c->group, c->kernel, axes);
    set_attributes(&trial->op.attr.convolution, c, axes, false);
    trial->op.attr.convolution.algorithm = algorithm;
    add_tensors(trial, pass, transposed ? &small : &large, transposed ? &large : &small, &w, NULL);
    trial->kernel = ls_kernel_find(ls_device_cpu.kernels(), &trial->op);
    assert_non_null(trial->kernel);
    trial_prepare(trial);
    return trial;
}

static bool is_portable(const struct trial *trial)
{
    return strstr(trial->prepared.implementation, "portable") != NULL;
}

/* Whether Lockstep's products compute it, in all passes alike, of which none is slow. */
static bool check_passes(const struct convolution_size *c, int axes, bool transposed,
                         const char *name)
{
    int portable = 0;
    for (int pass = 0; pass < 3; pass++) {
        struct trial *trial =
            make_trial(c, axes, transposed, (enum trial_pass)pass, LS_CONVOLUTION_AUTO);
        if (trial->prepared.slow)
            fail_msg("%s: %s is slow (%s)", name, ls_op_kind_name(trial->op.kind),
                     trial->prepared.implementation);
        portable += is_portable(trial);
        trial_free(trial);
    }
    if (portable != 0 && portable != 3)
        fail_msg("%s: only %d passes are in a declared order", name, portable);
    return portable == 3;
}

static void need_fma(void)
{
    if (ls_cpu_isa() < LS_ISA_AVX2)
        ls_test_skip("without FMA oneDNN computes them");
}

static void what_onednn_is_bad_at_is_ours(void **state)
{
    (void)state;
    need_fma();
    for (int i = 0; i < 2 * ODD; i++) {
        const struct shape_case *shape = &odd_cases[i / 2];
        const struct convolution_size c = make_case(shape);
        if (!check_passes(&c, shape->axes, i % 2, shape->name))
            fail_msg("%s (%s) is not in a declared order", shape->name,
                     i % 2 ? "deconvolution" : "convolution");
    }
}

static void what_onednn_is_good_at_stays_its(void **state)
{
    (void)state;
    need_fma();
    for (int i = 0; i < GOOD; i++) {
        const struct convolution_size c = make_case(&good_cases[i]);
        if (check_passes(&c, good_cases[i].axes, false, good_cases[i].name))
            fail_msg("%s is in a declared order", good_cases[i].name);
    }
}

static int draw(uint64_t round, int *drawn, int below)
{
    return (int)ls_random_below(91, round, (uint64_t)(*drawn)++, (uint32_t)below);
}

/* False where the shape has no output. */
static bool random_case(uint64_t round, struct convolution_size *c, int *axes)
{
    static const int channels[] = {1, 1, 2, 3, 4, 7, 8, 10, 16, 20, 33};
    static const int groups[] = {1, 1, 2, 3, 8, 16};
    int d = 0;
    *axes = 1 + draw(round, &d, 3);
    c->n = 1 + draw(round, &d, 3);
    c->group = groups[draw(round, &d, 6)];
    c->c = c->group * channels[draw(round, &d, 11)];
    c->o = c->group * channels[draw(round, &d, 11)];
    for (int a = 0; a < 3; a++) {
        const bool used = a < *axes;
        c->in[a] = used ? 1 + draw(round, &d, 9) : 1;
        c->kernel[a] = used ? 1 + draw(round, &d, 5) : 1;
        c->stride[a] = used && draw(round, &d, 3) == 0 ? 1 + draw(round, &d, 3) : 1;
        c->pad[a] = used ? draw(round, &d, 7) : 0;
        c->dilation[a] = used && draw(round, &d, 3) == 0 ? 1 + draw(round, &d, 5) : 1;
    }
    return set_extents(c);
}

static void no_random_shape_is_slow(void **state)
{
    (void)state;
    need_fma();
    int ours = 0, others = 0;
    for (uint64_t round = 0; ours + others < 300; round++) {
        struct convolution_size c;
        char name[64];
        int axes;
        if (!random_case(round, &c, &axes))
            continue;
        snprintf(name, sizeof name, "random shape %d", (int)round);
        bool portable = check_passes(&c, axes, round % 3 == 0, name);
        ours += portable;
        others += !portable;
    }
    assert_true(ours > 30 && others > 30);
}

/* More samples, the number that layouts are asked for or one, are computed by the same kernels. */
static void the_number_of_samples_decides_nothing(void **state)
{
    (void)state;
    need_fma();
    for (int i = 0; i < ODD + GOOD; i++) {
        const struct shape_case *shape = i < ODD ? &odd_cases[i] : &good_cases[i - ODD];
        struct convolution_size c = make_case(shape);
        for (c.n = 1; c.n < 20; c.n += 6)
            if (check_passes(&c, shape->axes, false, shape->name) != (i < ODD))
                fail_msg("%s: %d samples have another kernel", shape->name, c.n);
    }
}

/* DIRECT is no other algorithm; without FMA they are oneDNN's. */
static void direct_is_computed_as_auto_is(void **state)
{
    (void)state;
    const struct convolution_size c = make_case(&odd_cases[0]);
    for (int i = 0; i < 2; i++) {
        struct trial *trial = make_trial(&c, 2, false, TRIAL_FORWARD,
                                         i == 0 ? LS_CONVOLUTION_AUTO : LS_CONVOLUTION_DIRECT);
        assert_int_equal(is_portable(trial), ls_cpu_isa() >= LS_ISA_AVX2);
        assert_int_equal(trial->kernel->library, ls_cpu_isa() < LS_ISA_AVX2);
        trial_free(trial);
    }
}

/* Kernels over planes, which some convolutions have with AVX-512, are not those of the
 * deconvolution back. */
static void directions_are_apart(void **state)
{
    static const struct shape_case shape = {"few channels, padded", 2, 2, 6, 18, 1, 5, 3, 1, 4, 1};
    (void)state;
    need_fma();
    const struct convolution_size c = make_case(&shape);
    struct trial *trial = make_trial(&c, 2, false, TRIAL_FORWARD, LS_CONVOLUTION_AUTO);
    assert_int_equal(is_portable(trial), ls_cpu_isa() < LS_ISA_AVX512);
    trial_free(trial);
    assert_true(check_passes(&c, 2, true, shape.name));
}

/* Where memory does not suffice to ask oneDNN, nothing is decided: the kernel that is taken then
 * fails, and the next one that asks gets the answer. */
static void memory_decides_nothing(void **state)
{
    static const struct shape_case shape = {"not asked before", 2, 3, 21, 21, 3, 19, 3, 1, 1, 1};
    const struct ls_shape x = {.rank = 4, .dim = {3, 21, 19, 19}}, w = {4, {21, 7, 3, 3}};
    struct ls_op_layouts layouts = {0};
    struct ls_error error = {0};
    (void)state;
    need_fma();
    const struct convolution_size c = make_case(&shape);
    struct trial *trial = trial_new(&ls_kernel_convolution);
    set_attributes(&trial->op.attr.convolution, &c, 2, false);
    add_tensors(trial, TRIAL_FORWARD, &x, &x, &w, NULL);
    ls_fail_allocation_after(0);
    const bool ours = ls_replaces_matrix_products(&trial->op);
    ls_fail_allocation_after(-1);
    assert_false(ours);
    assert_int_equal(ls_convolution_layouts(&trial->op, &layouts, &error), LOCKSTEP_RESOURCE);
    assert_true(ls_replaces_matrix_products(&trial->op));
    assert_int_equal(ls_matrix_products_check(NULL), 0);
    trial_free(trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_onednn_is_bad_at_is_ours),
        cmocka_unit_test(what_onednn_is_good_at_stays_its),
        cmocka_unit_test(no_random_shape_is_slow),
        cmocka_unit_test(the_number_of_samples_decides_nothing),
        cmocka_unit_test(direct_is_computed_as_auto_is),
        cmocka_unit_test(directions_are_apart),
        cmocka_unit_test(memory_decides_nothing),
    };
    return trial_main(tests);
}
