/* Every field of a solver is honoured, changes nothing (a warning), or is refused by name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "schema/fields.h"
#include "schema/solver_parts.h"

static const struct ls_solver_range ranges[] = {
    {"test_iter", 0, INFINITY, false, false},
    {"test_interval", 0, INFINITY, false, false},
    {"base_lr", 0, INFINITY, false, true},
    {"display", 0, INFINITY, false, false},
    {"max_iter", 0, INFINITY, false, false},
    {"gamma", -INFINITY, INFINITY, true, true},
    {"power", -INFINITY, INFINITY, true, true},
    {"momentum", 0, 1, false, true},
    {"weight_decay", 0, INFINITY, false, true},
    {"stepsize", 1, INFINITY, false, false},
    {"stepvalue", 0, INFINITY, false, false},
    {"snapshot", 0, INFINITY, false, false},
    {"device_id", 0, INFINITY, false, false},
    {"average_loss", 1, 1000000, false, false},
    {"delta", 0, INFINITY, true, true},
    {"clip_gradients", -INFINITY, INFINITY, true, true},
    {"iter_size", 1, INFINITY, false, false},
    {"rms_decay", 0, 1, false, true},
    {"momentum2", 0, 1, false, true},
    {"micro_batch", 0, INFINITY, false, false},
    {"max_epoch", 0, INFINITY, true, true},
    {"step_epoch", 0, INFINITY, true, true},
    {"stepvalue_epoch", 0, INFINITY, false, true},
    {"test_interval_epoch", 0, INFINITY, true, true},
    {"snapshot_epoch", 0, INFINITY, true, true},
    {"warmup_iter", 0, INFINITY, false, false},
    {"warmup_epoch", 0, INFINITY, false, true},
    {"warmup_start", 0, 1, false, false},
    {"warmup_start_lr", 0, INFINITY, false, true},
    {"stagelr", 0, INFINITY, false, true},
    {"stageiter", 0, INFINITY, false, false},
    {"lr_min", 0, INFINITY, false, true},
    {"pct_start", 0, 1, false, false},
    {"div_factor", 1, INFINITY, false, true},
    {"final_div_factor", 1, INFINITY, false, true},
    {"base_batch_size", 1, INFINITY, false, false},
    {"test_on_train", 0, INFINITY, false, false},
    {"snapshot_keep", 0, INFINITY, false, false},
};

/* All fields of the table are float or int32. */
static double number_at(const ProtobufCFieldDescriptor *field, const void *at)
{
    return field->type == PROTOBUF_C_TYPE_FLOAT ? (double)*(const float *)at
                                                : (double)*(const int32_t *)at;
}

/* "at least 0 and below 1" */
static void describe(const struct ls_solver_range *range, char text[96])
{
    bool low = range->low > -INFINITY, high = range->high < INFINITY;
    size_t length = 0;
    if (low)
        length +=
            (size_t)snprintf(text, 96, "%s %g", range->low_open ? "above" : "at least", range->low);
    if (high)
        length += (size_t)snprintf(text + length, 96 - length, "%s%s %g", low ? " and " : "",
                                   range->high_open ? "below" : "at most", range->high);
    if (!high && range->high_open)
        snprintf(text + length, 96 - length, "%sfinite", low ? " and " : "");
}

/* One problem a field, also where several values of a list are wrong. */
static int check_range(struct ls_solver_reading *reading, const ProtobufCMessage *message,
                       const struct ls_solver_range *range)
{
    const ProtobufCFieldDescriptor *field = ls_field_named(message->descriptor, range->field);
    size_t count = ls_field_count(message, field);
    char wanted[96];
    for (size_t i = 0; i < count; i++) {
        double value = number_at(field, ls_field_at(message, field, i));
        bool low = range->low_open ? value > range->low : value >= range->low;
        bool high = range->high_open ? value < range->high : value <= range->high;
        if (low && high) /* both false for NaN */
            continue;
        describe(range, wanted);
        return ls_solver_problem_at(reading, message, range->field, NULL, "%s must be %s, not %g",
                                    range->field, wanted, value);
    }
    return 0;
}

int ls_solver_check_ranges(struct ls_solver_reading *reading, const ProtobufCMessage *message,
                           const struct ls_solver_range *of, size_t count)
{
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        int found = check_range(reading, message, &of[i]);
        status = status != 0 ? status : found;
    }
    return status;
}

/* Two notations of one thing: at most one is given. */
static int check_pairs(struct ls_solver_reading *reading)
{
    static const char *const pairs[][2] = {
        {"max_iter", "max_epoch"},           {"stepsize", "step_epoch"},
        {"stepvalue", "stepvalue_epoch"},    {"test_interval", "test_interval_epoch"},
        {"snapshot", "snapshot_epoch"},      {"warmup_iter", "warmup_epoch"},
        {"warmup_start", "warmup_start_lr"},
    };
    int status = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (ls_solver_has(reading, pairs[i][0]) && ls_solver_has(reading, pairs[i][1]))
            status = ls_solver_problem(reading, pairs[i][1], "keep one of them",
                                       "both %s and %s are given", pairs[i][0], pairs[i][1]);
    return status;
}

