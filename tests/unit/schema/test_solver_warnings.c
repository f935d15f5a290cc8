/* Solver definitions: warnings, overrides, and the schema that they follow.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver_trial.h"

static void warnings(void **state)
{
    (void)state;
    struct ls_solver_definition *solver = works(
        BASE "gamma: 1 stepsize: 3 momentum2: .9 rms_decay: .9 base_batch_size: 3 warmup_start: .5 "
             "snapshot_keep: 3 solver_mode: GPU device_id: 3 layer_wise_reduce: false");
    static const char *const wanted[] = {
        "momentum2 does nothing with type 'SGD'",
        "rms_decay does nothing with type 'SGD'",
        "gamma does nothing with lr_policy 'fixed'",
        "stepsize does nothing with lr_policy 'fixed'",
        "base_batch_size does nothing without lr_scaling: LINEAR or SQRT",
        "warmup_start does nothing without warmup_iter or warmup_epoch",
        "snapshot_keep does nothing without snapshot",
    };
    assert_int_equal(solver->warning_count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < solver->warning_count; i++) {
        assert_non_null(strstr(solver->warning[i], wanted[i]));
        assert_memory_equal(solver->warning[i], solver_path, strlen(solver_path));
    }
    assert_true(solver->gpu_asked);
    ls_solver_definition_free(solver);
    solver = works(BASE "type: 'Adam' test_interval: 3 train_state {}");
    assert_int_equal(solver->warning_count, 1);
    assert_non_null(strstr(solver->warning[0], "Adam without momentum"));
    assert_false(solver->gpu_asked);
    ls_solver_definition_free(solver);
    solver = works(BASE "type: 'Muon' param_group { match: 'a' type: 'Lion' muon_param { } "
                        "momentum2: 0.9 momentum: 0.9 }");
    assert_int_equal(solver->warning_count, 2);
    assert_non_null(strstr(solver->warning[0], "Muon without momentum: its author has 0.95"));
    assert_non_null(strstr(solver->warning[1], "muon_param does nothing with type 'Lion'"));
    ls_solver_definition_free(solver);
    solver = works("train_net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed' max_iter: 9 "
                   "test_iter: 3 test_interval: 0 device_id: [0, 1] richness: 2");
    assert_int_equal(solver->warning_count, 2);
    assert_non_null(strstr(solver->warning[1], "are ignored: richness (TSN; 1 time)"));
    assert_non_null(strstr(solver->warning[0], "test_iter does nothing without a test net"));
    ls_solver_definition_free(solver);
}

/* A group's own fields that its type does not read. */
static void warnings_about_groups(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        ":2:31: momentum2 does nothing with type 'SGD'",
        ":3:40: corrected_delta does nothing with type 'LAMB'",
        ":4:43: rms_decay does nothing with type 'AdaGrad'",
        ":5:40: delta does nothing with type 'Lion'",
    };
    struct ls_solver_definition *solver =
        works(BASE "momentum: 0 momentum2: 0.9 delta: 1e-6\n"
                   "param_group { match: '*.bias' momentum2: 0.9 }\n"
                   "param_group { match: 'a*' type: 'LAMB' corrected_delta: true }\n"
                   "param_group { match: 'b*' type: 'AdaGrad' rms_decay: 0.9 delta: 1e-3 }\n"
                   "param_group { match: 'c*' type: 'Lion' delta: 1e-3 momentum2: 0.99 }\n"
                   "param_group { match: 'd*' type: 'AdamW' corrected_delta: true }");
    assert_int_equal(solver->warning_count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < solver->warning_count; i++)
        assert_non_null(strstr(solver->warning[i], wanted[i]));
    ls_solver_definition_free(solver);
}

/* The best snapshots are snapshots: some of them are kept. */
static void keeping_the_best_is_no_mistake(void **state)
{
    (void)state;
    struct ls_solver_definition *solver =
        works(BASE "test_interval: 1 snapshot_best: 'accuracy' snapshot_keep: 1");
    for (size_t i = 0; i < solver->warning_count; i++)
        assert_null(strstr(solver->warning[i], "snapshot_keep"));
    ls_solver_definition_free(solver);
}

