/* Resizing and its gradient against a double-precision reference, itself checked by finite
 * differences; the same bits in every layout and on every instruction set, and for every sample
 * whatever comes with it.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "support/gradient.h"

struct resize_case {
    const char *name;
    int n, c, h, w, out_h, out_w, begin, end;
};

static const struct resize_case named_cases[] = {
    {"twice, corners aligned", 2, 20, 5, 7, 9, 13, 0, 0},
    {"eight times", 1, 21, 5, 6, 33, 41, 0, 0},
    {"any factor", 2, 33, 6, 5, 13, 11, 0, 0},
    {"smaller", 2, 16, 13, 11, 5, 4, 0, 0},
    {"every third", 1, 3, 13, 10, 5, 4, 0, 0},
    {"higher and narrower", 2, 8, 4, 9, 9, 4, 0, 0},
    {"the same size", 2, 5, 6, 7, 6, 7, 0, 0},
    {"from one position", 2, 17, 1, 1, 6, 7, 0, 0},
    {"to one position", 2, 17, 6, 7, 1, 1, 0, 0},
    {"from a row", 1, 9, 1, 7, 5, 13, 0, 0},
    {"to a column", 1, 9, 7, 7, 13, 1, 0, 0},
    {"cut at the beginning", 2, 20, 8, 9, 13, 15, 1, 0},
    {"cut at the end", 2, 20, 8, 9, 13, 15, 0, 2},
    {"cut at both", 2, 6, 8, 9, 5, 3, 3, 1},
    {"cut to one position", 1, 6, 4, 4, 3, 3, 2, 1},
    {"one channel", 3, 1, 20, 20, 39, 30, 0, 0},
};
enum { NAMED = sizeof named_cases / sizeof *named_cases };

/* ---- The reference: by plain loops, in double, with positions as fractions ---- */

/* Where position `i` of `out` lies among `in` and how far behind it. */
static int place(int i, int in, int out, int begin, int end, double *fraction)
{
    double position = out > 1 ? (double)i * (in - begin - end - 1) / (out - 1) : 0;
    int low = (int)floor(position + 1e-9);
    *fraction = fabs(position - low) < 1e-9 ? 0 : position - low;
    return begin + low;
}

/* y = resize(x), or dx = its transpose applied to dy: x and y change their parts. */
static void reference(const struct resize_case *r, bool backward, double *x, double *y)
{
    int in = r->h * r->w, out = r->out_h * r->out_w;
    memset(backward ? x : y, 0, (size_t)(r->n * r->c * (backward ? in : out)) * sizeof *x);
    for (int p = 0; p < r->n * r->c; p++)
        for (int i = 0; i < r->out_h; i++)
            for (int j = 0; j < r->out_w; j++) {
                double fi, fj;
                int row = place(i, r->h, r->out_h, r->begin, r->end, &fi);
                int column = place(j, r->w, r->out_w, r->begin, r->end, &fj);
                for (int a = 0; a < 2; a++)
                    for (int b = 0; b < 2; b++) {
                        double weight = (a > 0 ? fi : 1 - fi) * (b > 0 ? fj : 1 - fj);
                        if (weight <= 0)
                            continue;
                        assert_true(row + a < r->h - r->end && column + b < r->w - r->end);
                        double *source = &x[p * in + (row + a) * r->w + column + b];
                        double *target = &y[p * out + i * r->out_w + j];
                        if (backward)
                            *source += weight * *target;
                        else
                            *target += weight * *source;
                    }
            }
}

static size_t elements(const struct resize_case *r, bool outer)
{
    return (size_t)(r->n * r->c) * (size_t)(outer ? r->out_h * r->out_w : r->h * r->w);
}

static double *doubles(size_t count)
{
    double *result = calloc(count, sizeof *result);
    assert_non_null(result);
    return result;
}

static struct ls_shape shape_of(const struct resize_case *r, bool outer)
{
    return outer ? (struct ls_shape){4, {r->n, r->c, r->out_h, r->out_w}}
                 : (struct ls_shape){4, {r->n, r->c, r->h, r->w}};
}

static struct own *make(const struct ls_kernel *kernel, const struct resize_case *r)
{
    bool backward = kernel->kind == LS_OP_RESIZE_BACKWARD;
    struct ls_shape in = shape_of(r, backward), out = shape_of(r, !backward);
    struct own *own = own_new(kernel);
    own_in(own, &in, 1, 1);
    own_out(own, &out);
    own->op.attr.resize = (struct ls_resize_attr){.begin = r->begin, .end = r->end};
    return own;
}

