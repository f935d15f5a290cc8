/* Solver definitions: their nets, the ranges of their fields, and refusals.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver_trial.h"

static void nets_of_one_file(void **state)
{
    (void)state;
    struct ls_solver_definition *solver = works(BASE);
    net_is(&solver->train, "a");
    assert_int_equal(solver->test_count, 0);
    assert_string_equal(solver->train.definition->file, net_path);
    assert_int_equal(solver->file_count, 1);
    assert_int_equal(solver->warning_count, 0);
    ls_solver_definition_free(solver);

    solver = works(BASE "test_interval: 5"); /* no test_iter: every sample once */
    assert_int_equal(solver->test_count, 1);
    net_is(&solver->test[0], "b");
    assert_int_equal(solver->test[0].test_iter, 0);
    assert_int_equal(solver->test[0].net->state->phase, LOCKSTEP__PHASE__TEST);
    assert_int_equal(solver->file_count, 1);
    ls_solver_definition_free(solver);

    solver = works(BASE "test_interval_epoch: .5 test_iter: [3, 4] train_state { stage: 't' }"
                        "test_state { stage: 's' } test_state { stage: 't' phase: TRAIN }");
    net_is(&solver->train, "ad");
    assert_int_equal(solver->test_count, 2);
    net_is(&solver->test[0], "bc");
    net_is(&solver->test[1], "ad");
    assert_int_equal(solver->test[1].test_iter, 4);
    ls_solver_definition_free(solver);

    solver = works(BASE "test_interval: 1 test_state {} test_state {}");
    assert_int_equal(solver->test_count, 2);
    ls_solver_definition_free(solver);
}

static void nets_of_several_places(void **state)
{
    (void)state;
    struct ls_solver_definition *solver =
        works("train_net_param { layer { name: 'x' } } test_net: 'net.prototxt'"
              "test_net_param { layers { name: 'y' } } test_interval: 3 test_iter: [1, 2]"
              "base_lr: 1 lr_policy: 'fixed' max_epoch: 2");
    net_is(&solver->train, "x");
    net_is(&solver->test[0], "y"); /* nets inside come first */
    net_is(&solver->test[1], "b");
    assert_int_equal(solver->test[1].test_iter, 2);
    assert_string_equal(solver->train.definition->file, solver_path);
    ls_solver_definition_free(solver);

    solver = works("net_param { layer { name: 'x' } } test_net: 'net.prototxt' test_interval: 3"
                   " test_iter: [1, 2, 3] base_lr: 1 lr_policy: 'fixed' max_epoch: 2");
    assert_int_equal(solver->test_count, 3); /* what is left over goes to the common net */
    net_is(&solver->test[0], "b");
    net_is(&solver->test[1], "x");
    net_is(&solver->test[2], "x");
    ls_solver_definition_free(solver);
}

static void wrong_nets(void **state)
{
    (void)state;
    const char *rest = "base_lr: 1 lr_policy: 'fixed' max_iter: 9";
    char text[1024];
    fails_with(rest, "S: the solver names no net to train: net, net_param, train_net or "
                     "train_net_param. hint: write net: \"file.prototxt\"");
    snprintf(text, sizeof text, "net: 'net.prototxt'\ntrain_net: 'x' %s", rest);
    fails_with(text, "S:2:1: the solver names more than one net to train: net and train_net. hint: "
                     "keep one of them");
    snprintf(text, sizeof text,
             "test_net: 'net.prototxt'\ntest_net: 'missing'\nnet: 'gone'\n"
             "test_interval: 1 %s",
             rest);
    fails_with(text, "S:3:1: there is no file 'gone'. hint: a path is tried from the working "
                     "directory, then from the solver's folder\n"
                     "S:2:1: there is no file 'missing'. hint: a path is tried from the working "
                     "directory, then from the solver's folder");
    fails_with(BASE "\ntest_iter: 3",
               "S:2:1: there are test nets, but they are never tested. hint: say how often: "
               "test_interval or test_interval_epoch");
    fails_with(BASE "test_interval: 3 test_net: 'net.prototxt' test_net: 'net.prototxt'\n"
                    "test_iter: 3",
               "S:2:1: test_iter is given 1 times for 2 test nets. hint: one for each, or none for "
               "all samples");
    fails_with("train_net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed' max_iter: 9 "
               "test_interval: 3\ntest_iter: 3",
               "S:2:1: test_iter is given 1 times for 0 test nets. hint: one for each, or none for "
               "all samples");
    fails_with(BASE "test_interval: 3 test_iter: 3\ntest_state {} test_state {}",
               "S:2:1: test_state is given 2 times for 1 test nets. hint: one for each, or none");
}

