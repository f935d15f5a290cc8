/* Local response normalisation and its gradient against a double-precision reference, itself
 * checked by finite differences; the same bits in every layout and on every instruction set.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "own_kernel.h"

#include "support/gradient.h"
#include "support/reference_lrn.h"

struct lrn_case {
    const char *name;
    struct reference_lrn lrn;
};

/* n, c, h, w; within, size, alpha, beta, k */
static const struct lrn_case named_cases[] = {
    {"cifar full", {2, 32, 16, 16, 1, 3, 5e-5, 0.75, 1}},
    {"caffenet", {2, 96, 9, 9, 0, 5, 1e-4, 0.75, 1}},
    {"tutorial", {2, 64, 12, 12, 0, 9, 0.009, 0.75, 1}},
    {"strong", {2, 20, 7, 5, 0, 5, 3, 0.75, 1}},
    {"beta 1/2", {1, 50, 6, 6, 0, 3, 2, 0.5, 2}},
    {"beta 1", {1, 3, 6, 6, 0, 3, 2, 1, 0.5}},
    {"any beta", {1, 33, 5, 6, 0, 7, 2, 0.6, 1.5}},
    {"negative beta", {1, 20, 5, 6, 0, 7, 2, -0.3, 1.5}},
    {"one neighbour: itself", {2, 5, 4, 4, 0, 1, 2, 0.75, 1}},
    {"wider than the channels", {2, 3, 4, 5, 0, 9, 2, 0.75, 1}},
    {"much wider than the channels", {1, 20, 4, 5, 0, 1001, 9, 0.75, 1}},
    {"one channel", {3, 1, 6, 7, 0, 3, 1, 0.75, 1}},
    {"many channels", {1, 2100, 5, 4, 0, 5, 1, 0.75, 1}},
    {"no room left in the block", {1, 31, 6, 6, 0, 5, 1, 0.75, 1}},
    {"many positions", {2, 17, 40, 31, 0, 5, 1, 0.75, 1}},
    {"within, strong", {2, 20, 9, 7, 1, 5, 3, 0.75, 1}},
    {"within, any beta", {2, 3, 9, 7, 1, 3, 3, 0.35, 1}},
    {"within, one channel", {3, 1, 8, 8, 1, 7, 3, 0.5, 1}},
    {"within, wider than the plane", {1, 8, 3, 4, 1, 13, 3, 0.75, 1}},
    {"within, one row", {1, 16, 1, 9, 1, 3, 3, 0.75, 1}},
    {"within, one column", {1, 50, 9, 1, 1, 5, 3, 0.75, 1}},
    {"within, itself", {1, 3, 5, 5, 1, 1, 3, 1, 1}},
};

static int elements(const struct reference_lrn *lrn)
{
    return lrn->n * lrn->c * lrn->h * lrn->w;
}

static struct ls_shape shape_of(const struct reference_lrn *lrn)
{
    return (struct ls_shape){4, {lrn->n, lrn->c, lrn->h, lrn->w}};
}

static struct ls_lrn_attr attr_of(const struct reference_lrn *lrn)
{
    return (struct ls_lrn_attr){.within = lrn->within != 0,
                                .size = lrn->size,
                                .alpha = (float)lrn->alpha,
                                .beta = (float)lrn->beta,
                                .k = (float)lrn->k};
}

/* What the forward pass of the reference gives for the inputs of all tests. */
struct expected {
    double *x, *dy, *y, *s, *dx;
};

static struct expected expect(const struct reference_lrn *lrn)
{
    size_t count = (size_t)elements(lrn);
    double *memory = malloc(5 * (count + 1) * sizeof *memory);
    assert_non_null(memory);
    struct expected e = {memory, memory + count, memory + 2 * count, memory + 3 * count,
                         memory + 4 * count};
    for (size_t i = 0; i < count; i++) {
        e.x[i] = (double)(2 * own_random(1, i)); /* as own_in fills them */
        e.dy[i] = (double)own_random(2, i);
    }
    reference_lrn_forward(lrn, e.x, e.y, e.s);
    reference_lrn_backward(lrn, e.x, e.dy, e.dx);
    return e;
}

static void check_forward(const struct reference_lrn *lrn, const struct expected *e, bool scaled)
{
    const struct ls_shape shape = shape_of(lrn);
    float *kept = NULL, *kept_scale = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_lrn);
        own_in(own, &shape, 1, 2);
        struct ls_value *y = own_out(own, &shape), *scale = scaled ? own_out(own, &shape) : NULL;
        own->op.outputs = 2;
        own->op.attr.lrn = attr_of(lrn);
        own_run(own, own_layouts[layout]);
        own_near(own, y, e->y, 2e-6);
        own_keep_or_compare(&kept, own, y);
        if (scaled) {
            own_near(own, scale, e->s, 2e-6);
            own_keep_or_compare(&kept_scale, own, scale);
        }
        own_free(own);
    }
    free(kept);
    free(kept_scale);
}

