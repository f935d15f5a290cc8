/* The scheduler: every micro-batch of a rank runs once, on the worker that the rules name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/scheduler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/work_queue.h"
#include "support/comm_ranks.h"
#include "support/support.h"
#include "transport/comm_job.h"

enum { UNITS = 40, WORKERS = 3, WAVES = 4 };

/* Units of three ranks; each fourth one has a sample more. */
static void list_units(struct ls_unit *units, struct ls_wave *waves)
{
    for (int u = 0; u < UNITS; u++)
        units[u] = (struct ls_unit){
            .index = u, .rank = u / 5 % 3, .slot = -7, .range = {.count = 12 + (u % 4 == 1)}};
    for (size_t w = 0; w < WAVES; w++)
        waves[w] = (struct ls_wave){w * UNITS / WAVES, (w + 1) * UNITS / WAVES};
}

static void begin(struct ls_scheduler *scheduler, int rank, struct ls_unit *units)
{
    struct ls_wave waves[WAVES];
    list_units(units, waves);
    assert_int_equal(ls_scheduler_create(scheduler, rank, WORKERS, UNITS, NULL), 0);
    ls_scheduler_assign(rank, units, waves, WAVES);
    ls_scheduler_begin(scheduler, units, UNITS);
}

/* ---- Micro-batches that do not wait for each other ------------------------------------------- */

static void each_unit_of_a_rank_is_taken_once(void **state)
{
    (void)state;
    int taken[UNITS] = {0};
    for (int rank = 0; rank < 3; rank++) {
        struct ls_scheduler scheduler;
        struct ls_unit units[UNITS];
        begin(&scheduler, rank, units);
        for (int pass = 0; pass < 2; pass++) { /* which begins anew */
            ls_scheduler_begin(&scheduler, units, UNITS);
            for (size_t unit; (unit = ls_scheduler_take(&scheduler)) != SIZE_MAX;) {
                assert_int_equal(units[unit].rank, rank);
                taken[unit]++;
            }
            assert_true(ls_scheduler_take(&scheduler) == SIZE_MAX);
        }
        ls_scheduler_free(&scheduler);
    }
    for (int u = 0; u < UNITS; u++)
        assert_int_equal(taken[u], 2);
}

/* In each run of two for every worker, in which data are decoded in order. */
static void larger_units_of_a_run_come_first(void **state)
{
    (void)state;
    struct ls_scheduler scheduler;
    struct ls_unit units[UNITS];
    size_t own[UNITS], count = 0, order[UNITS];
    begin(&scheduler, 1, units);
    for (size_t u = 0; u < UNITS; u++)
        if (units[u].rank == 1)
            own[count++] = u;
    for (size_t i = 0; i < count; i++)
        order[i] = ls_scheduler_take(&scheduler);
    for (size_t first = 0; first < count; first += 2 * (size_t)WORKERS) {
        size_t end = first + 2 * (size_t)WORKERS < count ? first + 2 * (size_t)WORKERS : count;
        for (size_t i = first; i < end; i++) {
            assert_in_range(order[i], own[first], own[end - 1]);
            if (i > first)
                assert_true(units[order[i]].range.count <= units[order[i - 1]].range.count);
        }
    }
    ls_scheduler_free(&scheduler);
}

static void *take_all(void *user)
{
    struct ls_scheduler *scheduler = user;
    char *taken = calloc(UNITS, 1);
    for (size_t unit; taken != NULL && (unit = ls_scheduler_take(scheduler)) != SIZE_MAX;)
        taken[unit]++;
    return taken;
}

static void workers_at_the_same_time_share_the_units(void **state)
{
    (void)state;
    struct ls_scheduler scheduler;
    struct ls_unit units[UNITS];
    pthread_t threads[WORKERS];
    int taken[UNITS] = {0};
    begin(&scheduler, 0, units);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(pthread_create(&threads[w], NULL, take_all, &scheduler), 0);
    for (int w = 0; w < WORKERS; w++) {
        void *mine = NULL;
        pthread_join(threads[w], &mine);
        assert_non_null(mine);
        for (int u = 0; u < UNITS; u++)
            taken[u] += ((char *)mine)[u];
        free(mine);
    }
    for (int u = 0; u < UNITS; u++)
        assert_int_equal(taken[u], units[u].rank == 0);
    ls_scheduler_free(&scheduler);
}

/* ---- Waves ----------------------------------------------------------------------------------- */

