/* Verification. The trainings run side by side, update by update; after each one weights, what the
 * optimizer remembers, averages, exponents and losses are compared with the first training's.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/verify.h"

#include <string.h>

#include "base/memory.h"

enum { DEFAULT_ITERATIONS = 50 };

struct verification {
    struct ls_trainer **trainers;
    const int *workers;
    size_t count;
    struct ls_error *error;
};

static int different(const struct verification *verification, size_t which, const char *what,
                     const char *name)
{
    const struct ls_trainer *trainer = verification->trainers[which];
    return ls_fail(verification->error, LOCKSTEP_DIFFERENT, NULL, NULL,
                   "iteration %lld: %s%s%s%s differs between %d and %d workers",
                   (long long)(trainer->iteration - 1), what, name[0] != '\0' ? " '" : "", name,
                   name[0] != '\0' ? "'" : "", verification->workers[0],
                   verification->workers[which]);
}

static bool same_floats(const float *a, const float *b, size_t count)
{
    return a == b || (a != NULL && b != NULL && memcmp(a, b, count * sizeof *a) == 0);
}

/* Compares one parameter of training `which` with the first training's. */
static int compare_parameter(const struct verification *verification, size_t which, size_t index)
{
    const struct ls_store *first = verification->trainers[0]->store;
    const struct ls_store *other = verification->trainers[which]->store;
    const struct ls_slot *a = &first->slots[index], *b = &other->slots[index];
    const char *name = a->parameter->name;
    if (a->parameter->trained && !ls_store_has_factors(first, (int)index) &&
        memcmp(ls_sums_total(first->sums, (int)index), ls_sums_total(other->sums, (int)index),
               a->elements * sizeof(int64_t)) != 0)
        return different(verification, which, "the gradient of", name);
    if (!same_floats(a->weights, b->weights, a->elements))
        return different(verification, which, "parameter", name);
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        if (!same_floats(a->history[h], b->history[h], a->elements))
            return different(verification, which, "the optimizer's history of", name);
    if (!same_floats(a->average, b->average, a->elements))
        return different(verification, which, "the average of", name);
    if (ls_sums_exponent(first->sums, (int)index) != ls_sums_exponent(other->sums, (int)index))
        return different(verification, which, "the exponent of the sum of", name);
    return 0;
}

static int compare(const struct verification *verification, size_t which)
{
    const struct ls_trainer *a = verification->trainers[0], *b = verification->trainers[which];
    const struct ls_graph *graph = ls_net_graph(a->train);
    if (memcmp(a->totals.record, b->totals.record, (size_t)graph->record_size * sizeof(double)) !=
        0)
        return different(verification, which, "a loss or metric", "");
    if (!ls_factors_equal(a->store->factors, b->store->factors))
        return different(verification, which, "a factor of a gradient", "");
    for (size_t i = 0; i < a->parameters->count; i++)
        LS_TRY(compare_parameter(verification, which, i));
    return 0;
}

static int run(const struct verification *verification, int64_t iterations)
{
    struct ls_trainer *first = verification->trainers[0];
    LS_TRY(ls_trainer_check_averages(first, verification->error));
    if (iterations < 0)
        iterations = first->schedule.max_iter < DEFAULT_ITERATIONS ? first->schedule.max_iter
                                                                   : DEFAULT_ITERATIONS;
    for (int64_t i = 0; i < iterations; i++) {
        for (size_t t = 0; t < verification->count; t++)
            LS_TRY(ls_trainer_update(verification->trainers[t], verification->error));
        for (size_t t = 1; t < verification->count; t++)
            LS_TRY(compare(verification, t));
        if ((i + 1) % 10 == 0 || i + 1 == iterations)
            ls_trainer_say(first, LOCKSTEP_EVENT_NOTICE,
                           "Iteration %lld: loss = %.6g, the same bytes in all %zu trainings",
                           (long long)i, first->loss, verification->count);
    }
    return 0;
}

int ls_verify(const struct ls_solver_definition *definition,
              const struct lockstep_train_options *options, const int *workers, size_t count,
              int64_t iterations, struct ls_error *error)
{
    struct verification verification = {.workers = workers, .error = error};
    if (count < 2)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "--workers 1,2,3",
                       "verify compares at least two numbers of workers");
    verification.trainers = ls_alloc(count, sizeof *verification.trainers);
    int status = verification.trainers == NULL ? ls_fail_memory(error, "a verification") : 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        struct lockstep_train_options mine = *options;
        mine.workers = workers[i];
        status = ls_trainer_create(definition, &mine, &verification.trainers[i], error);
        verification.count += status == 0;
        if (status == 0 && options->weights != NULL)
            status = ls_trainer_load_weights(verification.trainers[i], options->weights, error);
        if (status == 0 && options->resume != NULL)
            status = ls_trainer_resume(verification.trainers[i], options->resume, error);
    }
    if (status == 0)
        status = run(&verification, iterations);
    for (size_t i = 0; i < verification.count; i++)
        ls_trainer_free(verification.trainers[i]);
    ls_free(verification.trainers);
    return status;
}
