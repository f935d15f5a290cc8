/* Whole trainings on one to four cards of the fake: ranks of one process, which exchange between
 * their cards, or over the host's memory. Same snapshots in all cases, in many orders of work; a
 * card that fails ends the training with its number, and leaves nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "cuda/fake/fake.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"
#include "ops/devices.h"
#include "trainings/training.h"
#include "transport/failure_detector.h"

enum {
    SAMPLES = 16,
    END = 3,
    CARD_BYTES = 1 << 26,
    LATE = 2000 /* microseconds */,
    FACTOR_SEEDS = 2
};

static struct ls_device cards;
static struct ls_device_streams streams;

int __real_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);
int __wrap_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);

int __wrap_ls_device_find(const char *name, const struct ls_device **device, struct ls_error *error)
{
    if (name == NULL || strcmp(name, ls_device_cuda.name) != 0)
        return __real_ls_device_find(name, device, error);
    *device = &cards;
    return 0;
}

/* Threads that come late to wait for a stream: what the progress thread gives to others meanwhile
 * may be carried out before what is waited for. */
static int wait_late(struct ls_stream *stream, struct ls_error *error)
{
    usleep(LATE);
    return ls_card_streams.wait(stream, error);
}

static void choose(bool late)
{
    streams = ls_card_streams;
    streams.wait = late ? wait_late : ls_card_streams.wait;
    cards = ls_device_cuda;
    cards.streams = &streams;
}

static struct lockstep_solver *load(const char *precision)
{
    return load_solver(
        "base_lr: 0.02 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' precision: %s\n"
        "max_iter: %d snapshot: 2 iter_size: 1 test_interval: 3 test_initialization: false\n"
        "micro_batch: 2 clip_gradients: 2 random_seed: 5 display: 1\n"
        "net_param { %s }\n",
        precision, END, ls_test_net("rank_threads", LS_TEST_VALUES({"batch", "7"})));
}

static int setup(void **state)
{
    choose(false);
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    *state = load("FP32");
    return 0;
}

static int teardown(void **state)
{
    lockstep_solver_free(*state);
    return 0;
}

/* A rank that is lost is waited for: here by a fast clock. */
static double fast_clock(void *user)
{
    (void)user;
    return 20 * ls_clock();
}

static int break_after(void *user, struct ls_error *error)
{
    const struct ls_trainer *trainer = user;
    (void)error;
    if (trainer->iteration == 1)
        fake_break_card(1);
    return 0;
}

struct run {
    int ranks;
    int cards[4];
    uint64_t seed;
    const char *prefix, *resume;
    int64_t end;   /* < 0: the solver's */
    bool breaks;   /* card 1, behind the first update */
    bool connects; /* ranks exchange between their cards */
};

/* Trains; the status, with the message. */
static int train(const struct lockstep_solver *solver, const struct run *run,
                 struct lockstep_error *error)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    lockstep_train_options_init(&options);
    options.device = "cuda";
    options.snapshot_prefix = ls_test_path(run->prefix);
    options.resume = run->resume;
    options.overwrite = 1;
    int status = ls_api_trainer_create(solver, &options, run->ranks, run->cards, &trainer,
                                       ls_api_error(error));
    for (int r = 0; r < run->ranks && status == 0 && run->breaks; r++) {
        const struct ls_detector_senses senses = {.clock = fast_clock};
        ls_detector_set_senses(trainer->ranks[r]->comm->detector, &senses);
        trainer->ranks[r]->after_update = break_after;
        trainer->ranks[r]->after_update_user = trainer->ranks[r];
    }
    if (status == 0)
        status = lockstep_trainer_run(trainer, run->end, error);
    lockstep_trainer_free(trainer);
    ls_card_end_thread();
    return status;
}

static const char *file_of(const char *prefix, int iteration)
{
    char name[64];
    snprintf(name, sizeof name, "%s_iter_%d.safetensors", prefix, iteration);
    return ls_test_path(name);
}

static void check_run(const struct lockstep_solver *solver, const struct run *run)
{
    struct lockstep_error *error = lockstep_error_new();
    fake_begin(4, CARD_BYTES, run->seed);
    (void)ls_card_take_thread(); /* it is on card 0 again */
    if (train(solver, run, error) != 0)
        fail_msg("%d ranks: %s", run->ranks, lockstep_error_text(error));
    const long exchanges = fake_calls("ncclReduceScatter") + fake_calls("ncclReduce");
    assert_true(run->connects ? exchanges > 0 : exchanges == 0);
    fake_end();
    lockstep_error_free(error);
}

