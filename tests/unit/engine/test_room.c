/* The memory of workers has room for every plan, alone in a worker's block or beside what its
 * micro-batches keep, and for no more than that.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/room.h"

enum { PLANS = 4, ROUNDS = 300, SEED = 11 };

/* Plans of one segment or more, and the slots that they are run in. */
struct scene {
    struct ls_plan plan[PLANS];
    int slots[PLANS], count, workers;
};

static size_t below(uint64_t round, uint64_t what, uint32_t limit)
{
    return (size_t)ls_random_below(SEED, round, what, limit);
}

static struct scene make_scene(uint64_t round)
{
    struct scene scene = {.count = 1 + (int)below(round, 0, PLANS),
                          .workers = 1 + (int)below(round, 1, 5)};
    for (int i = 0; i < scene.count; i++) {
        const uint64_t salt = 10 * (uint64_t)(i + 1);
        const bool cut = below(round, salt, 2) == 1;
        scene.plan[i] = (struct ls_plan){.arena_bytes = 64 * below(round, salt + 1, 100),
                                         .stashed_bytes = cut ? 64 * below(round, salt + 2, 50) : 0,
                                         .segments = cut ? 3 : 1};
        scene.slots[i] = cut ? 1 + (int)below(round, salt + 3, 12) : scene.workers;
    }
    return scene;
}

static struct ls_room room_for(const struct scene *scene)
{
    struct ls_room room = {0};
    for (int i = 0; i < scene->count; i++)
        ls_room_add(&room, &scene->plan[i], scene->slots[i]);
    return room;
}

/* Each plan has its arena and what its slots hold, in every worker's block. */
static void check_plans(const struct scene *scene, const struct ls_room *room)
{
    for (int i = 0; i < scene->count; i++)
        for (int w = 0; w < scene->workers; w++) {
            const struct ls_plan *plan = &scene->plan[i];
            size_t slots = 0, front = ls_room_arena(room, scene->workers);
            for (int slot = w; plan->segments > 1 && slot < scene->slots[i]; slot += scene->workers)
                slots++;
            size_t block = ls_room_block(room, scene->workers, w);
            assert_true(plan->segments > 1 ? plan->arena_bytes <= front
                                           : plan->arena_bytes <= block);
            assert_true(slots == 0 || plan->stashed_bytes <= room->stashed);
            assert_true(front + slots * room->stashed <= block);
        }
}

static void every_plan_fits_into_the_room_and_needs_all_of_it(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const struct scene scene = make_scene(round);
        const struct ls_room room = room_for(&scene);
        size_t all = 0;
        for (int w = 0; w < scene.workers; w++)
            all += ls_room_block(&room, scene.workers, w);
        assert_int_equal(all, ls_room_bytes(&room, scene.workers));
        check_plans(&scene, &room);
    }
}

/* A plan of one segment adds the bytes that it needs beyond the other plans to the block that
 * has least. */
static void a_plan_alone_adds_what_it_needs_more_to_the_block_with_least(void **state)
{
    (void)state;
    struct ls_room room = {0};
    const struct ls_plan train = {.arena_bytes = 1000, .stashed_bytes = 100, .segments = 2};
    struct ls_plan test = {.arena_bytes = 1200, .segments = 1};
    ls_room_add(&room, &train, 5); /* of two workers: 3 and 2 */
    assert_int_equal(ls_room_bytes(&room, 2), 2500);
    ls_room_add(&room, &test, 2);
    assert_int_equal(ls_room_bytes(&room, 2), 2500);
    test.arena_bytes = 1210;
    ls_room_add(&room, &test, 2);
    assert_int_equal(ls_room_arena(&room, 2), 1010);
    assert_int_equal(ls_room_block(&room, 2, 0), 1310);
    assert_int_equal(ls_room_block(&room, 2, 1), 1210);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_fits_into_the_room_and_needs_all_of_it),
        cmocka_unit_test(a_plan_alone_adds_what_it_needs_more_to_the_block_with_least)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
