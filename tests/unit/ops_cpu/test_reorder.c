/* Reorders between plain and blocked layouts, of parameters to and from the layouts of kernels.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/kernel_trial.h"

#include "ops/cpu/parameter_layout.h"
#include "support/support.h"

static const struct ls_layout *const known[] = {&ls_layout_plain, &ls_layout_blocked8,
                                                &ls_layout_blocked16};

static const struct ls_shape shapes[] = {
    {4, {2, 20, 3, 5}}, {4, {3, 1, 4, 4}},     {4, {1, 3, 1, 1}},     {4, {2, 32, 5, 5}},
    {2, {7, 50}},       {3, {2, 16, 9}},       {5, {2, 17, 2, 3, 4}}, {6, {2, 9, 2, 3, 2, 2}},
    {1, {5}},           {4, {13, 32, 16, 16}}, {4, {2, 8, 7, 7}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

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

/* A reorder of bits that no arithmetic survives: denormals, infinities, NaNs, integers. */
static void check(const struct ls_shape *shape, enum ls_dtype type, const struct ls_layout *from,
                  const struct ls_layout *to)
{
    struct trial *trial = trial_new(&ls_kernel_reorder);
    struct ls_value *x = trial_in(trial, shape, 1), *y = trial_out(trial, shape);
    x->type = y->type = type;
    y->layout = to;
    x->layout = &ls_layout_plain;
    trial_prepare(trial);
    trial->kernel->release(&trial->prepared);
    /* The input by hand, so that nothing here relies on what is tested. */
    ls_free_aligned(trial->data[0]);
    x->layout = from;
    trial->data[0] = ls_alloc_aligned(trial_bytes(x));
    int64_t size = ls_shape_size(shape);
    for (int64_t i = 0; i < size; i++) {
        uint32_t bits = ls_random_u32(9, 0, (uint64_t)i) & (i % 3 == 0 ? 0x807fffffU : ~0U);
        memcpy(&trial->data[0][place(from, shape, i)], &bits, sizeof bits);
        memcpy(&trial->plain[0][i], &bits, sizeof bits);
    }
    struct ls_error error = {0};
    check_status(trial->kernel->prepare(&trial->prepared, &error), &error);
    struct trial_worker worker;
    uint64_t mode = ls_float_mode();
    ls_set_float_mode();
    int threads = ls_onednn_one_thread();
    trial_bind(trial, &worker, 0);
    trial_step(trial, &worker);
    trial_unbind(trial, &worker, 0);
    ls_onednn_restore_threads(threads);
    ls_restore_float_mode(mode);
    /* As the layout's definition has it, padding zero. */
    uint32_t *expected = ls_alloc_aligned(trial_bytes(y));
    for (int64_t i = 0; i < size; i++)
        memcpy(&expected[place(to, shape, i)], &trial->plain[0][i], sizeof *expected);
    if (memcmp(expected, trial->data[1], trial_bytes(y)) != 0)
        fail_msg("%s to %s, rank %d, by %s", from->name, to->name, shape->rank,
                 trial->prepared.implementation);
    ls_free_aligned(expected);
    trial_free(trial);
}

static void activations(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int from = 0; from < 3; from++)
            for (int to = 0; to < 3; to++) {
                check(&shapes[s], LS_F32, known[from], known[to]);
                check(&shapes[s], LS_I32, known[from], known[to]);
            }
}

static void threads_at_once(void **state)
{
    (void)state;
    struct trial *trial = trial_new(&ls_kernel_reorder);
    trial_in(trial, &shapes[9], 1);
    trial_out(trial, &shapes[9])->layout = &ls_layout_blocked16;
    trial_prepare(trial);
    trial_run(trial);
    trial_concurrently(trial);
    trial_free(trial);
}

/* ---- Parameters ---- */

/* The layouts of a convolution's weights [o, c / group, 3, 3] in the three passes. */
static void weight_layouts(int64_t c, int64_t o, int64_t group, struct ls_shape *w,
                           const struct ls_layout *result[3])
{
    static const struct ls_kernel *const kernels[] = {
        &ls_kernel_convolution, &ls_kernel_convolution_data, &ls_kernel_convolution_weights};
    struct ls_shape x = {.rank = 4, .dim = {4, c, 9, 9}}, y = {.rank = 4, .dim = {4, o, 9, 9}};
    *w = (struct ls_shape){.rank = 4, .dim = {o, c / group, 3, 3}};
    for (int k = 0; k < 3; k++) {
        struct trial *trial = trial_new(kernels[k]);
        struct ls_error error = {0};
        struct ls_op_layouts layouts = {0};
        trial->op.attr.convolution = (struct ls_convolution_attr){
            .window = {2, {3, 3, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}}, .group = group};
        trial_in(trial, k == 1 ? &y : &x, 1);
        trial_in(trial, k == 2 ? &y : w, 1);
        trial_out(trial, k == 0 ? &y : k == 1 ? &x : w);
        check_status(kernels[k]->layouts(&trial->op, &layouts, &error), &error);
        result[k] = k == 2 ? layouts.out[0] : layouts.in[1];
        trial_free(trial);
    }
}