static void a_net_is_not_a_solver(void **state)
{
    (void)state;
    fails_with("name: 'n' layer { name: 'a' } layer { name: 'b' }",
               "S: this is a net, not a solver. hint: a solver names a net (net: "
               "\"net.prototxt\") and says how to train it");
}

/* Problems of the solver and of all its files, in one go, each once. */
static void all_problems_together(void **state)
{
    (void)state;
    char other[512];
    strcpy(other, ls_test_path("other.prototxt"));
    ls_test_write_text(other, "nam: 'x'\nlayer { name: 3 }");
    char problems[8192];
    struct ls_solver_definition *solver = read_text(
        "net: 'other.prototxt' test_net: 'net.prototxt' test_iter: [1, 1] test_interval: 1\n"
        "base_lrr: 1 max_iter: x",
        NULL, 0, problems);
    assert_null(solver);
    char wanted[2048];
    snprintf(wanted, sizeof wanted,
             "S:2:23: field 'max_iter' takes a whole number, found 'x'\n"
             "S:2:1: unknown field 'base_lrr' in SolverParameter; did you mean 'base_lr'?\n"
             "%s:2:15: field 'name' takes a string in quotes, found '3'\n"
             "%s:1:1: unknown field 'nam' in NetParameter; did you mean 'name'?",
             other, other);
    assert_string_equal(problems, wanted);
}

static void ranges(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"test_iter: -1 test_interval: 1", "test_iter must be at least 0, not -1"},
        {"test_interval: -1", "test_interval must be at least 0, not -1"},
        {"display: -1", "display must be at least 0, not -1"},
        {"gamma: nan lr_policy: 'exp'", "gamma must be finite, not nan"},
        {"momentum: 1", "momentum must be at least 0 and below 1, not 1"},
        {"momentum: -0.1", "momentum must be at least 0 and below 1, not -0.1"},
        {"weight_decay: -1", "weight_decay must be at least 0 and finite, not -1"},
        {"weight_decay: inf", "weight_decay must be at least 0 and finite, not inf"},
        {"stepsize: 0 gamma: 1 lr_policy: 'step'", "stepsize must be at least 1, not 0"},
        {"stepvalue: -5 gamma: 1 lr_policy: 'multistep'", "stepvalue must be at least 0, not -5"},
        {"snapshot: -1", "snapshot must be at least 0, not -1"},
        {"device_id: -1", "device_id must be at least 0, not -1"},
        {"average_loss: 0", "average_loss must be at least 1 and at most 1e+06, not 0"},
        {"delta: 0 type: 'Adam' momentum: .9", "delta must be above 0 and finite, not 0"},
        {"clip_gradients: nan", "clip_gradients must be finite, not nan"},
        {"iter_size: 0", "iter_size must be at least 1, not 0"},
        {"momentum2: 1 type: 'Adam' momentum: .9",
         "momentum2 must be at least 0 and below 1, not 1"},
        {"rms_decay: 1", "rms_decay must be at least 0 and below 1, not 1"},
        {"micro_batch: -1", "micro_batch must be at least 0, not -1"},
        {"step_epoch: 0 gamma: 1 lr_policy: 'step'",
         "step_epoch must be above 0 and finite, not 0"},
        {"test_interval_epoch: 0", "test_interval_epoch must be above 0 and finite, not 0"},
        {"snapshot_epoch: -1", "snapshot_epoch must be above 0 and finite, not -1"},
        {"warmup_iter: -1", "warmup_iter must be at least 0, not -1"},
        {"warmup_epoch: inf", "warmup_epoch must be at least 0 and finite, not inf"},
        {"warmup_iter: 1 warmup_start: 2", "warmup_start must be at least 0 and at most 1, not 2"},
        {"warmup_iter: 1 warmup_start_lr: -1",
         "warmup_start_lr must be at least 0 and finite, not -1"},
        {"warmup_iter: 1 warmup_start: .5 warmup_start_lr: .1",
         "both warmup_start and warmup_start_lr are given. hint: keep one of them"},
        {"lr_policy: 'multifixed' stagelr: -1 stageiter: 1",
         "stagelr must be at least 0 and finite, not -1"},
        {"lr_policy: 'multifixed' stagelr: 1 stagelr: 2 stageiter: 5 stageiter: 5",
         "the values of stageiter must ascend"},
        {"lr_policy: 'multifixed' stagelr: 1 stagelr: 2 stageiter: 5",
         "stagelr is given 2 times and stageiter 1 times. hint: one of both for each stage"},
        {"lr_policy: 'multifixed' stagelr: 1", "lr_policy 'multifixed' needs stageiter"},
        {"lr_min: -1 lr_policy: 'cosine'", "lr_min must be at least 0 and finite, not -1"},
        {"pct_start: 1.5 lr_policy: 'onecycle'",
         "pct_start must be at least 0 and at most 1, not 1.5"},
        {"div_factor: 0 lr_policy: 'onecycle'", "div_factor must be at least 1 and finite, not 0"},
        {"base_batch_size: 0 lr_scaling: SQRT", "base_batch_size must be at least 1, not 0"},
        {"test_on_train: -1", "test_on_train must be at least 0, not -1"},
        {"snapshot_keep: -1", "snapshot_keep must be at least 0, not -1"},
        {"weight_average { decay: 1 }",
         "weight_average.decay must be at least 0 and below 1, not 1"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        bool policy = strstr(examples[i][0], "lr_policy") != NULL;
        char text[512], problems[8192], *second;
        snprintf(text, sizeof text, "net: 'net.prototxt' base_lr: 1 max_iter: 9 %s %s",
                 policy ? "" : "lr_policy: 'fixed'", examples[i][0]);
        assert_null(read_text(text, NULL, 0, problems));
        second = strchr(problems, '\n'); /* of all that follows from it the first is meant */
        if (second != NULL)
            *second = '\0';
        const char *message = strstr(problems, ": ");
        assert_non_null(message);
        assert_string_equal(message + 2, examples[i][1]);
    }
}

