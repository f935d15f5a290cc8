/* How data get to a card, in whole trainings on the fake: from pageable memory, from pinned memory,
 * or made of records on the card, for one worker or several, in many orders of work. Same
 * snapshots in all cases;
 * micro-batches are not waited for one by one; each call that fails ends the training, or makes it
 * go on with the memory that there is, and leaves nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "cuda/fake/fake.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"
#include "ops/devices.h"
#include "trainings/training.h"

enum { SAMPLES = 60, END = 3, CARD_BYTES = 1 << 26, SEEDS = 3, ORDERS = 4, WAITS = 6 };

/* ---- The device, without some of what it can do ---------------------------------------------- */

enum way { PAGEABLE, PINNED, ON_CARD, WAYS };

static struct ls_device device;
static struct ls_device_memory memory;
static _Atomic long made;

int __real_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);
int __wrap_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);

int __wrap_ls_device_find(const char *name, const struct ls_device **found, struct ls_error *error)
{
    if (name == NULL || strcmp(name, ls_device_cuda.name) != 0)
        return __real_ls_device_find(name, found, error);
    *found = &device;
    return 0;
}

static int count_making(struct ls_stream *stream, const struct ls_sample_making *making,
                        const struct ls_sample_draw *draws, int64_t samples, void *out,
                        struct ls_error *error)
{
    atomic_fetch_add(&made, 1);
    return ls_device_cuda.make_samples(stream, making, draws, samples, out, error);
}

static void choose(enum way way)
{
    memory = ls_card_memory;
    device = ls_device_cuda;
    device.memory = &memory;
    device.make_samples = way == ON_CARD ? count_making : NULL;
    memory.pinning = way == PAGEABLE ? NULL : memory.pinning;
    atomic_store(&made, 0);
}

/* ---- Trainings ------------------------------------------------------------------------------- */

static struct lockstep_solver *make_solver(const char *norm, const char *loss, int micro_batch)
{
    return load_solver(
        "base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: %d snapshot: 3 iter_size: 4\n"
        "test_interval: 2 test_initialization: false test_iter: 2 micro_batch: %d random_seed: 5\n"
        "display: 1 net_param { %s }\n",
        END, micro_batch, ls_test_net("card_data", LS_TEST_VALUES({"norm", norm}, {"loss", loss})));
}

static const char batch_norm[] =
    "layer { name: 'norm' type: 'BatchNorm' bottom: 'conv' top: 'conv' }";
static const char plain[] = "", valid[] = "loss_param { normalization: VALID ignore_label: 3 }";

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    choose(PAGEABLE);
    return 0;
}

static int workers; /* 0: as many as a card has by itself */
static int (*after_update)(void *user, struct ls_error *error);

static int train(const struct lockstep_solver *solver, const char *prefix,
                 struct lockstep_error *error)
{
    static const int cards[] = {0};
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    lockstep_train_options_init(&options);
    options.device = "cuda";
    options.workers = workers;
    options.snapshot_prefix = ls_test_path(prefix);
    options.overwrite = 1;
    int status = ls_api_trainer_create(solver, &options, 1, cards, &trainer, ls_api_error(error));
    if (status == 0 && after_update != NULL) {
        trainer->ranks[0]->after_update = after_update;
        trainer->ranks[0]->after_update_user = trainer->ranks[0];
    }
    if (status == 0)
        status = lockstep_trainer_run(trainer, -1, error);
    lockstep_trainer_free(trainer);
    ls_card_end_thread();
    return status;
}

static struct bytes snapshot_of(const char *prefix)
{
    char name[64];
    snprintf(name, sizeof name, "%s_iter_%d.safetensors", prefix, END);
    return read_bytes(ls_test_path(name));
}