/* Fields of a net that change nothing, each told once although two nets have them. */
static void warnings_about_nets(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        ":2:1: force_backward does nothing",
        ":3:70: layer 'a': std does nothing in a filler of type 'xavier' (3 fillers)",
        ":4:52: layer 'b': min does nothing in a filler of type 'constant'",
    };
    struct ls_solver_definition *solver =
        works("base_lr: 1 lr_policy: 'fixed' max_iter: 9 test_interval: 3 net_param {\n"
              "force_backward: true\n"
              "layer { name: 'a' convolution_param { weight_filler { type: 'xavier' std: 1 } } }\n"
              "layer { name: 'b' dummy_data_param { data_filler { min: 1 } } }\n"
              "layer { name: 'e' convolution_param { weight_filler { type: 'xavier' std: 1 }\n"
              "  bias_filler { type: 'xavier' std: 1 } } }\n"
              "layer { name: 'c' convolution_param { weight_filler { type: 'unknown' std: 1 } } }\n"
              "layer { name: 'd' convolution_param { weight_filler { type: 'gaussian' std: 1 } } } "
              "}");
    assert_int_equal(solver->test_count, 1);
    for (size_t i = 0; i < solver->warning_count; i++)
        if (i < sizeof wanted / sizeof wanted[0])
            assert_non_null(strstr(solver->warning[i], wanted[i]));
    assert_int_equal(solver->warning_count, sizeof wanted / sizeof wanted[0]);
    ls_solver_definition_free(solver);
    fails_with("base_lr: 1 lr_policy: 'fixed' max_iter: 9 test_interval: 3 net_param {\n"
               "layer { name: 'a' blobs { data: 1 } } }",
               "S:2:19: layer 'a' comes with learned values, which a definition cannot bring. "
               "hint: name the file that has them in weights: \"file\"");
}

static void overrides(void **state)
{
    (void)state;
    static const char *const set[] = {"base_lr=0.5",         "max_epoch=2.5",
                                      "type=Nesterov",       "snapshot_prefix='a b'",
                                      "test_state=[{}, {}]", "weight_average.decay=0.5",
                                      "test_interval=3",     "base_lr=.25"};
    char problems[8192], place[LS_PLACE_MAX];
    struct ls_solver_definition *solver =
        read_text(BASE "test_state {} solver_type: SGD", set, sizeof set / sizeof set[0], problems);
    assert_string_equal(problems, "");
    const Lockstep__SolverParameter *s = solver->solver;
    assert_true(s->base_lr == 0.25f);
    assert_false(s->has_max_iter); /* one of a pair unsets the other */
    assert_true(s->max_epoch == 2.5f);
    assert_string_equal(s->type, "Nesterov");
    assert_string_equal(s->snapshot_prefix, "a b");
    assert_int_equal(s->n_test_state, 2);
    assert_int_equal(solver->test_count, 2);
    assert_true(s->weight_average->decay == 0.5f);
    ls_place(solver->definition, s, "base_lr", place, sizeof place);
    assert_string_equal(place, "--set base_lr=.25");
    ls_place(solver->definition, s, "lr_policy", place, sizeof place);
    assert_string_equal(place + strlen(solver_path), ":1:32");
    ls_solver_definition_free(solver);
}

static void wrong_overrides(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"base_lrr=1",
         "--set base_lrr=1: unknown field 'base_lrr' in SolverParameter; did you mean 'base_lr'?"},
        {"base_lr", "--set base_lr: an override is a field, '=' and a value. hint: write --set "
                    "base_lr=0.02"},
        {"=3", "--set =3: an override is a field, '=' and a value. hint: write --set base_lr=0.02"},
        {"base_lr=", "--set base_lr=: expected a value, found the end of the text"},
        {"base_lr=x", "--set base_lr=x: field 'base_lr' takes a number, found 'x'"},
        {"max_iter=1 2", "--set max_iter=1 2: expected the name of a field, found '2'"},
        {"momentum=2", "--set momentum=2: momentum must be at least 0 and below 1, not 2"},
        {"base_lr.x=2", "--set base_lr.x=2: field 'base_lr' has no fields of its own"},
        {"test_state.level=2",
         "--set test_state.level=2: field 'test_state' has no fields of its own"},
        {"weight_average.decai=2", "--set weight_average.decai=2: unknown field 'decai' in "
                                   "WeightAverageParameter; did you mean 'decay'?"},
        {"net=gone", "--set net=gone: there is no file 'gone'. hint: a path is tried from the "
                     "working directory, then from the solver's folder"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char problems[8192];
        assert_null(read_text(BASE, &examples[i][0], 1, problems));
        assert_string_equal(problems, examples[i][1]);
    }
}