static void set_plain(struct own *own, const struct ls_value *value, const double *from)
{
    for (int64_t i = 0; i < ls_shape_size(&value->shape); i++)
        own->plain[value->index][i] = (float)from[i];
}

static void check_backward(const struct reference_lrn *lrn, const struct expected *e)
{
    const struct ls_shape shape = shape_of(lrn);
    float *kept = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_lrn_backward);
        own_in(own, &shape, 1, 2);
        set_plain(own, own_in(own, &shape, 3, 1), e->y);
        own_in(own, &shape, 2, 1);
        if (!lrn->within)
            set_plain(own, own_in(own, &shape, 4, 1), e->s);
        own->op.inputs = 4;
        struct ls_value *dx = own_out(own, &shape);
        own->op.attr.lrn = attr_of(lrn);
        own_run(own, own_layouts[layout]);
        own_near(own, dx, e->dx, 5e-6);
        own_keep_or_compare(&kept, own, dx);
        own_free(own);
    }
    free(kept);
}

static void check_case(const struct reference_lrn *lrn)
{
    struct expected e = expect(lrn);
    check_forward(lrn, &e, false);
    if (!lrn->within)
        check_forward(lrn, &e, true);
    check_backward(lrn, &e);
    free(e.x);
}

static void test_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++)
        check_case(&named_cases[i].lrn);
}

static int draw(uint64_t round, uint64_t number, int from, int to)
{
    return from + (int)ls_random_below(92, round, number, (uint32_t)(to - from + 1));
}

static void test_random(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 20, 50, 8, 16, 33};
    static const double betas[] = {0.75, 0.5, 1, 0.9};
    for (uint64_t round = 0; round < 40; round++) {
        struct reference_lrn lrn = {.n = draw(round, 0, 1, 3),
                                    .c = channels[draw(round, 1, 0, 6)],
                                    .h = draw(round, 2, 1, 9),
                                    .w = draw(round, 3, 1, 9),
                                    .within = draw(round, 4, 0, 1),
                                    .size = 2 * draw(round, 5, 0, 5) + 1,
                                    .alpha = draw(round, 6, 1, 30) / 10.0,
                                    .beta = betas[draw(round, 7, 0, 3)],
                                    .k = draw(round, 8, 5, 20) / 10.0};
        check_case(&lrn);
    }
}

struct slope {
    const struct reference_lrn *lrn;
    const double *dy;
    double *y, *s;
};

static double normalised(const double *x, void *data)
{
    const struct slope *slope = data;
    double sum = 0;
    reference_lrn_forward(slope->lrn, x, slope->y, slope->s);
    for (int i = 0; i < elements(slope->lrn); i++)
        sum += slope->y[i] * slope->dy[i];
    return sum;
}

static void test_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named_cases / sizeof *named_cases; i++) {
        struct reference_lrn lrn = named_cases[i].lrn;
        lrn.n = 1;
        lrn.c = lrn.c < 7 ? lrn.c : 7;
        lrn.h = lrn.h < 5 ? lrn.h : 5;
        lrn.w = lrn.w < 5 ? lrn.w : 5;
        struct expected e = expect(&lrn);
        struct slope slope = {&lrn, e.dy, e.y, e.s};
        check_gradient(normalised, &slope, e.x, (size_t)elements(&lrn), e.dx, 1e-7,
                       named_cases[i].name);
        free(e.x);
    }
}

/* Zeros around and k = 0: NaN, but never in the lanes of padding (own_run looks at them). */
static void test_no_divisor(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {1, 20, 2, 2}};
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_lrn);
        struct ls_value *x = own_in(own, &shape, 1, 2), *y = own_out(own, &shape);
        own_out(own, &shape);
        memset(own->plain[x->index], 0, 80 * sizeof(float));
        own->plain[x->index][0] = 1;
        own->op.attr.lrn = (struct ls_lrn_attr){.size = 3, .alpha = 3, .beta = 0.75F, .k = 0};
        own_run(own, own_layouts[layout]);
        assert_true(own_plain(own, y)[0] == 1);
        assert_true(own_plain(own, y)[4] == 0); /* the next channel sees the 1 */
        for (int i = 8; i < 80; i++)
            assert_true(i % 4 != 0 || isnan(own_plain(own, y)[i]));
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_no_divisor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
