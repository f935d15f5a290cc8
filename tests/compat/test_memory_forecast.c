/* A plan's forecast of memory against the memory that a training touches. For small networks of
 * every kind, in processes of their own, the kernel counts anonymous memory after a few updates
 * and a test. A training within a limit computes the same bits; one that does not fit says what
 * would.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/process.h"
#include "support/nets.h"
#include "support/support.h"

static const struct net {
    const char *name, *file; /* of tests/nets */
} nets[] = {
    {"lenet", "memory_lenet"},
    {"quick", "memory_quick"},
    {"batch norm", "memory_norms"},
    {"large inner products", "memory_products"},
};

/* Nets for which a limit changes which plans are tried: gathered rows, other layouts, depth. */
static const struct net tight_nets[] = {
    {"gathered rows", "memory_gathered"},
    {"gathered rows behind convolutions", "memory_gathered_behind"},
    {"deep", "memory_deep"},
    {"branches", "memory_branches"},
    {"branches and few samples", "memory_branches_few"},
    {"deep batch norm", "memory_deep_norms"},
};
enum { NETS = sizeof nets / sizeof *nets, WORKERS = 2 };

static const char rest_of_solver[] =
    " 'net.prototxt' base_lr: 0.0001 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 "
    "test_interval: 1000 test_initialization: false snapshot: 0 snapshot_after_train: false";

static void write_solver(const struct net *net, const char *field)
{
    char solver[400];
    snprintf(solver, sizeof solver, "%s:%s", field, rest_of_solver);
    ls_test_write_text(ls_test_path("net.prototxt"), ls_test_net(net->file, NULL));
    ls_test_write_text(ls_test_path("solver.prototxt"), solver);
}

static void write_net(const struct net *net)
{
    write_solver(net, "net");
}

struct figures {
    double foreseen, snapshot, touched;
    bool tested;
};

/* Updates, a test if there is a test phase, and updates again. */
static int train(struct lockstep_trainer *trainer, bool test, struct figures *figures)
{
    const struct lockstep_output *outputs;
    size_t count;
    if (lockstep_trainer_step(trainer, 8, NULL) != 0)
        return 1;
    figures->touched = ls_test_anonymous_memory();
    if (!test)
        return lockstep_trainer_step(trainer, 4, NULL);
    if (lockstep_trainer_evaluate(trainer, 0, &outputs, &count, NULL) != 0)
        return 1;
    figures->touched = fmax(figures->touched, ls_test_anonymous_memory());
    if (lockstep_trainer_step(trainer, 4, NULL) != 0)
        return 1;
    figures->touched = fmax(figures->touched, ls_test_anonymous_memory());
    return 0;
}

static int measure_with(bool test, struct figures *figures)
{
    struct lockstep_solver *definition;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = WORKERS;
    mallopt(M_TRIM_THRESHOLD, INT_MAX); /* what a test frees still counts, it was there at once */
    if (lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, NULL) != 0 ||
        lockstep_trainer_create(definition, &options, &trainer, NULL) != 0 ||
        train(trainer, test, figures) != 0)
        return 1;
    lockstep_trainer_free(trainer);
    lockstep_solver_free(definition);
    return 0;
}

static int measure(void *result)
{
    return measure_with(true, result);
}

static int measure_without_test(void *result)
{
    return measure_with(false, result);
}

static int foresee(void *result)
{
    struct figures *figures = result;
    struct lockstep_solver *definition;
    struct lockstep_plan *plan;
    struct lockstep_plan_options options;
    lockstep_plan_options_init(&options);
    options.workers = WORKERS;
    double before = ls_test_anonymous_memory();
    if (lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, NULL) != 0 ||
        lockstep_plan_training(definition, &options, &plan, NULL) != 0)
        return 1;
    figures->touched = ls_test_anonymous_memory() - before; /* by the plan itself */
    figures->foreseen = (double)lockstep_plan_memory(plan)->total;
    figures->snapshot = (double)lockstep_plan_memory(plan)->snapshot;
    lockstep_plan_free(plan);
    lockstep_solver_free(definition);
    return 0;
}