static void words(void **state)
{
    (void)state;
    fails_with(BASE "\ntype: 'Adamm'", "S:2:1: unknown solver type 'Adamm'; did you mean 'Adam'?");
    fails_with(BASE "\ntype: 'Newton'",
               "S:2:1: unknown solver type 'Newton'. hint: known are SGD, Nesterov, Adam, AdamW, "
               "AdaGrad, RMSProp, AdaDelta, Lion, LAMB, Muon and Adafactor");
    fails_with(BASE "type: 'AdaGrad'\nmomentum: .9",
               "S:2:1: momentum cannot be used with type 'AdaGrad'. hint: leave it out");
    fails_with(BASE "solver_type: RMSPROP\nmomentum: .9",
               "S:2:1: momentum cannot be used with type 'RMSProp'. hint: leave it out");
    fails_with(BASE "type: 'RMSProp'\nrms_decay: 1",
               "S:2:1: rms_decay must be at least 0 and below 1, not 1");
    fails_with(BASE "\nregularization_type: 'l2'",
               "S:2:1: unknown regularization_type 'l2'; did you mean 'L2'?");
    fails_with(
        BASE "type: 'AdamW' momentum: .9\nregularization_type: 'L1'",
        "S:2:1: AdamW decays weights themselves; there is no other kind. hint: leave it out");
    fails_with("net: 'net.prototxt' base_lr: 1 max_iter: 3\nlr_policy: 'stepp'",
               "S:2:1: unknown lr_policy 'stepp'; did you mean 'step'?");
}

