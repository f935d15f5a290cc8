/* Pooling and its gradient against the reference device; the same bits in every layout and on every
 * instruction set. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include <float.h>

struct pooling_case {
    const char *name;
    int axes, n, c;
    int size[3], kernel[3], stride[3], pad[3]; /* height, width, or as many as there are axes */
};

static const struct pooling_case named_cases[] = {
    {"cifar 3x3/2", 2, 2, 32, {32, 32}, {3, 3}, {2, 2}, {0, 0}},
    {"cifar second", 2, 2, 32, {16, 16}, {3, 3}, {2, 2}, {0, 0}},
    {"lenet 2x2/2, 20 channels", 2, 2, 20, {24, 24}, {2, 2}, {2, 2}, {0, 0}},
    {"lenet 2x2/2, 50 channels", 2, 3, 50, {8, 8}, {2, 2}, {2, 2}, {0, 0}},
    {"2x2/2 with a rest", 2, 2, 3, {7, 9}, {2, 2}, {2, 2}, {0, 0}},
    {"2x2/2, wide rows", 2, 2, 3, {6, 94}, {2, 2}, {2, 2}, {0, 0}},
    {"2x2/2, one window", 2, 3, 2, {2, 2}, {2, 2}, {2, 2}, {0, 0}},
    {"3x3/1 padded", 2, 2, 16, {9, 7}, {3, 3}, {1, 1}, {1, 1}},
    {"3x3/2 padded", 2, 1, 8, {14, 15}, {3, 3}, {2, 2}, {1, 1}},
    {"5x5/3 padded by 2", 2, 2, 3, {13, 11}, {5, 5}, {3, 3}, {2, 2}},
    {"oblong", 2, 2, 5, {11, 8}, {2, 3}, {3, 1}, {1, 0}},
    {"gaps between windows", 2, 1, 17, {10, 10}, {1, 2}, {3, 3}, {0, 0}},
    {"one channel", 2, 3, 1, {6, 6}, {3, 3}, {2, 2}, {0, 0}},
    {"global", 2, 2, 20, {7, 6}, {7, 6}, {1, 1}, {0, 0}},
    {"one pixel", 2, 2, 3, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {"3x3/2 on one pixel", 2, 2, 3, {1, 1}, {3, 3}, {2, 2}, {1, 1}},
    {"wide rows", 2, 1, 2, {4, 600}, {3, 3}, {1, 1}, {1, 1}},
    {"one axis", 1, 2, 20, {31}, {3}, {2}, {1}},
    {"three axes 2x2x2/2", 3, 2, 3, {6, 5, 7}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}},
    {"three axes 3x3x3/2 padded", 3, 1, 17, {5, 6, 7}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}},
    {"three axes 1x3x3/2", 3, 1, 16, {3, 8, 8}, {1, 3, 3}, {1, 2, 2}, {0, 0, 0}},
};

/* How many windows there are along each axis, as Caffe counts them: rounded up, and with padding
 * without a last one that would begin behind the input. */
static void count_windows(const struct pooling_case *c, int out[3])
{
    for (int a = 0; a < c->axes; a++) {
        int left = c->size[a] + 2 * c->pad[a] - c->kernel[a];
        out[a] = (left + c->stride[a] - 1) / c->stride[a] + 1;
        if (c->pad[a] > 0 && (out[a] - 1) * c->stride[a] >= c->size[a] + c->pad[a])
            out[a]--;
    }
}

static struct ls_shape shape_of(const struct pooling_case *c, const int size[3])
{
    struct ls_shape shape = {.rank = c->axes + 2, .dim = {c->n, c->c}};
    for (int a = 0; a < c->axes; a++)
        shape.dim[2 + a] = size[a];
    return shape;
}