static void forecasts_are_near_what_is_touched(void **state)
{
    (void)state;
    ls_test_skip_uncounted();
    for (int i = 0; i < NETS; i++) {
        struct figures plan = {0}, run = {0};
        write_net(&nets[i]);
        ls_test_in_child(foresee, &plan, sizeof plan);
        ls_test_in_child(measure, &run, sizeof run);
        double foreseen = plan.foreseen - plan.snapshot; /* none is written */
        double allowed = fmax(0.02 * run.touched, 4 * 1048576.0);
        print_message("%s: foreseen %.2f MiB, touched %.2f MiB\n", nets[i].name, foreseen / 1048576,
                      run.touched / 1048576);
        assert_true(fabs(foreseen - run.touched) <= allowed);
        assert_true(plan.touched < 6 * 1048576.0); /* nothing large for a plan */
    }
}

/* Weights, activations and decoded samples of a test phase use the memory of training. A test
 * phase adds its plan, the code of its kernels and a decoding thread, as the forecast says. */
static void test_phases_add_what_is_forecast(void **state)
{
    (void)state;
    ls_test_skip_uncounted();
    for (int i = 0; i < NETS; i++) {
        struct figures with = {0}, without = {0}, plan_with = {0}, plan_without = {0};
        write_net(&nets[i]);
        ls_test_in_child(measure, &with, sizeof with);
        ls_test_in_child(foresee, &plan_with, sizeof plan_with);
        write_solver(&nets[i], "train_net");
        ls_test_in_child(measure_without_test, &without, sizeof without);
        ls_test_in_child(foresee, &plan_without, sizeof plan_without);
        double touched = (with.touched - without.touched) / 1048576;
        double foreseen = (plan_with.foreseen - plan_without.foreseen) / 1048576;
        print_message("%s: with a test phase %+.2f MiB, foreseen %+.2f MiB\n", nets[i].name,
                      touched, foreseen);
        assert_true(touched <= foreseen + 0.5);
        assert_true(foreseen <= 0.5);
    }
}

/* ---- ResNet-20 ------------------------------------------------------------------------------- */

/* What malloc has handed out, to whatever library, and what the plan has for activations and
 * samples, which may not come from malloc. */
static int count_allocated(void *result)
{
    struct figures *figures = result;
    struct lockstep_solver *definition;
    struct lockstep_trainer *trainer;
    struct lockstep_plan *plan;
    struct lockstep_train_options options;
    struct lockstep_plan_options plan_options;
    const struct lockstep_output *outputs;
    size_t count;
    lockstep_train_options_init(&options);
    lockstep_plan_options_init(&plan_options);
    options.workers = plan_options.workers = WORKERS;
    if (lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, NULL) != 0 ||
        lockstep_plan_training(definition, &plan_options, &plan, NULL) != 0)
        return 1;
    const struct lockstep_plan_memory *memory = lockstep_plan_memory(plan);
    figures->foreseen = (double)(memory->arena * WORKERS +
                                 memory->stashed * (uint64_t)memory->stashes + memory->data);
    lockstep_plan_free(plan);
    if (lockstep_trainer_create(definition, &options, &trainer, NULL) != 0 ||
        lockstep_trainer_step(trainer, 1, NULL) != 0)
        return 1;
    if (figures->tested && lockstep_trainer_evaluate(trainer, 0, &outputs, &count, NULL) != 0)
        return 1;
    if (lockstep_trainer_step(trainer, 1, NULL) != 0)
        return 1;
    const struct mallinfo2 all = mallinfo2();
    figures->touched = (double)(all.uordblks + all.hblkhd);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(definition);
    return 0;
}

static struct figures count_with(bool tested, const char *precision)
{
    struct figures figures = {.tested = tested};
    const char *test = tested ? "net" : "train_net", *one = tested ? "test_iter: 1" : "";
    size_t size;
    char *net = ls_test_read(ls_test_source("bench/nets/resnet20_train_test.prototxt"), &size);
    ls_test_write_text(ls_test_path("net.prototxt"), net);
    free(net);
    ls_test_write_text(
        ls_test_path("solver.prototxt"),
        ls_test_text("precision: %s %s %s:%s", precision, one, test, rest_of_solver));
    ls_test_in_child(count_allocated, &figures, sizeof figures);
    return figures;
}