static void train_well(const struct lockstep_solver *solver, const char *prefix, uint64_t seed)
{
    struct lockstep_error *error = lockstep_error_new();
    fake_begin(1, CARD_BYTES, seed);
    if (train(solver, prefix, error) != 0)
        fail_msg("%s: %s", prefix, lockstep_error_text(error));
    fake_end();
    lockstep_error_free(error);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void check_all_ways(const char *what, const char *norm, const char *loss)
{
    static const char *const names[WAYS] = {"pageable", "pinned", "on the card"};
    struct lockstep_solver *solver = make_solver(norm, loss, 2);
    choose(PAGEABLE);
    train_well(solver, "first", 1);
    struct bytes first = snapshot_of("first");
    for (int way = 0; way < WAYS; way++)
        for (uint64_t seed = 2; seed < 2 + SEEDS; seed++) {
            choose((enum way)way);
            train_well(solver, "other", seed);
            assert_true(way == ON_CARD ? atomic_load(&made) > 0 : atomic_load(&made) == 0);
            check_same(first, snapshot_of("other"), "%s, %s, seed %d", what, names[way], (int)seed);
        }
    free(first.data);
    lockstep_solver_free(solver);
}

static void any_way_of_data_gives_same_bits(void **state)
{
    (void)state;
    check_all_ways("free", plain, plain);
}

static void any_way_of_data_gives_same_bits_in_waves(void **state)
{
    (void)state;
    check_all_ways("waves", batch_norm, plain);
}

static void any_way_of_data_gives_same_bits_where_labels_are_counted(void **state)
{
    (void)state;
    check_all_ways("counts", batch_norm, valid);
}

/* The streams of workers go on in any order, and meet at the end of a pass and at sync points. */
static void check_streams(const char *what, const char *norm)
{
    struct lockstep_solver *solver = make_solver(norm, plain, 2);
    choose(PINNED);
    train_well(solver, "first", 1);
    struct bytes first = snapshot_of("first");
    for (uint64_t seed = 2; seed < 2 + ORDERS; seed++) {
        workers = seed % 2 == 0 ? 3 : 2;
        train_well(solver, "other", seed);
        check_same(first, snapshot_of("other"), "%s, %d workers, seed %d", what, workers,
                   (int)seed);
    }
    workers = 0;
    free(first.data);
    lockstep_solver_free(solver);
}

static void any_workers_give_same_bits(void **state)
{
    (void)state;
    check_streams("free", plain);
}

static void any_workers_give_same_bits_in_waves(void **state)
{
    (void)state;
    check_streams("waves", batch_norm);
}

/* Calls of the second update that make the host wait for a stream. */
static long waits;

static int note_waits(void *user, struct ls_error *error)
{
    const struct ls_trainer *trainer = user;
    (void)error;
    if (trainer->iteration <= 2)
        waits = fake_calls("cudaStreamSynchronize") - (trainer->iteration == 2 ? waits : 0);
    return 0;
}

/* An update waits for its exponents (twice), its micro-batches, their records, what is judged, and
 * the new weights, however many micro-batches it has. (Moving averages are waited for, too.) */
static long waits_with(const char *norm, int micro_batch)
{
    struct lockstep_solver *solver = make_solver(norm, plain, micro_batch);
    struct lockstep_error *error = lockstep_error_new();
    choose(PINNED);
    fake_begin(1, CARD_BYTES, 1);
    after_update = note_waits;
    if (train(solver, "waits", error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    after_update = NULL;
    fake_end();
    lockstep_error_free(error);
    lockstep_solver_free(solver);
    return waits;
}

static void micro_batches_are_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(waits_with(plain, 12), WAITS);
    assert_int_equal(waits_with(plain, 1), WAITS);
    assert_int_equal(waits_with(batch_norm, 1), waits_with(batch_norm, 3));
}

/* Every call of that name fails once: the training ends with a message, or as if nothing had
 * happened. */
static void fail_each(const struct lockstep_solver *solver, const char *call, bool may_go_on,
                      long step)
{
    struct lockstep_error *error = lockstep_error_new();
    for (long after = 0;; after += step) {
        ls_error_clear(ls_api_error(error));
        fake_begin(1, CARD_BYTES, (uint64_t)after);
        fake_fail(call, after);
        const int status = train(solver, "failing", error);
        const bool failed = fake_has_failed();
        fake_fail(NULL, 0);
        fake_end();
        if (failed && !may_go_on && status == 0)
            fail_msg("%s fails after %ld others: nothing is said", call, after);
        if (status != 0 && lockstep_error_text(error)[0] == '\0')
            fail_msg("%s fails after %ld others: without a word", call, after);
        if (!failed)
            break;
    }
    lockstep_error_free(error);
}

static void a_call_that_fails_leaves_nothing(void **state)
{
    struct lockstep_solver *solver = make_solver(plain, plain, 4);
    (void)state;
    choose(ON_CARD);
    fail_each(solver, "cudaMallocHost", true, 1);
    fail_each(solver, "cudaMalloc", true, 19);
    fail_each(solver, "cudaEventCreateWithFlags", false, 11);
    fail_each(solver, "cudaStreamWaitEvent", false, 23);
    fail_each(solver, "cudaMemcpyAsync", true, 101);
    fail_each(solver, "a launch", true, 301);
    choose(PINNED);
    fail_each(solver, "cudaEventRecord", false, 67);
    fail_each(solver, "cudaEventSynchronize", false, 67);
    lockstep_solver_free(solver);
}

/* The fake aborts: mutants are found by what it says, and by an end that is no crash. */
static void end_at_once(int signal)
{
    (void)signal;
    _exit(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_way_of_data_gives_same_bits),
        cmocka_unit_test(any_way_of_data_gives_same_bits_in_waves),
        cmocka_unit_test(any_way_of_data_gives_same_bits_where_labels_are_counted),
        cmocka_unit_test(any_workers_give_same_bits),
        cmocka_unit_test(any_workers_give_same_bits_in_waves),
        cmocka_unit_test(micro_batches_are_not_waited_for),
        cmocka_unit_test(a_call_that_fails_leaves_nothing),
    };
    (void)signal(SIGABRT, end_at_once);
    return cmocka_run_group_tests(tests, setup, NULL);
}