static void set_attr(struct own *own, const struct pooling_case *c, enum ls_pooling method)
{
    struct ls_window *window = &own->op.attr.pooling.window;
    own->op.attr.pooling.method = method;
    *window = (struct ls_window){
        .axes = c->axes, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    for (int a = 0; a < c->axes; a++) {
        window->kernel[a] = c->kernel[a];
        window->stride[a] = c->stride[a];
        window->pad[a] = c->pad[a];
    }
}

/* Numbers of which many are equal, so that it matters which maximum wins. */
static void make_ties(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = floorf(x[i] * 4) / 4;
}

static void check_maximum(const struct pooling_case *c, bool indexed)
{
    int out[3] = {1, 1, 1};
    count_windows(c, out);
    const struct ls_shape x_shape = shape_of(c, c->size), y_shape = shape_of(c, out);
    float *kept = NULL, *kept_index = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_pooling);
        struct ls_value *x = own_in(own, &x_shape, 1, 1), *y = own_out(own, &y_shape),
                        *index = NULL;
        set_attr(own, c, LS_POOL_MAX);
        if (indexed)
            index = own_out(own, &y_shape);
        else
            own->op.outputs = 2; /* absent */
        if (indexed)
            index->type = LS_I32;
        make_ties(own->plain[x->index], ls_shape_size(&x_shape));
        own_run(own, own_layouts[layout]);

        own_near_reference(own, 0);
        own_keep_or_compare(&kept, own, y);
        if (indexed)
            own_keep_or_compare(&kept_index, own, index);
        own_free(own);
    }
    free(kept);
    free(kept_index);
}

static void check_maximum_backward(const struct pooling_case *c)
{
    int out[3] = {1, 1, 1};
    count_windows(c, out);
    const struct ls_shape x_shape = shape_of(c, c->size), y_shape = shape_of(c, out);
    float *kept = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *forward = own_new(&ls_kernel_pooling);
        struct own *own = own_new(&ls_kernel_pooling_backward);
        struct ls_value *x = own_in(forward, &x_shape, 3, 1);
        own_out(forward, &y_shape);
        struct ls_value *winners = own_out(forward, &y_shape);
        set_attr(forward, c, LS_POOL_MAX);
        winners->type = LS_I32;
        make_ties(forward->plain[x->index], ls_shape_size(&x_shape));
        own_run(forward, own_layouts[layout]);
        own_in(own, &y_shape, 2, 1);
        struct ls_value *index = own_in(own, &y_shape, 4, 1), *dx = own_out(own, &x_shape);
        set_attr(own, c, LS_POOL_MAX);
        index->type = LS_I32;
        memcpy(own->plain[index->index], own_plain(forward, winners),
               (size_t)ls_shape_size(&y_shape) * sizeof(int32_t));
        own_run(own, own_layouts[layout]);
        own_near_reference(own, 2e-6);
        own_keep_or_compare(&kept, own, dx);
        own_free(forward);
        own_free(own);
    }
    free(kept);
}

static void check_average(const struct pooling_case *c, bool backward)
{
    int out[3] = {1, 1, 1};
    count_windows(c, out);
    const struct ls_shape x_shape = shape_of(c, c->size), y_shape = shape_of(c, out);
    const struct ls_shape *from = backward ? &y_shape : &x_shape,
                          *to = backward ? &x_shape : &y_shape;
    float *kept = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(backward ? &ls_kernel_pooling_backward : &ls_kernel_pooling);
        own_in(own, from, 5, 1);
        struct ls_value *result = own_out(own, to);
        set_attr(own, c, LS_POOL_AVERAGE);
        if (backward)
            own->op.inputs = 2; /* there is no index */
        else
            own->op.outputs = 2;
        own_run(own, own_layouts[layout]);
        own_near_reference(own, 2e-6);
        own_keep_or_compare(&kept, own, result);
        own_free(own);
    }
    free(kept);
}

static void check_case(const struct pooling_case *c)
{
    check_maximum(c, true);
    check_maximum(c, false);
    check_maximum_backward(c);
    check_average(c, false);
    check_average(c, true);
}

static void test_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++)
        check_case(&named_cases[i]);
}

static int draw(uint64_t round, uint64_t number, int from, int to)
{
    return from + (int)ls_random_below(91, round, number, (uint32_t)(to - from + 1));
}

