/* Filter layers: a training without the samples that they leave out, whatever computes it; and what
 * HDF5Output layers write of tests.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <unistd.h>

#include "base/hdf5.h"
#include "base/hdf5_arrays.h"
#include "solver/evaluate.h"
#include "trainings/ranks.h"
#include "trainings/training.h"

enum { SAMPLES = 41, UPDATES = 4, CLASSES = 10 };

#define FILTER                                                                                     \
    "layer { name: 'f' type: 'Filter' bottom: 'c' bottom: 'label' bottom: 'chosen' top: 'some' "   \
    "top: 'mine' }"
/* Which samples are selected is learned, but for the gradient. */
#define LEARNED                                                                                    \
    "layer { name: 'p' type: 'InnerProduct' bottom: 'c' top: 'p' inner_product_param { "           \
    "num_output: 2 weight_filler { type: 'xavier' } } } "                                          \
    "layer { name: 'm' type: 'ArgMax' bottom: 'p' top: 'm' argmax_param { axis: 1 } } "            \
    "layer { name: 'f' type: 'Filter' bottom: 'c' bottom: 'label' bottom: 'm' top: 'some' "        \
    "top: 'mine' propagate_down: [true, true, false] } layer { name: 'quiet' type: 'Silence' "     \
    "bottom: 'chosen' }"
#define NO_FILTER                                                                                  \
    "layer { name: 'f' type: 'Split' bottom: 'c' top: 'some' } "                                   \
    "layer { name: 'g' type: 'Split' bottom: 'label' top: 'mine' } "                               \
    "layer { name: 'quiet' type: 'Silence' bottom: 'chosen' }"

static const char *rows_path(void)
{
    return ls_test_path("rows.h5");
}

static struct lockstep_solver *make_solver(const char *filter, const char *threshold,
                                           const char *written, const char *more)
{
    const char *net =
        ls_test_net("filtered", LS_TEST_VALUES({"filter", filter}, {"threshold", threshold},
                                               {"written", written}));
    return load_solver("base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 "
                       "random_seed: 3 micro_batch: 3 iter_size: 2 test_interval: 2 %s "
                       "net_param { %s }\n",
                       more, net);
}

static int set_up(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 15);
    unlink(rows_path());
    return 0;
}

/* ---- Trainings ------------------------------------------------------------------------------- */

static void any_workers_give_same_bits(void **state)
{
    (void)state;
    static const char *const filters[] = {FILTER, LEARNED};
    for (int f = 0; f < 2; f++) {
        struct lockstep_solver *solver = make_solver(filters[f], "4", "score", "");
        check_workers(solver, NULL, UPDATES);
        check_resumed(solver, 2, 2);
        lockstep_solver_free(solver);
    }
}

/* Figures of updates and tests, what tests write, weights. */
static int train_and_test(struct rank *rank, struct ls_trainer *trainer)
{
    for (int i = 0; i < UPDATES; i++) {
        int64_t samples;
        LS_TRY(ls_trainer_update(trainer, rank->error));
        put(rank, &trainer->figures.loss, sizeof trainer->figures.loss);
        LS_TRY(ls_trainer_evaluate(trainer, 0, &samples, rank->error));
        for (size_t k = 0; k < trainer->figures.outputs.count; k++)
            put(rank, trainer->figures.outputs.items[k].values,
                trainer->figures.outputs.items[k].count * sizeof(double));
        struct bytes rows = read_bytes(rows_path());
        put(rank, rows.data, rows.size);
        free(rows.data);
    }
    return put_weights(rank, trainer);
}

static void any_ranks_give_same_bits_and_files(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {.ranks = 1, .workers = {3}, .audit = 1},
        {.ranks = 2, .workers = {1, 2}},
        {.ranks = 3, .workers = {1, 2, 1}, .audit = 0.5},
        {.ranks = 3, .workers = {1, 1, 1}, .dynamic = true, .delays = 1},
    };
    static const char *const filters[] = {FILTER, LEARNED};
    for (int f = 0; f < 2; f++) {
        struct lockstep_solver *solver = make_solver(filters[f], "4", "score", "");
        struct bytes expected = act_alone(solver, train_and_test);
        for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
            struct job job = jobs[j];
            job.solver = solver;
            job.act = train_and_test;
            check_job(&job, expected, ls_test_text("filter %d, job %zu", f, j));
        }
        free(expected.data);
        lockstep_solver_free(solver);
    }
}

