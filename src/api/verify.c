/* The public interface: verification.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/verify.h"

#include "api/api.h"
#include "api/cards.h"
#include "api/caller.h"
#include "api/options.h"
#include "base/memory.h"

enum { COUNT_MAX = 4096 };

/* Lists that stand for those that are empty. */
static const int three[] = {1, 2, 3}, one[] = {1}, by_shares[] = {0};
static const uint64_t unlimited[] = {0};

void lockstep_verify_options_init(struct lockstep_verify_options *options)
{
    *options = (struct lockstep_verify_options){.struct_size = sizeof *options, .iterations = -1};
}

static int check_counts(const int *counts, size_t count, const char *what, struct ls_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (counts[i] < 1 || counts[i] > COUNT_MAX)
            return ls_fail(error, LOCKSTEP_USAGE, NULL, "use numbers from 1 to 4096",
                           "%d %s are not possible", counts[i], what);
    return 0;
}

static int check_options(const struct lockstep_verify_options *options, struct ls_error *error)
{
    if (options->stops < 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 0 for none", "%d stops are not possible",
                       options->stops);
    LS_TRY(check_counts(options->workers, options->worker_count, "workers", error));
    return check_counts(options->ranks, options->rank_count, "ranks", error);
}

/* Lists without empty ones. */
static struct lockstep_verify_options with_defaults(const struct lockstep_verify_options *options)
{
    struct lockstep_verify_options all = *options;
    if (all.worker_count == 0) {
        all.workers = three;
        all.worker_count = sizeof three / sizeof *three;
    }
    if (all.rank_count == 0) {
        all.ranks = one;
        all.rank_count = 1;
    }
    if (all.dynamic_count == 0) {
        all.dynamic = by_shares;
        all.dynamic_count = 1;
    }
    if (all.memory_count == 0) {
        all.memory = unlimited;
        all.memory_count = 1;
    }
    return all;
}

/* Each combination, those of a single rank once whatever the balance; `cases` NULL: counts them.
 * `cards`: by entry of options->ranks, or NULL. */
static size_t combine(const struct lockstep_verify_options *options,
                      const struct ls_api_cards *cards, struct ls_verify_case *cases)
{
    size_t count = 0;
    for (size_t m = 0; m < options->memory_count; m++)
        for (size_t r = 0; r < options->rank_count; r++)
            for (size_t d = 0; d < options->dynamic_count; d++)
                for (size_t w = 0; w < options->worker_count; w++) {
                    bool alone = options->ranks[r] == 1;
                    if (alone && d > 0)
                        continue;
                    if (cases != NULL)
                        cases[count] =
                            (struct ls_verify_case){.cards = cards != NULL ? cards[r].card : NULL,
                                                    .ranks = options->ranks[r],
                                                    .workers = options->workers[w],
                                                    .dynamic = !alone && options->dynamic[d] != 0,
                                                    .memory = options->memory[m]};
                    count++;
                }
    return count;
}

/* How many trainings there are: more than anybody waits for are refused before any is counted. */
static int count_trainings(const struct lockstep_verify_options *options, size_t *count,
                           struct ls_error *error)
{
    const size_t lists[] = {options->worker_count, options->rank_count, options->dynamic_count,
                            options->memory_count};
    size_t all = 1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && all <= LOCKSTEP_TRAININGS_LIMIT; i++)
        all = lists[i] > LOCKSTEP_TRAININGS_LIMIT ? lists[i] : all * lists[i];
    bool many = all > (size_t)8 * LOCKSTEP_TRAININGS_LIMIT;
    *count = many ? all : combine(options, NULL, NULL);
    if (!many && *count <= LOCKSTEP_TRAININGS_LIMIT)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "shorten a list",
                   "verify would run %zu trainings or more; it runs at most %d", *count,
                   LOCKSTEP_TRAININGS_LIMIT);
}

static int verify(const struct lockstep_solver *solver,
                  const struct lockstep_verify_options *options, const struct ls_api_cards *cards,
                  struct ls_error *error)
{
    struct lockstep_callbacks callbacks = options->callbacks;
    size_t count = 0;
    char *weights = NULL; /* they start where training starts */
    LS_TRY(count_trainings(options, &count, error));
    struct ls_verify_case *cases = ls_alloc(count + 1, sizeof *cases);
    int status = cases == NULL ? ls_fail_memory(error, "a verification") : 0;
    if (status == 0 && options->weights == NULL)
        status = ls_api_solver_weights(solver->definition->solver, &weights, error);
    if (status == 0) {
        combine(options, cards, cases);
        struct ls_verify_options inner = {.cases = cases,
                                          .count = count,
                                          .stops = options->stops,
                                          .iterations = options->iterations,
                                          .weights = weights != NULL ? weights : options->weights,
                                          .device = options->device,
                                          .callbacks = ls_caller_callbacks(&callbacks),
                                          .trained = options->trained,
                                          .user = options->user};
        status = ls_verify(solver->definition, &inner, error);
    }
    ls_free(weights);
    ls_free(cases);
    return status;
}

/* What is compared on cards: each list of them is so many ranks. */
struct placing {
    struct ls_api_cards *cards;
    int *ranks;
    size_t count; /* 0: there are no cards */
};

static void free_placing(struct placing *placing)
{
    ls_free(placing->cards);
    ls_free(placing->ranks);
}

static int place(const struct lockstep_verify_options *options, struct placing *placing,
                 struct ls_error *error)
{
    const char *const *devices = options->device_count > 0 ? options->devices : &options->device;
    const size_t count = options->device_count > 0 ? options->device_count : 1;
    placing->cards = ls_alloc(count, sizeof *placing->cards);
    placing->ranks = ls_alloc(count, sizeof *placing->ranks);
    if (placing->cards == NULL || placing->ranks == NULL)
        return ls_fail_memory(error, "a verification");
    for (size_t i = 0; i < count; i++) {
        LS_TRY(ls_api_cards(devices[i], &placing->cards[i], error));
        placing->ranks[i] = placing->cards[i].count;
        if (placing->cards[i].device != placing->cards[0].device)
            return ls_fail(error, LOCKSTEP_USAGE, NULL, "compare cards with cards",
                           "devices of several kinds need not have the same bits");
    }
    placing->count = placing->cards[0].count > 0 ? count : 0;
    if (placing->count == 0 && options->device_count > 1)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "this device has no cards to compare");
    if (placing->count > 0 && options->rank_count > 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "leave ranks out",
                       "each card of a list is a rank already");
    return 0;
}

int lockstep_verify(const struct lockstep_solver *solver,
                    const struct lockstep_verify_options *options, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_verify_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_verify_options_init", inner));
    options = &mine;
    char name[LS_API_DEVICE_ROOM];
    struct placing placing = {.count = 0};
    LS_TRY(check_options(options, inner));
    mine.device =
        mine.device_count > 0 ? mine.devices[0] : ls_api_solver_device(solver, mine.device, name);
    LS_TRY(ls_api_select(options->device, options->isa, inner));
    int status = place(options, &placing, inner);
    if (status == 0) {
        if (placing.count > 0) {
            mine.ranks = placing.ranks;
            mine.rank_count = placing.count;
        }
        if (mine.worker_count == 0 && placing.count > 1) {
            mine.workers = one;
            mine.worker_count = 1;
        }
        struct lockstep_verify_options all = with_defaults(options);
        status = verify(solver, &all, placing.count > 0 ? placing.cards : NULL, inner);
    }
    free_placing(&placing);
    return status;
}