static void check_same_end(const struct lockstep_solver *solver, const struct run *run)
{
    check_run(solver, run);
    struct bytes whole = read_bytes(file_of("one", END));
    check_same(whole, read_bytes(file_of(run->prefix, END)), "%d ranks, seed %d", run->ranks,
               (int)run->seed);
    free(whole.data);
}

static const struct run one = {.ranks = 1, .cards = {0}, .prefix = "one", .end = -1};

static const struct run runs[] = {
    {.ranks = 2, .cards = {0, 1}, .connects = true},
    {.ranks = 2, .cards = {0, 0}},
    {.ranks = 3, .cards = {3, 1, 2}, .connects = true},
    {.ranks = 4, .cards = {0, 1, 2, 3}, .connects = true},
};
enum { RUNS = sizeof runs / sizeof *runs };

static void any_cards_give_same_bits(void **state)
{
    check_run(*state, &one);
    for (int i = 0; i < 2 * RUNS; i++) {
        struct run run = runs[i / 2];
        run.prefix = "many";
        run.end = -1;
        run.seed = (uint64_t)i + 1;
        choose(i % 2 == 1);
        check_same_end(*state, &run);
    }
    choose(false);
}

/* With products of libraries, in the precisions that they have tensor cores for. */
static void any_cards_give_same_bits_in_any_precision(void **state)
{
    static const char *const precisions[] = {"BF16", "TF32"};
    (void)state;
    struct bytes fp32 = read_bytes(file_of("one", END));
    for (int p = 0; p < 2; p++) {
        struct lockstep_solver *solver = load(precisions[p]);
        struct run run = {.ranks = 1, .cards = {0}, .prefix = precisions[p], .end = -1};
        check_run(solver, &run);
        struct bytes whole = read_bytes(file_of(precisions[p], END));
        run = (struct run){.ranks = 3,
                           .cards = {0, 2, 1},
                           .seed = 7,
                           .prefix = "many",
                           .end = -1,
                           .connects = true};
        check_run(solver, &run);
        check_same(whole, read_bytes(file_of("many", END)), "%s, 3 ranks", precisions[p]);
        assert_false(whole.size == fp32.size && memcmp(whole.data, fp32.data, whole.size) == 0);
        free(whole.data);
        lockstep_solver_free(solver);
    }
    free(fp32.data);
}

static void exchanges_over_the_host_give_same_bits(void **state)
{
    struct run run = {.ranks = 2, .cards = {0, 1}, .prefix = "host", .end = -1};
    setenv("LOCKSTEP_EXCHANGE", "host", 1);
    check_same_end(*state, &run);
    unsetenv("LOCKSTEP_EXCHANGE");
}

static void a_training_goes_on_on_other_cards(void **state)
{
    struct run run = {
        .ranks = 2, .cards = {0, 1}, .prefix = "on", .end = 2, .seed = 9, .connects = true};
    check_run(*state, &run);
    run = (struct run){.ranks = 3,
                       .cards = {2, 1, 0},
                       .prefix = "on",
                       .resume = "auto",
                       .end = -1,
                       .seed = 10,
                       .connects = true};
    check_same_end(*state, &run);
}

static void a_card_that_fails_is_named(void **state)
{
    struct run run = {.ranks = 2, .cards = {0, 1}, .prefix = "broken", .end = -1, .breaks = true};
    struct lockstep_error *error = lockstep_error_new();
    fake_begin(2, CARD_BYTES, 3);
    const int status = train(*state, &run, error);
    assert_int_not_equal(status, 0);
    if (strstr(lockstep_error_text(error), "card 1") == NULL)
        fail_msg("%s", lockstep_error_text(error));
    fake_end();
    lockstep_error_free(error);
}

/* Last: it has other data. */
static void exchanges_of_factors_give_same_bits(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: %d snapshot: %d\n"
                    "micro_batch: 2 random_seed: 5 display: 1 net_param { %s }\n",
                    END, END,
                    ls_test_net("factors", LS_TEST_VALUES({"data", "batch_size: 8"}, {"first", ""},
                                                          {"second", ""})));
    check_run(solver, &one);
    choose(true);
    for (uint64_t seed = 1; seed <= FACTOR_SEEDS; seed++) {
        struct run run = {.ranks = 2,
                          .cards = {0, 1},
                          .prefix = "many",
                          .end = -1,
                          .seed = seed,
                          .connects = true};
        check_same_end(solver, &run);
    }
    choose(false);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cards_give_same_bits), /* first: the others compare */
        cmocka_unit_test(any_cards_give_same_bits_in_any_precision),
        cmocka_unit_test(exchanges_over_the_host_give_same_bits),
        cmocka_unit_test(a_training_goes_on_on_other_cards),
        cmocka_unit_test(a_card_that_fails_is_named),
        cmocka_unit_test(exchanges_of_factors_give_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
