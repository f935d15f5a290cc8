/* Chains (steps that are carried out together, some channels at a time) change no bit. A net
 * with residual sums, batch norm and convolutions of single channels, large enough for chains,
 * is trained and tested with chains and without, and with other bytes in the outputs and the
 * scratch memory of each part.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

enum { UPDATES = 2 };

/* By kind of op: steps that are part of chains. */
struct found {
    size_t sums, backward, sync, accumulate, forward, eltwise;
};

static void count_step(const struct ls_step *step, struct found *found)
{
    switch (step->prepared.op->kind) {
    case LS_OP_BATCH_NORM_SUMS:
        found->sums++;
        break;
    case LS_OP_BATCH_NORM_BACKWARD:
        found->backward++;
        break;
    case LS_OP_BATCH_NORM:
        found->forward++;
        break;
    case LS_OP_SYNC:
        found->sync++;
        break;
    case LS_OP_ACCUMULATE:
        found->accumulate++;
        break;
    case LS_OP_ELTWISE:
        found->eltwise++;
        break;
    default:
        break;
    }
}

/* Counts what is part of chains; undoes them if that is asked for. */
static void look_at(const struct ls_net *net, bool undo, struct found *found)
{
    for (size_t p = 0; p < net->plan_count; p++) {
        const struct ls_plan *plan = net->plans[p]->plan;
        for (size_t s = 0; s < plan->step_count; s++) {
            size_t chain = plan->steps[s].chain;
            assert_true(chain == 0 || (chain > 1 && s + chain <= plan->step_count));
            for (size_t i = 0; i < chain; i++) {
                assert_true(i == 0 || plan->steps[s + i].chain == 0);
                count_step(&plan->steps[s + i], found);
            }
            if (undo)
                plan->steps[s].chain = 0;
        }
    }
}

/* ---- Spies in front of kernels --------------------------------------------------------------- */

/* A kernel that spoils memory, then calls the one that it stands for. */
struct spy {
    struct ls_kernel kernel; /* first: a spy is found by its kernel */
    const struct ls_kernel *original;
};

static void spoil(void *memory, size_t bytes)
{
    memset(memory, 0xff, bytes); /* floats and doubles that are no numbers */
}

/* Outputs that lie where no input does. */
static void spoil_outputs(const struct ls_op *op, void *const *in, void *const *out)
{
    for (int o = 0; o < op->outputs; o++) {
        bool apart = op->output[o] != NULL && out[o] != NULL;
        for (int i = 0; i < op->inputs; i++)
            apart = apart && in[i] != out[o];
        if (apart)
            spoil(out[o], ls_value_bytes(op->output[o]));
    }
}

static int spoil_and_run_channels(const struct ls_prepared *prepared, void *const *in,
                                  void *const *out, void *scratch, const struct ls_context *context,
                                  int64_t begin, int64_t end)
{
    const struct spy *spy = (const struct spy *)(const void *)prepared->kernel;
    spoil(scratch, prepared->scratch_bytes);
    if (begin == 0)
        spoil_outputs(prepared->op, in, out);
    return spy->original->run_channels(prepared, in, out, scratch, context, begin, end);
}

/* Each step that is part of a chain gets a spy, or loses it. */
static void set_spies(const struct ls_net *net, bool planted)
{
    for (size_t p = 0; p < net->plan_count; p++) {
        const struct ls_plan *plan = net->plans[p]->plan;
        for (size_t s = 0; s < plan->step_count; s++)
            for (size_t i = s; i < s + plan->steps[s].chain; i++) {
                struct ls_prepared *prepared = &plan->steps[i].prepared;
                if (prepared->op->kind == LS_OP_SYNC || prepared->channels == 0)
                    continue;
                struct spy *spy = (struct spy *)(void *)(uintptr_t)prepared->kernel;
                if (planted) {
                    spy = malloc(sizeof *spy);
                    assert_non_null(spy);
                    *spy = (struct spy){.kernel = *prepared->kernel, .original = prepared->kernel};
                    spy->kernel.run_channels = spoil_and_run_channels;
                    prepared->kernel = &spy->kernel;
                } else {
                    prepared->kernel = spy->original;
                    free(spy);
                }
            }
    }
}

/* ---- Trainings ------------------------------------------------------------------------------- */

enum how { CHAINED, UNDONE, SPOILT };

/* Values in bf16 are half as large: twice the samples make chains of them. */
static bool bf16;

static struct bytes train(int group, enum how how, bool limited, struct found *found)
{
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 max_iter: 100 micro_batch: %d "
                    "snapshot_after_train: false random_seed: 5 precision: %s net_param { %s }",
                    bf16 ? 16 : 8, bf16 ? "BF16" : "FP32",
                    ls_test_net("chains", LS_TEST_VALUES({"group", ls_test_text("%d", group)},
                                                         {"batch", bf16 ? "64" : "32"})));
    struct training *training = start(solver, 2, NULL, NULL);
    if (limited)
        limit_memory(training, 1);
    *found = (struct found){0};
    const struct ls_net *trained = training->trainer->inner->train;
    look_at(trained, how == UNDONE, found);
    if (how == SPOILT)
        set_spies(trained, true);
    step(training, UPDATES);
    if (how == SPOILT)
        set_spies(trained, false);
    struct bytes bytes = snapshot(training);
    finish(training);
    lockstep_solver_free(solver);
    return bytes;
}

static void compare(int group, bool limited, struct found *found)
{
    struct found undone;
    struct bytes with = train(group, CHAINED, limited, found);
    struct bytes without = train(group, UNDONE, limited, &undone);
    check_same(with, without, "chains, groups of %d%s", group, limited ? ", little memory" : "");
    check_same(with, train(group, SPOILT, limited, &undone),
               "what was in memory before, groups of %d%s", group,
               limited ? ", little memory" : "");
    free(with.data);
}

/* Statistics of groups within a micro-batch: a whole batch norm is one chain, with everything in
 * between. */
static void chains_of_norms_within_micro_batches_change_no_bit(void **state)
{
    (void)state;
    struct found found;
    compare(4, false, &found);
    assert_true(found.sums >= 2 && found.backward >= 2 && found.forward >= 2);
    assert_true(found.sync >= 4 && found.accumulate >= 4 && found.eltwise >= 1);
    compare(4, true, &found);
    assert_true(found.backward >= 2);
}

static void chains_in_bf16_change_no_bit(void **state)
{
    (void)state;
    struct found found;
    bf16 = true;
    compare(4, false, &found);
    bf16 = false;
    assert_true(found.sums >= 2 && found.backward >= 2 && found.forward >= 2);
    assert_true(found.sync >= 4 && found.accumulate >= 4 && found.eltwise >= 1);
}

/* A sync point at which other micro-batches are awaited is never part of a chain. */
static void chains_beside_sync_points_change_no_bit(void **state)
{
    (void)state;
    struct found found;
    compare(0, false, &found);
    assert_true(found.sync == 0);
    assert_true(found.eltwise >= 1 && found.forward >= 1);
    compare(0, true, &found);
    assert_true(found.sync == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_of_norms_within_micro_batches_change_no_bit),
        cmocka_unit_test(chains_in_bf16_change_no_bit),
        cmocka_unit_test(chains_beside_sync_points_change_no_bit)};
    write_cifar(ls_test_path("cifar.bin"), 64);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