static void groups(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"match: '*.bias' decay_mult: 0", ""},
        {"max_axes: 1 type: 'AdamW' momentum: 0.9 base_lr: 0.1 delta: 1e-6", ""},
        {"decay_mult: 0", "S:2:1: a param_group must say which parameters it is for. hint: write "
                          "match: \"*.bias\", min_axes or max_axes"},
        {"match: ''", "S:2:15: an empty pattern matches no parameter. hint: write match: "
                      "\"*.bias\""},
        {"match: '*' lr_mult: nan", "S:2:26: lr_mult must be at least 0 and finite, not nan"},
        {"match: '*' decay_mult: -1", "S:2:26: decay_mult must be at least 0 and finite, not -1"},
        {"match: '*' base_lr: inf", "S:2:26: base_lr must be at least 0 and finite, not inf"},
        {"match: '*' momentum: 1", "S:2:26: momentum must be at least 0 and below 1, not 1"},
        {"match: '*' momentum2: 1.5", "S:2:26: momentum2 must be at least 0 and below 1, not 1.5"},
        {"match: '*' delta: 0", "S:2:26: delta must be above 0 and finite, not 0"},
        {"match: '*' weight_decay: -inf",
         "S:2:26: weight_decay must be at least 0 and finite, not -inf"},
        {"min_axes: -1", "S:2:15: min_axes must be at least 0, not -1"},
        {"min_axes: 3 max_axes: 2", "S:2:27: max_axes is less than min_axes"},
        {"match: '*' type: 'Lyon'", "S:2:26: unknown solver type 'Lyon'; did you mean 'Lion'?"},
        {"match: '*' type: 'AdaGrad' momentum: 0.5",
         "S:2:42: momentum cannot be used with type 'AdaGrad'. hint: leave it out"},
        {"min_axes: 2 type: 'Muon' momentum: 0.9 muon_param { newton_schulz: 20 }", ""},
        {"match: '*' muon_param { newton_schulz: 0 }",
         "S:2:39: newton_schulz must be at least 1 and at most 20, not 0"},
        {"match: '*' muon_param { newton_schulz: 21 }",
         "S:2:39: newton_schulz must be at least 1 and at most 20, not 21"},
        {"match: '*' muon_param { newton_schulz: 2147483648 }",
         "S:2:54: the value 2147483648 of field 'newton_schulz' is out of range (32 bits)"},
        {"match: '*' muon_param { scale: LARGE }",
         "S:2:46: field 'scale' takes one of ORIGINAL, MATCH_RMS, found 'LARGE'"},
        {"match: '*' type: 'Adafactor' adafactor_param { clip: 0.5 square_min: 0 }", ""},
        {"match: '*' adafactor_param { clip: 0 }",
         "S:2:44: clip must be above 0 and finite, not 0"},
        {"match: '*' adafactor_param { clip: nan }",
         "S:2:44: clip must be above 0 and finite, not nan"},
        {"match: '*' adafactor_param { decay_power: -0.8 }",
         "S:2:44: decay_power must be at least 0 and finite, not -0.8"},
        {"match: '*' adafactor_param { scale_min: inf }",
         "S:2:44: scale_min must be at least 0 and finite, not inf"},
        {"match: '*' adafactor_param { square_min: -1 }",
         "S:2:44: square_min must be at least 0 and finite, not -1"},
        {"match: 'a' name: 'x' } param_group { match: 'b' name: 'x'",
         "S:2:63: there is another param_group 'x' above"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, BASE "\nparam_group { %s }", examples[i][0]);
        fails_with(text, examples[i][1]);
    }
    fails_with("net: 'net.prototxt' base_lr: 0 lr_policy: 'fixed' max_iter: 9\n"
               "param_group { match: '*' base_lr: 1 }",
               "S:2:26: base_lr of a param_group needs a base_lr above 0 in the solver: rates of "
               "the policy are multiplied by their quotient. hint: write lr_mult in the group");
    fails_with(BASE "momentum: 0.9\nparam_group { match: '*' type: 'RMSProp' }",
               "S:2:1: momentum cannot be used with type 'RMSProp'. hint: write momentum: 0 in the "
               "group");
    fails_with(BASE "\nadafactor_param { clip: -1 }",
               "S:2:19: clip must be above 0 and finite, not -1");
    fails_with(BASE "\nregularization_type: 'L1' type: 'Adafactor'",
               "S:2:1: Adafactor decays weights themselves; there is no other kind. hint: leave it "
               "out");
    fails_with(BASE "\nmuon_param { newton_schulz: -1 }",
               "S:2:14: newton_schulz must be at least 1 and at most 20, not -1");
    fails_with(BASE "\nregularization_type: 'L1' param_group { min_axes: 2 type: 'Muon' }",
               "S:2:1: Muon decays weights themselves; there is no other kind. hint: leave it out");
    fails_with(BASE "\nregularization_type: 'L1' param_group { match: '*' type: 'LAMB' }",
               "S:2:1: LAMB decays weights themselves; there is no other kind. hint: leave it out");
}

