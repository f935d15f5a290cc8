/* Convolutions over planes against the definition in double precision, on every instruction set
 * with the same bytes; a sample by itself; which convolutions they are for.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "ops/cpu/device.h"
#include "kernels/convolution_size.h"

struct planes_case {
    int n, c, o, in[2], kernel[2], pad[2], dilation[2];
};

/* Ends of registers of every length, windows beyond x on every side, several chunks of samples. */
static const struct planes_case cases[] = {
    {2, 3, 7, {12, 12}, {5, 5}, {0, 0}, {1, 1}}, {3, 1, 20, {9, 10}, {3, 3}, {1, 1}, {1, 1}},
    {2, 2, 13, {7, 21}, {3, 5}, {2, 0}, {1, 1}}, {1, 5, 1, {1, 3}, {3, 3}, {2, 2}, {1, 1}},
    {2, 4, 6, {11, 9}, {3, 3}, {2, 3}, {2, 3}},  {9, 2, 3, {8, 10}, {1, 3}, {0, 1}, {1, 1}},
    {2, 1, 2, {4, 37}, {3, 1}, {4, 0}, {1, 1}},  {11, 3, 5, {5, 5}, {4, 2}, {1, 1}, {1, 1}},
    {1, 2, 9, {20, 35}, {3, 3}, {0, 0}, {1, 1}}, {2, 1, 3, {3, 2}, {3, 2}, {0, 0}, {1, 1}},
    {70, 2, 1, {3, 3}, {2, 2}, {0, 0}, {1, 1}},
};

static struct convolution_size size_of_case(const struct planes_case *c)
{
    struct convolution_size result = {
        .n = c->n, .c = c->c, .o = c->o, .group = 1, .in = {c->in[0], c->in[1], 1}};
    for (int i = 0; i < 3; i++) {
        bool used = i < 2;
        result.kernel[i] = used ? c->kernel[i] : 1;
        result.stride[i] = 1;
        result.pad[i] = used ? c->pad[i] : 0;
        result.dilation[i] = used ? c->dilation[i] : 1;
    }
    assert_true(set_extents(&result));
    return result;
}

/* An op with its values, for any shape whatever the rule says. */
struct trial {
    struct ls_kernel kernel;
    struct own *own;
    struct ls_value *x, *w, *b, *y;
};

static struct trial make_trial(const struct ls_kernel *kernel, const struct convolution_size *c,
                               bool bias)
{
    struct trial trial = {.kernel = *kernel};
    const struct ls_shape x = own_shape(4, (const int64_t[]){c->n, c->c, c->in[0], c->in[1]});
    const struct ls_shape y = own_shape(4, (const int64_t[]){c->n, c->o, c->out[0], c->out[1]});
    const struct ls_shape w =
        own_shape(4, (const int64_t[]){c->o, c->c, c->kernel[0], c->kernel[1]});
    const struct ls_shape b = own_shape(1, (const int64_t[]){c->o});
    struct ls_convolution_attr attr = {.group = 1, .bias = bias};
    trial.kernel.accepts = NULL;
    trial.own = own_new(kernel);
    attr.window.axes = 2;
    for (int i = 0; i < 3; i++) {
        attr.window.kernel[i] = c->kernel[i];
        attr.window.stride[i] = 1;
        attr.window.pad[i] = c->pad[i];
        attr.window.dilation[i] = c->dilation[i];
    }
    trial.own->op.attr.convolution = attr;
    if (kernel->kind == LS_OP_CONVOLUTION) {
        trial.x = own_in(trial.own, &x, 1, 1);
        trial.w = own_in(trial.own, &w, 2, 1);
        trial.b = bias ? own_in(trial.own, &b, 3, 1) : NULL;
        trial.y = own_out(trial.own, &y);
    } else if (kernel->kind == LS_OP_CONVOLUTION_DATA) {
        trial.y = own_in(trial.own, &y, 4, 1);
        trial.w = own_in(trial.own, &w, 2, 1);
        trial.x = own_out(trial.own, &x);
    } else {
        trial.x = own_in(trial.own, &x, 1, 1);
        trial.y = own_in(trial.own, &y, 4, 1);
        trial.w = own_out(trial.own, &w);
        trial.b = bias ? own_out(trial.own, &b) : NULL;
    }
    return trial;
}

static void run_trial(struct trial *trial)
{
    trial->own->kernel = &trial->kernel;
    own_run(trial->own, &ls_layout_plain);
}

static void check_forward(const struct convolution_size *c, bool bias, bool relu, float slope)
{
    struct trial trial = make_trial(&ls_kernel_planes, c, bias);
    trial.own->op.attr.convolution.relu = relu;
    trial.own->op.attr.convolution.relu_slope = slope;
    run_trial(&trial);
    own_near_reference(trial.own, 1e-5);
    own_free(trial.own);
}

static void check_data(const struct convolution_size *c)
{
    struct trial trial = make_trial(&ls_kernel_planes_data, c, false);
    run_trial(&trial);
    own_near_reference(trial.own, 1e-5);
    own_free(trial.own);
}

static void check_weights(const struct convolution_size *c, bool bias)
{
    struct trial trial = make_trial(&ls_kernel_planes_weights, c, bias);
    run_trial(&trial);
    own_near_reference(trial.own, 3e-5);
    own_free(trial.own);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct convolution_size c = size_of_case(&cases[i]);
        check_forward(&c, i % 2 == 0, i % 3 == 1, i % 2 == 0 ? 0 : 0.25F);
        check_data(&c);
        check_weights(&c, i % 2 == 1);
    }
}

