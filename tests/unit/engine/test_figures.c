/* Figures that are reported are computed from the sums of a record.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "engine/engine.h"
#include "engine/figures.h"
#include "ir/layer.h"

static const struct ls_layer_type loss_type = {.type = "L", .is_loss = true},
                                  other_type = {.type = "O"};
static const struct ls_layer loss_layer = {.type = &loss_type}, other_layer = {.type = &other_type};

static void figures_are_sums_over_counts(void **state)
{
    (void)state;
    const double record[] = {0, 6, 4, 1, 2, 0, 8, 4, 0};
    struct ls_metric metric = {.layer = &other_layer, .entries = 1, .offset = 1, .count_offset = 2};
    assert_true(ls_figures_metric(&metric, record, 0) == 1.5);
    metric = (struct ls_metric){
        .layer = &other_layer, .entries = 3, .offset = 3, .count_offset = 6, .count_each = true};
    assert_true(ls_figures_metric(&metric, record, 0) == 0.125);
    assert_true(ls_figures_metric(&metric, record, 1) == 0.5);
    assert_true(ls_figures_metric(&metric, record, 2) == 0); /* a class that does not occur */
    metric.is_count = true;
    assert_true(ls_figures_metric(&metric, record, 1) == 2);
}

/* A loss over nothing is its sum: 0, or NaN where a label was wrong. */
static void a_loss_over_nothing_is_its_sum(void **state)
{
    (void)state;
    const double record[] = {0, 0, NAN, 0};
    struct ls_metric metric = {
        .layer = &loss_layer, .entries = 1, .offset = 0, .count_offset = 1, .loss_weight = 1};
    assert_true(ls_figures_metric(&metric, record, 0) == 0);
    metric.offset = 2;
    metric.count_offset = 3;
    assert_true(isnan(ls_figures_metric(&metric, record, 0)));
    metric.layer = &other_layer;
    metric.loss_weight = 0;
    metric.offset = 0;
    assert_true(ls_figures_metric(&metric, record, 0) == 0);
}

enum { CLASSES = 5 };

static const struct ls_metric mean = {.entries = 1, .offset = 2, .overlaps = CLASSES, .mean = true};
static const struct ls_metric each = {.entries = CLASSES, .offset = 2, .overlaps = CLASSES};

/* Classes: perfect; half; only predicted; only in labels; does not occur. */
static void overlaps_are_those_worked_out_by_hand(void **state)
{
    (void)state;
    const double record[2 + 3 * CLASSES] = {9,
                                            9,
                                            /* hits */ 4,
                                            3,
                                            0,
                                            0,
                                            0,
                                            /* taken */ 4,
                                            5,
                                            2,
                                            0,
                                            0,
                                            /* true */ 4,
                                            4,
                                            0,
                                            7,
                                            0};
    static const double expected[CLASSES] = {1, 0.5, 0, 0, 0};
    for (int c = 0; c < CLASSES; c++)
        assert_true(ls_figures_metric(&each, record, c) == expected[c]);
    assert_true(ls_figures_metric(&mean, record, 0) == 1.5 / 4);
}

static void overlaps_of_nothing_are_zero_and_wrong_labels_nan(void **state)
{
    (void)state;
    double record[2 + 3 * CLASSES] = {0};
    assert_true(ls_figures_metric(&mean, record, 0) == 0);
    for (int c = 0; c < CLASSES; c++)
        assert_true(ls_figures_metric(&each, record, c) == 0);
    record[2] = NAN; /* a label that names no class */
    assert_true(isnan(ls_figures_metric(&mean, record, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_sums_over_counts),
        cmocka_unit_test(a_loss_over_nothing_is_its_sum),
        cmocka_unit_test(overlaps_are_those_worked_out_by_hand),
        cmocka_unit_test(overlaps_of_nothing_are_zero_and_wrong_labels_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