/* Every allocation of a whole reading fails once: an error each time, and nothing leaks. */
static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const set[] = {"base_lr=2", "weight_average.decay=.5"};
    ls_test_write_text(net_path, "input: 'i' input_dim: [1, 2, 3, 4]"
                                 "layers { layer { type: 'conv' num_output: 3 } bottom: 'i' }"
                                 "layers { type: DATA data_param { scale: 2 } blobs_lr: 1 }");
    ls_test_write_text(solver_path, BASE "test_interval: 3 test_state { stage: 's' } test_iter: 3");
    uint64_t before = ls_allocations();
    struct ls_solver_definition *solver;
    assert_int_equal(ls_solver_read(solver_path, set, 2, &solver, NULL), 0);
    ls_solver_definition_free(solver);
    long needed = (long)(ls_allocations() - before);
    assert_true(needed > 20);
    for (long n = 0; n < needed; n++) {
        struct ls_error error = {0};
        ls_fail_allocation_after(n);
        int status = ls_solver_read(solver_path, set, 2, &solver, &error);
        ls_fail_allocation_after(-1);
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_null(solver);
    }
    set_up(NULL);
}

static void seeds(void **state)
{
    (void)state;
    Lockstep__SolverParameter solver = LOCKSTEP__SOLVER_PARAMETER__INIT;
    assert_int_equal(ls_solver_seed(&solver), 1);
    solver.has_random_seed = 1;
    solver.random_seed = -7;
    assert_int_equal(ls_solver_seed(&solver), 1);
    solver.random_seed = 0;
    assert_int_equal(ls_solver_seed(&solver), 0);
    solver.random_seed = INT64_MAX;
    assert_int_equal(ls_solver_seed(&solver), INT64_MAX);
}

/* What Caffe knows is known, under its name and number (a sample of all kinds). */
static void the_schema_is_that_of_caffe(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *type = &lockstep__solver_parameter__descriptor;
    for (unsigned number = 1; number <= 42; number++)
        assert_non_null(protobuf_c_message_descriptor_get_field(type, number));
    static const struct {
        const ProtobufCMessageDescriptor *type;
        const char *name;
        unsigned number;
    } sample[] = {
        {&lockstep__net_parameter__descriptor, "layer", 100},
        {&lockstep__layer_parameter__descriptor, "clip_param", 148},
        {&lockstep__layer_parameter__descriptor, "convolution_param", 106},
        {&lockstep__convolution_parameter__descriptor, "dilation", 18},
        {&lockstep__v1_layer_parameter__descriptor, "blob_share_mode", 1002},
        {&lockstep__v0_layer_parameter__descriptor, "det_crop_mode", 59},
        {&lockstep__blob_proto__descriptor, "double_diff", 9},
        {&lockstep__datum__descriptor, "encoded", 7},
        {&lockstep__data_parameter__descriptor, "source", 1},
        {&lockstep__solver_state__descriptor, "current_step", 4},
    };
    for (size_t i = 0; i < sizeof sample / sizeof sample[0]; i++)
        assert_string_equal(
            protobuf_c_message_descriptor_get_field(sample[i].type, sample[i].number)->name,
            sample[i].name);
    unsigned caffes = 0;
    for (unsigned i = 0; i < lockstep__layer_parameter__descriptor.n_fields; i++)
        caffes += lockstep__layer_parameter__descriptor.fields[i].id <= 148; /* behind: forks */
    assert_int_equal(caffes, 11 + 49);
}

static void examples_are_solvers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "examples/mnist/lenet_solver.prototxt",
        "examples/digits/lenet_solver.prototxt",
        "examples/cifar10/cifar10_quick_solver.prototxt",
        "examples/cifar10/cifar10_quick_solver_lr1.prototxt",
        "examples/cifar10/cifar10_full_solver.prototxt",
        "examples/cifar10/cifar10_full_solver_lr1.prototxt",
        "examples/cifar10/cifar10_full_solver_lr2.prototxt",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ls_error error = {0};
        struct ls_solver_definition *solver;
        char problems[2048];
        ls_solver_read(ls_test_source(names[i]), NULL, 0, &solver, &error);
        ls_error_format(&error, problems, sizeof problems);
        assert_string_equal(problems, "");
        assert_int_equal(solver->test_count, 1);
        assert_int_equal(solver->warning_count, 0);
        ls_solver_definition_free(solver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings),
        cmocka_unit_test(warnings_about_groups),
        cmocka_unit_test(keeping_the_best_is_no_mistake),
        cmocka_unit_test(warnings_about_nets),
        cmocka_unit_test(overrides),
        cmocka_unit_test(wrong_overrides),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(seeds),
        cmocka_unit_test(the_schema_is_that_of_caffe),
        cmocka_unit_test(examples_are_solvers),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
