/* Random networks: weights, histories, exponents and losses are the same bytes on any number of
 * workers, with any amount of memory, in a second run, and after a stop; in BF16 and with PORTABLE
 * also on any instruction set.
 *
 * LOCKSTEP_NETS="FIRST COUNT" runs other seeds than the usual ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "ops/cpu/isa.h"
#include "trainings/random_net.h"
#include "trainings/ranks.h"

enum { UPDATES = 5, CUT = 2 };

/* The result of a training. One that diverges must do so at the same place, too. */
struct result {
    int status;
    int64_t updates;
    double losses[UPDATES];
    char message[1024];
    struct bytes state;
};

static int factored,
    recomputed; /* trainings so far with factors of gradients, with recomputations */

static struct result conclude(struct training *training, int status)
{
    struct result result = {.status = status,
                            .updates = lockstep_trainer_iteration(training->trainer)};
    if (status != 0)
        snprintf(result.message, sizeof result.message, "%s", lockstep_error_text(training->error));
    result.state = snapshot(training);
    return result;
}

static int train(struct training *training, double *losses)
{
    int status = 0;
    while (status == 0 && lockstep_trainer_iteration(training->trainer) < UPDATES) {
        status = lockstep_trainer_step(training->trainer, 1, training->error);
        *losses++ = lockstep_trainer_loss(training->trainer);
    }
    return status;
}

/* `memory` is for limit_memory, 0 for no limit; *taken (may be NULL) is what the training takes. */
static struct result run(const struct lockstep_solver *solver, int workers, size_t memory,
                         size_t *taken)
{
    struct training *training = start(solver, workers, NULL, NULL);
    size_t bytes = memory > 0 ? limit_memory(training, memory)
                              : ls_net_memory_bytes(training->trainer->inner->train, workers);
    if (taken != NULL)
        *taken = bytes;
    factored += ls_factors_count(training->trainer->inner->store->factors) > 0;
    recomputed += ls_net_first_plan(training->trainer->inner->train)->recomputations > 0;
    double losses[UPDATES] = {0};
    struct result result = conclude(training, train(training, losses));
    memcpy(result.losses, losses, sizeof losses);
    count_micro_batches(training);
    finish(training);
    return result;
}

/* The state after a stop at CUT, with as little memory as there can be from then on; its losses are
 * those after the stop only. */
static struct result run_in_parts(const struct lockstep_solver *solver, int before, int after)
{
    const char *cut = ls_test_path("cut.safetensors");
    struct training *training = start(solver, before, NULL, NULL);
    step(training, CUT);
    if (lockstep_trainer_snapshot(training->trainer, cut, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    finish(training);
    training = start(solver, after, NULL, cut);
    if (ls_net_graph(training->trainer->inner->train)->sample_state_count == 0)
        limit_memory(training, 1);  /* which would forget them */
    training->schedule.workers = 1; /* an update may be too small for all to meet */
    double losses[UPDATES] = {0};
    struct result result = conclude(training, train(training, losses));
    memcpy(result.losses + CUT, losses, (UPDATES - CUT) * sizeof *losses);
    finish(training);
    return result;
}

/* Prints what is needed to see a failure again, and fails. */
static void compare(const struct result *first, struct result other, int losses_from, uint64_t seed,
                    const char *text, const char *what)
{
    bool same = first->status == other.status && first->updates == other.updates &&
                strcmp(first->message, other.message) == 0 &&
                memcmp(first->losses + losses_from, other.losses + losses_from,
                       (size_t)(UPDATES - losses_from) * sizeof(double)) == 0;
    if (!same || !same_bytes(first->state, other.state)) {
        fputs(text, stderr); /* print_error would cut it off */
        print_error("\nseed %" PRIu64 ", %s: the %s differ (%s)\n", seed, what,
                    same ? "snapshots" : "losses", other.message);
        fail();
    }
    free(other.state.data);
}

/* Returns whether the net trained to the end; frees the text. */
static bool check_net(uint64_t seed, struct ls_text text)
{
    assert_false(text.failed);
    struct lockstep_solver *solver = load_solver("%s", text.data);
    size_t most[WORKERS_MAX], least;
    struct result first = run(solver, 1, 0, &most[1]);
    for (int workers = 2; workers <= 5; workers += workers - 1) { /* 2, 3, 5 */
        char what[32];
        snprintf(what, sizeof what, "%d workers", workers);
        compare(&first, run(solver, workers, 0, &most[workers]), 0, seed, text.data, what);
    }
    compare(&first, run(solver, 3, 0, NULL), 0, seed, text.data, "a second run");
    compare(&first, run(solver, 3, 1, &least), 0, seed, text.data, "3 workers, least memory");
    compare(&first, run(solver, 2, (most[2] + least) / 2, NULL), 0, seed, text.data,
            "2 workers, some memory");
    compare(&first, run(solver, 1, 1, NULL), 0, seed, text.data, "1 worker, least memory");
    if (first.updates > CUT) {
        compare(&first, run_in_parts(solver, 1, 3), CUT, seed, text.data, "stopped, 1 then 3");
        compare(&first, run_in_parts(solver, 5, 2), CUT, seed, text.data, "stopped, 5 then 2");
    }
    lockstep_solver_free(solver);
    ls_text_free(&text);
    free(first.state.data);
    return first.status == 0;
}

/* The net on every instruction set that this processor has, the fastest one last. */
static bool check_sets(uint64_t seed, struct ls_text text, const char *setting)
{
    static const char *const sets[] = {"generic", "sse41", "avx2", "avx512", "avx512_bf16", "amx"};
    ls_text_format(&text, "%s\n", setting);
    assert_false(text.failed);
    struct lockstep_solver *solver = load_solver("%s", text.data);
    struct result first = run(solver, 2, 0, NULL);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (ls_cpu_isa_select(sets[i], NULL) == 0)
            compare(&first, run(solver, 2, 0, NULL), 0, seed, text.data, sets[i]);
    lockstep_solver_free(solver);
    ls_text_free(&text);
    free(first.state.data);
    return first.status == 0;
}

static void choose_nets(uint64_t *first, uint64_t *count)
{
    const char *chosen = getenv("LOCKSTEP_NETS");
    if (chosen != NULL && sscanf(chosen, "%" SCNu64 " %" SCNu64, first, count) != 2)
        fail_msg("LOCKSTEP_NETS is \"FIRST COUNT\", not \"%s\"", chosen);
}

static void random_nets_give_same_bits_in_every_run(void **state)
{
    (void)state;
    uint64_t first = 1, count = 20, trained = 0;
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++)
        trained += check_net(seed, make_random_net(seed));
    assert_true(trained * 10 >= count * 9); /* else the generator makes nets of little use */
    assert_true(count < 20 || (factored > 0 && recomputed > 0));
}

static void random_nets_of_caffes_layers_give_same_bits_in_every_run(void **state)
{
    (void)state;
    uint64_t first = 101, count = 24, trained = 0;
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct ls_text text = make_random_caffe_net(seed);
        ls_text_format(&text, "precision: %s\n", seed % 3 == 0 ? "BF16" : "FP32");
        trained += check_net(seed, text);
    }
    assert_true(trained * 10 >= count * 8);
}

