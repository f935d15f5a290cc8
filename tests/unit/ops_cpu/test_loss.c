/* Log, sigmoid and euclidean losses against the reference device, and accuracy
 * against plain loops; labels that are ignored or wrong; Caffe's rule for ties.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "support/reference_counts.h"

/* ---- Log loss -------------------------------------------------------------------------------- */

enum { SAMPLES = 37, CLASSES = 12 };

/* Probabilities [SAMPLES, 3, 2, 2] between 1e-7 and 1, one of them 0, and their labels. */
static struct own *log_trial(const struct ls_kernel *kernel, struct ls_value **label)
{
    static const double normalizers[1] = {SAMPLES};
    const struct ls_shape shape = {4, {SAMPLES, 3, 2, 2}}, label_shape = {1, {SAMPLES}};
    struct own *own = own_new(kernel);
    struct ls_value *p = own_in(own, &shape, 1, 1);
    *label = own_in(own, &label_shape, 2, 1);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        own->plain[p->index][i] = powf(fabsf(own->plain[p->index][i]) + 1e-3F, 2);
    for (uint64_t i = 0; i < SAMPLES; i++)
        own->plain[(*label)->index][i] = (float)ls_random_below(3, 0, i, CLASSES);
    own->plain[p->index][(int)own->plain[(*label)->index][0]] = 0;
    own->op.attr.loss = (struct ls_loss_attr){
        .axis = 1, .normalization = LS_NORM_BATCH_SIZE, .loss_weight = 2, .metric_offset = 1};
    own->context.normalizers = normalizers;
    return own;
}

static void test_log_loss(void **state)
{
    (void)state;
    struct ls_value *label;
    struct own *own = log_trial(&ls_kernel_log_loss, &label);
    own_run(own, &ls_layout_plain);
    own_near_reference(own, 1e-6);
    assert_true(own->partials[2] == SAMPLES && own->partials[0] == 0);
    own_free(own);

    const struct ls_shape shape = {4, {SAMPLES, 3, 2, 2}};
    own = log_trial(&ls_kernel_log_loss_backward, &label);
    own_out(own, &shape);
    own_run(own, &ls_layout_plain);
    own_near_reference(own, 1e-6);
    own_free(own);
}

/* With class weights, and classes 3 and 5 ignored in turn. */
static void test_weighted_log_loss(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {SAMPLES, 3, 2, 2}};
    float weight[CLASSES];
    for (int c = 0; c < CLASSES; c++)
        weight[c] = 0.3F * (float)(c % 4);
    for (int i = 0; i < 4; i++) {
        struct ls_value *label;
        struct own *own =
            log_trial(i < 2 ? &ls_kernel_log_loss : &ls_kernel_log_loss_backward, &label);
        if (i >= 2)
            own_out(own, &shape);
        struct ls_loss_attr *attr = &own->op.attr.loss;
        attr->normalization = LS_NORM_WEIGHTS;
        attr->class_weight = weight;
        attr->classes = CLASSES;
        attr->has_ignore = true;
        attr->ignore_label = i % 2 == 0 ? 3 : 5;
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-6);
        own_free(own);
    }
}