static bool is_one_of(const char *word, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, known[i]) == 0)
            return true;
    return false;
}

/* What test nets with boxes show. */
static int check_detection(struct ls_solver_reading *reading)
{
    static const char *const kinds[] = {"classification", "detection"};
    static const char *const versions[] = {"Integral", "MaxIntegral", "11point"};
    const Lockstep__SolverParameter *solver = reading->solver;
    if (!is_one_of(solver->eval_type, kinds, 2))
        return ls_solver_unknown(reading, "eval_type", "kind of test", solver->eval_type, kinds, 2);
    if (!is_one_of(solver->ap_version, versions, 3))
        return ls_solver_unknown(reading, "ap_version", "average of precisions", solver->ap_version,
                                 versions, 3);
    return 0;
}

/* Which norm weight_decay is about. */
static int check_regularization(struct ls_solver_reading *reading)
{
    static const char *const types[] = {"L1", "L2"};
    const char *type = reading->solver->regularization_type;
    if (is_one_of(type, types, 2))
        return 0;
    return ls_solver_unknown(reading, "regularization_type", "regularization_type", type, types, 2);
}

/* What Lockstep does not do is said before a run, not left out of it. */
static int check_refused(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    int status = 0;
    if (solver->has_clip_gradients && solver->clip_gradients == 0)
        status = ls_solver_problem(reading, "clip_gradients",
                                   "leave it out for no limit, or name the largest norm",
                                   "clip_gradients 0 would make every gradient 0");
    return status;
}

/* Settings about tests, when it is known how many test nets there are. */
static int check_tests(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    size_t tests = reading->out->test_count;
    bool interval = solver->test_interval > 0 || solver->has_test_interval_epoch;
    int status = 0;
    if (solver->snapshot_best != NULL && tests == 0)
        status = ls_solver_problem(reading, "snapshot_best", "say when: test_interval",
                                   "snapshot_best needs a test net");
    if (solver->has_snapshot_best_mode && solver->snapshot_best == NULL)
        ls_solver_warn(reading, "snapshot_best_mode",
                       "snapshot_best_mode does nothing without snapshot_best");
    if (solver->test_on_train > 0 && !interval)
        status = ls_solver_problem(reading, "test_on_train", "say when: test_interval",
                                   "test_on_train needs a test interval");
    if (interval && tests == 0 && solver->test_on_train == 0)
        ls_solver_warn(reading,
                       solver->has_test_interval_epoch ? "test_interval_epoch" : "test_interval",
                       "there is no test net that could be tested");
    return status;
}

/* How long to train, and settings that depend on one other. */
static int check_rest(struct ls_solver_reading *reading)
{
    const Lockstep__SolverParameter *solver = reading->solver;
    const Lockstep__WeightAverageParameter *average = solver->weight_average;
    int status = 0;
    if (!solver->has_max_iter && !solver->has_max_epoch)
        status = ls_solver_problem(reading, NULL,
                                   "write max_iter or max_epoch, or give --set max_iter=N",
                                   "the solver does not say how long to train");
    if (average != NULL && !(average->decay >= 0 && average->decay < 1)) {
        char place[LS_PLACE_MAX];
        ls_place(reading->out->definition, average, "decay", place, sizeof place);
        status = ls_fail(reading->error, LOCKSTEP_DEFINITION, place, NULL,
                         "weight_average.decay must be at least 0 and below 1, not %g",
                         (double)average->decay);
    }
    if (solver->debug_info && solver->display == 0)
        ls_solver_warn(reading, "debug_info", "debug_info does nothing without display");
    if (solver->snapshot_diff && !solver->has_snapshot_format)
        ls_solver_warn(
            reading, "snapshot_diff",
            "snapshot_diff does nothing without snapshot_format: gradients go to Caffe's "
            "files");
    if (solver->snapshot_keep > 0 && solver->snapshot == 0 && !solver->has_snapshot_epoch &&
        solver->snapshot_best == NULL) /* which makes snapshots, too */
        ls_solver_warn(reading, "snapshot_keep", "snapshot_keep does nothing without snapshot");
    return status;
}

/* Ranges first: they are what a typing error hits most. */
int ls_solver_check(struct ls_solver_reading *reading, bool nets_known)
{
    int (*const checks[])(struct ls_solver_reading *) = {
        check_pairs,          ls_solver_check_type, ls_solver_check_groups, check_regularization,
        ls_solver_check_rate, check_refused,        check_detection,        check_rest};
    int status = ls_solver_check_ranges(reading, &reading->solver->base, ranges,
                                        sizeof ranges / sizeof ranges[0]),
        found;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        found = checks[i](reading);
        status = status != 0 ? status : found;
    }
    if (nets_known) {
        found = ls_solver_check_nets(reading);
        status = status != 0 ? status : found;
        found = check_tests(reading);
        status = status != 0 ? status : found;
    }
    return status;
}