/* The bits of a sample do not depend on how many come with it. */
static void check_sample(const struct ls_kernel *kernel, const struct convolution_size *c)
{
    struct convolution_size one = *c;
    one.n = 1;
    struct trial all = make_trial(kernel, c, false), single = make_trial(kernel, &one, false);
    run_trial(&all);
    run_trial(&single);
    const struct ls_value *some = single.own->out[0];
    assert_memory_equal(own_plain(all.own, all.own->out[0]), own_plain(single.own, some),
                        (size_t)ls_shape_size(&some->shape) * sizeof(float));
    own_free(all.own);
    own_free(single.own);
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct convolution_size c = size_of_case(&cases[i]);
        check_sample(&ls_kernel_planes, &c);
        check_sample(&ls_kernel_planes_data, &c);
    }
}

/* ---- The rule -------------------------------------------------------------------------------- */

/* The kernel that the device has for all three ops, or NULL where they differ. */
static const char *kernel_for(const struct planes_case *shape, int64_t stride, int64_t group)
{
    static const struct ls_kernel *const kinds[] = {&ls_kernel_planes, &ls_kernel_planes_data,
                                                    &ls_kernel_planes_weights};
    const struct convolution_size c = size_of_case(shape);
    int own = 0;
    for (int i = 0; i < 3; i++) {
        struct trial trial = make_trial(kinds[i], &c, false);
        trial.own->op.attr.convolution.window.stride[0] = stride;
        trial.own->op.attr.convolution.group = group;
        const struct ls_kernel *const *kernel = ls_device_cpu.kernels();
        while ((*kernel)->kind != kinds[i]->kind ||
               ((*kernel)->accepts != NULL && !(*kernel)->accepts(&trial.own->op)))
            kernel++;
        own += *kernel == kinds[i];
        own_free(trial.own);
    }
    return own == 3 ? "planes" : own == 0 ? "oneDNN" : "some of both";
}

static void test_rule(void **state)
{
    static const struct planes_case conv1 = {8, 1, 20, {28, 28}, {5, 5}, {0, 0}, {1, 1}};
    static const struct planes_case conv2 = {8, 20, 50, {12, 12}, {5, 5}, {0, 0}, {1, 1}};
    static const struct planes_case full = {8, 32, 64, {12, 12}, {5, 5}, {0, 0}, {1, 1}};
    static const struct planes_case image = {8, 3, 32, {32, 32}, {5, 5}, {2, 2}, {1, 1}};
    static const struct planes_case ten = {8, 10, 10, {12, 12}, {3, 3}, {1, 1}, {1, 1}};
    static const struct planes_case point = {8, 20, 50, {12, 12}, {1, 1}, {0, 0}, {1, 1}};
    static const struct planes_case small = {8, 20, 50, {5, 5}, {5, 5}, {0, 0}, {1, 1}};
    static const struct planes_case large = {1, 20, 50, {400, 400}, {5, 5}, {0, 0}, {1, 1}};
    (void)state;
    if (!ls_cpu_isa_supported(LS_ISA_AVX512))
        skip();
    assert_int_equal(ls_cpu_isa_select("avx512", NULL), 0);
    assert_string_equal(kernel_for(&conv1, 1, 1), "planes");
    assert_string_equal(kernel_for(&conv2, 1, 1), "planes");
    assert_string_equal(kernel_for(&full, 1, 1), "oneDNN");
    assert_string_equal(kernel_for(&image, 1, 1), "oneDNN");
    assert_string_equal(kernel_for(&point, 1, 1), "oneDNN");
    assert_string_equal(kernel_for(&small, 1, 1), "oneDNN"); /* one position of 16 */
    assert_string_equal(kernel_for(&large, 1, 1), "oneDNN");
    assert_string_equal(kernel_for(&conv2, 2, 1), "oneDNN");
    assert_string_equal(kernel_for(&conv2, 1, 2), "oneDNN");
    assert_int_equal(ls_cpu_isa_select("avx2", NULL), 0);
    assert_string_equal(kernel_for(&conv1, 1, 1), "planes");
    assert_string_equal(kernel_for(&conv2, 1, 1), "oneDNN");
    assert_string_equal(kernel_for(&ten, 1, 1), "planes");
    assert_string_equal(kernel_for(&image, 1, 1), "oneDNN");
    assert_int_equal(ls_cpu_isa_select("sse41", NULL), 0);
    assert_string_equal(kernel_for(&conv1, 1, 1), "oneDNN");
    assert_string_equal(kernel_for(&conv2, 1, 1), "oneDNN");
}

/* Sizes of hostile definitions, whose products pass 64 bits: oneDNN's kernels have the words. */
static void test_what_is_too_large_is_left_alone(void **state)
{
    static const struct planes_case shape = {8, 20, 50, {12, 12}, {5, 5}, {0, 0}, {1, 1}};
    const int64_t huge = (int64_t)1 << 40;
    (void)state;
    if (!ls_cpu_isa_supported(LS_ISA_AVX2))
        skip();
    assert_int_equal(ls_cpu_isa_select("avx2", NULL), 0);
    const struct convolution_size c = size_of_case(&shape);
    struct trial trial = make_trial(&ls_kernel_planes, &c, false);
    struct ls_window *window = &trial.own->op.attr.convolution.window;
    int64_t *const numbers[] = {&trial.x->shape.dim[1], &trial.x->shape.dim[2],
                                &trial.y->shape.dim[1], &trial.y->shape.dim[3],
                                &window->kernel[0],     &window->pad[1],
                                &window->dilation[0]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const int64_t before = *numbers[i];
        *numbers[i] = huge;
        assert_false(ls_kernel_planes.accepts(&trial.own->op));
        *numbers[i] = before;
    }
    own_free(trial.own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_what_is_too_large_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
