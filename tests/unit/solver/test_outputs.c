/* Figures as outputs, of one graph after another: a training shows those of its train net and of
 * its test nets through one list. SPDX-License-Identifier: BSD-2-Clause */
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
        assert_int_equal(ls_outputs_set(&outputs, &first, record, NULL), 0);
        assert_int_equal(outputs.count, 1);
        assert_int_equal(outputs.items[0].count, MANY);
        assert_int_equal(ls_outputs_set(&outputs, &second, record, NULL), 0);
        assert_int_equal(outputs.count, MANY);
        for (int i = 0; i < MANY; i++) {
            assert_string_equal(outputs.items[i].name, "loss");
            assert_int_equal(outputs.items[i].count, 1);
            assert_true(outputs.items[i].values[0] == i);
        }
    }
    ls_outputs_free(&outputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_holds_more_figures_than_the_graph_before_had)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
