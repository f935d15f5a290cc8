/* Several ranks: losses, figures of tests, divisors and weights on every rank of a job are those
 * of a single process, byte for byte, for any number of ranks and of workers of each rank, with
 * a static partition and with a work queue. A record that cannot be read ends the job.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/pass.h"
#include "trainings/ranks.h"
#include "unit/data/picture_files.h"

enum { SAMPLES = 61, UPDATES = 4, IGNORED = 9 };

/* ---- Data and nets --------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    write_idx_pair(ls_test_path("test-images"), ls_test_path("test-labels"), 37, 12);
    return 0;
}

/* What makes a net worth trying, besides the rest. */
enum trait {
    SYNC_POINTS = 1,
    ROWS_KEPT = 2,
    COUNTS_BEFORE = 4,
    COUNTS_ON_THE_WAY = 8,
    GATHERS = 16
};

struct net {
    const char *name, *settings, *data;
    const char *file;           /* of tests/nets */
    const char *first, *second; /* fields of its norms; NULL: it has none */
    int traits;
};

static const struct net nets[] = {
    {"dropout", "micro_batch: 5 clip_gradients: 0.5 weight_decay: 0.01", "batch_size: 24",
     "ranks_plain", NULL, NULL, 0},
    {"ragged ends", "micro_batch: 5 iter_size: 2",
     "batch_size: 22 last_batch: PARTIAL shuffle: true", "ranks_plain", NULL, NULL, 0},
    {"one micro-batch", "micro_batch: 22", "batch_size: 22", "ranks_plain", NULL, NULL, 0},
    {"the batch's statistics", "micro_batch: 5", "batch_size: 22", "ranks_normed", "", "",
     SYNC_POINTS},
    {"statistics and ragged ends", "micro_batch: 4 iter_size: 2",
     "batch_size: 22 last_batch: PARTIAL", "ranks_normed", "", "group: 7", SYNC_POINTS},
    {"groups within micro-batches", "micro_batch: 5", "batch_size: 20", "ranks_normed", "group: 5",
     "group: 1", ROWS_KEPT},
    {"groups of both kinds", "micro_batch: 4", "batch_size: 20", "ranks_normed", "group: 4", "",
     SYNC_POINTS | ROWS_KEPT},
    {"labels counted before", "micro_batch: 3", "batch_size: 20 last_batch: PARTIAL",
     "ranks_counted", NULL, NULL, COUNTS_BEFORE},
    {"labels counted on the way", "micro_batch: 3 iter_size: 2", "batch_size: 20", "ranks_taught",
     NULL, NULL, SYNC_POINTS | COUNTS_ON_THE_WAY},
    {"gathered products", "micro_batch: 3 iter_size: 2 clip_gradients: 0.5", "batch_size: 20",
     "ranks_gathered", NULL, NULL, GATHERS},
};
enum { NETS = sizeof nets / sizeof *nets };

/* The net on some data. */
static const char *net_on(const char *data, const struct net *net)
{
    return ls_test_net(
        net->file, LS_TEST_VALUES({"data", data}, {"first", net->first}, {"second", net->second}));
}

static struct lockstep_solver *make_solver(const struct net *net)
{
    const char *data = ls_test_text(
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }\n"
        "  transform_param { scale: 0.0078 mirror: true }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' %s } }\n"
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
        "  transform_param { scale: 0.0078 }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 10 } }\n",
        ls_test_path("images"), ls_test_path("labels"), net->data, ls_test_path("test-images"),
        ls_test_path("test-labels"));
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 40 random_seed: 3 test_iter: 0\n"
        "test_interval: 100 test_initialization: false %s\n"
        "net_param { %s }\n",
        net->settings, net_on(data, net));
}

/* ---- The same bits --------------------------------------------------------------------------- */

static const struct {
    int ranks, workers[RANKS_MAX];
} shapes[] = {{2, {1, 1}}, {2, {3, 1}}, {3, {1, 2, 1}}, {4, {1, 1, 1, 1}}, {6, {1, 1, 1, 1, 1, 1}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void check_net(const struct net *net, bool dynamic, uint32_t delays)
{
    struct lockstep_solver *solver = make_solver(net);
    struct bytes alone = run_alone(solver, UPDATES);
    for (size_t i = 0; i < SHAPES; i++) {
        struct job job = {.solver = solver,
                          .ranks = shapes[i].ranks,
                          .updates = UPDATES,
                          .dynamic = dynamic,
                          .delays = delays};
        memcpy(job.workers, shapes[i].workers, sizeof job.workers);
        check_job(&job, alone, net->name);
    }
    free(alone.data);
    lockstep_solver_free(solver);
}

static int traits_of(const struct ls_trainer *trainer)
{
    const struct ls_plan *plan = ls_net_first_plan(trainer->train);
    return (plan->sync_cuts > 0 ? SYNC_POINTS : 0) |
           (trainer->train_pass->exchange->kept_doubles > 0 ? ROWS_KEPT : 0) |
           (plan->has_before ? COUNTS_BEFORE : 0) |
           (trainer->train->counts_on_the_way ? COUNTS_ON_THE_WAY : 0) |
           (trainer->train->gathers ? GATHERS : 0);
}

static void nets_have_the_traits_they_are_tried_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++) {
        struct lockstep_solver *solver = make_solver(&nets[i]);
        struct training *training = start(solver, 2, NULL, NULL);
        if (traits_of(training->trainer->inner) != nets[i].traits)
            fail_msg("%s: %d", nets[i].name, traits_of(training->trainer->inner));
        finish(training);
        lockstep_solver_free(solver);
    }
}

