/* Two rewrites leave the numbers alone: gradients that pass a ReLU at another place than in the
 * definition (graph/move_relu.c), and a softmax that becomes part of its loss. Nets in which
 * this is done are compared with the same nets in which one more gradient, of zeros, prevents
 * it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"
#include "trainings/weights.h"

#include <math.h>

enum { UPDATES = 3 };

static const char free_way[] = "relus_moved", blocked[] = "relus_in_place";

#define LOSS                                                                                       \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
#define TWO_LAYERS                                                                                 \
    "layer { name: 'p' type: 'Softmax' bottom: 'ip' top: 'p' }\n"                                  \
    "layer { name: 'loss' type: 'MultinomialLogisticLoss' bottom: 'p' bottom: 'label' top: "       \
    "'loss' }\n"

struct run {
    float *weights;
    size_t count;
    double losses[UPDATES];
    size_t gated; /* dropouts whose gradient goes through a ReLU */
};

static void collect(struct run *run, const struct ls_trainer *trainer)
{
    const struct ls_store *store = trainer->store;
    for (size_t p = 0; p < store->set->count; p++)
        run->count += store->slots[p].elements;
    run->weights = calloc(run->count, sizeof *run->weights);
    float *to = run->weights;
    for (size_t p = 0; p < store->set->count; p++) {
        memcpy(to, stored_weights(store, p), store->slots[p].elements * sizeof *to);
        to += store->slots[p].elements;
    }
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    for (size_t o = 0; o < graph->op_count; o++)
        run->gated += graph->ops[o]->kind == LS_OP_DROPOUT && graph->ops[o]->inputs > 1;
}

static struct run train(const char *net, const char *loss, int workers)
{
    struct run run = {0};
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 micro_batch: 3\n"
                    "net_param { %s }\n",
                    ls_test_net(net, LS_TEST_VALUES({"loss", loss})));
    struct training *training = start(solver, workers, NULL, NULL);
    for (int i = 0; i < UPDATES; i++) {
        step(training, 1);
        run.losses[i] = lockstep_trainer_loss(training->trainer);
    }
    collect(&run, training->trainer->inner);
    finish(training);
    lockstep_solver_free(solver);
    return run;
}

static void moved_relus_give_the_bits_of_relus_in_place(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 2; workers++) {
        struct run moved = train(free_way, LOSS, workers), there = train(blocked, LOSS, workers);
        assert_int_equal(moved.gated, 2);
        assert_int_equal(there.gated, 0);
        assert_int_equal(moved.count, there.count);
        assert_memory_equal(moved.weights, there.weights, moved.count * sizeof *moved.weights);
        free(moved.weights);
        free(there.weights);
    }
}

/* Equal within rounding; the first loss, before any update, has the same bits. */
static void softmax_within_the_loss_learns_as_two_layers(void **state)
{
    (void)state;
    struct run one = train(free_way, LOSS, 2), two = train(free_way, TWO_LAYERS, 2);
    assert_memory_equal(&one.losses[0], &two.losses[0], sizeof one.losses[0]);
    assert_true(one.losses[UPDATES - 1] != one.losses[0]);
    for (size_t i = 0; i < one.count; i++)
        assert_true(fabsf(one.weights[i] - two.weights[i]) < 1e-6F);
    free(one.weights);
    free(two.weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_relus_give_the_bits_of_relus_in_place),
        cmocka_unit_test(softmax_within_the_loss_learns_as_two_layers)};
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 60, 14);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
