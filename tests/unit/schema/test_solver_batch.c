/* The override "batch=N": of the net that is trained alone, in all kinds of data layers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver_trial.h"

#define SOLVED BASE "test_interval: 3"
#define DATA   "type: 'Data' data_param { source: 's' batch_size: "

/* The train net's batch of layer `index`. */
static unsigned batch_of(const struct ls_net_definition *net, size_t index)
{
    return net->net->layer[index]->data_param->batch_size;
}

static struct ls_solver_definition *with_net(const char *net, const char *set, char *problems)
{
    ls_test_write_text(net_path, net);
    return read_text(SOLVED, &set, 1, problems);
}

/* A layer of both nets is another one in each of them; the last of several options holds. */
static void trained_alone(void **state)
{
    (void)state;
    static const char *const set[] = {"batch=5", "base_lr=2", "batch=48"};
    char problems[8192], place[LS_PLACE_MAX];
    ls_test_write_text(net_path, "layer { name: 'a' include { phase: TRAIN } " DATA "16 } }\n"
                                 "layer { name: 'b' " DATA "16 } }\n"
                                 "layer { name: 'c' include { phase: TEST } " DATA "7 } }\n"
                                 "layer { name: 'd' type: 'ReLU' }");
    struct ls_solver_definition *solver = read_text(SOLVED, set, 3, problems);
    assert_string_equal(problems, "");
    net_is(&solver->train, "abd");
    assert_int_equal(batch_of(&solver->train, 0), 48);
    assert_int_equal(batch_of(&solver->train, 1), 48);
    net_is(&solver->test[0], "bcd");
    assert_int_equal(batch_of(&solver->test[0], 0), 16);
    assert_int_equal(batch_of(&solver->test[0], 1), 7);
    const void *data = solver->train.net->layer[1]->data_param;
    ls_place(solver->train.definition, data, "batch_size", place, sizeof place);
    assert_string_equal(place, "--set batch=48");
    ls_place(solver->train.definition, data, "source", place, sizeof place);
    assert_string_equal(place + strlen(net_path), ":2:45");
    ls_solver_definition_free(solver);
}

static void of_other_types(void **state)
{
    (void)state;
    char problems[8192];
    struct ls_solver_definition *solver = with_net(
        "layer { name: 'a' type: 'ImageData' image_data_param { source: 's' } }"
        "layer { name: 'b' type: 'HDF5Data' hdf5_data_param { source: 's' batch_size: 1 } }",
        "batch=4", problems);
    assert_string_equal(problems, "");
    assert_int_equal(batch_of(&solver->train, 0), 4);
    assert_int_equal(batch_of(&solver->train, 1), 4);
    assert_int_equal(batch_of(&solver->test[0], 0), 1);
    ls_solver_definition_free(solver);
}

/* Without data layers, the first extents of the inputs that a program fills. */
static void of_inputs(void **state)
{
    (void)state;
    char problems[8192];
    struct ls_solver_definition *solver = with_net(
        "layer { name: 'a' type: 'Input' top: 'a' top: 'b' input_param { shape { dim: 8 dim: 3 } "
        "shape { dim: 8 } } } layer { name: 'c' type: 'Input' top: 'c' input_param { shape { dim: "
        "8 dim: 1 dim: 2 } } }",
        "batch=32", problems);
    assert_non_null(solver);
    for (size_t i = 0; i < 2; i++) {
        const Lockstep__InputParameter *input = solver->train.net->layer[i]->input_param;
        for (size_t s = 0; s < input->n_shape; s++)
            assert_int_equal(input->shape[s]->dim[0], 32);
    }
    assert_int_equal(solver->train.net->layer[1]->input_param->shape[0]->dim[2], 2);
    assert_int_equal(solver->test[0].net->layer[0]->input_param->shape[0]->dim[0], 8);
    ls_solver_definition_free(solver);
    assert_null(with_net("layer { name: 'a' type: 'Input' top: 'a' top: 'b' input_param { shape { "
                         "dim: 5 dim: 8 } shape { dim: 8 } } }",
                         "batch=4", problems));
    assert_non_null(strstr(problems, "begin with different extents"));
}

static void refused(void **state)
{
    (void)state;
    static const char one[] = "layer { name: 'a' " DATA "16 } }";
    static const char *const values[] = {"",   "0",          "-1",  "1.5",
                                         "x3", "2147483648", "8 9", "99999999999999999999999"};
    char problems[8192], set[64], wanted[256];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(set, sizeof set, "batch=%s", values[i]);
        snprintf(wanted, sizeof wanted,
                 "--set %s: a batch is a number of samples from 1 to 2147483647. hint: write --set "
                 "batch=64",
                 set);
        assert_null(with_net(one, set, problems));
        assert_string_equal(problems, wanted);
    }
    assert_null(with_net("layer { name: 'a' " DATA "16 } } layer { name: 'b' " DATA "8 } }",
                         "batch=4", problems));
    assert_string_equal(problems, "--set batch=4: the data layers of the net that is trained have "
                                  "different batches. hint: change batch_size in the net's file");
    assert_null(with_net("layer { name: 'a' type: 'Input' }", "batch=4", problems));
    assert_string_equal(problems, "--set batch=4: the net that is trained has no data layer with a "
                                  "batch_size. hint: change the shapes in the net's file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(trained_alone, set_up),
        cmocka_unit_test_setup(of_other_types, set_up),
        cmocka_unit_test_setup(of_inputs, set_up),
        cmocka_unit_test_setup(refused, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