static void random_nets_of_sequences_give_same_bits_in_every_run(void **state)
{
    (void)state;
    uint64_t first = 301, count = 24, trained = 0;
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct ls_text text = make_random_sequence_net(seed);
        ls_text_format(&text, "precision: %s\n", seed % 3 == 0 ? "BF16" : "FP32");
        trained += check_net(seed, text);
    }
    assert_true(trained * 10 >= count * 9);
}

/* Three ranks and a process by itself. */
static void check_ranks(struct ls_text (*make)(uint64_t), uint64_t first, uint64_t count)
{
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct ls_text text = make(seed);
        ls_text_format(&text, "precision: %s\n", seed % 3 == 0 ? "BF16" : "FP32");
        assert_false(text.failed);
        struct lockstep_solver *solver = load_solver("%s", text.data);
        struct job job = {
            .solver = solver, .ranks = 3, .workers = {1, 2, 1}, .updates = 4, .audit = 0.3};
        job.dynamic = seed % 2 == 0;
        char what[40];
        snprintf(what, sizeof what, "seed %" PRIu64, seed);
        struct bytes alone = run_alone(solver, job.updates);
        check_job(&job, alone, what);
        free(alone.data);
        lockstep_solver_free(solver);
        ls_text_free(&text);
    }
}

static void random_nets_of_caffes_layers_give_same_bits_on_any_number_of_ranks(void **state)
{
    (void)state;
    check_ranks(make_random_caffe_net, 201, 12);
}

static void random_nets_of_sequences_give_same_bits_on_any_number_of_ranks(void **state)
{
    (void)state;
    check_ranks(make_random_sequence_net, 401, 12);
}

static void random_nets_in_bf16_give_same_bits_in_every_run(void **state)
{
    (void)state;
    uint64_t first = 31, count = 8, trained = 0;
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct ls_text text = make_random_net(seed);
        ls_text_format(&text, "precision: BF16\n");
        trained += check_net(seed, text);
    }
    assert_true(trained * 10 >= count * 8);
}

static void random_nets_of_mixed_precision_give_same_bits_in_every_run(void **state)
{
    (void)state;
    uint64_t first = 51, count = 6, trained = 0;
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++)
        trained += check_net(seed, make_random_mixed_net(seed));
    assert_true(trained * 10 >= count * 8);
}

static void portable_random_nets_give_same_bits_on_every_instruction_set(void **state)
{
    (void)state;
    uint64_t first = 71, count = 4, trained = 0;
    choose_nets(&first, &count);
    for (uint64_t seed = first; seed < first + count; seed++) {
        trained += check_sets(seed, make_random_net(seed), "precision: BF16");
        trained += check_sets(seed, make_random_net(seed), "algorithm: PORTABLE");
        trained += check_sets(seed, make_random_mixed_net(seed), "algorithm: PORTABLE");
        trained += check_sets(seed, make_random_sequence_net(seed), "precision: BF16");
        trained += check_sets(seed, make_random_sequence_net(seed), "algorithm: PORTABLE");
    }
    assert_true(trained * 10 >= 5 * count * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_nets_give_same_bits_in_every_run),
        cmocka_unit_test(random_nets_of_caffes_layers_give_same_bits_in_every_run),
        cmocka_unit_test(random_nets_of_caffes_layers_give_same_bits_on_any_number_of_ranks),
        cmocka_unit_test(random_nets_of_sequences_give_same_bits_in_every_run),
        cmocka_unit_test(random_nets_of_sequences_give_same_bits_on_any_number_of_ranks),
        cmocka_unit_test(random_nets_in_bf16_give_same_bits_in_every_run),
        cmocka_unit_test(random_nets_of_mixed_precision_give_same_bits_in_every_run),
        cmocka_unit_test(portable_random_nets_give_same_bits_on_every_instruction_set),
    };
    write_random_net_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
