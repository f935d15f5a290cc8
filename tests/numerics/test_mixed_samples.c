/* Layers that mix the samples of a batch: each batch is one micro-batch then. The bytes of a
 * training do not depend on workers, ranks, memory or interruptions, and what mixing does not
 * change has the bits of a net that does not mix.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/ranks.h"
#include "trainings/training.h"

enum { SAMPLES = 60 };

static const char *mixed_net(const char *last)
{
    return ls_test_net("mixed_samples", LS_TEST_VALUES({"last", last}));
}

static struct lockstep_solver *make_solver(const char *last, const char *more)
{
    return load_solver("base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 "
                       "random_seed: 3 iter_size: 6 test_interval: 2 %s net_param { %s }\n",
                       more, mixed_net(last));
}

static void any_workers_give_same_bits_where_samples_are_mixed(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("PARTIAL", "");
    check_workers(solver, NULL, 5);
    lockstep_solver_free(solver);
}

static void a_resume_gives_same_bits_where_samples_are_mixed(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("PARTIAL", "");
    check_resumed(solver, 3, 4);
    lockstep_solver_free(solver);
}

static void ranks_give_same_bits_where_samples_are_mixed(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("DROP", "");
    struct rank one[RANKS_MAX], three[RANKS_MAX];
    const struct job alone = {.solver = solver, .ranks = 1, .workers = {1}, .updates = 4};
    const struct job job = {.solver = solver, .ranks = 3, .workers = {1, 2, 1}, .updates = 4};
    run_job(&alone, one);
    assert_int_equal(one[0].status, 0);
    run_job(&job, three);
    for (int r = 0; r < job.ranks; r++) {
        assert_int_equal(three[r].status, 0);
        assert_true(same_bytes(one[0].bytes, three[r].bytes));
    }
    free_ranks(&alone, one);
    free_ranks(&job, three);
    lockstep_solver_free(solver);
}

static struct bytes train_within(size_t bytes)
{
    struct lockstep_solver *solver = make_solver("DROP", "");
    struct training *training = start(solver, 1, "limited", NULL);
    if (bytes > 0)
        limit_memory(training, bytes);
    step(training, 3);
    struct bytes result = snapshot(training);
    finish(training);
    lockstep_solver_free(solver);
    return result;
}

static void least_memory_gives_same_bits_where_samples_are_mixed(void **state)
{
    (void)state;
    struct bytes full = train_within(0);
    check_same(full, train_within(1), "the least memory");
    free(full.data);
}

/* ---- What mixing does not change ------------------------------------------------------------- */

/* The hash of the weights after some updates. */
static uint64_t train_ordered(const char *between, const char *from, const char *normalization,
                              const char *more)
{
    const char *net =
        ls_test_net("mixed_order", LS_TEST_VALUES({"between", between}, {"from", from},
                                                  {"normalization", normalization}));
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3 iter_size: 2 "
        "%s net_param { %s }\n",
        more, net);
    struct training *training = start(solver, 1, NULL, NULL);
    uint64_t hash;
    step(training, 4);
    assert_int_equal(lockstep_trainer_hash(training->trainer, &hash, training->error), 0);
    finish(training);
    lockstep_solver_free(solver);
    return hash;
}

static void rows_that_are_cut_and_joined_again_give_the_bits_of_rows_that_are_not(void **state)
{
    (void)state;
    static const char between[] =
        "layer { name: 'cut' type: 'Slice' bottom: 'c' top: 'c1' top: 'c2' top: 'c3'\n"
        "  slice_param { axis: 0 slice_point: [3, 5] } }\n"
        "layer { name: 'both' type: 'Concat' bottom: 'c1' bottom: 'c2' bottom: 'c3' top: 'both'\n"
        "  concat_param { axis: 0 } }\n";
    static const char *const normalizations[] = {"", "normalization: BATCH_SIZE", "ignore_label: 3",
                                                 "normalization: NONE",
                                                 "normalization: FULL ignore_label: 0"};
    for (size_t i = 0; i < sizeof normalizations / sizeof *normalizations; i++) {
        uint64_t plain = train_ordered("", "c", normalizations[i], "micro_batch: 12");
        uint64_t mixed = train_ordered(between, "both", normalizations[i], "");
        uint64_t said = train_ordered(between, "both", normalizations[i], "micro_batch: 12");
        uint64_t cut = train_ordered("", "c", normalizations[i], "micro_batch: 4");
        if (mixed != plain || said != plain)
            fail_msg("'%s': other weights", normalizations[i]);
        assert_true(cut != plain); /* the hash sees such things */
    }
}

/* ---- What cannot be -------------------------------------------------------------------------- */

