/* The sum of a value as a loss, counts of labels, gradients handed to the sums.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/accumulator.h"
#include "kernels/own_kernel.h"

static void test_sum_loss(void **state)
{
    (void)state;
    const struct ls_shape shapes[] = {{4, {2, 20, 5, 7}}, {0, {0}}, {2, {3, 1}}, {3, {9, 50, 33}}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct own *own = own_new(&ls_kernel_sum_loss);
        own->op.attr.loss.metric_offset = 3;
        struct ls_value *x = own_in(own, &shapes[s], 4, 10);
        own_run(own, &ls_layout_plain);
        double sum = 0;
        for (int64_t i = 0; i < ls_shape_size(&shapes[s]); i++)
            sum += own_plain(own, x)[i];
        assert_true(fabs(own->partials[3] - sum) < 1e-9);
        own->partials[3] = 0; /* and nothing else: "count 0" */
        for (int i = 0; i < OWN_PARTIALS; i++)
            assert_true(own->partials[i] == 0);
        own_free(own);

        struct own *back = own_new(&ls_kernel_sum_loss_backward);
        back->op.attr.loss.loss_weight = 0.3F;
        struct ls_value *dx = own_out(back, &shapes[s]);
        own_run(back, &ls_layout_plain);
        for (int64_t i = 0; i < ls_shape_size(&shapes[s]); i++)
            assert_true(own_plain(back, dx)[i] == 0.3F);
        own_free(back);
    }
}

static void check_count(bool has_ignore, int ignore, double expected)
{
    const struct ls_shape shape = {3, {2, 4, 4}};
    struct own *own = own_new(&ls_kernel_count_labels);
    own->op.attr.loss.metric_offset = 1;
    own->op.attr.loss.has_ignore = has_ignore;
    own->op.attr.loss.ignore_label = ignore;
    struct ls_value *label = own_in(own, &shape, 0, 0);
    for (int i = 0; i < 32; i++)
        own->plain[label->index][i] = (float)(i % 5 - 1);
    own->plain[label->index][31] = NAN;
    own->plain[label->index][30] = 1e30F;
    own_run(own, &ls_layout_plain);
    assert_true(own->partials[1] == expected && own->partials[0] == 0 && own->partials[2] == 0);
    own_free(own);
}

/* The weights of the classes of labels, without those that are ignored; a label that names no class
 * has none (the loss is NaN then). */
static void test_count_weights(void **state)
{
    (void)state;
    static const float labels[8] = {0, 1, 2, 2, 255, 7, -1, 1.5F};
    static const float weight[3] = {0.1F, 100, 1e-20F};
    const struct ls_shape shape = {4, {2, 1, 2, 2}};
    struct own *own = own_new(&ls_kernel_count_labels);
    struct ls_value *label = own_in(own, &shape, 1, 1);
    memcpy(own->plain[label->index], labels, sizeof labels);
    own->op.attr.loss = (struct ls_loss_attr){.normalization = LS_NORM_WEIGHTS,
                                              .has_ignore = true,
                                              .ignore_label = 255,
                                              .class_weight = weight,
                                              .classes = 3,
                                              .metric_offset = 5};
    own_run(own, &ls_layout_plain);
    assert_true(own->partials[5] == (double)0.1F + 100 + 1e-20 + 1e-20);
    own_free(own);
}

/* The numbers of labels that count, whatever those of others are. */
static void test_count_numbers(void **state)
{
    (void)state;
    static const float labels[6] = {0, 255, 2, 7, 255, 1};
    static const float numbers[6] = {1, NAN, 3, 16777216, 4, 1};
    const struct ls_shape shape = {2, {3, 2}};
    struct own *own = own_new(&ls_kernel_count_labels);
    struct ls_value *label = own_in(own, &shape, 1, 1), *number = own_in(own, &shape, 1, 1);
    memcpy(own->plain[label->index], labels, sizeof labels);
    memcpy(own->plain[number->index], numbers, sizeof numbers);
    own->op.attr.loss = (struct ls_loss_attr){.normalization = LS_NORM_VALID,
                                              .has_ignore = true,
                                              .ignore_label = 255,
                                              .classes = 3,
                                              .metric_offset = 2};
    own_run(own, &ls_layout_plain);
    assert_true(own->partials[2] == 16777221.0);
    own_free(own);
}

static void test_count_labels(void **state)
{
    (void)state;
    check_count(false, 0, 32);
    check_count(true, 3, 32 - 6);
    check_count(true, -1, 32 - 6);
    check_count(true, 255, 32);
}

/* The parameter's layout is asked for, and its padding added, too. */
static void test_accumulate(void **state)
{
    (void)state;
    enum { PARAMETER = 3, EXPONENT = 20 };
    const struct ls_shape shape = {2, {2, 20}};
    for (int l = 0; l < OWN_LAYOUTS; l++) {
        struct ls_parameter parameter = {.index = PARAMETER, .layout = own_layouts[l]};
        const size_t elements[PARAMETER + 1] = {1, 5, 0,
                                                ls_layout_elements(own_layouts[l], &shape)};
        const struct ls_device_accumulator *calls = &ls_cpu_accumulator;
        struct ls_accumulated part;
        struct own *own = own_new(&ls_kernel_accumulate);
        own->op.attr.parameter = &parameter;
        assert_int_equal(
            calls->create(elements, NULL, PARAMETER + 1, 1, &own->context.accumulator, NULL), 0);
        calls->part(own->context.accumulator, PARAMETER, &part);
        part.exponent[0] = EXPONENT;
        assert_int_equal(calls->begin(own->context.accumulator, false, NULL), 0);
        struct ls_value *dw = own_in(own, &shape, 3, 1);
        own_run(own, &ls_layout_plain);
        assert_ptr_equal(dw->layout, own_layouts[l]);
        const int64_t *all = calls->all(own->context.accumulator), *sum = all + 6;
        int64_t total = 0, wanted = 0;
        for (int64_t i = 0; i < 40; i++) {
            int64_t units = llrint(ldexp((double)own_plain(own, dw)[i], EXPONENT)) * own->runs;
            assert_int_equal(sum[place_in_layout(own_layouts[l], &shape, i)], units);
            wanted += units;
        }
        for (size_t i = 0; i < elements[PARAMETER]; i++)
            total += sum[i]; /* padding is zero */
        assert_int_equal(total, wanted);
        assert_true(all[0] == 0 && all[5] == 0);
        calls->free(own->context.accumulator);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_loss),      cmocka_unit_test(test_count_labels),
        cmocka_unit_test(test_count_weights), cmocka_unit_test(test_count_numbers),
        cmocka_unit_test(test_accumulate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
