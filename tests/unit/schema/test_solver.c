/* Solvers: which nets they name, overrides, and what is said about every field.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schema/solver.h"
#include "support/support.h"

enum { SET_MAX = 8 };

/* What every solver below needs, and names nothing that is missing. */
#define BASE "net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed' max_iter: 9 "

static char solver_path[512], net_path[512];

static int set_up(void **state)
{
    (void)state;
    strcpy(net_path, ls_test_path("net.prototxt"));
    strcpy(solver_path, ls_test_path("solver.prototxt"));
    ls_test_write_text(net_path, "layer { name: 'a' include { phase: TRAIN } }\n"
                                 "layer { name: 'b' include { phase: TEST } }\n"
                                 "layer { name: 'c' include { stage: 's' } }\n"
                                 "layer { name: 'd' include { stage: 't' } }");
    return 0;
}

/* Reads a text as a solver's file; *problems (8192 bytes) gets what was reported, with "S:" for the
 * solver's path and "N:" for the net's. */
static struct ls_solver_definition *read_text(const char *text, const char *const *set,
                                              size_t count, char *problems)
{
    struct ls_error error = {0};
    struct ls_solver_definition *solver;
    ls_test_write_text(solver_path, text);
    int status = ls_solver_read(solver_path, set, count, &solver, &error);
    assert_int_equal(status == 0, solver != NULL);
    assert_int_equal(status == 0, error.count == 0);
    if (status != 0)
        assert_int_equal(status, LOCKSTEP_DEFINITION);
    char raw[8192];
    ls_error_format(&error, raw, sizeof raw);
    char *out = problems;
    for (const char *at = raw; *at != '\0';) {
        if (strncmp(at, solver_path, strlen(solver_path)) == 0) {
            at += strlen(solver_path);
            *out++ = 'S';
        } else if (strncmp(at, net_path, strlen(net_path)) == 0) {
            at += strlen(net_path);
            *out++ = 'N';
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
    return solver;
}

static void fails_with(const char *text, const char *wanted)
{
    char problems[8192];
    struct ls_solver_definition *solver = read_text(text, NULL, 0, problems);
    if (strcmp(problems, wanted) != 0)
        fail_msg("%s\nsays\n%s\nand not\n%s", text, problems, wanted);
    ls_solver_definition_free(solver);
}

static struct ls_solver_definition *works(const char *text)
{
    char problems[8192];
    struct ls_solver_definition *solver = read_text(text, NULL, 0, problems);
    assert_string_equal(problems, "");
    return solver;
}

static void net_is(const struct ls_net_definition *net, const char *wanted)
{
    char names[64] = "";
    for (size_t i = 0; i < net->net->n_layer; i++)
        strcat(names, net->net->layer[i]->name);
    assert_string_equal(names, wanted);
}

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
             "S:2:1: unknown field 'base_lrr' in SolverParameter; did you mean 'base_lr'?\n"
             "S:2:23: field 'max_iter' takes a whole number, found 'x'\n"
             "%s:1:1: unknown field 'nam' in NetParameter; did you mean 'name'?\n"
             "%s:2:15: field 'name' takes a string in quotes, found '3'",
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
    fails_with(BASE "\ntype: 'Lion'",
               "S:2:1: unknown solver type 'Lion'. hint: known are SGD, Nesterov, Adam, AdamW, "
               "AdaGrad, RMSProp and AdaDelta");
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
                                      "max_iter or max_epoch");
    fails_with(BASE "\nsnapshot_diff: true\nsnapshot_format: HDF5\ndebug_info: true\n"
                    "clip_gradients: 0\nmax_epoch: 3",
               "S:6:1: both max_iter and max_epoch are given. hint: keep one of them\n"
               "S:2:1: gradients are not written to snapshots. hint: leave it out\n"
               "S:3:1: snapshots are not written as HDF5. hint: leave it out for a safetensors "
               "file, or write BINARYPROTO for a caffemodel beside it\n"
               "S:4:1: debug_info is not supported. hint: leave it out\n"
               "S:5:1: clip_gradients 0 would make every gradient 0. hint: leave it out for no "
               "limit, or name the largest norm");
    fails_with("net_param {\n debug_info: true } base_lr: 1 lr_policy: 'fixed' max_iter: 9",
               "S:2:2: debug_info is not supported. hint: leave it out");
    fails_with(BASE "\nsnapshot_best: 'accuracy' test_on_train: 100",
               "S:2:1: snapshot_best needs a test net. hint: say when: test_interval\n"
               "S:2:27: test_on_train needs a test interval. hint: say when: test_interval");
    fails_with(BASE "\nlr_scaling: LINEAR",
               "S:2:1: lr_scaling needs the batch that base_lr is meant for. hint: write "
               "base_batch_size: N");
    fails_with("net: 'net.prototxt' base_lr: 1 max_iter: 3 lr_policy: 'cosine'\nlr_min: 2",
               "S:2:1: lr_min is larger than base_lr");
}

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
        ":3:70: layer 'a': std does nothing in a filler of type 'xavier'",
        ":4:52: layer 'b': min does nothing in a filler of type 'constant'",
    };
    struct ls_solver_definition *solver =
        works("base_lr: 1 lr_policy: 'fixed' max_iter: 9 test_interval: 3 net_param {\n"
              "force_backward: true\n"
              "layer { name: 'a' convolution_param { weight_filler { type: 'xavier' std: 1 } } }\n"
              "layer { name: 'b' dummy_data_param { data_filler { min: 1 } } }\n"
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
        caffes += lockstep__layer_parameter__descriptor.fields[i].id < 10000;
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
        cmocka_unit_test(nets_of_one_file),
        cmocka_unit_test(nets_of_several_places),
        cmocka_unit_test(wrong_nets),
        cmocka_unit_test(a_net_is_not_a_solver),
        cmocka_unit_test(all_problems_together),
        cmocka_unit_test(ranges),
        cmocka_unit_test(words),
        cmocka_unit_test(policies),
        cmocka_unit_test(refused_and_missing),
        cmocka_unit_test(warnings),
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
