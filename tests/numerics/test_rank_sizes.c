/* Pictures of different sizes on several ranks. Each batch is cut in another way, a rank may
 * have no part of it, and plans are made and discarded as sizes appear. Every rank gives the
 * bytes of a single process, with a static partition and with a work queue.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/ranks.h"
#include "numerics/sizes.h"

enum { UPDATES = 5 };

static int setup(void **state)
{
    (void)state;
    assert_int_equal(mkdir(ls_test_path("p"), 0755), 0);
    assert_int_equal(mkdir(ls_test_path("p_maps"), 0755), 0);
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    return 0;
}

/* A loss whose labels are the net's own predictions: they are counted during the pass. */
#define OWN_LABELS                                                                                 \
    "layer { name: 'taken' type: 'ArgMax' bottom: 'score' top: 'taken' argmax_param { axis: 1 } "  \
    "}\n"                                                                                          \
    "layer { name: 'own' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'taken' top: 'own'\n"     \
    "  loss_weight: 0.2 propagate_down: true propagate_down: false\n"                              \
    "  loss_param { ignore_label: 2 } }\n"

static const struct variant {
    const char *what, *settings, *data;
    struct size_net net;
} variants[] = {
    {"no sync points",
     "micro_batch: 3 max_iter: 9",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_bare"}},
    {"the batch's statistics",
     "micro_batch: 3 clip_gradients: 0.5 max_iter: 9",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_deconvolved"}},
    {"small batches",
     "micro_batch: 3 iter_size: 4 max_iter: 9",
     "batch_size: 2 shuffle: true",
     {.file = "sizes_deconvolved"}},
    {"ragged ends and groups",
     "micro_batch: 3 iter_size: 2 max_iter: 9",
     "batch_size: 13 shuffle: true last_batch: PARTIAL",
     {.file = "sizes_resized", .norm = "group: 5"}},
    {"counted labels",
     "micro_batch: 3 iter_size: 2 max_iter: 6",
     "batch_size: 12 shuffle: true",
     {.file = "sizes_deconvolved", .more = OWN_LABELS}},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static const struct {
    int ranks, workers[RANKS_MAX];
} shapes[] = {{2, {2, 1}}, {5, {1, 1, 1, 1, 1}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void check(bool dynamic)
{
    for (int v = 0; v < VARIANTS; v++) {
        char settings[400];
        snprintf(settings, sizeof settings,
                 SGD "test_iter: 0 test_interval: 100 test_initialization: false %s",
                 variants[v].settings);
        struct lockstep_solver *solver = make_solver(
            settings, "p", variants[v].data, test_layer("p", "batch_size: 7"), variants[v].net);
        struct bytes alone = run_alone(solver, UPDATES);
        for (int i = 0; i < SHAPES; i++) {
            struct job job = {.solver = solver,
                              .ranks = shapes[i].ranks,
                              .updates = UPDATES,
                              .dynamic = dynamic,
                              .delays = dynamic && v % 2 == 0 ? 5 : 0};
            memcpy(job.workers, shapes[i].workers, sizeof job.workers);
            check_job(&job, alone, variants[v].what);
        }
        free(alone.data);
        lockstep_solver_free(solver);
    }
}

static void partitioned_pictures_of_many_sizes_give_same_bits(void **state)
{
    (void)state;
    check(false);
}

static void work_queue_over_pictures_of_many_sizes_gives_same_bits(void **state)
{
    (void)state;
    check(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitioned_pictures_of_many_sizes_give_same_bits),
        cmocka_unit_test(work_queue_over_pictures_of_many_sizes_gives_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
