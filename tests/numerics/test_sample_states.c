/* State per sample (docs/numerics.md, section 15): a row goes on where the row of the same number
 * has ended in the update before, whatever computes it, and repeated passes, audits, limits on
 * memory and other devices change no bit of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "engine/exponents.h"
#include "engine/pass.h"
#include "solver/checkpoint.h"
#include "solver/evaluate.h"
#include "solver/verify.h"
#include "trainings/ranks.h"
#include "trainings/remote_device.h"
#include "trainings/state_nets.h"

enum { UPDATES = 4 };

/* ---- Which row goes on where ----------------------------------------------------------------- */

static void check_counting(int axis, const char *batch, const char *settings, int workers)
{
    float sums[64 * SAMPLE] = {0};
    struct lockstep_solver *solver = make_counting(axis, batch, settings);
    struct training *training = start(solver, workers, NULL, NULL);
    const struct ls_batching *batching = &training->trainer->inner->train->batching;
    assert_in_range(states_of(training)->rows, 1, 64);
    check_sums(training, axis, sums, "at the start");
    for (int64_t update = 0; update < 9; update++) {
        step(training, 1);
        add_update(batching, update, sums);
        check_sums(training, axis, sums, ls_test_text("%s %s", batch, settings));
    }
    finish(training);
    lockstep_solver_free(solver);
}

static void a_row_goes_on_where_the_row_of_its_number_ended(void **state)
{
    (void)state;
    static const char *const batches[] = {"batch_size: 10", "batch_size: 10 last_batch: PARTIAL",
                                          "batch_size: 10 last_batch: DROP", "batch_size: 30"};
    static const char *const settings[] = {"micro_batch: 3", "micro_batch: 4 iter_size: 2",
                                           "micro_batch: 10 iter_size: 2"};
    for (int axis = 0; axis < 2; axis++)
        for (int b = 0; b < 4; b++)
            for (int s = 0; s < 3; s++)
                check_counting(axis, batches[b], settings[s], b == 3 ? 2 : 1);
}

/* ---- The same bits --------------------------------------------------------------------------- */

static void any_workers_give_same_bits(void **state)
{
    (void)state;
    for (int n = 0; n < STATE_NETS; n++) {
        struct lockstep_solver *solver = solver_of(&state_nets[n]);
        struct training *training = start(solver, 1, NULL, NULL);
        assert_int_equal(training->trainer->inner->train->gathers, n == GATHERED);
        finish(training);
        check_workers(solver, NULL, UPDATES);
        lockstep_solver_free(solver);
    }
}

