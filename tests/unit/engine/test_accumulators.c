/* The accumulators of all devices: sums of random shapes, rows and numbers of threads are the same
 * integers on every device, and where a contribution does not fit, all ask for a repetition with
 * the same exponents.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "engine/exponents.h"
#include "ops/devices.h"
#include "support/contribute.h"

enum { TRIALS = 60, PARAMETERS = 4, MICRO_BATCHES = 6, WORKERS = 3, ELEMENTS_MAX = 20000 };

/* Shapes and contributions of a trial. */
struct trial {
    size_t elements[PARAMETERS], place[PARAMETERS], all;
    size_t rows[PARAMETERS]; /* 0: one; elements: each */
    float *row[PARAMETERS];
    float *gradient[MICRO_BATCHES][PARAMETERS];
};

static int draw(uint64_t trial, uint64_t what, int low, int high)
{
    return low + (int)ls_random_below(17, trial, what, (uint32_t)(high - low + 1));
}

/* Rows of neighbours, or in turns of some elements, as blocked layouts have them; some padding. */
static float *draw_rows(uint64_t trial, size_t parameter, size_t elements, size_t rows)
{
    float *row = malloc(elements * sizeof *row);
    assert_non_null(row);
    bool lanes = draw(trial, 100 + parameter, 0, 1) == 1;
    for (size_t i = 0; i < elements; i++) {
        size_t of = lanes ? i % 16 + i / 16 * 16 * rows / elements : i * rows / elements;
        row[i] = (float)(i % 50 == 49 ? 0 : of % rows + 1);
    }
    return row;
}

static void make_trial(struct trial *trial, uint64_t number)
{
    *trial = (struct trial){0};
    for (size_t p = 0; p < PARAMETERS; p++) {
        size_t n = (size_t)draw(number, p, 1, p == 0 ? ELEMENTS_MAX : 700);
        trial->elements[p] = n;
        trial->place[p] = trial->all;
        trial->all += (n + 15) / 16 * 16;
        int cut = draw(number, 10 + p, 0, 2);
        trial->rows[p] = cut == 0 ? 0 : cut == 1 ? n : 1 + n / (size_t)draw(number, 20 + p, 1, 90);
        if (cut == 2)
            trial->row[p] = draw_rows(number, p, n, trial->rows[p]);
        for (int m = 0; m < MICRO_BATCHES; m++) {
            float *gradient = trial->gradient[m][p] = malloc(n * sizeof *gradient);
            assert_non_null(gradient);
            for (size_t i = 0; i < n; i++) {
                uint64_t at = (uint64_t)m * ELEMENTS_MAX + i;
                int scale = (int)ls_random_below(number, 5 + p, at, 30);
                gradient[i] = trial->row[p] != NULL && trial->row[p][i] <= 0
                                  ? 0
                                  : ldexpf(2 * ls_random_uniform(number, 9 + p, at) - 1, -scale);
            }
        }
    }
}

static void free_trial(struct trial *trial)
{
    for (size_t p = 0; p < PARAMETERS; p++) {
        free(trial->row[p]);
        for (int m = 0; m < MICRO_BATCHES; m++)
            free(trial->gradient[m][p]);
    }
}

/* ---- One device ------------------------------------------------------------------------------ */

struct scene {
    const struct ls_device *device;
    const struct trial *trial;
    struct ls_sums *sums;
    int worker, threads;
};

static struct ls_sums *make_sums(const struct ls_device *device, const struct trial *trial)
{
    struct ls_sums *sums;
    assert_int_equal(
        ls_sums_create(device, trial->elements, trial->place, PARAMETERS, WORKERS, &sums, NULL), 0);
    for (int p = 0; p < PARAMETERS; p++)
        if (trial->row[p] != NULL)
            assert_int_equal(ls_sums_cut_rows(sums, p, trial->rows[p], trial->row[p], NULL), 0);
        else if (trial->rows[p] > 0)
            assert_int_equal(ls_sums_cut_elements(sums, p, NULL), 0);
    return sums;
}

static void *contribute_share(void *argument)
{
    const struct scene *scene = argument;
    for (int m = scene->worker; m < MICRO_BATCHES; m += scene->threads)
        for (int p = PARAMETERS; p-- > 0;)
            contribute_to_sum(scene->device, ls_sums_accumulator(scene->sums), scene->worker, m, p,
                              scene->trial->gradient[m][p]);
    return NULL;
}

/* All contributions of an update, by so many threads. */
static enum ls_sums_result run_update(const struct scene *scene, bool measure, int threads)
{
    pthread_t thread[WORKERS];
    struct scene share[WORKERS];
    int parameter, micro_batch;
    assert_int_equal(ls_sums_begin(scene->sums, measure, NULL), 0);
    for (int t = 0; t < threads; t++) {
        share[t] = *scene;
        share[t].worker = t;
        share[t].threads = threads;
        assert_int_equal(pthread_create(&thread[t], NULL, contribute_share, &share[t]), 0);
    }
    for (int t = 0; t < threads; t++)
        pthread_join(thread[t], NULL);
    assert_int_equal(ls_sums_collect(scene->sums, NULL), 0);
    return ls_sums_end(scene->sums, &parameter, &micro_batch);
}