/* With a batch of 128 in training and in the test, which has plans and kernels of its own. */
static void a_test_phase_allocates_little(void **state)
{
    (void)state;
    static const char *const precisions[] = {"FP32", "BF16"};
    ls_test_skip_uncounted();
    for (int i = 0; i < 2; i++) {
        const struct figures without = count_with(false, precisions[i]);
        const struct figures with = count_with(true, precisions[i]);
        const double heap = (with.touched - without.touched) / 1048576;
        const double planned = (with.foreseen - without.foreseen) / 1048576;
        print_message("ResNet-20, %s: %.1f MiB of activations and samples, with a test phase "
                      "%+.2f; allocated besides %+.2f MiB\n",
                      precisions[i], without.foreseen / 1048576, planned, heap);
        assert_true(heap > 0 && planned >= 0);
        assert_true(heap + planned < 2);
    }
}

/* ---- Snapshots --------------------------------------------------------------------------------
 */

static const char with_snapshots[] =
    "net: 'net.prototxt' base_lr: 0.0001 momentum: 0.9 lr_policy: 'fixed' max_iter: 12 display: 1 "
    "test_interval: 6 test_initialization: false snapshot: 4 snapshot_keep: 1 "
    "weight_average { decay: 0.9 }";

struct watched {
    struct figures figures;
    int snapshots, waits;
};

/* Looks at all that happens while a copy of the state is there. */
static void look(void *user, const struct lockstep_event *event)
{
    struct watched *watched = user;
    watched->snapshots += event->kind == LOCKSTEP_EVENT_SNAPSHOT;
    watched->waits += event->text != NULL && strstr(event->text, "Training waits") != NULL;
    watched->figures.touched = fmax(watched->figures.touched, ls_test_anonymous_memory());
}

static int measure_snapshots(void *result)
{
    struct lockstep_solver *definition;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = WORKERS;
    options.overwrite = 1;
    options.snapshot_prefix = ls_test_path("s");
    options.callbacks = (struct lockstep_callbacks){.user = result, .event = look};
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, NULL) != 0 ||
        lockstep_trainer_create(definition, &options, &trainer, NULL) != 0 ||
        lockstep_trainer_run(trainer, -1, NULL) != 0)
        return 1;
    lockstep_trainer_free(trainer);
    lockstep_solver_free(definition);
    return 0;
}

/* Snapshots are written from a copy of all that they hold, which is part of the total. */
static void snapshots_are_part_of_the_forecast(void **state)
{
    (void)state;
    ls_test_skip_uncounted();
    for (int i = 0; i < NETS; i++) {
        struct figures plan = {0};
        struct watched run = {0};
        ls_test_write_text(ls_test_path("net.prototxt"), ls_test_net(nets[i].file, NULL));
        ls_test_write_text(ls_test_path("solver.prototxt"), with_snapshots);
        ls_test_in_child(foresee, &plan, sizeof plan);
        ls_test_in_child(measure_snapshots, &run, sizeof run);
        double touched = run.figures.touched, allowed = fmax(0.02 * touched, 4 * 1048576.0);
        print_message("%s, with snapshots: foreseen %.2f MiB, %.2f of them for snapshots, touched "
                      "%.2f MiB\n",
                      nets[i].name, plan.foreseen / 1048576, plan.snapshot / 1048576,
                      touched / 1048576);
        assert_true(run.snapshots >= 3 && run.waits == 0);
        assert_true(fabs(plan.foreseen - touched) <= allowed);
    }
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static char *train_with(uint64_t memory, size_t *size)
{
    struct lockstep_solver *definition;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = WORKERS;
    options.memory = memory;
    assert_int_equal(
        lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, NULL), 0);
    assert_int_equal(lockstep_trainer_create(definition, &options, &trainer, NULL), 0);
    assert_int_equal(lockstep_trainer_step(trainer, 2, NULL), 0);
    assert_int_equal(lockstep_trainer_snapshot(trainer, ls_test_path("s.safetensors"), NULL), 0);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(definition);
    return ls_test_read(ls_test_path("s.safetensors"), size);
}

static int workers = WORKERS; /* of plans */

