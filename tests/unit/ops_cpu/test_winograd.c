/* Winograd's algorithm against the direct one: results, bits, layouts, and which ops get it.
 *
 * oneDNN 2.x has it for AVX-512 alone, 3.x need not have it: what is there is asked for first, and
 * what is not must be an error where the definition demands it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/convolution_trial.h"

#include <math.h>

#include "ops/cpu/winograd.h"
#include "support/support.h"

/* All have tiles enough. */
static const struct shape_case cases[] = {
    {"64 to 64 at 14", 2, 6, 64, 64, 1, 14, 3, 1, 1, 1},
    {"64 to 80 at 15", 2, 6, 64, 80, 1, 15, 3, 1, 1, 1},
    {"80 to 64 at 30", 2, 2, 80, 64, 1, 30, 3, 1, 1, 1},
    {"without pad", 2, 2, 64, 64, 1, 28, 3, 1, 0, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static const struct ls_kernel *const kernels[] = {
    &ls_kernel_convolution, &ls_kernel_convolution_data, &ls_kernel_convolution_weights};

static struct trial *start(const struct shape_case *shape, int pass,
                           enum ls_convolution_algorithm algorithm, bool bias)
{
    struct convolution_size c = {
        .n = shape->n, .c = shape->c, .o = shape->o, .group = shape->group};
    set_windows(&c, shape, c.in);
    assert_true(set_extents(&c));
    struct trial *trial = trial_new(kernels[pass]);
    struct ls_shape x = tensor_shape(c.n, c.c, c.in, 2), y = tensor_shape(c.n, c.o, c.out, 2);
    struct ls_shape w = tensor_shape(c.o, c.c, c.kernel, 2), b = {.rank = 1, .dim = {c.o}};
    set_attributes(&trial->op.attr.convolution, &c, 2, bias);
    trial->op.attr.convolution.algorithm = algorithm;
    add_tensors(trial, (enum trial_pass)pass, &x, &y, &w, bias ? &b : NULL);
    return trial;
}

static bool is_winograd(const struct trial *trial)
{
    return strstr(trial->prepared.implementation, "wino") != NULL;
}

static bool is_there(void)
{
    struct trial *trial = start(&cases[0], 0, LS_CONVOLUTION_AUTO, false);
    trial_prepare(trial);
    bool there = is_winograd(trial);
    trial_free(trial);
    if (ls_cpu_isa() == LS_ISA_AVX512 && strncmp(ls_onednn_version(), "2.", 2) == 0)
        assert_true(there);
    return there;
}

/* Tiles take numbers of up to 8 times the size of the inputs; rounding grows with that. */
static void compare(const struct trial *direct, const struct trial *winograd, int output,
                    const char *what)
{
    const struct ls_value *value = direct->out[output];
    const float *a = direct->plain[value->index];
    const float *b = winograd->plain[winograd->out[output]->index];
    double largest = 0, error = 0;
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++) {
        largest = fmax(largest, fabs((double)a[i]));
        error = fmax(error, fabs((double)a[i] - (double)b[i]));
    }
    if (!(error <= 2e-5 * largest) || largest == 0)
        fail_msg("%s, %s: output %d is off by %g of %g", what, direct->kernel->name, output, error,
                 largest);
}

static void as_direct(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("oneDNN does not have it");
    for (int i = 0; i < CASES; i++)
        for (int pass = 0; pass < 3; pass++) {
            struct trial *direct = start(&cases[i], pass, LS_CONVOLUTION_DIRECT, pass != 1);
            struct trial *winograd = start(&cases[i], pass, LS_CONVOLUTION_WINOGRAD, pass != 1);
            trial_prepare(direct);
            trial_prepare(winograd);
            assert_false(is_winograd(direct));
            assert_true(is_winograd(winograd));
            assert_true(winograd->prepared.scratch_bytes > 0);
            trial_run(direct);
            trial_run(winograd);
            for (int output = 0; output < direct->op.outputs; output++)
                if (direct->out[output] != NULL)
                    compare(direct, winograd, output, cases[i].name);
            trial_free(direct);
            trial_free(winograd);
        }
}

static struct trial *run_forward(bool relu, float slope, enum ls_convolution_algorithm algorithm)
{
    struct trial *trial = start(&cases[0], 0, algorithm, true);
    trial->op.attr.convolution.relu = relu;
    trial->op.attr.convolution.relu_slope = slope;
    trial_prepare(trial);
    trial_run(trial);
    return trial;
}

/* A ReLU that was fused: the larger of 0 and what is without it, to the bit. */
static void fused(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("oneDNN does not have it");
    struct trial *plain = run_forward(false, 0, LS_CONVOLUTION_WINOGRAD);
    struct trial *relu = run_forward(true, 0, LS_CONVOLUTION_WINOGRAD);
    struct trial *leaky = run_forward(true, 0.1f, LS_CONVOLUTION_AUTO);
    const float *a = plain->plain[plain->out[0]->index];
    const float *b = relu->plain[relu->out[0]->index];
    assert_true(is_winograd(relu));
    assert_false(is_winograd(leaky));
    for (int64_t k = 0; k < ls_shape_size(&plain->out[0]->shape); k++)
        if ((a[k] > 0 ? a[k] : 0) != b[k])
            fail_msg("%g becomes %g", (double)a[k], (double)b[k]);
    trial_free(plain);
    trial_free(relu);
    trial_free(leaky);
}

/* As trial_concurrently, at addresses as a worker's arena has them: oneDNN's kernels for this
 * algorithm, other than its direct ones, need memory that is aligned to a register. */
static void run_at_once(const struct trial *trial)
{
    enum { THREADS = 3, SHIFT = 16 };
    pthread_t id[THREADS];
    struct trial_thread thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        thread[i] = (struct trial_thread){.trial = trial, .shift = SHIFT};
        assert_int_equal(pthread_create(&id[i], NULL, trial_thread_main, &thread[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(id[i], NULL);
        assert_int_equal(thread[i].differences, 0);
    }
}

static void threads_at_once(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("oneDNN does not have it");
    for (int pass = 0; pass < 3; pass++) {
        struct trial *trial = start(&cases[1], pass, LS_CONVOLUTION_WINOGRAD, pass == 2);
        trial_prepare(trial);
        trial_run(trial);
        run_at_once(trial);
        trial_free(trial);
    }
}

/* A parameter has one layout, whatever the micro-batch is and whichever algorithm it gets. */
static void one_layout_of_weights(void **state)
{
    const struct ls_layout *layout = NULL;
    (void)state;
    for (int n = 1; n <= 16; n *= 2) {
        struct shape_case shape = cases[0];
        shape.n = n;
        struct trial *trial = start(&shape, 0, LS_CONVOLUTION_AUTO, false);
        trial_prepare(trial);
        assert_int_equal(is_winograd(trial), n >= 6 && is_there());
        if (layout == NULL)
            layout = trial->in[1]->layout;
        assert_ptr_equal(trial->in[1]->layout, layout);
        trial_free(trial);
    }
}

/* Fills input `i` by `of`, and runs. */
static void run_with(struct trial *trial, int i, float (*of)(float x, int64_t at))
{
    const struct ls_value *value = trial->in[i];
    for (int64_t at = 0; at < ls_shape_size(&value->shape); at++)
        trial->plain[value->index][at] = of(trial->plain[value->index][at], at);
    trial_prepare(trial);
    trial_run(trial);
}

static float as_it_is(float x, int64_t at)
{
    (void)at;
    return x;
}

static float large(float x, int64_t at)
{
    (void)at;
    return x * 0x1p80f;
}

static float small(float x, int64_t at)
{
    (void)at;
    return x * 0x1p-80f;
}

static float with_denormals(float x, int64_t at)
{
    return at % 3 == 0 ? x : x * 0x1p-127f;
}

static float with_zeros(float x, int64_t at)
{
    return at % 3 == 0 ? x : 0;
}

/* output(a) x factor is output(b), to the bit. */
static void compare_scaled(const struct trial *a, const struct trial *b, float factor)
{
    const float *x = a->plain[a->out[0]->index], *y = b->plain[b->out[0]->index];
    for (int64_t i = 0; i < ls_shape_size(&a->out[0]->shape); i++)
        if (x[i] * factor != y[i] || x[i] == 0)
            fail_msg("%s: %g becomes %g", a->kernel->name, (double)x[i], (double)y[i]);
}

/* Inputs that are 2^80 times as large or small give just such results; denormal ones count as 0, as
 * for the direct algorithm. */
static void scaled_inputs(void **state)
{
    static float (*const of[])(float, int64_t) = {as_it_is, large, small, with_zeros,
                                                  with_denormals};
    (void)state;
    if (!is_there())
        ls_test_skip("oneDNN does not have it");
    uint64_t mode = ls_float_mode();
    ls_set_float_mode(); /* as computing threads have it */
    for (int pass = 0; pass < 3; pass++) {
        struct trial *trial[5];
        for (int i = 0; i < 5; i++) {
            trial[i] = start(&cases[3], pass, LS_CONVOLUTION_WINOGRAD, false);
            run_with(trial[i], 0, of[i]);
            assert_true(is_winograd(trial[i]));
        }
        compare_scaled(trial[0], trial[1], 0x1p80f);
        compare_scaled(trial[0], trial[2], 0x1p-80f);
        compare_scaled(trial[3], trial[4], 1);
        for (int i = 0; i < 5; i++)
            trial_free(trial[i]);
    }
    ls_restore_float_mode(mode);
}

/* A number that is not finite is not lost: every result that the direct algorithm makes not finite
 * is not finite (and others of the same tiles may be), so that a divergence is found. */
static void nothing_infinite_is_lost(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("oneDNN does not have it");
    for (int pass = 0; pass < 3; pass++) {
        struct trial *trial[2];
        int64_t lost = 0, found = 0;
        for (int i = 0; i < 2; i++) {
            trial[i] = start(&cases[0], pass,
                             i == 0 ? LS_CONVOLUTION_DIRECT : LS_CONVOLUTION_WINOGRAD, false);
            trial[i]->plain[trial[i]->in[0]->index][5 * 14 + 7] = INFINITY;
            run_with(trial[i], 0, as_it_is);
        }
        const float *a = trial[0]->plain[trial[0]->out[0]->index];
        const float *b = trial[1]->plain[trial[1]->out[0]->index];
        for (int64_t k = 0; k < ls_shape_size(&trial[0]->out[0]->shape); k++) {
            found += !isfinite(a[k]);
            lost += !isfinite(a[k]) && isfinite(b[k]);
        }
        assert_true(found > 0);
        if (lost > 0)
            fail_msg("%s: %lld of %lld are lost", trial[0]->kernel->name, (long long)lost,
                     (long long)found);
        trial_free(trial[0]);
        trial_free(trial[1]);
    }
}

static void missing_is_an_error(void **state)
{
    (void)state;
    if (is_there())
        ls_test_skip("oneDNN has it");
    for (int pass = 0; pass < 3; pass++) {
        struct trial *trial = start(&cases[0], pass, LS_CONVOLUTION_WINOGRAD, false);
        struct ls_op_layouts layouts = {0};
        struct ls_error error = {0};
        assert_int_equal(kernels[pass]->layouts(&trial->op, &layouts, &error), LOCKSTEP_DEFINITION);
        assert_non_null(strstr(error.problems[0].message, "Winograd"));
        trial_free(trial);
    }
}

static void rule(void **state)
{
    static const struct {
        struct shape_case shape;
        bool pays;
    } table[] = {
        {{"", 2, 1, 64, 64, 1, 56, 3, 1, 1, 1}, true},
        {{"few tiles", 2, 1, 512, 512, 1, 14, 3, 1, 1, 1}, false},
        {{"enough of them", 2, 4, 512, 512, 1, 14, 3, 1, 1, 1}, true},
        {{"few tiles and channels", 2, 4, 64, 64, 1, 14, 3, 1, 1, 1}, false},
        {{"enough for these", 2, 6, 64, 64, 1, 14, 3, 1, 1, 1}, true},
        {{"few inputs", 2, 4, 48, 64, 1, 56, 3, 1, 1, 1}, false},
        {{"few outputs", 2, 4, 64, 32, 1, 56, 3, 1, 1, 1}, false},
        {{"no multiple of 16", 2, 4, 64, 72, 1, 56, 3, 1, 1, 1}, false},
        {{"groups", 2, 4, 128, 128, 2, 56, 3, 1, 1, 1}, false},
        {{"stride", 2, 4, 64, 64, 1, 56, 3, 2, 1, 1}, false},
        {{"dilation", 2, 4, 64, 64, 1, 56, 3, 1, 1, 2}, false},
        {{"pad", 2, 4, 64, 64, 1, 56, 3, 1, 2, 1}, false},
        {{"window", 2, 4, 64, 64, 1, 56, 5, 1, 1, 1}, false},
        {{"one axis", 1, 64, 64, 64, 1, 56, 3, 1, 1, 1}, false},
        {{"three axes", 3, 4, 64, 64, 1, 16, 3, 1, 1, 1}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct shape_case *shape = &table[i].shape;
        struct convolution_size c = {
            .n = shape->n, .c = shape->c, .o = shape->o, .group = shape->group};
        struct ls_convolution_attr attr;
        set_windows(&c, shape, c.in);
        assert_true(set_extents(&c));
        struct ls_shape x = tensor_shape(c.n, c.c, c.in, shape->axes);
        struct ls_shape y = tensor_shape(c.n, c.o, c.out, shape->axes);
        set_attributes(&attr, &c, shape->axes, false);
        if (ls_winograd_pays(&attr, &x, &y) != table[i].pays)
            fail_msg("the rule takes '%s' the other way", shape->name);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_direct),           cmocka_unit_test(fused),
        cmocka_unit_test(threads_at_once),     cmocka_unit_test(one_layout_of_weights),
        cmocka_unit_test(scaled_inputs),       cmocka_unit_test(nothing_infinite_is_lost),
        cmocka_unit_test(missing_is_an_error), cmocka_unit_test(rule),
    };
    return trial_main(tests);
}
