/* Softmax and softmax with loss, and their gradients, against the reference device; what happens to
 * labels that are ignored or wrong. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include <float.h>

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

/* The classes, and the positions that have them. */
static int64_t classes_of(const struct softmax_case *c)
{
    return c->shape.dim[c->axis];
}

static int64_t positions_of(const struct softmax_case *c)
{
    return ls_shape_size(&c->shape) / classes_of(c);
}

/* Probabilities: what a softmax makes of x. */
static void put_probabilities(struct own *own, const struct ls_value *value,
                              const struct softmax_case *c, float range)
{
    float *results[OWN_VALUES];
    double partials[OWN_PARTIALS];
    struct own *softmax = own_new(&ls_kernel_softmax);
    own_in(softmax, &c->shape, 1, range);
    own_out(softmax, &c->shape);
    softmax->op.attr.axis = c->axis;
    own_refer(softmax, results, partials);
    memcpy(own->plain[value->index], results[0], (size_t)ls_shape_size(&c->shape) * sizeof(float));
    free(results[0]);
    own_free(softmax);
}

static void test_softmax(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct softmax_case *c = &cases[i];
        struct own *own = own_new(&ls_kernel_softmax);
        own_in(own, &c->shape, 1, 20);
        own_out(own, &c->shape);
        own->op.attr.axis = c->axis;
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-6);
        own_free(own);

        own = own_new(&ls_kernel_softmax_backward);
        put_probabilities(own, own_in(own, &c->shape, 1, 1), c, 20);
        own_in(own, &c->shape, 2, 1);
        own_out(own, &c->shape);
        own->op.attr.axis = c->axis;
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-6);
        own_free(own);
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
    int64_t classes, positions;
};

static struct loss_trial loss_trial(const struct softmax_case *c, const struct ls_kernel *kernel,
                                    bool has_ignore)
{
    struct loss_trial trial = {
        .own = own_new(kernel), .classes = classes_of(c), .positions = positions_of(c)};
    struct own *own = trial.own;
    const struct ls_shape label_shape = {1, {trial.positions}};
    trial.x = own_in(own, &c->shape, 1, 8);
    trial.label = own_in(own, &label_shape, 2, 1);
    for (int64_t i = 0; i < trial.positions; i++) {
        uint32_t class = ls_random_below(5, 1, (uint64_t)i, (uint32_t)trial.classes);
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
        struct loss_trial trial = loss_trial(&cases[i / 2], &ls_kernel_softmax_loss, i % 2 != 0);
        own_run(trial.own, &ls_layout_plain);
        own_near_reference(trial.own, 1e-6);
        assert_true(trial.own->partials[2] == 0 && trial.own->partials[5] == 0);
        own_free(trial.own);
    }
}

static void test_loss_backward(void **state)
{
    (void)state;
    const double normalizers[2] = {1, 300};
    for (int i = 0; i < 2 * CASES; i++) {
        const struct softmax_case *c = &cases[i / 2];
        struct loss_trial trial = loss_trial(c, &ls_kernel_softmax_loss_backward, i % 2 != 0);
        put_probabilities(trial.own, trial.x, c, 8);
        trial.own->op.attr.loss.loss_weight = 500;
        trial.own->op.attr.loss.normalizer = 1;
        trial.own->context.normalizers = normalizers;
        own_run(trial.own, &ls_layout_plain);
        own_near_reference(trial.own, 1e-6);
        own_free(trial.own);
    }
}

/* ---- Class weights and smoothing ------------------------------------------------------------- */

enum { CLASSES_MOST = 5000 };

/* Weights 0, 0.3, 0.6, 0.9, 1.2, 0, ... */
static float float_weight[CLASSES_MOST];

static struct loss_trial mixed_trial(const struct softmax_case *c, const struct ls_kernel *kernel,
                                     int variant)
{
    struct loss_trial trial = loss_trial(c, kernel, variant % 2 != 0);
    struct ls_loss_attr *attr = &trial.own->op.attr.loss;
    for (int k = 0; k < CLASSES_MOST; k++)
        float_weight[k] = 0.3F * (float)(k % 5);
    attr->classes = trial.classes;
    attr->normalization = LS_NORM_WEIGHTS;
    attr->class_weight = variant / 2 % 3 == 0 ? NULL : float_weight;
    attr->smoothing = variant / 2 % 3 == 1 ? 0 : 0.1F;
    if (attr->class_weight == NULL)
        attr->normalization = LS_NORM_VALID;
    return trial;
}

enum { VARIANTS = 6 };

static void test_mixed_loss(void **state)
{
    (void)state;
    for (int i = 0; i < VARIANTS * CASES; i++) {
        const struct softmax_case *c = &cases[i / VARIANTS];
        struct loss_trial trial = mixed_trial(c, &ls_kernel_softmax_loss, i % VARIANTS);
        own_run(trial.own, &ls_layout_plain);
        own_near_reference(trial.own, 1e-6);
        assert_true(trial.own->partials[2] == 0 && trial.own->partials[5] == 0);
        own_free(trial.own);
    }
}

static void test_mixed_backward(void **state)
{
    (void)state;
    const double normalizers[2] = {1, 1e-30}; /* a sum of very small weights */
    for (int i = 0; i < VARIANTS * CASES; i++) {
        const struct softmax_case *c = &cases[i / VARIANTS];
        struct loss_trial trial = mixed_trial(c, &ls_kernel_softmax_loss_backward, i % VARIANTS);
        put_probabilities(trial.own, trial.x, c, 8);
        trial.own->op.attr.loss.loss_weight = 1e-30F;
        trial.own->op.attr.loss.normalizer = 1;
        trial.own->context.normalizers = normalizers;
        own_run(trial.own, &ls_layout_plain);
        own_near_reference(trial.own, 1e-6);
        for (int64_t j = 0; j < trial.positions; j++)
            for (int k = 0; own_plain(trial.own, trial.label)[j] == 255 && k < trial.classes; k++) {
                int64_t inner = ls_shape_count(&c->shape, c->axis + 1, c->shape.rank);
                int64_t at = (j / inner * trial.classes + k) * inner + j % inner;
                assert_true(own_plain(trial.own, trial.prob)[at] == 0);
            }
        own_free(trial.own);
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
        double p[12], expected[12], loss = 0;
        struct loss_trial forward = loss_trial(&c, &ls_kernel_softmax_loss, false),
                          backward = loss_trial(&c, &ls_kernel_softmax_loss_backward, false);
        for (int i = 0; i < 12; i++) {
            const float *row = x + i / 3 * 3;
            double sum = 0;
            for (int k = 0; k < 3; k++)
                sum += exp((double)row[k]);
            p[i] = exp((double)x[i]) / sum;
        }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_loss),           cmocka_unit_test(test_loss_backward),
        cmocka_unit_test(test_hopeless),       cmocka_unit_test(test_clamped),
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_bad_labels),
        cmocka_unit_test(test_mixed_loss),     cmocka_unit_test(test_mixed_backward),
        cmocka_unit_test(test_nothing_counts), cmocka_unit_test(test_mixed_bad_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
