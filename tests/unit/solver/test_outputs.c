/* Figures as outputs, of one graph after another: a training shows those of its train net and of
 * its test nets through one list. SPDX-License-Identifier: BSD-2-Clause */
#include "ir/layer.h"
#include "solver/outputs.h"
#include "support/support.h"

enum { MANY = 64 };

static struct ls_metric figure(const char *name, int entries, int offset)
{
    return (struct ls_metric){
        .name = name, .entries = entries, .offset = offset, .count_offset = -1, .is_output = true};
}

/* Fewer values in more figures: the list must grow though its values would fit. */
static void a_list_holds_more_figures_than_the_graph_before_had(void **state)
{
    (void)state;
    double record[MANY];
    for (int i = 0; i < MANY; i++)
        record[i] = i;
    struct ls_metric long_one[] = {figure("by class", MANY, 0)}, many[MANY];
    for (int i = 0; i < MANY; i++)
        many[i] = figure("loss", 1, i);
    struct ls_graph first = {.metrics = long_one, .metric_count = 1};
    struct ls_graph second = {.metrics = many, .metric_count = MANY};
    struct ls_outputs outputs = {0};
    for (int round = 0; round < 2; round++) {
        assert_int_equal(ls_outputs_set(&outputs, &first, NULL, record, NULL), 0);
        assert_int_equal(outputs.count, 1);
        assert_int_equal(outputs.items[0].count, MANY);
        assert_int_equal(ls_outputs_set(&outputs, &second, NULL, record, NULL), 0);
        assert_int_equal(outputs.count, MANY);
        for (int i = 0; i < MANY; i++) {
            assert_string_equal(outputs.items[i].name, "loss");
            assert_int_equal(outputs.items[i].count, 1);
            assert_true(outputs.items[i].values[0] == i);
        }
    }
    ls_outputs_free(&outputs);
}

/* What is ranked stands behind what is one figure, with the names of its classes, and without the
 * background's. */
static void ranked_classes_have_names_and_stand_last(void **state)
{
    (void)state;
    static const char *const list[] = {"none", "cat", "dog"};
    const struct ls_class_names names = {.name = list, .count = 3};
    const struct ls_layer evaluate = {.name = "evaluate"};
    const double record[] = {0, 0.5, 1, 0.75};
    struct ls_metric metrics[] = {figure("AP", 3, 0), figure("mAP", 1, 3)};
    metrics[0].layer = metrics[1].layer = &evaluate;
    struct ls_ranking ranking = {.layer = &evaluate, .background = 0};
    struct ls_graph graph = {
        .metrics = metrics, .metric_count = 2, .rankings = &ranking, .ranking_count = 1};
    struct ls_outputs outputs = {0};
    assert_int_equal(ls_outputs_set(&outputs, &graph, &names, record, NULL), 0);
    assert_int_equal(outputs.count, 2);
    assert_string_equal(outputs.items[0].name, "mAP");
    assert_true(outputs.items[0].values[0] == 0.75);
    assert_null(outputs.items[0].classes);
    assert_string_equal(outputs.items[1].name, "AP");
    assert_true(outputs.items[1].values[1] == 0.5 && outputs.items[1].values[2] == 1);
    assert_null(outputs.items[1].classes[0]);
    assert_string_equal(outputs.items[1].classes[2], "dog");
    /* Without names the background is no class all the same. */
    assert_int_equal(ls_outputs_set(&outputs, &graph, NULL, record, NULL), 0);
    assert_null(outputs.items[1].classes[0]);
    assert_string_equal(outputs.items[1].classes[1], "");
    ls_outputs_free(&outputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_holds_more_figures_than_the_graph_before_had),
        cmocka_unit_test(ranked_classes_have_names_and_stand_last)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
