/* Local response normalisation and its gradient against the reference device; the same bits in
 * every layout and on every instruction set. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

/* n x c x h x w numbers. */
struct lrn_size {
    int n, c, h, w;
    int within, size;
    double alpha, beta, k;
};

struct lrn_case {
    const char *name;
    struct lrn_size lrn;
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

static struct ls_shape shape_of(const struct lrn_size *lrn)
{
    return (struct ls_shape){4, {lrn->n, lrn->c, lrn->h, lrn->w}};
}

static struct ls_lrn_attr attr_of(const struct lrn_size *lrn)
{
    return (struct ls_lrn_attr){.within = lrn->within != 0,
                                .size = lrn->size,
                                .alpha = (float)lrn->alpha,
                                .beta = (float)lrn->beta,
                                .k = (float)lrn->k};
}

/* What goes back is what the forward pass made. */
static void check_backward(const struct lrn_size *lrn, const struct own *forward, int layout,
                           float **kept)
{
    const struct ls_shape shape = shape_of(lrn);
    const size_t bytes = (size_t)ls_shape_size(&shape) * sizeof(float);
    struct own *own = own_new(&ls_kernel_lrn_backward);
    own_in(own, &shape, 1, 2);
    for (int i = 0; i < 3; i++) { /* y, dy, scale */
        if (i == 2 && lrn->within)
            break;
        struct ls_value *value = own_in(own, &shape, 2, 1);
        if (i != 1)
            memcpy(own->plain[value->index], own_plain(forward, forward->out[i / 2]), bytes);
    }
    own->op.inputs = 4;
    struct ls_value *dx = own_out(own, &shape);
    own->op.attr.lrn = attr_of(lrn);
    own_run(own, own_layouts[layout]);
    own_near_reference(own, 5e-6);
    own_keep_or_compare(kept, own, dx);
    own_free(own);
}

static void check_case_with(const struct lrn_size *lrn, bool scaled)
{
    const struct ls_shape shape = shape_of(lrn);
    float *kept = NULL, *kept_scale = NULL, *kept_dx = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = own_new(&ls_kernel_lrn);
        own_in(own, &shape, 1, 2);
        struct ls_value *y = own_out(own, &shape), *scale = scaled ? own_out(own, &shape) : NULL;
        own->op.outputs = 2;
        own->op.attr.lrn = attr_of(lrn);
        own_run(own, own_layouts[layout]);
        own_near_reference(own, 2e-6);
        own_keep_or_compare(&kept, own, y);
        if (scaled)
            own_keep_or_compare(&kept_scale, own, scale);
        if (scaled || lrn->within)
            check_backward(lrn, own, layout, &kept_dx);
        own_free(own);
    }
    free(kept);
    free(kept_scale);
    free(kept_dx);
}

static void check_case(const struct lrn_size *lrn)
{
    check_case_with(lrn, false);
    if (!lrn->within)
        check_case_with(lrn, true);
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
        struct lrn_size lrn = {.n = draw(round, 0, 1, 3),
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
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_no_divisor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