static void any_ranks_give_the_bits_of_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++)
        check_net(&nets[i], false, 0);
}

/* The work queue gives micro-batches to ranks in an order that depends on timing. */
static void work_queue_gives_the_bits_of_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++)
        check_net(&nets[i], true, i % 2 == 0 ? 77 : 0);
}

/* ---- Slow ranks ------------------------------------------------------------------------------ */

enum { MICRO_BATCHES = 12, OWN_MOST = 2 };

/* How many micro-batches of an update each worker has begun. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int begun[UPDATES][2];
} race = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* Rank 1 goes on only when rank 0 has begun all micro-batches of an update but two. */
static void hold(const struct rank *rank)
{
    if (rank->update == UPDATES)
        return;
    int *begun = race.begun[rank->update];
    pthread_mutex_lock(&race.lock);
    begun[rank->rank]++;
    pthread_cond_broadcast(&race.moved);
    while (rank->rank == 1 && begun[0] < MICRO_BATCHES - OWN_MOST)
        pthread_cond_wait(&race.moved, &race.lock);
    pthread_mutex_unlock(&race.lock);
}

/* A slow rank gets less to do: one micro-batch, and perhaps the one that it has requested ahead.
 * (The first update does not count: it is begun twice, to measure gradients.) */
static void a_slow_rank_gets_less_to_do(void **state)
{
    static const struct net slow[] = {
        {"a slow rank", "micro_batch: 2", "batch_size: 24", "ranks_plain", NULL, NULL, 0},
        {"a slow rank among sync points", "micro_batch: 2", "batch_size: 24", "ranks_normed", "",
         "", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        struct lockstep_solver *solver = make_solver(&slow[i]);
        struct bytes alone = run_alone(solver, UPDATES);
        struct job job = {.solver = solver,
                          .ranks = 2,
                          .workers = {1, 1},
                          .updates = UPDATES,
                          .dynamic = true,
                          .before = hold};
        memset(race.begun, 0, sizeof race.begun);
        check_job(&job, alone, slow[i].name);
        for (int u = 1; u < UPDATES; u++) {
            assert_in_range(race.begun[u][1], 1, OWN_MOST);
            assert_int_equal(race.begun[u][0] + race.begun[u][1], MICRO_BATCHES);
        }
        free(alone.data);
        lockstep_solver_free(solver);
    }
}

/* ---- Records that cannot be read ------------------------------------------------------------- */

enum { PICTURES = 30, BROKEN = 17, RANKS = 3 };

static void write_pictures(void)
{
    char text[PICTURES * 64] = "", name[32];
    for (int i = 0; i < PICTURES; i++) {
        snprintf(name, sizeof name, "%d.png", i);
        write_picture(ls_test_path(name), 8, 8, 3, i * 5);
        if (i == BROKEN) { /* the size can be read, the pixels cannot */
            size_t size;
            char *file = ls_test_read(ls_test_path(name), &size);
            ls_test_write(ls_test_path(name), file, size - 30);
            free(file);
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %d\n", name, i % 10);
    }
    ls_test_write_text(ls_test_path("list"), text);
}

/* All ranks learn of the record after the pass, so that all keep the weights of the last update. */
static void check_broken(const char *norms, bool dynamic)
{
    const struct net net = {.file = "ranks_normed", .first = norms, .second = norms};
    const char *data = ls_test_text(
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.0078 }\n"
        "  data_param { backend: IMAGES source: '%s' root_folder: '%s/' batch_size: 12 } }\n",
        ls_test_path("list"), ls_test_directory());
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.05 lr_policy: 'fixed' max_iter: 40 random_seed: 3 micro_batch: 2\n"
                    "net_param { %s }\n",
                    net_on(data, &net));
    struct job job = {.solver = solver,
                      .ranks = RANKS,
                      .workers = {1, 2, 1},
                      .updates = UPDATES,
                      .dynamic = dynamic,
                      .together = true};
    struct rank ranks[RANKS_MAX];
    run_job(&job, ranks);
    for (int r = 0; r < RANKS; r++) {
        const char *message = ranks[r].error->problems[0].message;
        if (ranks[r].status != LOCKSTEP_DATA || strstr(message, "record 17") == NULL)
            fail_msg("rank %d: status %d: %s", r, ranks[r].status, message);
    }
    free_ranks(&job, ranks);
    lockstep_solver_free(solver);
}

static void a_broken_record_ends_the_job_on_all_ranks(void **state)
{
    (void)state;
    write_pictures();
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        check_broken("", dynamic != 0);
        check_broken("group: 1", dynamic != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nets_have_the_traits_they_are_tried_for),
        cmocka_unit_test(any_ranks_give_the_bits_of_one_process),
        cmocka_unit_test(work_queue_gives_the_bits_of_one_process),
        cmocka_unit_test(a_slow_rank_gets_less_to_do),
        cmocka_unit_test(a_broken_record_ends_the_job_on_all_ranks),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