/* What an update leaves: sums, fp32 totals, squares, and the state of exponents. */
struct result {
    int repeats;
    uint64_t bits;
};

static void mix(struct result *result, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++)
        result->bits = (result->bits ^ byte[i]) * UINT64_C(1099511628211);
}

static struct result sum_up(const struct ls_device *device, const struct trial *trial, int threads)
{
    static float out[ELEMENTS_MAX];
    double chunk[ELEMENTS_MAX / LS_EXACT_CHUNK + 1];
    struct scene scene = {.device = device, .trial = trial, .sums = make_sums(device, trial)};
    struct result result = {0};
    /* Exponents that fit the first half of the parameters and are too high for the rest. */
    for (int p = 0; p < PARAMETERS; p++)
        ls_sums_set_exponent(scene.sums, p, p < PARAMETERS / 2 ? 40 : 70);
    for (int update = 0; update < 3; update++) {
        while (run_update(&scene, false, threads) != LS_SUMS_GOOD)
            assert_true(++result.repeats < 10);
        for (int p = 0; p < PARAMETERS; p++) {
            size_t n = trial->elements[p], half = n / 3;
            assert_int_equal(ls_sums_clear_rest(scene.sums, p, NULL), 0);
            mix(&result, ls_sums_all(scene.sums) + trial->place[p], n * sizeof(int64_t));
            assert_int_equal(ls_sums_read(scene.sums, p, 0, half, out, NULL), 0);
            assert_int_equal(ls_sums_read(scene.sums, p, half, n - half, out + half, NULL), 0);
            mix(&result, out, n * sizeof *out);
            assert_int_equal(ls_sums_squares(scene.sums, p, 0, n, chunk, NULL), 0);
            mix(&result, chunk, (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK * sizeof *chunk);
            uint32_t largest;
            assert_int_equal(device->sums->largest(out, n, &largest, NULL), 0);
            ls_sums_next(scene.sums, p, largest);
            mix(&result, ls_sums_state(scene.sums, p),
                ls_sums_rows(scene.sums, p) * sizeof(int32_t));
        }
    }
    ls_sums_free(scene.sums);
    return result;
}

static void all_devices_and_threads_give_the_same_sums(void **state)
{
    (void)state;
    int repeated = 0;
    for (uint64_t t = 0; t < TRIALS; t++) {
        struct trial trial;
        make_trial(&trial, t);
        struct result first = sum_up(ls_devices[0], &trial, 1);
        repeated += first.repeats > 0;
        for (int d = 0; d < ls_device_count; d++)
            for (int threads = 1; threads <= WORKERS; threads++) {
                struct result other = sum_up(ls_devices[d], &trial, threads);
                if (other.bits != first.bits || other.repeats != first.repeats)
                    fail_msg("trial %d: %s with %d threads differs", (int)t, ls_devices[d]->name,
                             threads);
            }
        free_trial(&trial);
    }
    assert_int_equal(repeated, TRIALS); /* an exponent was too high each time */
}

/* The first micro-batch that is not finite is found, whichever thread adds it, and a parameter
 * without contributions has zeros when it is cleared. */
static void what_is_not_finite_and_what_is_missing_is_told(void **state)
{
    (void)state;
    for (int d = 0; d < ls_device_count; d++) {
        struct trial trial;
        int parameter = -1, micro_batch = -1;
        make_trial(&trial, 1000);
        struct scene scene = {.device = ls_devices[d], .trial = &trial};
        scene.sums = make_sums(scene.device, &trial);
        for (int p = 0; p < PARAMETERS; p++)
            ls_sums_set_exponent(scene.sums, p, 30);
        assert_int_equal(run_update(&scene, false, WORKERS), LS_SUMS_GOOD);
        trial.gradient[4][2][0] = NAN;
        trial.gradient[2][1][trial.elements[1] - 1] = -INFINITY;
        assert_int_equal(run_update(&scene, false, WORKERS), LS_SUMS_NOT_FINITE);
        assert_int_equal(ls_sums_end(scene.sums, &parameter, &micro_batch), LS_SUMS_NOT_FINITE);
        assert_int_equal(parameter, 1);
        assert_int_equal(micro_batch, 2);
        assert_int_equal(ls_sums_begin(scene.sums, false, NULL), 0);
        contribute_to_sum(scene.device, ls_sums_accumulator(scene.sums), 0, 0, 0,
                          trial.gradient[0][0]);
        bool any = false;
        for (int p = 0; p < PARAMETERS; p++) {
            const int64_t *sum = ls_sums_all(scene.sums) + trial.place[p];
            assert_int_equal(ls_sums_clear_rest(scene.sums, p, NULL), 0);
            for (size_t i = 0; i < trial.elements[p]; i++)
                any |= p == 0 ? sum[i] != 0 : false;
            for (size_t i = 0; i < trial.elements[p] && p > 0; i++)
                assert_int_equal(sum[i], 0);
        }
        assert_true(any);
        ls_sums_free(scene.sums);
        free_trial(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_devices_and_threads_give_the_same_sums),
        cmocka_unit_test(what_is_not_finite_and_what_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
