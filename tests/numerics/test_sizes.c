/* Pictures of different sizes: a fully-convolutional net gives the same snapshot, byte for byte,
 * on any number of workers and after a resume. Neither memory nor the number of plans grows with
 * the number of sizes, and discarding plans changes nothing; nor does an update that ran out of
 * memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "numerics/sizes.h"

static size_t room_of(const struct ls_engine *engine)
{
    return ls_room_bytes(&engine->room, engine->workers);
}

static const int counts[] = {1, 2, 3, 5};
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Any number of workers ------------------------------------------------------------------- */

/* A loss whose labels are the net's own predictions, without those of one class. */
#define OWN_LABELS                                                                                 \
    "layer { name: 'taken' type: 'ArgMax' bottom: 'score' top: 'taken' argmax_param { axis: 1 } "  \
    "}\n"                                                                                          \
    "layer { name: 'own' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'taken' top: 'own'\n"     \
    "  loss_weight: 0.2 propagate_down: true propagate_down: false\n"                              \
    "  loss_param { ignore_label: 2 } }\n"

struct variant {
    const char *what, *settings, *data;
    struct size_net net;
};

static const struct variant variants[] = {
    {"deconvolution",
     SGD "micro_batch: 3 max_iter: 9",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_deconvolved"}},
    {"two batches",
     SGD "micro_batch: 3 iter_size: 2 max_iter: 6",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_resized", .loss = "normalization: FULL"}},
    {"clipped",
     SGD "micro_batch: 3 clip_gradients: 0.5 max_iter: 9",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_deconvolved"}},
    {"epochs",
     SGD "micro_batch: 3 iter_size: 2 clip_gradients: 0.5 max_iter: 9",
     "batch_size: 13 shuffle: true last_batch: PARTIAL",
     {.file = "sizes_deconvolved"}},
    {"groups of one",
     SGD "micro_batch: 3 max_iter: 9",
     "batch_size: 13 shuffle: true",
     {.file = "sizes_deconvolved", .norm = "group: 1", .loss = "normalization: BATCH_SIZE"}},
    {"groups",
     SGD "micro_batch: 4 iter_size: 2 max_iter: 6",
     "batch_size: 13 shuffle: true",
     {.file = "sizes_resized", .norm = "group: 5"}},
    {"counted labels",
     SGD "micro_batch: 3 iter_size: 2 max_iter: 6",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_deconvolved",
      .loss = "normalization: WEIGHTS class_weight: [1, 3, 0.5, 2]",
      .more = OWN_LABELS}},
    {"bare",
     "type: 'Adam' base_lr: 0.01 lr_policy: 'fixed' micro_batch: 3 max_iter: 9",
     "batch_size: 16 shuffle: true",
     {.file = "sizes_bare"}},
    {"bf16", /* pictures are decoded to bf16 */
     SGD "precision: BF16 micro_batch: 3 iter_size: 2 max_iter: 9",
     "batch_size: 13 shuffle: true last_batch: PARTIAL",
     {.file = "sizes_bare"}},
    {"bf16 with norms",
     SGD "precision: BF16 micro_batch: 4 clip_gradients: 0.5 max_iter: 6",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_resized"}},
};
enum { VARIANTS = sizeof variants / sizeof *variants, UPDATES = 4 };

static struct lockstep_solver *variant_solver(const struct variant *variant)
{
    return make_solver(variant->settings, "p", variant->data, "", variant->net);
}

static void any_workers_give_same_bits_with_pictures_of_many_sizes(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct lockstep_solver *solver = variant_solver(&variants[v]);
        struct bytes first = {0};
        int64_t micro_batches = 0;
        for (int i = 0; i < COUNTS; i++) {
            struct training *training = start(solver, counts[i], NULL, NULL);
            training->schedule.slow_worker = (v + i) % counts[i];
            step(training, UPDATES);
            int64_t total = count_micro_batches(training);
            struct bytes bytes = snapshot(training);
            finish(training);
            if (i == 0) {
                first = bytes;
                micro_batches = total;
                continue;
            }
            check_same(first, bytes, "%s, %d workers", variants[v].what, counts[i]);
            assert_int_equal(total, micro_batches);
        }
        free(first.data);
        lockstep_solver_free(solver);
    }
}

/* After a resume another size comes first: nothing may depend on that. */
static void resume_where_another_size_comes_first_gives_same_bits(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct lockstep_solver *solver = variant_solver(&variants[v]);
        struct training *whole = start(solver, 2, NULL, NULL);
        step(whole, UPDATES);
        struct bytes first = snapshot(whole);
        finish(whole);
        for (int at = 1; at < UPDATES; at += 2) {
            struct training *training = start(solver, 1 + at % 3, NULL, NULL);
            const char *path = ls_test_path("middle.safetensors");
            step(training, at);
            assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error),
                             0);
            finish(training);
            training = start(solver, 1 + (at + 1) % 3, NULL, path);
            assert_int_equal(lockstep_trainer_iteration(training->trainer), at);
            step(training, UPDATES - at);
            check_same(first, snapshot(training), "%s, resumed at %d", variants[v].what, at);
            finish(training);
        }
        free(first.data);
        lockstep_solver_free(solver);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { TEST_FIGURES = 3, MANY = 80, PLANS_KEPT = 64 };

static void evaluate(struct training *training, double figures[TEST_FIGURES])
{
    const struct lockstep_output *outputs;
    size_t count;
    if (lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    assert_int_equal(count, TEST_FIGURES);
    for (size_t i = 0; i < count; i++)
        figures[i] = outputs[i].values[0];
}

/* Tests on pictures that are larger than any in training: the memory that both nets share moves,
 * and training continues with the same bits. */
static void tests_on_larger_pictures_change_no_bit_of_training(void **state)
{
    (void)state;
    struct bytes first = {0};
    for (int i = 0; i < 4; i++)
        write_pair("large", i, (struct size){20 + 20 * i, 30 + 20 * i});
    for (int workers = 1; workers <= 3; workers++)
        for (int tested = 0; tested < 2; tested++) {
            struct lockstep_solver *solver = make_solver(
                SGD "max_iter: 9 micro_batch: 3 test_interval: 100 weight_average { decay: 0.9 }",
                "p", "batch_size: 12 shuffle: true", test_layer("large", "batch_size: 2"),
                (struct size_net){.file = "sizes_deconvolved", .more = FIGURES});
            struct training *training = start(solver, workers, NULL, NULL);
            struct ls_engine *engine = training->trainer->inner->engine;
            for (int update = 0; update < 4; update++) {
                double figures[TEST_FIGURES];
                step(training, 1);
                size_t before = room_of(engine);
                if (tested && update % 2 == 1)
                    evaluate(training, figures);
                if (tested && update == 1)
                    assert_true(room_of(engine) > before);
            }
            if (first.data == NULL)
                first = snapshot(training);
            else
                check_same(first, snapshot(training), "%d workers, tests: %d", workers, tested);
            finish(training);
            lockstep_solver_free(solver);
        }
    free(first.data);
}

static struct size size_of_many(int i)
{
    return (struct size){4 + i * 31 % MANY % 2, 3 + i * 31 % MANY};
}

static struct lockstep_solver *many_solver(void)
{
    return make_solver(SGD "max_iter: 60 micro_batch: 3 test_interval: 100 clip_gradients: 2",
                       "many", "batch_size: 12 shuffle: true", test_layer("many", "batch_size: 20"),
                       (struct size_net){.file = "sizes_many", .more = FIGURES});
}

static size_t largest_arena(const struct ls_net *net)
{
    size_t most = 0;
    for (size_t i = 0; i < net->plan_count; i++)
        if (net->plans[i]->plan->arena_bytes > most)
            most = net->plans[i]->plan->arena_bytes;
    return most;
}

/* More sizes than plans are kept for: plans are discarded and made again. A run that starts in
 * between has kept other plans than one that has seen all sizes. */
static void more_sizes_than_plans_are_kept_give_same_bits(void **state)
{
    (void)state;
    struct bytes first = {0};
    double figures[2][TEST_FIGURES];
    for (int workers = 1; workers <= 3; workers += 2) {
        struct lockstep_solver *solver = many_solver();
        struct training *training = start(solver, workers, NULL, NULL);
        const struct ls_trainer *inner = training->trainer->inner;
        step(training, 8);
        assert_true(inner->train->plan_count == PLANS_KEPT);
        assert_true(room_of(inner->engine) >= largest_arena(inner->train));
        size_t before = room_of(inner->engine);
        const char *middle = ls_test_path("middle.safetensors");
        assert_int_equal(lockstep_trainer_snapshot(training->trainer, middle, training->error), 0);
        step(training, 4);
        assert_true(inner->train->plan_count == PLANS_KEPT);
        /* All sizes were seen in the first epoch. */
        assert_true(room_of(inner->engine) == before);
        evaluate(training, figures[workers > 1]);
        assert_memory_equal(figures[workers > 1], figures[0], sizeof figures[0]);
        evaluate(training, figures[1]); /* again, with other plans there */
        assert_memory_equal(figures[1], figures[0], sizeof figures[0]);
        step(training, 1);
        if (workers == 1)
            first = snapshot(training);
        else
            check_same(first, snapshot(training), "many sizes, %d workers", workers);
        finish(training);
        training = start(solver, 1 + workers % 3, NULL, middle);
        step(training, 5);
        check_same(first, snapshot(training), "many sizes, resumed");
        finish(training);
        lockstep_solver_free(solver);
    }
    free(first.data);
}

/* ---- No memory ------------------------------------------------------------------------------- */

/* Steps while more and more allocations succeed before one fails, until an update succeeds;
 * returns how many failed. A failure leaves no trace: the update is tried again. */
static long step_without_memory(struct training *training, void (*arm)(long), long after)
{
    int64_t before = lockstep_trainer_iteration(training->trainer);
    for (long failed = 0;; failed++, after += after < 40 ? 1 : 17) {
        arm(after);
        int status = lockstep_trainer_step(training->trainer, 1, training->error);
        arm(-1);
        if (status == 0)
            return failed;
        if (status != LOCKSTEP_RESOURCE ||
            strstr(lockstep_error_text(training->error), "memory") == NULL)
            fail_msg("status %d: %s", status, lockstep_error_text(training->error));
        assert_int_equal(lockstep_trainer_iteration(training->trainer), before);
    }
}

/* One allocation fails, or all from one on, while updates meet new sizes. In the end the weights
 * are those of a training without failures. Where only one fails, a thread that decodes ahead
 * may meet the failure, and the update succeeds; where all fail, the update itself meets one. */
static void failed_allocations_for_new_sizes_change_no_bit(void **state)
{
    (void)state;
    enum { TRIED = 6 };
    struct lockstep_solver *solver = many_solver();
    struct training *undisturbed = start(solver, 2, NULL, NULL);
    step(undisturbed, TRIED);
    struct bytes first = snapshot(undisturbed);
    finish(undisturbed);
    struct training *training = start(solver, 2, NULL, NULL);
    long failed = 0;
    for (int i = 0; i < TRIED; i++)
        if (i % 2 == 0)
            failed += step_without_memory(training, ls_fail_allocations_after, i);
        else
            (void)step_without_memory(training, ls_fail_allocation_after, i);
    if (failed <= 50)
        fail_msg("only %ld updates failed", failed);
    check_same(first, snapshot(training), "after %ld failures", failed);
    finish(training);
    free(first.data);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_with_pictures_of_many_sizes),
        cmocka_unit_test(resume_where_another_size_comes_first_gives_same_bits),
        cmocka_unit_test(tests_on_larger_pictures_change_no_bit_of_training),
        cmocka_unit_test(more_sizes_than_plans_are_kept_give_same_bits),
        cmocka_unit_test(failed_allocations_for_new_sizes_change_no_bit),
    };
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    for (int i = 0; i < MANY; i++)
        write_pair("many", i, size_of_many(i));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
