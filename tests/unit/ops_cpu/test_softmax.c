/* Softmax and softmax with loss, and their gradients, against a double-precision reference, itself
 * checked by finite differences; what happens to labels that are ignored or wrong.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "own_kernel.h"

#include <float.h>

#include "support/gradient.h"
#include "support/reference_loss.h"

struct softmax_case {
    struct ls_shape shape;
    int axis;
};

static const struct softmax_case cases[] = {
    {{2, {100, 10}}, 1},      {{2, {1, 1}}, 1},         {{2, {3, 1000}}, 1},
    {{2, {5, 16}}, 1},        {{2, {2, 5000}}, 1},      {{1, {20}}, 0},
    {{4, {2, 21, 7, 9}}, 1},  {{4, {1, 3, 40, 31}}, 1}, {{4, {2, 3, 20, 50}}, 3},
    {{4, {2, 3, 20, 50}}, 2}, {{3, {4, 7, 3}}, 1},      {{3, {4, 1, 30}}, 1},
    {{4, {2, 50, 1, 1}}, 1},  {{3, {2, 5, 256}}, 1},    {{3, {1, 2, 513}}, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct reference_classes classes_of(const struct softmax_case *c)
{
    return (struct reference_classes){
        .outer = (int)ls_shape_count(&c->shape, 0, c->axis),
        .classes = (int)c->shape.dim[c->axis],
        .inner = (int)ls_shape_count(&c->shape, c->axis + 1, c->shape.rank)};
}

static double *numbers(int64_t n)
{
    double *result = malloc((size_t)(n + 1) * sizeof *result);
    assert_non_null(result);
    return result;
}

static void test_softmax(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct softmax_case *c = &cases[i];
        const struct reference_classes classes = classes_of(c);
        int64_t n = ls_shape_size(&c->shape);
        struct own *own = own_new(&ls_kernel_softmax);
        struct ls_value *x = own_in(own, &c->shape, 1, 20), *y = own_out(own, &c->shape);
        own->op.attr.axis = c->axis;
        own_run(own, &ls_layout_plain);
        double *from = own_doubles(own_plain(own, x), n), *p = numbers(n), *dx = numbers(n);
        reference_softmax(&classes, from, p);
        own_near(own, y, p, 1e-6);
        own_free(own);

        own = own_new(&ls_kernel_softmax_backward);
        y = own_in(own, &c->shape, 1, 1);
        struct ls_value *dy = own_in(own, &c->shape, 2, 1);
        struct ls_value *result = own_out(own, &c->shape);
        for (int64_t j = 0; j < n; j++)
            own->plain[y->index][j] = (float)p[j];
        own->op.attr.axis = c->axis;
        own_run(own, &ls_layout_plain);
        free(from);
        from = own_doubles(own_plain(own, dy), n);
        reference_softmax_backward(&classes, p, from, dx);
        own_near(own, result, dx, 1e-6);
        own_free(own);
        free(from);
        free(p);
        free(dx);
    }
}

/* Nothing overflows; infinities and NaNs are not hidden. */
static void test_extremes(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {4, 3}};
    const float rows[12] = {1e30F, -1e30F, 1e30F, 200, 100, -3e38F, 1, NAN, 2, 5, INFINITY, 1};
    struct own *own = own_new(&ls_kernel_softmax);
    struct ls_value *x = own_in(own, &shape, 1, 1), *y = own_out(own, &shape);
    memcpy(own->plain[x->index], rows, sizeof rows);
    own->op.attr.axis = 1;
    own_run(own, &ls_layout_plain);
    const float *p = own_plain(own, y);
    assert_true(p[0] == 0.5F && p[1] == 0 && p[2] == 0.5F);
    assert_true(p[3] == 1 && p[4] >= 0 && p[4] < 1e-37F && p[5] == 0);
    assert_true(isnan(p[6]) && isnan(p[7]) && isnan(p[8]));
    assert_true(isnan(p[10]));
    own_free(own);
}

/* The loss op on a case, with every seventh label ignored. */
struct loss_trial {
    struct own *own;
    struct ls_value *x, *label, *prob;
    struct reference_classes classes;
    int64_t positions;
};