static float *buffer(size_t elements, int byte)
{
    float *result = ls_alloc_aligned(elements * sizeof *result);
    assert_non_null(result);
    memset(result, byte, elements * sizeof *result);
    return result;
}

/* plain -> first -> second -> plain gives the bytes back; first -> second is what
 * plain -> second is. */
static void check_parameter(const struct ls_layout *first, const struct ls_layout *second,
                            const struct ls_shape *shape)
{
    size_t size = (size_t)ls_shape_size(shape);
    size_t in_first = ls_layout_elements(first, shape),
           in_second = ls_layout_elements(second, shape);
    float *plain = buffer(size, 0), *back = buffer(size, 0xff), *a = buffer(in_first, 0xff);
    float *b = buffer(in_second, 0xff), *directly = buffer(in_second, 0xff);
    struct ls_error error = {0};
    double sum = 0, laid_out_sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += (double)(plain[i] = (float)ls_random_below(3, 0, i, 1000));
    check_status(ls_cpu_parameter_from_plain(first, shape, plain, a, &error), &error);
    check_status(ls_cpu_parameter_convert(first, second, shape, a, b, &error), &error);
    check_status(ls_cpu_parameter_from_plain(second, shape, plain, directly, &error), &error);
    check_status(ls_cpu_parameter_to_plain(second, shape, b, back, &error), &error);
    assert_memory_equal(plain, back, size * sizeof *plain);
    assert_memory_equal(b, directly, in_second * sizeof *b);
    for (size_t i = 0; i < in_first; i++) /* padding adds nothing */
        laid_out_sum += (double)a[i];
    assert_true(sum == laid_out_sum);
    ls_free_aligned(plain);
    ls_free_aligned(back);
    ls_free_aligned(a);
    ls_free_aligned(b);
    ls_free_aligned(directly);
}

static void convolution_parameters(void **state)
{
    static const int64_t cases[][3] = {{3, 32, 1},  {1, 20, 1},  {20, 50, 1},  {32, 32, 1},
                                       {10, 10, 1}, {32, 64, 2}, {20, 20, 20}, {10, 20, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ls_layout *layout[3];
        struct ls_shape shape;
        weight_layouts(cases[i][0], cases[i][1], cases[i][2], &shape, layout);
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                check_parameter(layout[a], layout[b], &shape);
        check_parameter(layout[0], &ls_layout_plain, &shape);
        check_parameter(&ls_layout_plain, layout[1], &shape);
    }
}

static const struct ls_layout *inner_product_layout(int64_t k, int64_t n, bool transpose)
{
    struct trial *trial = trial_new(&ls_kernel_inner_product);
    struct ls_shape x = {.rank = 2, .dim = {4, k}}, y = {.rank = 2, .dim = {4, n}};
    struct ls_shape w = {.rank = 2, .dim = {n, k}};
    struct ls_op_layouts layouts = {0};
    struct ls_error error = {0};
    trial->op.attr.inner_product =
        (struct ls_inner_product_attr){.m = 4, .k = k, .n = n, .transpose = transpose};
    trial_in(trial, &x, 1);
    trial_in(trial, &w, 1);
    trial_out(trial, &y);
    check_status(ls_kernel_inner_product.layouts(&trial->op, &layouts, &error), &error);
    const struct ls_layout *result = layouts.in[1];
    trial_free(trial);
    return result;
}

/* One matrix, used as it is by one layer and transposed by another. */
static void shared_transposed_parameter(void **state)
{
    (void)state;
    struct ls_shape shape = {.rank = 2, .dim = {37, 70}};
    const struct ls_layout *normal = inner_product_layout(70, 37, false);
    const struct ls_layout *transposed = inner_product_layout(37, 70, true);
    check_parameter(normal, transposed, &shape);
    check_parameter(transposed, normal, &shape);
    check_parameter(normal, &ls_layout_plain, &shape);
    check_parameter(transposed, &ls_layout_plain, &shape);
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    struct ls_error error = {0};
    const struct ls_layout *layout = inner_product_layout(70, 37, false);
    struct ls_shape other = {.rank = 2, .dim = {37, 71}};
    float *data = buffer(100 * 100, 0);
    if (layout == &ls_layout_plain)
        ls_test_skip("this instruction set keeps inner products plain");
    assert_int_not_equal(ls_cpu_parameter_from_plain(layout, &other, data, data, &error), 0);
    assert_int_equal(error.count, 1);
    ls_free_aligned(data);
}

/* Threads that ask for layouts at the same time get the same ones. */
static void *ask_for_layouts(void *result)
{
    const struct ls_layout **layouts = result;
    for (int i = 0; i < 40; i++)
        layouts[i] = inner_product_layout(100 + i % 20, 90, false);
    return NULL;
}

static void layouts_are_interned(void **state)
{
    enum { THREADS = 4 };
    static const struct ls_layout *layouts[THREADS][40];
    pthread_t id[THREADS];
    (void)state;
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&id[t], NULL, ask_for_layouts, layouts[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(id[t], NULL);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < 40; i++)
            assert_ptr_equal(layouts[t][i], layouts[0][i % 20]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations),
        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(convolution_parameters),
        cmocka_unit_test(shared_transposed_parameter),
        cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(layouts_are_interned),
    };
    return trial_main(tests);
}
