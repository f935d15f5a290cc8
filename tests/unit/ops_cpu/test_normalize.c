/* Normalisation of each sample by itself and its gradients against the reference device; large
 * means, constant groups, groups of one value; the same bits on every instruction set.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

struct normalize_size {
    int outer, groups, channels, points;
    int variance, behind, elements;
    double eps;
};

struct normalize_case {
    const char *name;
    struct normalize_size n;
    int affine;
    double mean; /* of x; its numbers are up to 2 away */
};

/* outer, groups, channels, points; variance, behind, elements, eps */
static const struct normalize_case cases[] = {
    {"group norm", {3, 4, 5, 35, 1, 0, 0, 1e-5}, 1, 0},
    {"group norm, one group", {2, 1, 20, 12, 1, 0, 0, 1e-5}, 1, 0.5},
    {"group norm without points", {4, 3, 17, 1, 1, 0, 0, 1e-5}, 1, 0},
    {"group norm, large eps", {2, 2, 3, 16, 1, 0, 0, 0.5}, 1, 0},
    {"group norm, not affine", {2, 2, 3, 7, 1, 0, 0, 1e-5}, 0, 3},
    {"instance norm", {2, 9, 1, 49, 1, 0, 0, 1e-5}, 1, 0},
    {"instance norm, not affine", {2, 5, 1, 33, 1, 0, 0, 1e-5}, 0, 0},
    {"layer norm", {3, 1, 4, 30, 1, 0, 1, 1e-5}, 1, 0},
    {"layer norm, last axis", {12, 1, 37, 1, 1, 0, 1, 1e-5}, 1, -2},
    {"layer norm, not affine", {6, 1, 3, 10, 1, 0, 1, 1e-5}, 0, 0},
    {"mvn", {2, 3, 1, 63, 1, 1, 0, 1e-9}, 0, 0},
    {"mvn across channels", {3, 1, 3, 20, 1, 1, 0, 1e-9}, 0, 1},
    {"mvn, large eps", {2, 3, 1, 20, 1, 1, 0, 0.5}, 0, 0},
    {"mvn, mean only", {2, 3, 1, 63, 0, 1, 0, 1e-9}, 0, 5},
    {"large mean", {2, 2, 4, 50, 1, 0, 0, 1e-5}, 1, 4096},
    {"large mean, elements", {2, 1, 4, 50, 1, 0, 1, 1e-5}, 1, -30000},
    {"two values", {3, 2, 1, 2, 1, 0, 0, 1e-5}, 1, 0},
};
enum { CASES = sizeof cases / sizeof *cases, ELEMENTS_MAX = 2200, STATS = 4 };

static double x[ELEMENTS_MAX], dy[ELEMENTS_MAX], scale[ELEMENTS_MAX], bias[ELEMENTS_MAX];

static int64_t elements(const struct normalize_size *n)
{
    int64_t count = (int64_t)n->outer * n->groups * n->channels * n->points;
    assert_true(count <= ELEMENTS_MAX);
    return count;
}

static struct ls_shape x_shape(const struct normalize_size *n)
{
    return (struct ls_shape){.rank = n->points > 1 ? 3 : 2,
                             .dim = {n->outer, (int64_t)n->groups * n->channels, n->points}};
}

static struct ls_shape factor_shape(const struct normalize_size *n)
{
    return (struct ls_shape){.rank = n->elements && n->points > 1 ? 2 : 1,
                             .dim = {(int64_t)n->groups * n->channels, n->points}};
}

static struct ls_shape stats_shape(const struct normalize_size *n)
{
    return (struct ls_shape){.rank = 2, .dim = {n->outer, (int64_t)n->groups * STATS}};
}

static void set_attr(struct own *own, const struct normalize_size *n)
{
    own->op.attr.normalize = (struct ls_normalize_attr){.axis = 1,
                                                        .groups = n->groups,
                                                        .variance = n->variance != 0,
                                                        .behind = n->behind != 0,
                                                        .eps = (float)n->eps,
                                                        .elements = n->elements != 0};
}

/* x as the test has it, rounded to what fp32 holds. */
static struct ls_value *put_x(struct own *own, const struct normalize_case *c)
{
    const struct ls_shape shape = x_shape(&c->n);
    struct ls_value *value = own_in(own, &shape, 1, 2);
    for (int64_t i = 0; i < elements(&c->n); i++) {
        own->plain[value->index][i] += (float)c->mean;
        x[i] = (double)own->plain[value->index][i];
    }
    return value;
}

static struct ls_value *put(struct own *own, const struct ls_shape *shape, uint64_t salt,
                            double *copy)
{
    struct ls_value *value = own_in(own, shape, salt, 1);
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        copy[i] = (double)own->plain[value->index][i];
    return value;
}

/* Runs forward; stats_copy (if given) gets the stats. */
static void check_forward(const struct normalize_case *c, float *stats_copy)
{
    struct own *own = own_new(&ls_kernel_normalize);
    const struct ls_shape shape = x_shape(&c->n), factors = factor_shape(&c->n),
                          stats = stats_shape(&c->n);
    set_attr(own, &c->n);
    put_x(own, c);
    if (c->affine) {
        put(own, &factors, 3, scale);
        put(own, &factors, 4, bias);
    }
    own_out(own, &shape);
    struct ls_value *kept = stats_copy != NULL ? own_out(own, &stats) : NULL;
    own->op.outputs = 2;
    own_run(own, &ls_layout_plain);
    own_near_reference(own, 2e-6);
    if (stats_copy != NULL)
        memcpy(stats_copy, own_plain(own, kept), (size_t)ls_shape_size(&stats) * sizeof(float));
    own_free(own);
}