static struct loss_trial loss_trial(const struct softmax_case *c, const struct ls_kernel *kernel,
                                    bool has_ignore)
{
    struct loss_trial trial = {.own = own_new(kernel), .classes = classes_of(c)};
    struct own *own = trial.own;
    trial.positions = (int64_t)trial.classes.outer * trial.classes.inner;
    const struct ls_shape label_shape = {1, {trial.positions}};
    trial.classes.has_ignore = has_ignore;
    trial.classes.ignore_label = 255;
    trial.x = own_in(own, &c->shape, 1, 8);
    trial.label = own_in(own, &label_shape, 2, 1);
    for (int64_t i = 0; i < trial.positions; i++) {
        uint32_t class = ls_random_below(5, 1, (uint64_t)i, (uint32_t)trial.classes.classes);
        own->plain[trial.label->index][i] = has_ignore && i % 7 == 3 ? 255 : (float)class;
    }
    trial.prob = own_out(own, &c->shape);
    own->op.attr.loss = (struct ls_loss_attr){.axis = c->axis,
                                              .has_ignore = has_ignore,
                                              .ignore_label = 255,
                                              .normalization = LS_NORM_VALID,
                                              .loss_weight = 0.5F,
                                              .metric_offset = 3};
    return trial;
}

static void test_loss(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * CASES; i++) {
        const struct softmax_case *c = &cases[i / 2];
        struct loss_trial trial = loss_trial(c, &ls_kernel_softmax_loss, i % 2 != 0);
        int64_t n = ls_shape_size(&c->shape);
        own_run(trial.own, &ls_layout_plain);
        double *x = own_doubles(own_plain(trial.own, trial.x), n), *p = numbers(n);
        double *label = own_doubles(own_plain(trial.own, trial.label), trial.positions);
        int valid;
        double loss = reference_softmax_loss(&trial.classes, x, label, &valid);
        reference_softmax(&trial.classes, x, p);
        own_near(trial.own, trial.prob, p, 1e-6);
        assert_true(fabs(trial.own->partials[3] - loss) <= 1e-6 * fmax(1, fabs(loss)));
        assert_true(trial.own->partials[4] == valid);
        assert_true(trial.own->partials[2] == 0 && trial.own->partials[5] == 0);
        own_free(trial.own);
        free(x);
        free(p);
        free(label);
    }
}

static void test_loss_backward(void **state)
{
    (void)state;
    const double normalizers[2] = {1, 300};
    for (int i = 0; i < 2 * CASES; i++) {
        const struct softmax_case *c = &cases[i / 2];
        struct loss_trial trial = loss_trial(c, &ls_kernel_softmax_loss_backward, i % 2 != 0);
        int64_t n = ls_shape_size(&c->shape);
        double *x = own_doubles(own_plain(trial.own, trial.x), n), *p = numbers(n),
               *dx = numbers(n);
        double *label = own_doubles(own_plain(trial.own, trial.label), trial.positions);
        reference_softmax(&trial.classes, x, p);
        reference_softmax_loss_backward(&trial.classes, x, label, dx);
        for (int64_t j = 0; j < n; j++) {
            trial.own->plain[trial.x->index][j] = (float)p[j];
            dx[j] *= 500.0 / 300; /* as the loss weight and the divisor scale it */
        }
        trial.own->op.attr.loss.loss_weight = 500;
        trial.own->op.attr.loss.normalizer = 1;
        trial.own->context.normalizers = normalizers;
        own_run(trial.own, &ls_layout_plain);
        own_near(trial.own, trial.prob, dx, 1e-6); /* its output is dx */
        own_free(trial.own);
        free(x);
        free(p);
        free(dx);
        free(label);
    }
}

/* ---- Class weights and smoothing ------------------------------------------------------------- */

enum { CLASSES_MOST = 5000 };

/* Weights 0, 0.3, 0.6, 0.9, 1.2, 0, ... */
static float float_weight[CLASSES_MOST];
static double double_weight[CLASSES_MOST];

static struct loss_trial mixed_trial(const struct softmax_case *c, const struct ls_kernel *kernel,
                                     int variant)
{
    struct loss_trial trial = loss_trial(c, kernel, variant % 2 != 0);
    struct ls_loss_attr *attr = &trial.own->op.attr.loss;
    for (int k = 0; k < CLASSES_MOST; k++)
        double_weight[k] = (double)(float_weight[k] = 0.3F * (float)(k % 5));
    attr->classes = trial.classes.classes;
    attr->normalization = LS_NORM_WEIGHTS;
    attr->class_weight = variant / 2 % 3 == 0 ? NULL : float_weight;
    attr->smoothing = variant / 2 % 3 == 1 ? 0 : 0.1F;
    if (attr->class_weight == NULL)
        attr->normalization = LS_NORM_VALID;
    else
        trial.classes.class_weight = double_weight;
    trial.classes.smoothing = (double)attr->smoothing;
    return trial;
}

