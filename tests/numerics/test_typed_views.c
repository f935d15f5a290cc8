/* Views of weights in narrow types. A kernel that asks for its weights and its input in a type of
 * 16 bits must see, in every update, what rounding the fp32 numbers gives that are there then: a
 * kernel that reads these and rounds them itself trains the same bits, on any number of workers
 * and ranks, and after a resume.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "engine/store_views.h"
#include "ir/convert.h"
#include "trainings/narrow_product.h"
#include "trainings/ranks.h"
#include "trainings/weights.h"

enum { SAMPLES = 60, UPDATES = 5 };

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    return 0;
}

static struct lockstep_solver *make_solver(const char *rest)
{
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 micro_batch: 4\n"
        "random_seed: 3 %s net_param { %s }\n",
        rest, ls_test_net("narrow_products", NULL));
}

/* The views are there, one for each of the weights, and hold what the weights are now. */
static void check_views(const struct ls_store *store, enum ls_dtype type)
{
    size_t seen = 0;
    for (size_t v = 0; v < store->view_count; v++) {
        const struct ls_view *view = &store->views->items[v];
        if (view->type != type)
            continue;
        const struct ls_parameter_state *slot = &store->slots[view->parameter->index];
        size_t bytes = ls_view_bytes(view);
        assert_int_equal(bytes, slot->elements * ls_dtype_size(type));
        assert_ptr_equal(view->layout, view->parameter->layout);
        unsigned char *expected = ls_alloc_aligned(bytes);
        ls_dtype_convert(LS_F32, stored_weights(store, (size_t)view->parameter->index), type,
                         expected, slot->elements);
        assert_memory_equal(store->view_memory[v].numbers, expected, bytes);
        ls_free_aligned(expected);
        seen++;
    }
    assert_int_equal(seen, 3);
}

static struct bytes train(const struct lockstep_solver *solver, enum narrow how, enum ls_dtype type,
                          int workers)
{
    narrow_products(how, type);
    struct training *training = start(solver, workers, NULL, NULL);
    for (int i = 0; i < UPDATES; i++) {
        step(training, 1);
        if (how == NARROW_VIEWED)
            check_views(training->trainer->inner->store, type);
    }
    struct bytes bytes = snapshot(training);
    finish(training);
    return bytes;
}

static void views_hold_the_weights_of_every_update(void **state)
{
    (void)state;
    static const enum ls_dtype types[] = {LS_BF16, LS_F16};
    struct lockstep_solver *solver = make_solver("");
    struct bytes wide = train(solver, NARROW_NOT, LS_F32, 1);
    for (int t = 0; t < 2; t++) {
        struct bytes expected = train(solver, NARROW_ROUNDED, types[t], 1);
        assert_false(same_bytes(expected, wide));
        for (int workers = 1; workers <= 3; workers++)
            check_same(expected, train(solver, NARROW_VIEWED, types[t], workers), "%s, %d workers",
                       ls_dtype_name(types[t]), workers);
        free(expected.data);
    }
    free(wide.data);
    lockstep_solver_free(solver);
}

static void ranks_have_views_of_the_same_weights(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("weight_average { decay: 0.9 } type: 'Adam'");
    narrow_products(NARROW_ROUNDED, LS_BF16);
    struct bytes expected = run_alone(solver, UPDATES);
    narrow_products(NARROW_VIEWED, LS_BF16);
    for (int ranks = 1; ranks <= 3; ranks++) {
        struct job job = {
            .solver = solver, .ranks = ranks, .workers = {1, 2, 1}, .updates = UPDATES};
        check_job(&job, expected, "views in BF16");
    }
    free(expected.data);
    lockstep_solver_free(solver);
}