static struct own *back_new(const struct ls_kernel *kernel, const struct normalize_case *c,
                            const float *stats)
{
    struct own *own = own_new(kernel);
    const struct ls_shape shape = x_shape(&c->n), stats_of = stats_shape(&c->n);
    own->op.backward = true;
    set_attr(own, &c->n);
    put(own, &shape, 2, dy);
    put_x(own, c);
    struct ls_value *value = own_in(own, &stats_of, 9, 1);
    memcpy(own->plain[value->index], stats, (size_t)ls_shape_size(&stats_of) * sizeof(float));
    return own;
}

static void check_backward(const struct normalize_case *c, const float *stats)
{
    const struct ls_shape shape = x_shape(&c->n), factors = factor_shape(&c->n);
    struct own *own = back_new(&ls_kernel_normalize_data, c, stats);
    if (c->affine)
        put(own, &factors, 3, scale);
    own_out(own, &shape);
    own_run(own, &ls_layout_plain);
    own_near_reference(own, 3e-6);
    own_free(own);
    for (int which = 0; c->affine && which < 3; which++) { /* both, scale alone, bias alone */
        own = back_new(&ls_kernel_normalize_sums, c, stats);
        for (int i = 0; i < 2; i++)
            if (which == 0 || which == i + 1)
                own->out[i] = own_value(own, &factors);
        own->op.outputs = 2;
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 2e-6);
        own_free(own);
    }
}

static void test_cases(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        float stats[ELEMENTS_MAX];
        check_forward(&cases[c], NULL);
        check_forward(&cases[c], stats);
        check_backward(&cases[c], stats);
    }
}

/* Groups of equal values: the bias, and no NaN; of one value: no gradient either. */
static void check_equal(const struct normalize_size *n, bool affine)
{
    const struct normalize_case c = {"equal", *n, affine, 0};
    const struct ls_shape shape = x_shape(n), factors = factor_shape(n), stats = stats_shape(n);
    struct own *own = own_new(&ls_kernel_normalize);
    set_attr(own, n);
    struct ls_value *in = own_in(own, &shape, 1, 0);
    int64_t group = (int64_t)n->channels * n->points;
    for (int64_t i = 0; i < elements(n); i++)
        own->plain[in->index][i] = 1234.567F * own_random(1, (uint64_t)(i / group));
    if (affine) {
        put(own, &factors, 3, scale);
        put(own, &factors, 4, bias);
    }
    struct ls_value *out = own_out(own, &shape), *kept = own_out(own, &stats);
    own_run(own, &ls_layout_plain);
    for (int64_t i = 0; i < elements(n); i++) {
        int64_t channel = i / n->points % ((int64_t)n->groups * n->channels);
        assert_true(own_plain(own, out)[i] == (affine ? (float)bias[channel] : 0));
    }
    struct own *back = back_new(&ls_kernel_normalize_data, &c, own_plain(own, kept));
    memcpy(back->plain[1], own->plain[in->index], (size_t)elements(n) * sizeof(float));
    if (affine)
        put(back, &factors, 3, scale);
    struct ls_value *gradient = own_out(back, &shape);
    own_run(back, &ls_layout_plain);
    for (int64_t i = 0; i < elements(n); i++) {
        assert_true(isfinite(own_plain(back, gradient)[i]));
        assert_true(group > 1 || own_plain(back, gradient)[i] == 0);
    }
    own_free(own);
    own_free(back);
}

static void test_equal_values(void **state)
{
    (void)state;
    check_equal(&(struct normalize_size){2, 3, 1, 1, 1, 0, 0, 1e-5}, true);
    check_equal(&(struct normalize_size){2, 3, 1, 1, 1, 1, 0, 1e-9}, false);
    check_equal(&(struct normalize_size){4, 1, 1, 1, 1, 0, 0, 1e-5}, true);
    check_equal(&(struct normalize_size){2, 2, 3, 7, 1, 0, 0, 1e-5}, true);
    check_equal(&(struct normalize_size){2, 3, 1, 49, 1, 1, 0, 1e-9}, false);
    check_equal(&(struct normalize_size){2, 3, 1, 49, 0, 1, 0, 1e-9}, false);
}

/* One bad number makes its group, and no other, bad. */
static void test_not_finite(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {2, 6}};
    struct own *own = own_new(&ls_kernel_normalize);
    own->op.attr.normalize =
        (struct ls_normalize_attr){.axis = 1, .groups = 2, .variance = true, .eps = 1e-5F};
    struct ls_value *in = own_in(own, &shape, 1, 1), *out = own_out(own, &shape);
    own->plain[in->index][4] = NAN;
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 12; i++)
        assert_int_equal(isnan(own_plain(own, out)[i]) != 0, i / 3 == 1);
    own_free(own);
}

static void test_accepts(void **state)
{
    (void)state;
    struct ls_value value = {.shape = {2, {3, 6}}};
    struct ls_value *in[] = {&value};
    struct ls_op op = {.kind = LS_OP_NORMALIZE, .input = in, .inputs = 1};
    op.attr.normalize = (struct ls_normalize_attr){.axis = 1, .groups = 3};
    assert_true(ls_kernel_normalize.accepts(&op));
    op.attr.normalize.groups = 4;
    assert_false(ls_kernel_normalize.accepts(&op));
    op.attr.normalize.groups = 0;
    assert_false(ls_kernel_normalize.accepts(&op));
    op.attr.normalize = (struct ls_normalize_attr){.axis = 2, .groups = 1};
    assert_false(ls_kernel_normalize.accepts(&op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_equal_values),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_accepts),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