enum { VARIANTS = 6 };

static void test_mixed_loss(void **state)
{
    (void)state;
    for (int i = 0; i < VARIANTS * CASES; i++) {
        const struct softmax_case *c = &cases[i / VARIANTS];
        struct loss_trial trial = mixed_trial(c, &ls_kernel_softmax_loss, i % VARIANTS);
        int64_t n = ls_shape_size(&c->shape);
        own_run(trial.own, &ls_layout_plain);
        double *x = own_doubles(own_plain(trial.own, trial.x), n);
        double *label = own_doubles(own_plain(trial.own, trial.label), trial.positions);
        double loss = reference_softmax_loss(&trial.classes, x, label, NULL);
        double weights = reference_label_weights(&trial.classes, label);
        assert_true(fabs(trial.own->partials[3] - loss) <= 1e-6 * fmax(1, fabs(loss)));
        assert_true(fabs(trial.own->partials[4] - weights) <= 1e-12 * weights);
        assert_true(trial.own->partials[2] == 0 && trial.own->partials[5] == 0);
        own_free(trial.own);
        free(x);
        free(label);
    }
}

static void test_mixed_backward(void **state)
{
    (void)state;
    const double normalizers[2] = {1, 1e-30}; /* a sum of very small weights */
    for (int i = 0; i < VARIANTS * CASES; i++) {
        const struct softmax_case *c = &cases[i / VARIANTS];
        struct loss_trial trial = mixed_trial(c, &ls_kernel_softmax_loss_backward, i % VARIANTS);
        int64_t n = ls_shape_size(&c->shape);
        double *x = own_doubles(own_plain(trial.own, trial.x), n), *p = numbers(n),
               *dx = numbers(n);
        double *label = own_doubles(own_plain(trial.own, trial.label), trial.positions);
        reference_softmax(&trial.classes, x, p);
        reference_softmax_loss_backward(&trial.classes, x, label, dx);
        for (int64_t j = 0; j < n; j++)
            trial.own->plain[trial.x->index][j] = (float)p[j];
        trial.own->op.attr.loss.loss_weight = 1e-30F;
        trial.own->op.attr.loss.normalizer = 1;
        trial.own->context.normalizers = normalizers;
        own_run(trial.own, &ls_layout_plain);
        own_near(trial.own, trial.prob, dx, 1e-6); /* its output is dx */
        for (int64_t j = 0; j < trial.positions; j++)
            for (int k = 0; label[j] == 255 && k < trial.classes.classes; k++) {
                int64_t inner = trial.classes.inner;
                int64_t at = (j / inner * trial.classes.classes + k) * inner + j % inner;
                assert_true(own_plain(trial.own, trial.prob)[at] == 0);
            }
        own_free(trial.own);
        free(x);
        free(p);
        free(dx);
        free(label);
    }
}

/* Where every label is ignored, loss, count and gradient are 0, whatever the divisor is. */
static void test_nothing_counts(void **state)
{
    (void)state;
    const double normalizers[1] = {1};
    for (int i = 0; i < VARIANTS * CASES; i++) {
        const struct softmax_case *c = &cases[i / VARIANTS];
        for (int backward = 0; backward < 2; backward++) {
            struct loss_trial trial = mixed_trial(
                c, backward ? &ls_kernel_softmax_loss_backward : &ls_kernel_softmax_loss,
                i % VARIANTS);
            for (int64_t j = 0; j < trial.positions; j++)
                trial.own->plain[trial.label->index][j] = 255;
            trial.own->op.attr.loss.has_ignore = true;
            trial.own->context.normalizers = normalizers;
            own_run(trial.own, &ls_layout_plain);
            assert_true(trial.own->partials[3] == 0 && trial.own->partials[4] == 0);
            for (int64_t j = 0; backward && j < ls_shape_size(&c->shape); j++)
                assert_true(own_plain(trial.own, trial.prob)[j] == 0);
            own_free(trial.own);
        }
    }
}