/* Weights that come from a file become views, too. */
static void a_resume_brings_views_up_to_date(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    struct bytes expected = train(solver, NARROW_ROUNDED, LS_BF16, 1);
    narrow_products(NARROW_VIEWED, LS_BF16);
    struct training *first = start(solver, 2, "half", NULL);
    step(first, 2);
    struct bytes half = snapshot(first);
    finish(first);
    char *path = strdup(ls_test_path("half.lockstep"));
    ls_test_write(path, half.data, half.size);
    struct training *second = start(solver, 3, NULL, path);
    check_views(second->trainer->inner->store, LS_BF16);
    step(second, UPDATES - 2);
    check_same(expected, snapshot(second), "resumed");
    finish(second);
    free(half.data);
    free(expected.data);
    free(path);
    lockstep_solver_free(solver);
}

/* As plans of other sizes do: for each view in BF16 one in F16. */
static void want_more(struct ls_view_set *views)
{
    const size_t count = views->count;
    for (size_t v = 0; v < count; v++) {
        struct ls_view view = views->items[v];
        if (view.type != LS_BF16)
            continue;
        view.type = LS_F16;
        assert_true(LS_GROW(views->items, views->count, views->capacity));
        views->items[views->count++] = view;
    }
}

/* Whatever allocation fails, the next call makes all views, with the weights. */
static void views_are_added_all_or_none(void **state)
{
    (void)state;
    int status = LOCKSTEP_RESOURCE;
    long fails = 0;
    struct lockstep_solver *solver = make_solver("");
    narrow_products(NARROW_VIEWED, LS_BF16);
    for (; status != 0; fails++) {
        struct training *training = start(solver, 1, NULL, NULL);
        struct ls_store *store = training->trainer->inner->store;
        step(training, 1);
        const size_t before = store->view_count;
        want_more(store->views);
        ls_fail_allocation_after(fails);
        status = ls_store_add_views(store, NULL);
        ls_fail_allocation_after(-1);
        if (status != 0) {
            assert_int_equal(status, LOCKSTEP_RESOURCE);
            assert_int_equal(store->view_count, before);
            assert_int_equal(ls_store_add_views(store, NULL), 0);
        }
        check_views(store, LS_F16);
        finish(training);
    }
    assert_true(fails > 3); /* at least one for each view */
    lockstep_solver_free(solver);
}

static void numbers_are_not_converted_to_integers(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    narrow_products(NARROW_VIEWED, LS_I8);
    lockstep_train_options_init(&options);
    options.workers = 1;
    assert_int_not_equal(lockstep_trainer_create(solver, &options, &trainer, error), 0);
    assert_non_null(strstr(lockstep_error_text(error),
                           "large: the device cpu cannot convert 'data' from F32 to I8"));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

/* What is not F32 is named in a plan, and counted by its bytes. */
static void plans_show_types(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    struct lockstep_plan_options options;
    struct lockstep_plan *plan = NULL;
    uint64_t views[2];
    size_t converted = 0;
    lockstep_plan_options_init(&options);
    for (int narrow = 0; narrow < 2; narrow++) {
        narrow_products(narrow ? NARROW_VIEWED : NARROW_ROUNDED, LS_BF16);
        assert_int_equal(lockstep_plan_training(solver, &options, &plan, NULL), 0);
        const struct lockstep_plan_net *net = lockstep_plan_net(plan, 0);
        views[narrow] = lockstep_plan_memory(plan)->views;
        for (size_t i = 0; i < net->step_count; i++) {
            bool typed =
                net->steps[i].layout != NULL && strstr(net->steps[i].layout, "F16") != NULL;
            if (typed)
                assert_string_equal(net->steps[i].layout, "plain BF16");
            assert_int_equal(typed, narrow && net->steps[i].reorder && !net->steps[i].backward);
            converted += typed;
        }
        lockstep_plan_free(plan);
    }
    assert_int_equal(converted, 3);
    assert_int_equal(views[1] - views[0], 2 * (256 * 200 + 200 * 40 + 40 * 10));
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_hold_the_weights_of_every_update),
        cmocka_unit_test(ranks_have_views_of_the_same_weights),
        cmocka_unit_test(a_resume_brings_views_up_to_date),
        cmocka_unit_test(views_are_added_all_or_none),
        cmocka_unit_test(plans_show_types),
        cmocka_unit_test(numbers_are_not_converted_to_integers),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