static void in_a_wave_each_worker_has_every_third_unit_of_the_rank(void **state)
{
    (void)state;
    struct ls_scheduler scheduler;
    struct ls_unit units[UNITS];
    struct ls_wave waves[WAVES];
    begin(&scheduler, 2, units);
    list_units(units, waves);
    ls_scheduler_assign(2, units, waves, WAVES);
    for (int w = 0; w < WAVES; w++) {
        const struct ls_wave *wave = &waves[w];
        int seen = 0, number = 0;
        for (int worker = 0; worker < WORKERS; worker++)
            for (size_t unit = ls_scheduler_next(&scheduler, wave, wave->begin, worker);
                 unit < wave->end; unit = ls_scheduler_next(&scheduler, wave, unit + 1, worker)) {
                assert_int_equal(units[unit].slot % WORKERS, worker);
                seen++;
            }
        for (int worker = 0; worker < WORKERS; worker++) { /* back, the same ones */
            size_t unit = wave->end, all[UNITS], count = 0;
            while ((unit = ls_scheduler_before(&scheduler, wave, unit, worker)) < wave->end)
                all[count++] = unit;
            for (unit = ls_scheduler_next(&scheduler, wave, wave->begin, worker); unit < wave->end;
                 unit = ls_scheduler_next(&scheduler, wave, unit + 1, worker))
                assert_true(count > 0 && all[--count] == unit);
            assert_int_equal(count, 0);
        }
        for (size_t unit = ls_scheduler_next(&scheduler, wave, wave->begin, LS_ANY_WORKER);
             unit < wave->end;
             unit = ls_scheduler_next(&scheduler, wave, unit + 1, LS_ANY_WORKER)) {
            assert_int_equal(units[unit].rank, 2);
            assert_int_equal(units[unit].slot, number++); /* from 0 in each wave */
        }
        assert_int_equal(seen, number);
    }
    ls_scheduler_free(&scheduler);
}

/* ---- The work queue -------------------------------------------------------------------------- */

struct heard {
    int wanted[UNITS], next_update[UNITS], ends;
    struct ls_scheduler *scheduler;
    int granted; /* when it was said that all are known */
};

static void want(void *user, size_t unit, bool next_update)
{
    struct heard *heard = user;
    (next_update ? heard->next_update : heard->wanted)[unit]++;
}

static void all_known(void *user)
{
    struct heard *heard = user;
    heard->ends++;
    heard->granted = heard->scheduler->granted;
}

/* A job of one rank with a queue: it gets all units, one round after the other. */
static void take_rounds(struct comm_rank *rank)
{
    struct ls_work_queue *queue = NULL;
    struct ls_scheduler scheduler;
    struct ls_unit units[UNITS];
    struct ls_wave waves[WAVES];
    struct heard heard = {.scheduler = &scheduler};
    const struct ls_scheduler_listener listener = {want, all_known, &heard};
    int owners[UNITS];
    list_units(units, waves);
    CHECK(rank, ls_comm_start(rank->comm, 2, NULL, NULL) == 0);
    CHECK(rank, ls_work_queue_create(rank->comm, &queue, NULL) == 0);
    CHECK(rank, ls_scheduler_create(&scheduler, 0, 2, UNITS, NULL) == 0);
    scheduler.queue = queue;
    ls_scheduler_begin(&scheduler, units, UNITS);
    for (int w = 0; w < WAVES && rank->failed == 0; w++) {
        CHECK(rank, ls_scheduler_open_round(&scheduler, &waves[w], &listener, NULL) == 0);
        CHECK(rank, scheduler.open && scheduler.round_end == waves[w].end);
        for (size_t expected = waves[w].begin, unit = 0; unit != SIZE_MAX; expected++) {
            CHECK(rank, ls_scheduler_take_granted(&scheduler, &unit, NULL) == 0);
            CHECK(rank, unit == (expected < waves[w].end ? expected : SIZE_MAX));
            if (rank->failed != 0)
                break;
        }
        CHECK(rank, heard.ends == w + 1 && heard.granted == (int)waves[w].end);
        CHECK(rank, ls_work_queue_end(queue, owners, NULL) == 0);
    }
    for (int u = 0; u < UNITS; u++)
        CHECK(rank, heard.wanted[u] == 1 && heard.next_update[u] == 0 && owners[u] == 0);

    /* Ahead: the two that it will be given first, as far as the round goes. */
    const struct ls_wave one = {7, 8}, none = {UNITS, UNITS};
    ls_scheduler_look_ahead(&scheduler, &one, false);
    CHECK(rank, heard.wanted[7] == 2 && heard.wanted[8] == 1 && heard.next_update[1] == 0);
    ls_scheduler_look_ahead(&scheduler, &none, true);
    CHECK(rank, heard.next_update[0] == 1 && heard.next_update[1] == 1);
    CHECK(rank, heard.next_update[2] == 0);
    ls_scheduler_free(&scheduler);
    ls_work_queue_free(queue);
}

static void a_queue_grants_all_units_and_looks_no_further_than_it_will_give(void **state)
{
    (void)state;
    run_comm_job(&(struct comm_job){.ranks = 1, .body = take_rounds});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_unit_of_a_rank_is_taken_once),
        cmocka_unit_test(larger_units_of_a_run_come_first),
        cmocka_unit_test(workers_at_the_same_time_share_the_units),
        cmocka_unit_test(in_a_wave_each_worker_has_every_third_unit_of_the_rank),
        cmocka_unit_test(a_queue_grants_all_units_and_looks_no_further_than_it_will_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
