/* Audits on a build in which one core computes wrongly now and then (support/fault.h). Audits
 * find and name the core, and the training ends with the bytes of one on sound cores, whichever
 * result of a micro-batch is wrong, on any number of workers and ranks. A core that is always
 * wrong ends the training, with its name.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/audit.h"
#include "numerics/rank_nets.h"
#include "trainings/state_layers.h"

extern _Atomic long ls_fault_count;

/* A core does less than EVERY computations for an update, even where it does them all, so that no
 * micro-batch meets the fault twice, and more than that in all. */
enum { UPDATES = 12, EVERY = 37 };

static int setup(void **state)
{
    (void)state;
    use_state_layers();
    write_data();
    return 0;
}

/* ---- Nets ------------------------------------------------------------------------------------ */

/* Batch norm over the batch, convolutions, factors; several batches in an update. */
static struct lockstep_solver *normed(void)
{
    return make_solver("momentum: 0.9 micro_batch: 3 iter_size: 2");
}

/* Batch norm within micro-batches: moving averages alone are made of all rows. */
static struct lockstep_solver *grouped(void)
{
    return load_solver("base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 9 micro_batch: 4\n"
                       "iter_size: 3 net_param { %s }\n",
                       ls_test_net("faulty_grouped", NULL));
}

/* No micro-batch waits for another; labels are counted before the pass. */
static struct lockstep_solver *plain(void)
{
    return load_solver("base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 9 micro_batch: 3\n"
                       "iter_size: 2 clip_gradients: 1 net_param { %s }\n",
                       ls_test_net("faulty_plain", NULL));
}

/* Large inner products: gathered, and their gradients are exchanged as factors. */
static struct lockstep_solver *large(void)
{
    return load_solver("base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 9 micro_batch: 3\n"
                       "net_param { %s }\n",
                       ls_test_net("faulty_products", NULL));
}

/* Layers with state per sample. */
static struct lockstep_solver *stateful(void)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 9 micro_batch: 3\n"
        "iter_size: 2 net_param { %s }\n",
        ls_test_net(
            "sample_states",
            LS_TEST_VALUES(
                {"data", ls_test_text("layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
                                      "  transform_param { scale: 0.0078 } data_param {\n"
                                      "    backend: IDX source: '%s' label_source: '%s'\n"
                                      "    batch_size: 20 } }\n",
                                      ls_test_path("images"), ls_test_path("labels"))},
                {"first", "layer { name: 'm' type: 'ReLU' bottom: 'pool' top: 'middle' }"})));
}

/* ---- Trainings ------------------------------------------------------------------------------- */

/* Which core is faulty, and what was said of others. */
static struct {
    int rank, worker;
    long named, others;
    long own, of_audits; /* computations of updates and of audits that were wrong, in all */
    int64_t audited;
} faulty;

static void on_event(void *user, const struct lockstep_event *event)
{
    (void)user;
    if (event->kind != LOCKSTEP_EVENT_AUDIT)
        return;
    bool right = event->audit->rank == faulty.rank && event->audit->worker == faulty.worker &&
                 event->audit->core >= 0 && event->audit->name != NULL;
    faulty.named += right;
    faulty.others += !right;
    faulty.own += event->audit->own;
    faulty.of_audits += !event->audit->own;
}

static void prepare(struct ls_trainer *trainer, int rank)
{
    if (rank == 0)
        trainer->callbacks.event = on_event;
}

static void set_fault(int rank, int worker, int every, const char *what)
{
    char text[64];
    snprintf(text, sizeof text, "%d,%d,%d,%s", rank, worker, every, what);
    faulty.rank = rank;
    faulty.worker = worker;
    faulty.named = faulty.others = 0;
    atomic_store(&ls_fault_count, 0);
    assert_int_equal(setenv("LOCKSTEP_FAULT", text, 1), 0);
}

/* Trains with a core that makes `what` wrong; must end as a training on sound cores does. */
static void check_found(struct lockstep_solver *solver, struct job job, const char *const *what,
                        const char *name)
{
    assert_int_equal(unsetenv("LOCKSTEP_FAULT"), 0);
    struct bytes expected = run_alone(solver, UPDATES);
    job.solver = solver;
    job.updates = UPDATES;
    job.audit = job.audit > 0 ? job.audit : 1;
    job.prepare = prepare;
    for (; *what != NULL; what++)
        for (int last = 0; last < 2; last++) { /* the first core of the job, and the last one */
            char text[128];
            int rank = last ? job.ranks - 1 : 0;
            snprintf(text, sizeof text, "%s, %s", name, *what);
            /* Where ranks take micro-batches as they get free, a busy machine may leave the faulty
             * core without work: then the job is run again. */
            for (int tries = 0; tries == 0 || (job.dynamic && tries < 20 && ls_fault_count == 0);
                 tries++) {
                set_fault(rank, last ? job.workers[rank] - 1 : 0, EVERY, *what);
                check_job(&job, expected, text);
            }
            if (atomic_load(&ls_fault_count) == 0 || faulty.named == 0 || faulty.others > 0)
                fail_msg("%s: %ld bits were wrong; the core was named %ld times, others %ld", text,
                         atomic_load(&ls_fault_count), faulty.named, faulty.others);
        }
    free(expected.data);
    lockstep_solver_free(solver);
}