static void policies(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"fixed", ""},
        {"cosine", ""},
        {"onecycle", ""},
        {"step", "S:2:1: lr_policy 'step' needs gamma\n"
                 "S:2:1: lr_policy 'step' needs stepsize or step_epoch"},
        {"exp", "S:2:1: lr_policy 'exp' needs gamma"},
        {"inv", "S:2:1: lr_policy 'inv' needs gamma\nS:2:1: lr_policy 'inv' needs power"},
        {"multistep", "S:2:1: lr_policy 'multistep' needs gamma\n"
                      "S:2:1: lr_policy 'multistep' needs stepvalue or stepvalue_epoch"},
        {"poly", "S:2:1: lr_policy 'poly' needs power"},
        {"sigmoid", "S:2:1: lr_policy 'sigmoid' needs gamma\n"
                    "S:2:1: lr_policy 'sigmoid' needs stepsize or step_epoch"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "net: 'net.prototxt' base_lr: 1 max_iter: 3\nlr_policy: '%s'",
                 examples[i][0]);
        fails_with(text, examples[i][1]);
    }
    const char *start =
        "net: 'net.prototxt' base_lr: 1 max_iter: 3 lr_policy: 'multistep' gamma: 1 ";
    char text[256];
    snprintf(text, sizeof text, "%s stepvalue: [1, 2]", start);
    fails_with(text, "");
    snprintf(text, sizeof text, "%s stepvalue_epoch: [0.5, 2]", start);
    fails_with(text, "");
    snprintf(text, sizeof text, "%s\nstepvalue: [1, 2, 2]", start);
    fails_with(text, "S:2:13: the values of stepvalue must ascend");
    snprintf(text, sizeof text, "%s stepvalue: 1\nstepvalue_epoch: [1, .5]", start);
    fails_with(text,
               "S:2:19: both stepvalue and stepvalue_epoch are given. hint: keep one of them\n"
               "S:2:19: the values of stepvalue_epoch must ascend");
    fails_with("net: 'net.prototxt' base_lr: 1 max_iter: 3 lr_policy: 'exp'\ngamma: -1",
               "S:2:1: gamma must not be negative with lr_policy 'exp'");
    fails_with("net: 'net.prototxt' base_lr: 1 max_iter: 3 lr_policy: 'sigmoid' gamma: -1 "
               "step_epoch: 1",
               "");
}

static void refused_and_missing(void **state)
{
    (void)state;
    fails_with("net: 'net.prototxt'", "S: the solver has no lr_policy. hint: write lr_policy: "
                                      "\"fixed\", or another\n"
                                      "S: the solver has no base_lr. hint: write base_lr: 0.01, or "
                                      "another rate\n"
                                      "S: the solver does not say how long to train. hint: write "
                                      "max_iter or max_epoch, or give --set max_iter=N");
    fails_with(BASE "\nclip_gradients: 0\nmax_epoch: 3",
               "S:3:1: both max_iter and max_epoch are given. hint: keep one of them\n"
               "S:2:1: clip_gradients 0 would make every gradient 0. hint: leave it out for no "
               "limit, or name the largest norm");
    fails_with(BASE "\nsnapshot_best: 'accuracy' test_on_train: 100",
               "S:2:1: snapshot_best needs a test net. hint: say when: test_interval\n"
               "S:2:27: test_on_train needs a test interval. hint: say when: test_interval");
    fails_with(BASE "\nlr_scaling: LINEAR",
               "S:2:1: lr_scaling needs the batch that base_lr is meant for. hint: write "
               "base_batch_size: N");
    fails_with("net: 'net.prototxt' base_lr: 1 max_iter: 3 lr_policy: 'cosine'\nlr_min: 2",
               "S:2:1: lr_min is larger than base_lr");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nets_of_one_file),
        cmocka_unit_test(nets_of_several_places),
        cmocka_unit_test(wrong_nets),
        cmocka_unit_test(a_net_is_not_a_solver),
        cmocka_unit_test(all_problems_together),
        cmocka_unit_test(ranges),
        cmocka_unit_test(words),
        cmocka_unit_test(groups),
        cmocka_unit_test(policies),
        cmocka_unit_test(refused_and_missing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
