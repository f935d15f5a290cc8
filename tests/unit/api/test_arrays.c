/* Arrays of the program's memory as data of a solver: what can be given, and what is refused.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

enum { RECORDS = 12 };

static char path[64];
static float numbers[RECORDS][3];
static int32_t labels[RECORDS];

static int write_solver(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "arrays-%d.prototxt", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("base_lr: 0.1 lr_policy: \"fixed\" max_iter: 4 net_param {\n"
          "layer { name: 'in' type: 'Input' top: 'data' top: 'label'\n"
          "  input_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }\n"
          "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
          "  inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }\n"
          "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' } }\n",
          file);
    assert_int_equal(fclose(file), 0);
    for (int i = 0; i < RECORDS; i++) {
        labels[i] = i % 2;
        for (int k = 0; k < 3; k++)
            numbers[i][k] = (float)((i * 7 + k * 5) % 11) - 5;
    }
    return 0;
}

static int remove_solver(void **state)
{
    (void)state;
    return unlink(path);
}

/* The two arrays that the net asks for. */
static void make_arrays(struct lockstep_array arrays[2])
{
    arrays[0] = (struct lockstep_array){
        .name = "data", .type = "<f4", .rank = 2, .extent = {RECORDS, 3}, .data = numbers};
    arrays[1] = (struct lockstep_array){
        .name = "label", .type = "<i4", .rank = 1, .extent = {RECORDS}, .data = labels};
}

static int give(const struct lockstep_array *arrays, size_t count, struct lockstep_solver **solver,
                struct lockstep_error *error)
{
    assert_int_equal(lockstep_solver_load(path, NULL, 0, solver, error), 0);
    return lockstep_solver_use_arrays(*solver, arrays, count, error);
}

/* The loss after some updates. */
static double train(const struct lockstep_array *arrays, int workers)
{
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = workers;
    assert_int_equal(give(arrays, 2, &solver, NULL), 0);
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, NULL), 0);
    lockstep_solver_free(solver); /* the trainer keeps what it needs */
    assert_int_equal(lockstep_trainer_step(trainer, 5, NULL), 0);
    const double loss = lockstep_trainer_loss(trainer);
    lockstep_trainer_free(trainer);
    return loss;
}

static int bring(void *user, int64_t index, void *record)
{
    if (user != NULL && index == 9)
        return 1;
    memcpy(record, numbers[index], sizeof numbers[index]);
    return 0;
}

static void memory_and_functions_give_the_same_training(void **state)
{
    (void)state;
    struct lockstep_array arrays[2];
    make_arrays(arrays);
    const double loss = train(arrays, 1);
    arrays[0].data = NULL;
    arrays[0].read = bring;
    assert_true(loss > 0 && loss == train(arrays, 3));
}

static void a_record_that_cannot_be_brought_ends_the_training(void **state)
{
    (void)state;
    struct lockstep_array arrays[2];
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
    make_arrays(arrays);
    arrays[0].data = NULL;
    arrays[0].read = bring;
    arrays[0].user = arrays;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    assert_int_equal(give(arrays, 2, &solver, error), 0);
    int status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status == 0)
        status = lockstep_trainer_step(trainer, 5, error);
    assert_int_equal(status, LOCKSTEP_DATA);
    assert_non_null(strstr(lockstep_error_text(error), "record 9"));
    struct lockstep_problem problem;
    assert_int_equal(lockstep_error_count(error), 1);
    lockstep_error_problem(error, 0, &problem);
    assert_int_equal(problem.status, LOCKSTEP_DATA);
    assert_string_equal(problem.place, "data");
    lockstep_error_problem(error, 1, &problem);
    assert_string_equal(problem.message, "");
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

/* Gives the two arrays with a change; the status. */
static int change(void (*make)(struct lockstep_array *arrays), size_t count)
{
    struct lockstep_array arrays[3];
    struct lockstep_solver *solver;
    make_arrays(arrays);
    arrays[2] = arrays[1];
    make(arrays);
    int status = give(arrays, count, &solver, NULL);
    lockstep_solver_free(solver);
    return status;
}

static void none(struct lockstep_array *arrays)
{
    (void)arrays;
}

static void no_name(struct lockstep_array *arrays)
{
    arrays[0].name = NULL;
}

static void no_numbers(struct lockstep_array *arrays)
{
    arrays[0].data = NULL;
}

static void both(struct lockstep_array *arrays)
{
    arrays[0].read = bring;
}

static void no_axes(struct lockstep_array *arrays)
{
    arrays[0].rank = 0;
}

static void too_many_axes(struct lockstep_array *arrays)
{
    arrays[0].rank = LOCKSTEP_AXES_MAX + 1;
}

static void negative(struct lockstep_array *arrays)
{
    arrays[0].extent[0] = -1;
}

static void other_type(struct lockstep_array *arrays)
{
    arrays[0].type = "<c16 and more than there is room for in any text of a type";
}

static void other_shape(struct lockstep_array *arrays)
{
    arrays[0].extent[1] = 4;
}

static void other_name(struct lockstep_array *arrays)
{
    arrays[2].name = "other";
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(change(none, 2), 0);
    assert_int_equal(change(none, 0), 0);
    assert_int_equal(change(none, 1), LOCKSTEP_USAGE); /* half of a layer */
    assert_int_equal(change(none, 3), LOCKSTEP_USAGE); /* one twice */
    assert_int_equal(change(other_name, 3), LOCKSTEP_USAGE);
    assert_int_equal(change(no_name, 2), LOCKSTEP_USAGE);
    assert_int_equal(change(no_numbers, 2), LOCKSTEP_USAGE);
    assert_int_equal(change(both, 2), LOCKSTEP_USAGE);
    assert_int_equal(change(no_axes, 2), LOCKSTEP_USAGE);
    assert_int_equal(change(too_many_axes, 2), LOCKSTEP_USAGE);
    assert_int_equal(change(negative, 2), LOCKSTEP_USAGE);
    assert_int_equal(change(other_type, 2), LOCKSTEP_DATA);
    assert_int_equal(change(other_shape, 2), LOCKSTEP_DEFINITION);
    struct lockstep_array arrays[2];
    struct lockstep_solver *solver;
    make_arrays(arrays);
    assert_int_equal(give(arrays, 2, &solver, NULL), 0);
    assert_int_equal(lockstep_solver_use_arrays(solver, arrays, 2, NULL), LOCKSTEP_USAGE);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_functions_give_the_same_training),
        cmocka_unit_test(a_record_that_cannot_be_brought_ends_the_training),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, write_solver, remove_solver);
}
