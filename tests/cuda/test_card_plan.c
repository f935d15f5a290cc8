/* Trainings on a card of the fake that has little memory: what does not fit is refused before
 * anything is taken, with what would fit; what fits only with recomputations, or in the limit that
 * it was given, has the same bits as with much memory, and takes no more than is planned.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "cuda/fake/fake.h"
#include "engine/net.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"
#include "ops/devices.h"
#include "trainings/training.h"

enum {
    SAMPLES = 48,
    SIDE = 16,
    END = 2,
    MICRO_BATCH = 24,
    LARGE = 1 << 26,
    TENTH = 1048576 / 10 + 1 /* bytes: what messages tell */
};

int __real_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);
int __wrap_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);

int __wrap_ls_device_find(const char *name, const struct ls_device **device, struct ls_error *error)
{
    if (name == NULL || strcmp(name, ls_device_cuda.name) != 0)
        return __real_ls_device_find(name, device, error);
    *device = &ls_device_cuda;
    return 0;
}

static struct lockstep_solver *make_solver(int micro_batch)
{
    return load_solver("base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: %d snapshot: %d\n"
                       "micro_batch: %d random_seed: 5 display: 1 net_param { %s }\n",
                       END, END, micro_batch, ls_test_net("card_plan", NULL));
}

static int setup(void **state)
{
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, SIDE);
    *state = make_solver(MICRO_BATCH);
    return 0;
}

static int teardown(void **state)
{
    lockstep_solver_free(*state);
    return 0;
}

struct outcome {
    int status;
    size_t planned, taken; /* bytes of the card's memory */
    size_t recomputations; /* in the first plan */
    long allocations;      /* calls */
    char message[1200];    /* of a training that failed */
    struct bytes state;    /* of one that did not */
};

/* Trains on a card of `bytes`, with a limit that is not 0. */
static struct outcome train(const struct lockstep_solver *solver, size_t bytes, uint64_t limit)
{
    static const int cards[] = {0};
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct outcome outcome = {0};
    lockstep_train_options_init(&options);
    options.device = "cuda";
    options.snapshot_prefix = ls_test_path("plan");
    options.overwrite = 1;
    options.memory = limit;
    fake_begin(1, bytes, 1);
    outcome.status =
        ls_api_trainer_create(solver, &options, 1, cards, &trainer, ls_api_error(error));
    if (outcome.status == 0) {
        const struct ls_trainer *rank = trainer->ranks[0];
        outcome.planned = ls_forecast_total(&rank->forecast);
        outcome.recomputations = ls_net_first_plan(rank->train)->recomputations;
        outcome.status = lockstep_trainer_run(trainer, -1, error);
    }
    lockstep_trainer_free(trainer);
    ls_card_end_thread();
    outcome.taken = fake_most_bytes();
    outcome.allocations = fake_calls("cudaMalloc");
    fake_end();
    if (outcome.status == 0)
        outcome.state = read_bytes(ls_test_path(ls_test_text("plan_iter_%d.safetensors", END)));
    else
        snprintf(outcome.message, sizeof outcome.message, "%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return outcome;
}

/* What a training without a limit takes, and its end. */
static struct outcome train_freely(const struct lockstep_solver *solver)
{
    struct outcome outcome = train(solver, LARGE, 0);
    if (outcome.status != 0)
        fail_msg("%s", outcome.message);
    assert_int_equal(outcome.recomputations, 0);
    return outcome;
}

/* Half of a small card is left to libraries (memory_left of ops/cuda/card.c). */
static size_t card_for(size_t bytes)
{
    return 2 * bytes;
}

/* A refusal: nothing was taken, and the message has what is needed at least, which it returns. */
static size_t refused(const struct lockstep_solver *solver, size_t bytes, uint64_t limit,
                      const char *help)
{
    const struct outcome outcome = train(solver, bytes, limit);
    double least = 0;
    const char *at = strstr(outcome.message, "needs at least ");
    assert_int_equal(outcome.status, LOCKSTEP_RESOURCE);
    if (at == NULL || sscanf(at, "needs at least %lf MiB of the device's memory", &least) != 1 ||
        strstr(at, "the limit is ") == NULL || strstr(at, help) == NULL)
        fail_msg("%s", outcome.message);
    assert_int_equal(outcome.allocations, 0);
    assert_int_equal(outcome.taken, 0);
    return (size_t)(least * 1048576) + 1;
}

static void what_does_not_fit_is_refused_before_memory_is_taken(void **state)
{
    const size_t tiny = 1 << 12;
    const size_t least = refused(*state, tiny, 0, "no smaller micro_batch would fit");
    assert_int_equal(refused(*state, LARGE, tiny, "no smaller micro_batch would fit"), least);
    /* A tenth of a MiB below what is said to be needed is too little, and what helps does help. */
    const size_t less = least - TENTH - 1;
    assert_int_equal(refused(*state, card_for(less), 0, "micro_batch: 12 would fit"), least);
    assert_int_equal(refused(*state, LARGE, less, "micro_batch: 12 would fit"), least);
    struct lockstep_solver *smaller = make_solver(MICRO_BATCH / 2);
    struct outcome outcome = train(smaller, card_for(less), 0);
    if (outcome.status != 0)
        fail_msg("%s", outcome.message);
    free(outcome.state.data);
    lockstep_solver_free(smaller);
}

/* Between the least and what a training takes by itself: as a small card, and as a limit. */
static void check_limit(const struct lockstep_solver *solver, const struct outcome *freely,
                        size_t limit, bool card)
{
    const struct outcome outcome =
        card ? train(solver, card_for(limit), 0) : train(solver, LARGE, limit);
    if (outcome.status != 0)
        fail_msg("%zu bytes: %s", limit, outcome.message);
    if (outcome.planned > limit || outcome.taken > outcome.planned)
        fail_msg("%zu bytes are planned, and %zu taken, of %zu", outcome.planned, outcome.taken,
                 limit);
    assert_true(outcome.recomputations > 0);
    check_same(freely->state, outcome.state, "%zu bytes of a %s", limit, card ? "card" : "limit");
}

static void recomputations_give_same_bits(void **state)
{
    struct outcome freely = train_freely(*state);
    const size_t least = refused(*state, 1 << 12, 0, "would fit");
    assert_true(least + TENTH < freely.planned);
    if (freely.taken > freely.planned || freely.taken < freely.planned / 10 * 9)
        fail_msg("%zu bytes are planned, and %zu taken", freely.planned, freely.taken);
    for (int card = 0; card < 2; card++) {
        check_limit(*state, &freely, least, card == 1);
        check_limit(*state, &freely, (least + freely.planned) / 2, card == 1);
    }
    free(freely.state.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused_before_memory_is_taken),
        cmocka_unit_test(recomputations_give_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