static void test_random(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 20, 50, 8, 16, 33};
    for (uint64_t round = 0; round < 40; round++) {
        struct pooling_case c = {.axes = draw(round, 0, 1, 3), .n = draw(round, 1, 1, 2)};
        c.c = channels[draw(round, 2, 0, 6)];
        for (int a = 0; a < c.axes; a++) {
            uint64_t base = 10 * (uint64_t)(a + 1);
            c.kernel[a] = draw(round, base, 1, 4);
            c.stride[a] = draw(round, base + 1, 1, 3);
            c.pad[a] = draw(round, base + 2, 0, c.kernel[a] - 1);
            c.size[a] = c.kernel[a] + draw(round, base + 3, 0, c.axes == 3 ? 4 : 9);
        }
        check_case(&c);
    }
}

/* What is not greater than -FLT_MAX does not win: NaN, -infinity, nothing at all. */
static void test_unusual(void **state)
{
    (void)state;
    const struct pooling_case c = {"", 2, 1, 3, {2, 6}, {2, 2}, {1, 3}, {0, 0}};
    const struct ls_shape x_shape = {4, {1, 3, 2, 6}}, y_shape = {4, {1, 3, 1, 3}};
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_pooling);
        struct ls_value *x = own_in(own, &x_shape, 1, 1), *y = own_out(own, &y_shape);
        struct ls_value *index = own_out(own, &y_shape);
        index->type = LS_I32;
        set_attr(own, &c, LS_POOL_MAX);
        float *from = own->plain[x->index];
        from[0] = NAN, from[1] = 2, from[6] = 3, from[7] = NAN;                 /* 3 wins */
        from[3] = NAN, from[4] = NAN, from[9] = -INFINITY, from[10] = -FLT_MAX; /* none */
        from[12] = INFINITY, from[13] = INFINITY;                               /* the first */
        own_run(own, own_layouts[layout]);
        const float *to = own_plain(own, y);
        int32_t winner[9];
        memcpy(winner, own_plain(own, index), sizeof winner);
        assert_true(to[0] == 3 && winner[0] == 6);
        assert_true(to[1] == -FLT_MAX && winner[1] == -1);
        assert_true(isinf(to[3]) && winner[3] == 0);
        /* The third window of each channel begins behind the input. */
        for (int channel = 0; channel < 3; channel++)
            assert_true(to[3 * channel + 2] == -FLT_MAX && winner[3 * channel + 2] == -1);
        own_free(own);
    }
}

/* Windows without a winner, and behind the input, get and give no gradient. */
static void test_unusual_backward(void **state)
{
    (void)state;
    const struct pooling_case c = {"", 2, 1, 3, {2, 6}, {2, 2}, {1, 3}, {0, 0}};
    const struct ls_shape x_shape = {4, {1, 3, 2, 6}}, y_shape = {4, {1, 3, 1, 3}};
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_pooling_backward);
        own_in(own, &y_shape, 1, 1);
        struct ls_value *index = own_in(own, &y_shape, 2, 1), *dx = own_out(own, &x_shape);
        int32_t none[9];
        index->type = LS_I32;
        memset(none, 0xff, sizeof none);
        memcpy(own->plain[index->index], none, sizeof none);
        set_attr(own, &c, LS_POOL_MAX);
        own_run(own, own_layouts[layout]);
        for (int i = 0; i < 36; i++)
            assert_true(own_plain(own, dx)[i] == 0);
        own_free(own);

        own = own_new(&ls_kernel_pooling);
        own_in(own, &x_shape, 1, 1);
        struct ls_value *y = own_out(own, &y_shape);
        set_attr(own, &c, LS_POOL_AVERAGE);
        own_run(own, own_layouts[layout]);
        for (int channel = 0; channel < 3; channel++)
            assert_true(own_plain(own, y)[3 * channel + 2] == 0);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_unusual),
        cmocka_unit_test(test_unusual_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