/* Where every sample is selected the bits are those of a net that filters nothing. */
static void a_filter_that_selects_all_changes_no_bit(void **state)
{
    (void)state;
    struct lockstep_solver *with = make_solver(FILTER, "-1", "score", "");
    struct lockstep_solver *without = make_solver(NO_FILTER, "-1", "score", "");
    struct bytes expected = act_alone(without, train_and_test);
    struct bytes got = act_alone(with, train_and_test);
    check_same(expected, got, "all samples");
    free(expected.data);
    lockstep_solver_free(with);
    lockstep_solver_free(without);
}

static int do_nothing(struct rank *rank, struct ls_trainer *trainer)
{
    const double none = 0;
    put(rank, &none, sizeof none);
    return put_weights(rank, trainer);
}

static int train_on_nothing(struct rank *rank, struct ls_trainer *trainer)
{
    double loss = 0;
    for (int i = 0; i < 2; i++) {
        LS_TRY(ls_trainer_update(trainer, rank->error));
        loss += fabs((double)trainer->figures.loss);
    }
    put(rank, &loss, sizeof loss);
    return put_weights(rank, trainer);
}

static void where_nothing_is_selected_nothing_is_learned(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(FILTER, "10", "score", "");
    struct bytes expected = act_alone(solver, do_nothing);
    struct bytes got = act_alone(solver, train_on_nothing);
    check_same(expected, got, "no samples");
    free(expected.data);
    lockstep_solver_free(solver);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Reads all of an array of the file, which must have these extents; the caller frees it. */
static float *read_array(const char *name, const struct ls_hdf5_shape *wanted)
{
    struct ls_hdf5 *file;
    struct ls_hdf5_shape shape;
    struct ls_error *error = calloc(1, sizeof *error);
    if (ls_hdf5_open(rows_path(), LOCKSTEP_DATA, &file, error) != 0 ||
        ls_hdf5_shape(file, name, &shape, error) != 0)
        fail_msg("%s", error->problems[0].message);
    assert_int_equal(shape.rank, wanted->rank);
    for (int i = 0; i < shape.rank; i++)
        assert_int_equal(shape.dim[i], wanted->dim[i]);
    float *numbers = malloc((size_t)shape.count * sizeof *numbers + 1);
    if (shape.count > 0)
        assert_int_equal(ls_hdf5_read(file, name, numbers, error), 0);
    ls_hdf5_close(file);
    free(error);
    return numbers;
}

static void evaluate(struct lockstep_solver *solver, int workers)
{
    struct training *training = start(solver, workers, NULL, NULL);
    int64_t samples;
    struct ls_error *error = calloc(1, sizeof *error);
    if (ls_trainer_evaluate(training->trainer->inner, 0, &samples, error) != 0)
        fail_msg("%s", error->problems[0].message);
    assert_int_equal(samples, SAMPLES);
    free(error);
    finish(training);
}

/* What is written are the rows of the data that are selected, in their order: labels are i * 7 %
 * 10. */
static void rows_are_written_in_the_order_of_the_data(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *threshold;
        int above;
    } cases[] = {{NO_FILTER, "0", -1}, {FILTER, "4", 4}, {FILTER, "-1", -1}, {FILTER, "10", 10}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int workers = 1; workers <= 3; workers++) {
            struct lockstep_solver *solver =
                make_solver(cases[c].filter, cases[c].threshold, "mine", "");
            evaluate(solver, workers);
            int count = 0;
            for (int i = 0; i < SAMPLES; i++)
                count += i * 7 % CLASSES > cases[c].above;
            const struct ls_hdf5_shape shape = {.rank = 4, .dim = {count, 1, 1, 1}};
            float *data = read_array("/data", &shape), *label = read_array("/label", &shape);
            for (int i = 0, at = 0; i < SAMPLES; i++)
                if (i * 7 % CLASSES > cases[c].above) {
                    assert_true(label[at] == (float)(i * 7 % CLASSES));
                    assert_true(data[at] == label[at]);
                    at++;
                }
            free(data);
            free(label);
            unlink(rows_path());
            lockstep_solver_free(solver);
        }
}

