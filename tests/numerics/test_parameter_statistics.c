/* Statistics of parameters: the same figures on any number of workers and ranks, those of what can
 * be read of the trainer, and no other weights with them than without.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "engine/copies.h"
#include "numerics/rank_nets.h"
#include "solver/statistics.h"

enum { UPDATES = 4 };

static void measure(struct ls_trainer *trainer, int rank)
{
    (void)rank;
    if (ls_statistics_create(trainer, &trainer->statistics, NULL) != 0)
        abort();
}

static void put_histogram(struct rank *rank, const struct lockstep_histogram *histogram)
{
    put(rank, histogram->edges, (histogram->count + 1) * sizeof *histogram->edges);
    put(rank, histogram->counts, histogram->count * sizeof *histogram->counts);
    put(rank, &histogram->sum, sizeof histogram->sum);
}

/* Updates, and behind each what rank 0 has found; other ranks have nothing to show. */
static int act(struct rank *rank, struct ls_trainer *trainer)
{
    for (int i = 0; i < UPDATES; i++) {
        LS_TRY(ls_trainer_update(trainer, rank->error));
        if (rank->rank != 0 || trainer->statistics == NULL)
            continue;
        const struct lockstep_statistics *found = ls_statistics_found(trainer->statistics);
        for (size_t p = 0; p < found->parameter_count; p++) {
            const struct lockstep_parameter_statistics *figures = &found->parameters[p];
            put(rank, &figures->weight_norm, sizeof(double));
            put(rank, &figures->gradient_norm, sizeof(double));
            put(rank, &figures->update_norm, sizeof(double));
            put_histogram(rank, &figures->weights);
            put_histogram(rank, &figures->gradient);
        }
        put(rank, &found->weight_norm, sizeof(double));
        put(rank, &found->gradient_norm, sizeof(double));
        put(rank, &found->update_norm, sizeof(double));
    }
    return rank->rank == 0 ? put_weights(rank, trainer) : 0;
}

/* What rank 0 has to show; the caller frees it. */
static struct bytes shown(const struct lockstep_solver *solver, int ranks, const int *workers,
                          void (*prepare)(struct ls_trainer *trainer, int rank))
{
    struct job job = {.solver = solver, .ranks = ranks, .act = act, .prepare = prepare};
    struct rank results[RANKS_MAX];
    for (int r = 0; r < ranks; r++)
        job.workers[r] = workers[r];
    run_job(&job, results);
    for (int r = 0; r < ranks; r++)
        if (results[r].status != 0)
            fail_msg("rank %d of %d: %s", r, ranks, results[r].error->problems[0].message);
    struct bytes bytes = results[0].bytes;
    results[0].bytes = (struct bytes){0};
    free_ranks(&job, results);
    return bytes;
}

static void any_ranks_find_the_same(void **state)
{
    (void)state;
    static const int workers[][3] = {{1}, {3}, {1, 1}, {2, 1, 1}};
    static const int ranks[] = {1, 1, 2, 3};
    struct lockstep_solver *solver = make_solver(ADAM "display: 1");
    struct bytes first = {0};
    for (int i = 0; i < 4; i++) {
        struct bytes bytes = shown(solver, ranks[i], workers[i], measure);
        if (i == 0)
            first = bytes;
        else
            check_same(first, bytes, "%d ranks", ranks[i]);
    }
    struct bytes plain = shown(solver, 1, workers[0], NULL);
    assert_true(plain.size < first.size);
    assert_memory_equal(first.data + first.size - plain.size, plain.data, plain.size);
    free(plain.data);
    free(first.data);
    lockstep_solver_free(solver);
}

/* The caller frees it. */
static float *read_weights(const struct ls_trainer *trainer, int index, int64_t size)
{
    float *plain = calloc((size_t)size, sizeof *plain);
    assert_non_null(plain);
    assert_int_equal(ls_copies_read(trainer->engine, index, LS_WEIGHTS, plain, NULL), 0);
    return plain;
}

static void check_histogram(const struct lockstep_histogram *histogram, const float *numbers,
                            int64_t size)
{
    uint64_t counts[64] = {0};
    double sum = 0;
    assert_true(histogram->count >= 1 && histogram->count <= 64);
    for (int64_t i = 0; i < size; i++) {
        double number = (double)numbers[i];
        size_t bin = 0;
        assert_true(number >= histogram->edges[0] && number <= histogram->edges[histogram->count]);
        while (bin + 1 < histogram->count && number >= histogram->edges[bin + 1])
            bin++;
        counts[bin]++;
        sum += number;
    }
    /* Next to an edge the two ways to find the bin may differ. */
    int64_t moved = 0;
    for (size_t i = 0; i < histogram->count; i++) {
        assert_true(histogram->edges[i] < histogram->edges[i + 1]);
        moved += llabs((long long)counts[i] - (long long)histogram->counts[i]);
    }
    assert_true(moved <= size / 100);
    assert_true(fabs(sum - histogram->sum) <= 1e-12 * (1 + fabs(sum)));
}

static void figures_are_those_of_the_numbers(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(MOMENTUM "display: 2 weight_decay: 0.01");
    struct training *training = start(solver, 2, NULL, NULL);
    struct ls_trainer *trainer = training->trainer->inner;
    measure(trainer, 0);
    const struct lockstep_statistics *found = ls_statistics_found(trainer->statistics);
    for (size_t p = 0; p < found->parameter_count; p++) {
        const struct lockstep_parameter_statistics *figures = &found->parameters[p];
        int index = 0;
        while (strcmp(trainer->parameters->items[index]->name, figures->name) != 0)
            index++;
        float *before = read_weights(trainer, index, figures->size);
        step(training, trainer->iteration % 2 == 0 ? 1 : 2); /* the last one is displayed */
        float *after = read_weights(trainer, index, figures->size);
        float *gradient = calloc((size_t)figures->size, sizeof *gradient);
        assert_non_null(gradient);
        assert_int_equal(ls_copies_read_gradient(trainer->engine, index, gradient, NULL), 0);
        double weights = 0, gradients = 0, updates = 0;
        for (int64_t i = 0; i < figures->size; i++) {
            weights += pow((double)after[i], 2);
            gradients += pow((double)gradient[i], 2);
            updates += pow((double)after[i] - (double)before[i], 2);
        }
        assert_true(fabs(sqrt(weights) - figures->weight_norm) < 1e-9);
        assert_true(fabs(sqrt(gradients) - figures->gradient_norm) < 1e-9 && gradients > 0);
        if (p == 0) /* only then is `before` that of one update */
            assert_true(fabs(sqrt(updates) - figures->update_norm) < 1e-9 && updates > 0);
        check_histogram(&figures->weights, after, figures->size);
        check_histogram(&figures->gradient, gradient, figures->size);
        free(before);
        free(after);
        free(gradient);
    }
    assert_true(found->parameter_count > 2);
    finish(training);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_ranks_find_the_same),
        cmocka_unit_test(figures_are_those_of_the_numbers),
    };
    write_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