/* The total of a plan for `memory`, or 0 and the reason. */
static uint64_t total_for(uint64_t memory, char *reason, size_t size, int64_t *batch)
{
    struct lockstep_solver *definition;
    struct lockstep_plan *plan;
    struct lockstep_plan_options options;
    struct lockstep_error *error = lockstep_error_new();
    uint64_t total = 0;
    int bounded = 0;
    lockstep_plan_options_init(&options);
    options.workers = workers;
    options.memory = memory;
    assert_int_equal(
        lockstep_solver_load(ls_test_path("solver.prototxt"), NULL, 0, &definition, error), 0);
    int status = lockstep_plan_training(definition, &options, &plan, error);
    if (status == 0) {
        total = lockstep_plan_memory(plan)->total;
        assert_int_equal(lockstep_plan_largest_batch(plan, 0, memory > 0 ? memory : total, batch,
                                                     &bounded, error),
                         0);
    } else {
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        snprintf(reason, size, "%s", lockstep_error_text(error));
    }
    lockstep_plan_free(plan);
    lockstep_solver_free(definition);
    lockstep_error_free(error);
    return total;
}

static void limits_change_no_bit_or_say_what_would_fit(void **state)
{
    (void)state;
    char reason[2000] = "";
    int64_t batch = 0;
    size_t size, size2;
    write_net(&nets[2]);
    uint64_t all = total_for(0, reason, sizeof reason, &batch);
    assert_true(batch >= 64);
    assert_int_equal(total_for(1 << 20, reason, sizeof reason, &batch), 0);
    const char *least_at = strstr(reason, "needs at least ");
    assert_non_null(least_at);
    double least = strtod(least_at + strlen("needs at least "), NULL) * 1048576;
    assert_true(least > 0 && least < (double)all);
    uint64_t smallest = (uint64_t)least;
    uint64_t fitted = total_for(smallest, reason, sizeof reason, &batch);
    assert_true(fitted > 0 && fitted <= smallest);
    assert_true(batch >= 64);
    char *free_run = train_with(0, &size), *limited = train_with(smallest, &size2);
    assert_int_equal(size, size2);
    assert_memory_equal(free_run, limited, size);
    free(free_run);
    free(limited);
}

/* The figure that a message gives as the least, in tenths of a mebibyte. */
static uint64_t stated_least(const char *reason)
{
    const char *at = strstr(reason, "needs at least ");
    if (at == NULL)
        fail_msg("no least figure: %s", reason);
    return (uint64_t)lround(strtod(at + strlen("needs at least "), NULL) * 10);
}

static uint64_t bytes_of_tenths(uint64_t tenths)
{
    return tenths * 1048576 / 10;
}

/* A limit taken from the message gives a plan. With a tenth of a MiB less, the smallest step of
 * that figure, the training is refused with the same figure, however close the limit was. */
static void check_least(const struct net *net, int count)
{
    char reason[2000] = "";
    int64_t batch = 0;
    workers = count;
    write_net(net);
    assert_int_equal(total_for(1, reason, sizeof reason, &batch), 0);
    uint64_t least = stated_least(reason);
    uint64_t total = total_for(bytes_of_tenths(least), reason, sizeof reason, &batch);
    if (total == 0 || total > bytes_of_tenths(least))
        fail_msg("%s, %d workers: with %.1f MiB: %s", net->name, count, (double)least / 10, reason);
    for (uint64_t less = 1; less < least && less <= 64; less *= 2) {
        total = total_for(bytes_of_tenths(least - less), reason, sizeof reason, &batch);
        if (total != 0 || stated_least(reason) != least)
            fail_msg("%s, %d workers: the least is %.1f MiB, but with %.1f: %s", net->name, count,
                     (double)least / 10, (double)(least - less) / 10,
                     total != 0 ? "a plan" : reason);
    }
}

static void the_least_memory_of_a_message_is_enough(void **state)
{
    (void)state;
    for (int i = 0; i < NETS; i++)
        for (int count = 1; count <= 5; count += 2)
            check_least(&nets[i], count);
    for (size_t i = 0; i < sizeof tight_nets / sizeof *tight_nets; i++)
        for (int count = 1; count <= 5; count += 2)
            check_least(&tight_nets[i], count);
    workers = WORKERS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forecasts_are_near_what_is_touched),
        cmocka_unit_test(test_phases_add_what_is_forecast),
        cmocka_unit_test(a_test_phase_allocates_little),
        cmocka_unit_test(snapshots_are_part_of_the_forecast),
        cmocka_unit_test(limits_change_no_bit_or_say_what_would_fit),
        cmocka_unit_test(the_least_memory_of_a_message_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