static const struct job jobs[] = {{.ranks = 1, .workers = {1}},
                                  {.ranks = 1, .workers = {2}},
                                  {.ranks = 1, .workers = {3}},
                                  {.ranks = 2, .workers = {1, 1}},
                                  {.ranks = 2, .workers = {2, 1}},
                                  {.ranks = 3, .workers = {1, 1, 1}},
                                  {.ranks = 2, .workers = {1, 2}, .dynamic = true}};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void faults_in_a_net_with_batch_norm_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS; i++)
        check_found(normed(), jobs[i], (const char *[]){"gradient", "factor", "row", NULL},
                    "batch norm");
}

static void faults_in_a_net_with_grouped_norms_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS; i += 2)
        check_found(grouped(), jobs[i], (const char *[]){"gradient", "row", NULL}, "groups");
}

static void faults_in_a_plain_net_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS; i++)
        check_found(plain(), jobs[i], (const char *[]){"gradient", "huge", "loss", NULL}, "plain");
    assert_true(faulty.own > 0 && faulty.of_audits > 0);
}

/* A result that is not finite is computed again even where almost nothing is audited. (In these
 * jobs the last core does more than EVERY computations without audits, too.) */
static void what_is_not_finite_is_computed_again_almost_without_audits(void **state)
{
    (void)state;
    static const struct job some[] = {{.ranks = 1, .workers = {1}, .audit = 1e-9},
                                      {.ranks = 2, .workers = {1, 1}, .audit = 1e-9}};
    for (int i = 0; i < 2; i++) {
        check_found(plain(), some[i], (const char *[]){"nan", NULL}, "not finite");
        check_found(normed(), some[i], (const char *[]){"nan", NULL}, "not finite, batch norm");
    }
}

static void faults_in_large_products_are_found(void **state)
{
    (void)state;
    for (int i = 1; i < JOBS; i += 3)
        check_found(large(), jobs[i], (const char *[]){"factor", NULL}, "large");
}

static void faults_in_what_goes_on_to_the_next_update_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS; i++)
        check_found(stateful(), jobs[i], (const char *[]){"state", "gradient", NULL}, "states");
}

/* A core that is always wrong in the same way. */
static void check_ended(int workers, const char *says)
{
    struct lockstep_solver *solver = normed(); /* each worker has its own micro-batches */
    struct job job = {.solver = solver,
                      .ranks = 1,
                      .workers = {workers},
                      .updates = UPDATES,
                      .audit = 1,
                      .prepare = prepare};
    struct rank rank;
    set_fault(0, workers - 1, 1, "gradient");
    run_job(&job, &rank);
    assert_int_equal(rank.status, LOCKSTEP_DIFFERENT);
    if (strstr(rank.error->problems[0].message, says) == NULL)
        fail_msg("%s", rank.error->problems[0].message);
    free_ranks(&job, &rank);
    lockstep_solver_free(solver);
}

static void a_core_that_is_always_wrong_ends_the_training(void **state)
{
    (void)state;
    check_ended(3, "was wrong each time, last by worker 2 on core");
    check_ended(2, "no two cores agree");
}

/* Which micro-batches are audited is the same on any number of workers and ranks. */
static int count_audits(struct rank *rank, struct ls_trainer *trainer)
{
    int64_t wrong;
    for (int i = 0; i < 20; i++)
        LS_TRY(ls_trainer_update(trainer, rank->error));
    ls_audit_count(trainer->train_pass->audit, &faulty.audited, &wrong);
    return wrong != 0 ? LOCKSTEP_INTERNAL : 0;
}

static void audits_cover_the_part_that_is_asked_for(void **state)
{
    (void)state;
    struct lockstep_solver *solver = plain();
    int64_t expected = 0;
    assert_int_equal(unsetenv("LOCKSTEP_FAULT"), 0);
    for (int i = 0; i < 4; i++) {
        struct job job = jobs[i];
        struct rank ranks[RANKS_MAX];
        job.solver = solver;
        job.audit = 0.3;
        job.act = count_audits;
        run_job(&job, ranks);
        assert_int_equal(ranks[0].status, 0);
        if (i == 0)
            expected = faulty.audited;
        assert_int_equal(faulty.audited, expected);
        free_ranks(&job, ranks);
    }
    /* 20 updates of 14 micro-batches, and one that only measures: about three in ten. */
    assert_in_range(expected, 14, 200);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(audits_cover_the_part_that_is_asked_for, setup),
        cmocka_unit_test_setup(faults_in_a_net_with_batch_norm_are_found, setup),
        cmocka_unit_test_setup(faults_in_a_net_with_grouped_norms_are_found, setup),
        cmocka_unit_test_setup(faults_in_a_plain_net_are_found, setup),
        cmocka_unit_test_setup(what_is_not_finite_is_computed_again_almost_without_audits, setup),
        cmocka_unit_test_setup(faults_in_large_products_are_found, setup),
        cmocka_unit_test_setup(faults_in_what_goes_on_to_the_next_update_are_found, setup),
        cmocka_unit_test_setup(a_core_that_is_always_wrong_ends_the_training, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