static const struct job jobs[] = {
    {.ranks = 1, .workers = {3}, .audit = 1},
    {.ranks = 2, .workers = {1, 1}},
    {.ranks = 3, .workers = {1, 2, 1}, .audit = 0.5},
    {.ranks = 2, .workers = {2, 1}, .dynamic = true, .delays = 1},
    {.ranks = 3, .workers = {1, 1, 2}, .dynamic = true, .delays = 2, .audit = 1},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* Everything that a rank knows of its states: each rank has all rows. */
static int put_states(struct rank *rank, const struct ls_trainer *trainer)
{
    const struct ls_sample_states *states = trainer->train_pass->states;
    for (size_t i = 0; i < states->count; i++) {
        const void *data;
        LS_TRY(ls_sample_states_read(states, i, &data, rank->error));
        put(rank, data, states->tensors[i].bytes);
    }
    return 0;
}

static int train_with_tests(struct rank *rank, struct ls_trainer *trainer)
{
    for (int i = 0; i < UPDATES; i++) {
        LS_TRY(ls_trainer_update(trainer, rank->error));
        put(rank, trainer->figures.totals.record,
            (size_t)ls_net_graph(trainer->train)->record_size * sizeof(double));
        LS_TRY(put_states(rank, trainer));
        for (size_t t = 0; t < trainer->test_count && i % 2 == 0; t++) {
            int64_t samples;
            LS_TRY(ls_trainer_evaluate(trainer, t, &samples, rank->error));
            for (size_t k = 0; k < trainer->figures.outputs.count; k++)
                put(rank, trainer->figures.outputs.items[k].values,
                    trainer->figures.outputs.items[k].count * sizeof(double));
        }
    }
    return put_weights(rank, trainer);
}

static void check_jobs(const struct state_net *net)
{
    struct lockstep_solver *solver = solver_of(net);
    remote_use(false);
    struct bytes expected = act_alone(solver, train_with_tests);
    for (int remote = 0; remote < 2; remote++)
        for (int j = 0; j < JOBS; j += 1 + remote) {
            struct job job = jobs[j];
            job.solver = solver;
            job.act = train_with_tests;
            remote_use(remote == 1);
            check_job(
                &job, expected,
                ls_test_text("%s, job %d%s", net->name, j, remote == 1 ? ", remote device" : ""));
            assert_int_equal(remote_bytes(), 0);
        }
    remote_use(false);
    free(expected.data);
    lockstep_solver_free(solver);
}

static void any_ranks_give_same_bits_on_each_device(void **state)
{
    (void)state;
    for (int n = 0; n < STATE_NETS; n++)
        check_jobs(&state_nets[n]);
}

static void all_forms_of_training_agree(void **state)
{
    (void)state;
    static const char *const devices[] = {NULL, "reference"};
    for (int n = 0; n < GATHERED; n++) {
        struct lockstep_solver *solver = solver_of(&state_nets[n]);
        struct lockstep_error *error = lockstep_error_new();
        struct lockstep_verify_options options;
        for (int d = 0; d < (n == 1 ? 2 : 1); d++) {
            lockstep_verify_options_init(&options);
            options.workers = (int[]){1, 3};
            options.ranks = (int[]){1, 2};
            options.dynamic = (int[]){0, 1};
            options.memory = (uint64_t[]){0, LOCKSTEP_MEMORY_LEAST};
            options.worker_count = options.rank_count = options.dynamic_count =
                options.memory_count = 2;
            options.stops = 2;
            options.iterations = 5;
            options.device = devices[d];
            if (lockstep_verify(solver, &options, error) != 0)
                fail_msg("%s: %s", state_nets[n].name, lockstep_error_text(error));
        }
        lockstep_error_free(error);
        lockstep_solver_free(solver);
    }
}

/* How often the plans of a training recall a state in the backward pass, once more. */
static int count_recalled_again(const struct training *training)
{
    const struct ls_net *net = training->trainer->inner->train;
    int count = 0;
    for (size_t p = 0; p < net->plan_count; p++)
        for (size_t s = 0; s < net->plans[p]->plan->step_count; s++) {
            const struct ls_step *step = &net->plans[p]->plan->steps[s];
            count += step->recomputed && step->prepared.op->kind == LS_OP_RECALL;
        }
    return count;
}

/* One after the other, a convolution and the sum of what it gives over windows. */
static struct lockstep_solver *make_deep(void)
{
    const char *layers = "";
    for (int i = 0; i < 4; i++) {
        const char *before = i == 0 ? "data" : ls_test_text("s%d", i - 1);
        layers = ls_test_text(
            "%slayer { name: 'c%d' type: 'Convolution' bottom: '%s' top: 'c%d' convolution_param "
            "{\n"
            "  num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }\n"
            "layer { name: 't%d' type: 'TanH' bottom: 'c%d' top: 't%d' }\n"
            "layer { name: 's%d' type: 'RunningSum' bottom: 't%d' top: 's%d' }\n",
            layers, i, before, i, i, i, i, i, i, i);
    }
    return load_solver(
        "base_lr: 0.001 lr_policy: 'fixed' max_iter: 40 random_seed: 3 micro_batch: 4\n"
        "net_param { %s %s\n"
        "  layer { name: 'ip' type: 'InnerProduct' bottom: 's3' top: 'ip'\n"
        "    inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "  layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'l' } }\n",
        data_of("TRAIN", "", "batch_size: 24"), layers);
}

/* What convolutions have read is not kept but computed again, from what was recalled. */
static void what_is_computed_again_reads_the_same_state(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_deep();
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, UPDATES);
    struct bytes expected = snapshot(training);
    finish(training);
    for (int workers = 1; workers < 4; workers++) {
        training = start(solver, workers, NULL, NULL);
        limit_memory(training, 1);
        assert_true(count_recalled_again(training) > 0);
        step(training, UPDATES);
        check_same(expected, snapshot(training), "computed again, %d workers", workers);
        finish(training);
    }
    free(expected.data);
    lockstep_solver_free(solver);
}

/* When update 2 of the second training is done a byte of its state is another one. */
static struct {
    struct ls_trainer *trainer;
    int (*after)(void *user, struct ls_error *error);
    void *user;
} spoiler;

static int spoil_state(void *user, struct ls_error *error)
{
    (void)user;
    struct ls_sample_states *states = spoiler.trainer->train_pass->states;
    for (size_t i = 0; i < states->count && spoiler.trainer->iteration == 3; i++) {
        const void *data;
        if (strcmp(states->tensors[i].name, "idle.bytes") != 0)
            continue;
        LS_TRY(ls_sample_states_read(states, i, &data, error));
        unsigned char *bytes = malloc(states->tensors[i].bytes);
        memcpy(bytes, data, states->tensors[i].bytes);
        bytes[7]++;
        int status = ls_sample_states_write(states, i, bytes, error);
        free(bytes);
        LS_TRY(status);
    }
    return spoiler.after(spoiler.user, error);
}