/* A probability of 0 costs -log FLT_MIN. */
static void test_hopeless(void **state)
{
    (void)state;
    struct loss_trial trial =
        loss_trial(&(struct softmax_case){{2, {1, 2}}, 1}, &ls_kernel_softmax_loss, false);
    trial.own->plain[trial.x->index][0] = 500;
    trial.own->plain[trial.x->index][1] = 0;
    trial.own->plain[trial.label->index][0] = 1;
    own_run(trial.own, &ls_layout_plain);
    assert_true(fabs(trial.own->partials[3] + log((double)FLT_MIN)) < 1e-4);
    own_free(trial.own);
}

/* Clamped, as a softmax and a logarithmic loss behind it have it: a probability below 1e-20 costs
 * what 1e-20 does, and its gradient fades. With class weights and without. */
static void test_clamped(void **state)
{
    (void)state;
    static const float x[12] = {0, 1, 2, 0, 60, 0, 0, 120, 0, 45.5F, 0, 1}, label[4] = {2, 0, 2, 1};
    static const float weights[3] = {0.5F, 3, 2};
    const double normalizers[1] = {4};
    const struct softmax_case c = {{2, {4, 3}}, 1};
    for (int weighted = 0; weighted < 2; weighted++) {
        double p[12], expected[12], values[12], loss = 0;
        struct loss_trial forward = loss_trial(&c, &ls_kernel_softmax_loss, false),
                          backward = loss_trial(&c, &ls_kernel_softmax_loss_backward, false);
        for (int i = 0; i < 12; i++)
            values[i] = (double)x[i];
        reference_softmax(&forward.classes, values, p);
        for (int i = 0; i < 12; i++) {
            int row = i / 3, class = (int)label[row];
            double own = (double)(float)p[3 * row + class], least = 1e-20F,
                   scale = own < least ? own / least : 1;
            double weight = weighted ? (double)weights[class] : 1;
            expected[i] = 0.5 / 4 * weight * scale * (p[i] - (i % 3 == class));
            loss -= i % 3 == 0 ? weight * log(own < least ? least : own) : 0;
        }
        memcpy(forward.own->plain[forward.x->index], x, sizeof x);
        for (int i = 0; i < 12; i++)
            backward.own->plain[backward.x->index][i] = (float)p[i];
        for (int b = 0; b < 2; b++) {
            struct loss_trial *trial = b > 0 ? &backward : &forward;
            memcpy(trial->own->plain[trial->label->index], label, sizeof label);
            trial->own->op.attr.loss.clamped = true;
            trial->own->op.attr.loss.class_weight = weighted ? weights : NULL;
            trial->own->op.attr.loss.classes = 3;
            trial->own->context.normalizers = normalizers;
            own_run(trial->own, &ls_layout_plain);
        }
        assert_true(fabs(forward.own->partials[3] - loss) < 1e-6 * loss);
        for (int i = 0; i < 12; i++) {
            double found = (double)own_plain(backward.own, backward.prob)[i];
            assert_true(fabs(found - expected[i]) <= 1e-6 * fabs(expected[i]) + 1e-37);
        }
        own_free(forward.own);
        own_free(backward.own);
    }
}

static void test_counts(void **state)
{
    (void)state;
    const struct softmax_case c = {{4, {2, 3, 7, 2}}, 1};
    static const enum ls_normalization modes[4] = {LS_NORM_FULL, LS_NORM_VALID, LS_NORM_BATCH_SIZE,
                                                   LS_NORM_NONE};
    const double expected[4] = {28, 24, 2, 0};
    for (int i = 0; i < 4; i++) {
        struct loss_trial trial = loss_trial(&c, &ls_kernel_softmax_loss, true);
        trial.own->op.attr.loss.normalization = modes[i];
        own_run(trial.own, &ls_layout_plain);
        assert_true(trial.own->partials[4] == expected[i]);
        own_free(trial.own);
    }
}

/* A label that names no class: NaN in the record, nothing read or written out of range (which the
 * address sanitizer would see). */