/* A training is refused, and one of the problems has this text. */
static void check_refused(const char *last, const char *more, const char *text)
{
    struct lockstep_solver *solver = make_solver(last, more);
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    int status = lockstep_trainer_create(solver, &options, &trainer, error);
    assert_int_equal(status, LOCKSTEP_DEFINITION);
    if (strstr(lockstep_error_text(error), text) == NULL)
        fail_msg("not '%s': %s", text, lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static void other_micro_batches_are_refused_where_samples_are_mixed(void **state)
{
    (void)state;
    check_refused("DROP", "micro_batch: 4",
                  "mixes the samples of a batch, so that each batch of 12 is one micro-batch, but "
                  "micro_batch is 4");
    check_refused("DROP", "follow_groups: true", "but follow_groups cuts it along groups");
}

/* The last batch of a test has 1 of 61 samples, and cannot be cut at sample 4. */
static void a_last_batch_that_shapes_do_not_fit_is_told_at_the_start(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES + 1, 15);
    check_refused("PARTIAL", "", "slice_points must increase");
    check_refused("PARTIAL", "", "the last batch of an epoch has 1 sample instead of 12");
    struct lockstep_solver *solver = make_solver("DROP", "");
    struct training *training = start(solver, 1, NULL, NULL);
    step(training, 2);
    finish(training);
    lockstep_solver_free(solver);
}

/* A plan names the layer, and promises no other batch and no other micro_batch. */
static void plans_of_nets_that_mix_samples_promise_no_other_cut(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("DROP", "");
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_plan_options options;
    struct lockstep_plan *plan = NULL;
    int64_t batch;
    int bounded;
    lockstep_plan_options_init(&options);
    assert_int_equal(lockstep_plan_training(solver, &options, &plan, error), 0);
    const struct lockstep_plan_net *net = lockstep_plan_net(plan, 0);
    assert_string_equal(net->mixer, "cut");
    assert_string_equal(net->mixer_type, "Slice");
    assert_int_equal(net->micro_batch, 12);
    assert_int_equal(net->micro_batches, 1);
    assert_int_equal(
        lockstep_plan_largest_batch(plan, 0, UINT64_C(1) << 34, &batch, &bounded, error), 0);
    assert_int_equal(batch, 12);
    assert_true(bounded);
    lockstep_plan_free(plan);
    const int ranks[] = {8};
    struct lockstep_scaling_options scales;
    struct lockstep_scaling *scaling;
    size_t count;
    lockstep_scaling_options_init(&scales);
    scales.ranks = ranks;
    scales.count = 1;
    assert_int_equal(lockstep_plan_scaling(solver, &scales, &scaling, error), 0);
    assert_int_equal(lockstep_scaling_rows(scaling, &count)[0].micro_batch, 0);
    lockstep_scaling_free(scaling);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* Numbers that name no row, and regions that are nowhere, end a training before weights change, and
 * the message says which they are. */
static void numbers_that_name_nothing_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *layer, *filler, *text;
    } cases[] = {
        {"type: 'BatchReindex' bottom: 'x' bottom: 'numbers'", "value: 3",
         "entry 0 of 'numbers' names row 3, but there are 3, 0 to 2"},
        {"type: 'BatchReindex' bottom: 'x' bottom: 'numbers'", "value: -1", "names row -1"},
        {"type: 'BatchReindex' bottom: 'x' bottom: 'numbers'", "value: nan", "names row nan"},
        {"type: 'ROIPooling' bottom: 'x' bottom: 'regions' roi_pooling_param { pooled_h: 2 "
         "pooled_w: 2 }",
         "value: 7", "entry 0 of 'regions' names picture 7, but there are 3, 0 to 2"},
        {"type: 'PSROIPooling' bottom: 'x' bottom: 'regions' psroi_pooling_param { "
         "spatial_scale: 1 output_dim: 2 group_size: 1 }",
         "value: 2.5", NULL},
        {"type: 'ROIPooling' bottom: 'x' bottom: 'edges' roi_pooling_param { pooled_h: 2 "
         "pooled_w: 2 }",
         "value: inf", "region 0 of 'edges' is (inf, inf, inf, inf), which are no finite numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const values[] = {"cpu", "reference"};
        for (int d = 0; d < 2; d++) {
            struct lockstep_solver *solver = load_solver(
                "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 net_param { layer { name: 'd' type: "
                "'DummyData' top: 'data' top: 'numbers' top: 'regions' top: 'zero' top: 'edge' "
                "dummy_data_param { shape { dim: [3, 1, 4, 4] } shape { dim: 5 } "
                "shape { dim: [5, 5] } shape { dim: [5, 1] } shape { dim: [5, 4] } "
                "data_filler { value: 1 } data_filler { %s } data_filler { %s } data_filler { } "
                "data_filler { %s } } } "
                "layer { name: 'join' type: 'Concat' bottom: 'zero' bottom: 'edge' top: 'edges' } "
                "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'x' convolution_param { "
                "num_output: 2 kernel_size: 1 } } layer { name: 'it' %s top: 'y' } "
                "layer { name: 'sum' type: 'Reduction' bottom: 'y' top: 's' loss_weight: 1 } }",
                cases[i].filler, cases[i].filler, cases[i].filler, cases[i].layer);
            struct lockstep_train_options options;
            struct lockstep_trainer *trainer = NULL;
            struct lockstep_error *error = lockstep_error_new();
            lockstep_train_options_init(&options);
            options.workers = 2;
            options.device = values[d];
            assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error), 0);
            int status = lockstep_trainer_step(trainer, 1, error);
            assert_int_equal(status, cases[i].text != NULL ? LOCKSTEP_DATA : 0);
            if (cases[i].text != NULL && strstr(lockstep_error_text(error), cases[i].text) == NULL)
                fail_msg("not '%s': %s", cases[i].text, lockstep_error_text(error));
            lockstep_trainer_free(trainer);
            lockstep_error_free(error);
            lockstep_solver_free(solver);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 15);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_where_samples_are_mixed),
        cmocka_unit_test(a_resume_gives_same_bits_where_samples_are_mixed),
        cmocka_unit_test(ranks_give_same_bits_where_samples_are_mixed),
        cmocka_unit_test(least_memory_gives_same_bits_where_samples_are_mixed),
        cmocka_unit_test(rows_that_are_cut_and_joined_again_give_the_bits_of_rows_that_are_not),
        cmocka_unit_test(other_micro_batches_are_refused_where_samples_are_mixed),
        cmocka_unit_test(plans_of_nets_that_mix_samples_promise_no_other_cut),
        cmocka_unit_test(numbers_that_name_nothing_are_told),
        cmocka_unit_test(a_last_batch_that_shapes_do_not_fit_is_told_at_the_start),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