static void test_log_loss_bad_label(void **state)
{
    (void)state;
    static const float bad[] = {-1, CLASSES, 2.5F, NAN, 1e30F};
    const struct ls_shape shape = {4, {SAMPLES, 3, 2, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ls_value *label;
        struct own *own = log_trial(&ls_kernel_log_loss, &label);
        own->plain[label->index][SAMPLES - 1] = bad[i];
        own_run(own, &ls_layout_plain);
        assert_true(isnan(own->partials[1]));
        own_free(own);
        own = log_trial(&ls_kernel_log_loss_backward, &label);
        own->plain[label->index][SAMPLES - 1] = bad[i];
        struct ls_value *dp = own_out(own, &shape);
        own_run(own, &ls_layout_plain);
        for (int c = 0; c < CLASSES; c++)
            assert_true(own_plain(own, dp)[(SAMPLES - 1) * CLASSES + c] == 0);
        own_free(own);
    }
}

/* ---- Sigmoid cross-entropy ------------------------------------------------------------------- */

enum { ROWS = 9, COLUMNS = 117, ELEMENTS = ROWS * COLUMNS };

/* Targets 0, 1, in between, and ignored ones: 2.7 and 2 where 2 is ignored. */
static struct own *sigmoid_trial(const struct ls_kernel *kernel, bool has_ignore)
{
    static const double normalizers[3] = {1, 1, 50};
    const struct ls_shape shape = {2, {ROWS, COLUMNS}};
    struct own *own = own_new(kernel);
    struct ls_value *x = own_in(own, &shape, 1, 30), *target = own_in(own, &shape, 2, 1);
    float *values = own->plain[target->index];
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = i % 3 == 0 ? fabsf(values[i]) : (float)(i % 3 - 1);
        if (has_ignore && i % 11 == 4)
            values[i] = i % 2 == 0 ? 2.7F : 2;
    }
    own->plain[x->index][1] = 1000;
    own->plain[x->index][2] = -1000;
    own->plain[x->index][3] = 0;
    own->op.attr.loss = (struct ls_loss_attr){.has_ignore = has_ignore,
                                              .ignore_label = 2,
                                              .normalization = LS_NORM_VALID,
                                              .normalizer = 2,
                                              .loss_weight = 100};
    own->context.normalizers = normalizers;
    return own;
}

static void test_sigmoid_loss(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {ROWS, COLUMNS}};
    for (int ignore = 0; ignore < 2; ignore++) {
        struct own *own = sigmoid_trial(&ls_kernel_sigmoid_loss, ignore != 0);
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-7);
        assert_true((own->partials[1] < ELEMENTS) == (ignore != 0));
        own_free(own);

        own = sigmoid_trial(&ls_kernel_sigmoid_loss_backward, ignore != 0);
        own_out(own, &shape);
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-6);
        own_free(own);
    }
}

static void test_sigmoid_counts(void **state)
{
    (void)state;
    static const enum ls_normalization modes[3] = {LS_NORM_FULL, LS_NORM_BATCH_SIZE, LS_NORM_NONE};
    const double expected[3] = {ELEMENTS, ROWS, 0};
    for (int i = 0; i < 3; i++) {
        struct own *own = sigmoid_trial(&ls_kernel_sigmoid_loss, true);
        own->op.attr.loss.normalization = modes[i];
        own_run(own, &ls_layout_plain);
        assert_true(own->partials[1] == expected[i]);
        own_free(own);
    }
}

/* ---- Euclidean ------------------------------------------------------------------------------- */

static void test_euclidean(void **state)
{
    (void)state;
    static const double normalizers[1] = {40};
    static const int64_t columns[] = {1, 3, 16, 20, 784};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct ls_shape shape = {2, {5, columns[i]}};
        for (int side = -1; side <= 1; side++) {
            struct own *own =
                own_new(side == 0 ? &ls_kernel_euclidean_loss : &ls_kernel_euclidean_loss_backward);
            own_in(own, &shape, 1, 3);
            own_in(own, &shape, 2, 3);
            if (side != 0)
                own_out(own, &shape);
            own->op.attr.loss = (struct ls_loss_attr){
                .normalization = LS_NORM_BATCH_SIZE, .loss_weight = 10, .scale = (float)side};
            own->context.normalizers = normalizers;
            own_run(own, &ls_layout_plain);
            own_near_reference(own, side != 0 ? 1e-6 : 1e-12);
            assert_true(side != 0 || own->partials[1] == 5);
            own_free(own);
        }
    }
}

/* ---- Accuracy -------------------------------------------------------------------------------- */

enum { METRIC = 0, CLASS = 2 };

static struct own *accuracy_trial(const struct ls_shape *shape, int axis, int top_k,
                                  bool has_ignore)
{
    int64_t classes = shape->dim[axis];
    const struct ls_shape label_shape = {1, {ls_shape_size(shape) / classes}};
    struct own *own = own_new(&ls_kernel_accuracy);
    struct ls_value *x = own_in(own, shape, 1, 1), *label = own_in(own, &label_shape, 2, 1);
    for (int64_t i = 0; i < ls_shape_size(shape); i++) /* with ties */
        own->plain[x->index][i] = floorf(own->plain[x->index][i] * 6);
    for (int64_t i = 0; i < label_shape.dim[0]; i++)
        own->plain[label->index][i] =
            has_ignore && i % 5 == 2 ? -1
                                     : (float)ls_random_below(9, 0, (uint64_t)i, (uint32_t)classes);
    own->op.attr.accuracy =
        (struct ls_accuracy_attr){.axis = axis,
                                  .top_k = top_k,
                                  .has_ignore = has_ignore,
                                  .ignore_label = -1,
                                  .classes = classes,
                                  .metric_offset = METRIC,
                                  .class_offset = CLASS,
                                  .confusion_offset = (int)(CLASS + 2 * classes)};
    return own;
}