static void test_bad_labels(void **state)
{
    (void)state;
    static const float bad[] = {-1, 10, 1e10F, -1e10F, 0.5F, NAN, INFINITY, -INFINITY, 255.5F};
    const struct softmax_case flat = {{2, {3, 10}}, 1}, spatial = {{3, {3, 10, 4}}, 1};
    const double normalizers[1] = {1};
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        const struct softmax_case *c = i % 2 == 0 ? &flat : &spatial;
        struct loss_trial trial = loss_trial(c, &ls_kernel_softmax_loss, false);
        trial.own->plain[trial.label->index][1] = bad[i / 2];
        own_run(trial.own, &ls_layout_plain);
        assert_true(isnan(trial.own->partials[3]));
        own_free(trial.own);

        trial = loss_trial(c, &ls_kernel_softmax_loss_backward, false);
        trial.own->plain[trial.label->index][1] = bad[i / 2];
        trial.own->context.normalizers = normalizers;
        own_run(trial.own, &ls_layout_plain);
        for (int k = 0; k < 10; k++) /* its output is dx */
            assert_true(own_plain(trial.own, trial.prob)[i % 2 == 0 ? 10 + k : 4 * k + 1] == 0);
        own_free(trial.own);
    }
}

/* The same with weights and smoothing. */
static void test_mixed_bad_labels(void **state)
{
    (void)state;
    static const float bad[] = {-1, 10, 0.5F, NAN, INFINITY};
    const struct softmax_case flat = {{2, {3, 10}}, 1}, spatial = {{3, {3, 10, 4}}, 1};
    const double normalizers[1] = {1};
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        const struct softmax_case *c = i % 2 == 0 ? &flat : &spatial;
        struct loss_trial trial = mixed_trial(c, &ls_kernel_softmax_loss, 4);
        trial.own->plain[trial.label->index][1] = bad[i / 2];
        own_run(trial.own, &ls_layout_plain);
        assert_true(isnan(trial.own->partials[3]) && isfinite(trial.own->partials[4]));
        own_free(trial.own);

        trial = mixed_trial(c, &ls_kernel_softmax_loss_backward, 4);
        trial.own->plain[trial.label->index][1] = bad[i / 2];
        trial.own->context.normalizers = normalizers;
        own_run(trial.own, &ls_layout_plain);
        for (int k = 0; k < 10; k++) /* its output is dx */
            assert_true(own_plain(trial.own, trial.prob)[i % 2 == 0 ? 10 + k : 4 * k + 1] == 0);
        own_free(trial.own);
    }
}

struct slope {
    struct reference_classes classes;
    const double *weight;
    double *p;
};

static double weighted_softmax(const double *x, void *data)
{
    const struct slope *slope = data;
    const struct reference_classes *classes = &slope->classes;
    double sum = 0;
    reference_softmax(classes, x, slope->p);
    for (int i = 0; i < classes->outer * classes->classes * classes->inner; i++)
        sum += slope->weight[i] * slope->p[i];
    return sum;
}

static double loss_of(const double *x, void *data)
{
    const struct slope *slope = data;
    return reference_softmax_loss(&slope->classes, x, slope->weight, NULL);
}

static void test_reference(void **state)
{
    (void)state;
    struct slope slope = {.classes = {.outer = 3, .classes = 5, .inner = 4}};
    enum { N = 60 };
    double x[N], weight[N], p[N], dx[N], label[12];
    for (int i = 0; i < N; i++) {
        x[i] = 3 * (double)own_random(1, (uint64_t)i);
        weight[i] = (double)own_random(2, (uint64_t)i);
    }
    for (int i = 0; i < 12; i++)
        label[i] = i % 5;
    slope.weight = weight;
    slope.p = p;
    reference_softmax(&slope.classes, x, p);
    double copy[N];
    memcpy(copy, p, sizeof copy);
    reference_softmax_backward(&slope.classes, copy, weight, dx);
    check_gradient(weighted_softmax, &slope, x, N, dx, 1e-8, "softmax");

    slope.classes.has_ignore = true;
    slope.classes.ignore_label = 3;
    slope.weight = label;
    reference_softmax_loss_backward(&slope.classes, x, label, dx);
    check_gradient(loss_of, &slope, x, N, dx, 1e-8, "softmax loss");

    slope.classes.class_weight = (const double[]){0, 1.5, 0.25, 3, 1};
    slope.classes.smoothing = 0.2;
    reference_softmax_loss_backward(&slope.classes, x, label, dx);
    check_gradient(loss_of, &slope, x, N, dx, 1e-8, "smoothed softmax loss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_extremes),         cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_backward),    cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_clamped),          cmocka_unit_test(test_counts),
        cmocka_unit_test(test_bad_labels),       cmocka_unit_test(test_mixed_loss),
        cmocka_unit_test(test_mixed_backward),   cmocka_unit_test(test_nothing_counts),
        cmocka_unit_test(test_mixed_bad_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