/* Blobs keep their axes; numbers in bf16 are written as what they are. */
static void planes_are_written_as_they_lie(void **state)
{
    (void)state;
    static const char *const precisions[] = {"", "precision: BF16"};
    for (int p = 0; p < 2; p++) {
        struct lockstep_solver *solver = make_solver(NO_FILTER, "0", "c", precisions[p]);
        evaluate(solver, 2);
        const struct ls_hdf5_shape shape = {.rank = 4, .dim = {SAMPLES, 8, 7, 7}};
        float *data = read_array("/data", &shape);
        int different = 0;
        for (int i = 0; i < SAMPLES * 8 * 49; i++) {
            uint32_t bits;
            memcpy(&bits, &data[i], sizeof bits);
            assert_true(isfinite(data[i]));
            different += (bits & 0xffff) != 0;
        }
        assert_true((different == 0) == (p == 1));
        free(data);
        lockstep_solver_free(solver);
    }
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_interval: 1 test_iter: 1 net_param { "
        "layer { name: 'd' type: 'DummyData' top: 'x' top: 'l' dummy_data_param { shape { dim: 4 "
        "dim: 3 } shape { dim: 4 } } } "
        "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
        "num_output: 2 } } "
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'y' bottom: 'l' top: 'loss' } "
        "layer { name: 'w' type: 'HDF5Output' bottom: 'y' bottom: 'l' include { phase: TEST } "
        "hdf5_output_param { file_name: '%s/none/rows.h5' } } }",
        ls_test_path("."));
    struct training *training = start(solver, 1, NULL, NULL);
    int64_t samples;
    struct ls_error *error = calloc(1, sizeof *error);
    assert_int_equal(ls_trainer_evaluate(training->trainer->inner, 0, &samples, error),
                     LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error->problems[0].place, "none/rows.h5"));
    free(error);
    finish(training);
    lockstep_solver_free(solver);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void what_cannot_leave_samples_out_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *layers, *text;
    } cases[] = {
        {"layer { name: 'n' type: 'BatchNorm' bottom: 'some' top: 'n' }",
         "n: a BatchNorm layer cannot leave out the samples that a Filter layer does not select: "
         "its statistics are those of all samples"},
        {"layer { name: 'n' type: 'Log' bottom: 'some' top: 'n' }", "what it computes needs all"},
        {"layer { name: 'n' type: 'Power' bottom: 'some' top: 'n' power_param { power: 0.5 } }",
         "only whole powers from 0 on are finite for whatever they hold"},
        {"layer { name: 'n' type: 'Eltwise' bottom: 'some' bottom: 'c' top: 'n' }",
         "its bottoms have not the same samples"},
        {"layer { name: 'n' type: 'Reshape' bottom: 'some' top: 'n' reshape_param { shape { dim: "
         "-1 dim: 49 } } }",
         "its tops do not have the same samples"},
        {"layer { name: 'n' type: 'Softmax' bottom: 'some' top: 'n' softmax_param { axis: 0 } }",
         "it mixes the samples of a batch"},
        {"layer { name: 'n' type: 'Filter' bottom: 'some' bottom: 'label' top: 'n' }",
         "its bottoms have not the same samples"},
        {"layer { name: 's' type: 'InnerProduct' bottom: 'c' top: 's' inner_product_param { "
         "num_output: 1 } } layer { name: 'n' type: 'Filter' bottom: 'c' bottom: 's' top: 'n' } "
         "layer { name: 't' type: 'Reduction' bottom: 'n' top: 't' loss_weight: 1 }",
         "a Filter layer cannot backpropagate to its selector"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *more = ls_test_text("%s %s", FILTER, cases[i].layers);
        struct lockstep_solver *solver = make_solver(more, "4", "score", "");
        struct lockstep_train_options options;
        struct lockstep_trainer *trainer = NULL;
        struct lockstep_error *error = lockstep_error_new();
        lockstep_train_options_init(&options);
        assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error),
                         LOCKSTEP_DEFINITION);
        if (strstr(lockstep_error_text(error), cases[i].text) == NULL)
            fail_msg("not '%s': %s", cases[i].text, lockstep_error_text(error));
        lockstep_error_free(error);
        lockstep_solver_free(solver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_workers_give_same_bits, set_up),
        cmocka_unit_test_setup(any_ranks_give_same_bits_and_files, set_up),
        cmocka_unit_test_setup(a_filter_that_selects_all_changes_no_bit, set_up),
        cmocka_unit_test_setup(where_nothing_is_selected_nothing_is_learned, set_up),
        cmocka_unit_test_setup(rows_are_written_in_the_order_of_the_data, set_up),
        cmocka_unit_test_setup(planes_are_written_as_they_lie, set_up),
        cmocka_unit_test_setup(a_file_that_cannot_be_written_is_told, set_up),
        cmocka_unit_test_setup(what_cannot_leave_samples_out_is_refused_by_name, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