static void check_accuracy(const struct ls_shape *shape, int axis, int top_k, bool has_ignore)
{
    struct own *own = accuracy_trial(shape, axis, top_k, has_ignore);
    own_run(own, &ls_layout_plain);
    int classes = (int)shape->dim[axis];
    struct reference_classes reference = {.outer = (int)ls_shape_count(shape, 0, axis),
                                          .classes = classes,
                                          .inner =
                                              (int)ls_shape_count(shape, axis + 1, shape->rank),
                                          .has_ignore = has_ignore,
                                          .ignore_label = -1};
    double *x = own_doubles(own_plain(own, own->in[0]), ls_shape_size(shape));
    double *label = own_doubles(own_plain(own, own->in[1]), ls_shape_size(shape) / classes);
    int valid, hits[8] = {0}, count[8] = {0}, confusion[64] = {0};
    int total = reference_accuracy(&reference, top_k, x, label, &valid, hits, count, confusion);
    assert_true(own->partials[METRIC] == total && own->partials[METRIC + 1] == valid);
    for (int c = 0; c < classes; c++) {
        assert_true(own->partials[CLASS + c] == hits[c]);
        assert_true(own->partials[CLASS + classes + c] == count[c]);
    }
    for (int i = 0; i < classes * classes; i++)
        assert_true(own->partials[CLASS + 2 * classes + i] == confusion[i]);
    own_free(own);
    free(x);
    free(label);
}

static void test_accuracy(void **state)
{
    (void)state;
    const struct ls_shape flat = {2, {200, 6}}, spatial = {4, {2, 5, 7, 9}};
    const struct ls_shape two = {2, {50, 2}}, behind = {3, {6, 11, 4}};
    for (int top_k = 1; top_k <= 3; top_k++)
        for (int ignore = 0; ignore < 2; ignore++) {
            check_accuracy(&flat, 1, top_k, ignore != 0);
            check_accuracy(&spatial, 1, top_k, ignore != 0);
            check_accuracy(&behind, 2, top_k, ignore != 0);
            if (top_k <= 2)
                check_accuracy(&two, 1, top_k, ignore != 0);
        }
}

/* A tie counts against the true class; scores that are NaN hit nothing; the optional tables. */
static void test_accuracy_rules(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {5, 3}};
    const float x[15] = {1, 1, 0, /**/ 0, 2, 1, /**/ NAN, NAN, NAN, /**/ 3, 1, 2, /**/ NAN, 5, 1};
    const float label[5] = {0, 1, 1, 0, 1};
    struct own *own = accuracy_trial(&shape, 1, 1, false);
    memcpy(own->plain[0], x, sizeof x);
    memcpy(own->plain[1], label, sizeof label);
    own->op.attr.accuracy.class_offset = -1;
    own->op.attr.accuracy.confusion_offset = -1;
    own_run(own, &ls_layout_plain);
    assert_true(own->partials[0] == 2 && own->partials[1] == 5);
    for (int i = 2; i < OWN_PARTIALS; i++)
        assert_true(own->partials[i] == 0);
    own_free(own);

    static const float bad[] = {-1, 3, 0.25F, NAN, -1e30F};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        own = accuracy_trial(&shape, 1, 1, false);
        own->plain[1][2] = bad[i];
        own_run(own, &ls_layout_plain);
        assert_true(isnan(own->partials[0]) && own->partials[1] == 5);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_loss),           cmocka_unit_test(test_weighted_log_loss),
        cmocka_unit_test(test_log_loss_bad_label), cmocka_unit_test(test_sigmoid_loss),
        cmocka_unit_test(test_sigmoid_counts),     cmocka_unit_test(test_euclidean),
        cmocka_unit_test(test_accuracy),           cmocka_unit_test(test_accuracy_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