static void check(const struct resize_case *r, bool backward)
{
    double *x = doubles(elements(r, false)), *y = doubles(elements(r, true));
    double *given = backward ? y : x, *expected = backward ? x : y;
    for (size_t i = 0; i < elements(r, backward); i++)
        given[i] = (double)own_random(1, i); /* as own_in fills it */
    reference(r, backward, x, y);
    float *kept = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = make(backward ? &ls_kernel_resize_backward : &ls_kernel_resize, r);
        own_run(own, own_layouts[layout]);
        own_near(own, own->out[0], expected, 3e-6);
        own_keep_or_compare(&kept, own, own->out[0]);
        own_free(own);
    }
    free(kept);
    free(x);
    free(y);
}

static void test_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        check(&named_cases[i], false);
        check(&named_cases[i], true);
    }
}

static int draw(uint64_t round, uint64_t number, int from, int to)
{
    return from + (int)ls_random_below(93, round, number, (uint32_t)(to - from + 1));
}

static void test_random(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 20, 8, 16, 33};
    for (uint64_t round = 0; round < 60; round++) {
        struct resize_case r = {"random",
                                draw(round, 0, 1, 3),
                                channels[draw(round, 1, 0, 5)],
                                draw(round, 2, 1, 9),
                                draw(round, 3, 1, 9),
                                draw(round, 4, 1, 20),
                                draw(round, 5, 1, 20),
                                0,
                                0};
        int room = (r.h < r.w ? r.h : r.w) - 1;
        r.begin = draw(round, 6, 0, room);
        r.end = draw(round, 7, 0, room - r.begin);
        check(&r, false);
        check(&r, true);
    }
}

/* A sample's bytes are the same by itself as among others. */
static void test_samples(void **state)
{
    (void)state;
    static const struct ls_kernel *const kernels[] = {&ls_kernel_resize,
                                                      &ls_kernel_resize_backward};
    for (size_t i = 0; i < 2 * NAMED; i++) {
        struct resize_case many = named_cases[i / 2], one;
        many.n = 5;
        one = many;
        one.n = 1;
        struct own *all = make(kernels[i % 2], &many), *single = make(kernels[i % 2], &one);
        size_t in = (size_t)ls_shape_size(&single->in[0]->shape);
        size_t out = (size_t)ls_shape_size(&single->out[0]->shape);
        own_run(all, own_layouts[i % OWN_LAYOUTS]);
        memcpy(single->plain[single->in[0]->index], all->plain[all->in[0]->index] + 3 * in,
               in * sizeof(float));
        own_run(single, own_layouts[i % OWN_LAYOUTS]);
        assert_memory_equal(own_plain(single, single->out[0]),
                            own_plain(all, all->out[0]) + 3 * out, out * sizeof(float));
        own_free(all);
        own_free(single);
    }
}

/* Corners stay, and numbers along a line stay on it. */
static void test_corners(void **state)
{
    (void)state;
    static const struct resize_case r = {"", 1, 1, 3, 5, 5, 9, 0, 0};
    struct own *own = make(&ls_kernel_resize, &r);
    for (int i = 0; i < 15; i++)
        own->plain[own->in[0]->index][i] = (float)(6 * (i / 5) + 4 * (i % 5));
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 45; i++)
        assert_true(own_plain(own, own->out[0])[i] == (float)(3 * (i / 9) + 2 * (i % 9)));
    own_free(own);
}

struct slope {
    const struct resize_case *r;
    const double *dy;
    double *y;
};

static double resized(const double *x, void *data)
{
    const struct slope *slope = data;
    double sum = 0;
    reference(slope->r, false, (double *)(uintptr_t)x, slope->y);
    for (size_t i = 0; i < elements(slope->r, true); i++)
        sum += slope->y[i] * slope->dy[i];
    return sum;
}

static void test_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        struct resize_case r = named_cases[i];
        r.n = 1;
        r.c = r.c < 2 ? r.c : 2;
        size_t in = elements(&r, false), out = elements(&r, true);
        double *x = doubles(in), *dx = doubles(in), *y = doubles(out), *dy = doubles(out);
        for (size_t k = 0; k < in; k++)
            x[k] = (double)own_random(1, k);
        for (size_t k = 0; k < out; k++)
            dy[k] = (double)own_random(2, k);
        reference(&r, true, dx, dy);
        struct slope slope = {&r, dy, y};
        check_gradient(resized, &slope, x, in, dx, 1e-7, r.name);
        double *const all[] = {x, dx, y, dy};
        for (int k = 0; k < 4; k++)
            free(all[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_named),
        cmocka_unit_test(test_random),    cmocka_unit_test(test_samples),
        cmocka_unit_test(test_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