static void prepare_to_spoil(struct ls_trainer *trainer, size_t training, int rank)
{
    if (training != 1 || rank != 0)
        return;
    spoiler.trainer = trainer;
    spoiler.after = trainer->after_update;
    spoiler.user = trainer->after_update_user;
    trainer->after_update = spoil_state;
}

static void verify_names_a_state_that_differs(void **state)
{
    (void)state;
    struct lockstep_solver *solver = solver_of(&state_nets[0]);
    struct ls_error *error = calloc(1, sizeof *error);
    static const struct ls_verify_case cases[] = {{.ranks = 1, .workers = 1},
                                                  {.ranks = 1, .workers = 2}};
    const struct ls_verify_options options = {
        .cases = cases, .count = 2, .iterations = 4, .prepare = prepare_to_spoil};
    assert_int_equal(ls_verify(solver->definition, &options, error), LOCKSTEP_DIFFERENT);
    assert_string_equal(error->problems[0].place, "idle.bytes");
    assert_string_equal(error->problems[0].message,
                        "update 2: what this state per sample keeps differs between 1 worker and "
                        "2 workers");
    free(error);
    lockstep_solver_free(solver);
}

/* Exponents that fit nothing: the pass runs again, and reads what it has read before. */
static void a_repeated_pass_reads_the_same_state(void **state)
{
    (void)state;
    float sums[64 * SAMPLE] = {0};
    struct lockstep_solver *solver = make_counting(0, "batch_size: 10", "micro_batch: 3");
    struct training *training = start(solver, 2, NULL, NULL);
    const struct ls_trainer *trainer = training->trainer->inner;
    for (int64_t update = 0; update < 6; update++) {
        for (int i = 0; update == 3 && i < (int)trainer->parameters->count; i++)
            ls_sums_set_exponent(trainer->store->sums, i,
                                 ls_sums_exponent(trainer->store->sums, i) + 25);
        step(training, 1);
        add_update(&trainer->train->batching, update, sums);
        check_sums(training, 0, sums, "a repeated pass");
    }
    assert_int_equal(training->repeats, 1);
    finish(training);
    lockstep_solver_free(solver);
}

/* Rank 1 has a byte of its own, which no sample of the next update of rank 0 reads. */
static int write_with_other_byte(struct rank *rank, struct ls_trainer *trainer)
{
    struct ls_sample_states *states = trainer->train_pass->states;
    LS_TRY(ls_trainer_update(trainer, rank->error));
    size_t last = states->count - 1;
    const void *data;
    LS_TRY(ls_sample_states_read(states, last, &data, rank->error));
    unsigned char *bytes = malloc(states->tensors[last].bytes);
    memcpy(bytes, data, states->tensors[last].bytes);
    bytes[states->tensors[last].bytes - 1] ^= rank->rank == 1;
    int status = ls_sample_states_write(states, last, bytes, rank->error);
    free(bytes);
    LS_TRY(status);
    return ls_trainer_write(trainer, rank->rank == 0 ? rank->job->user : "/nowhere/at/all",
                            rank->error);
}

static void ranks_compare_their_states_before_a_snapshot(void **state)
{
    (void)state;
    struct lockstep_solver *solver = solver_of(&state_nets[0]);
    char *path = strdup(ls_test_path("not_written.safetensors"));
    for (int remote = 0; remote < 2; remote++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 1, 1},
                          .act = write_with_other_byte,
                          .together = true,
                          .user = path};
        struct rank ranks[RANKS_MAX];
        remote_use(remote == 1);
        run_job(&job, ranks);
        for (int r = 0; r < job.ranks; r++) {
            assert_int_equal(ranks[r].status, LOCKSTEP_DIFFERENT);
            const struct ls_problem *problem = &ranks[r].error->problems[0];
            if (strcmp(problem->place, "small.sum") != 0 ||
                strstr(problem->message, "iteration 1: the state per sample differs between ranks; "
                                         "most ranks disagree with rank 1 (") == NULL)
                fail_msg("%s: %s", problem->place, problem->message);
        }
        assert_int_equal(access(path, F_OK), -1);
        free_ranks(&job, ranks);
    }
    remote_use(false);
    free(path);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_row_goes_on_where_the_row_of_its_number_ended, set_up_states),
        cmocka_unit_test_setup(any_workers_give_same_bits, set_up_states),
        cmocka_unit_test_setup(any_ranks_give_same_bits_on_each_device, set_up_states),
        cmocka_unit_test_setup(all_forms_of_training_agree, set_up_states),
        cmocka_unit_test_setup(what_is_computed_again_reads_the_same_state, set_up_states),
        cmocka_unit_test_setup(verify_names_a_state_that_differs, set_up_states),
        cmocka_unit_test_setup(a_repeated_pass_reads_the_same_state, set_up_states),
        cmocka_unit_test_setup(ranks_compare_their_states_before_a_snapshot, set_up_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
