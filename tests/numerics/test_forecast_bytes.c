/* The forecast of memory against what is allocated, byte by byte: every block that the store, its
 * sums, its views and the workers' arenas take is counted while trainers train, on any number of
 * workers and ranks. (tests/compat/test_memory_forecast.c compares the totals with what the kernel
 * says.) The linker hands allocations, and the functions that make them, to this file.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "engine/binding.h"
#include "engine/forecast.h"
#include "engine/whole.h"
#include "engine/reducer.h"
#include "engine/reducer_sums.h"
#include "engine/rows.h"
#include "trainings/narrow_product.h"
#include "trainings/ranks.h"

/* ---- Counting -------------------------------------------------------------------------------- */

enum account { OTHERS, ARENAS, STORE, SUMS, FACTORS, REDUCER, ACCOUNTS };

enum { BLOCKS_MAX = 1 << 16, UPDATES = 2 };

static struct block {
    void *memory;
    size_t bytes;
    enum account account;
    int rank;
} blocks[BLOCKS_MAX];
static size_t block_count, live[RANKS_MAX][ACCOUNTS], arrays[RANKS_MAX][ACCOUNTS];
static size_t whole_bytes[RANKS_MAX]; /* memory of workers, which is not in the history */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local enum account account; /* to which this thread's allocations go */
static _Thread_local int own_rank;

static void count(void *memory, size_t bytes)
{
    if (memory == NULL || account == OTHERS)
        return;
    pthread_mutex_lock(&lock);
    if (block_count == BLOCKS_MAX)
        abort();
    blocks[block_count++] = (struct block){memory, bytes, account, own_rank};
    live[own_rank][account] += bytes;
    arrays[own_rank][account]++;
    pthread_mutex_unlock(&lock);
}

static void forget(const void *memory)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < block_count && memory != NULL; i++)
        if (blocks[i].memory == memory) {
            live[blocks[i].rank][blocks[i].account] -= blocks[i].bytes;
            arrays[blocks[i].rank][blocks[i].account]--;
            blocks[i] = blocks[--block_count];
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* The linker's names (--wrap): __wrap_f is called for f, which is __real_f. */
#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

WRAP(void *, ls_alloc, size_t number, size_t size)
{
    void *memory = __real_ls_alloc(number, size);
    if (account == SUMS) /* elsewhere what is small, and not forecast byte by byte */
        count(memory, number * size);
    return memory;
}

WRAP(void *, ls_alloc_aligned, size_t bytes)
{
    void *memory = __real_ls_alloc_aligned(bytes);
    count(memory, bytes);
    return memory;
}

WRAP(void, ls_free, void *memory)
{
    forget(memory);
    __real_ls_free(memory);
}

WRAP(void, ls_free_aligned, void *memory)
{
    forget(memory);
    __real_ls_free_aligned(memory);
}

/* Calls the real function with its allocations on an account. */
#define ON_ACCOUNT(which, call)                                                                    \
    enum account before = account;                                                                 \
    account = (which);                                                                             \
    int status = (call);                                                                           \
    account = before;                                                                              \
    return status

WRAP(int, ls_store_create, const struct ls_device *device, struct ls_parameter_set *set,
     struct ls_view_set *views, const struct ls_store_options *options, struct ls_store **store,
     struct ls_error *error)
{
    own_rank = options->rank;
    ON_ACCOUNT(STORE, __real_ls_store_create(device, set, views, options, store, error));
}

WRAP(int, ls_whole_create, const struct ls_engine *engine, const struct ls_store_options *options,
     struct ls_whole **whole, struct ls_error *error)
{
    own_rank = options->rank;
    whole_bytes[own_rank] = 0;
    if (ls_whole_bytes(engine->device, engine->store->set, options, &whole_bytes[own_rank]) > 0)
        whole_bytes[own_rank] *= (size_t)options->workers;
    ON_ACCOUNT(STORE, __real_ls_whole_create(engine, options, whole, error));
}

WRAP(int, ls_sums_create, const struct ls_device *device, const size_t *elements,
     const size_t *place, size_t number, int workers, struct ls_sums **sums, struct ls_error *error)
{
    ON_ACCOUNT(SUMS, __real_ls_sums_create(device, elements, place, number, workers, sums, error));
}

WRAP(int, ls_rows_cut, struct ls_store *store, struct ls_error *error)
{
    ON_ACCOUNT(SUMS, __real_ls_rows_cut(store, error));
}

WRAP(int, ls_reducer_create, struct ls_store *store, struct ls_comm *comm,
     struct ls_reducer **reducer, struct ls_error *error)
{
    ON_ACCOUNT(REDUCER, __real_ls_reducer_create(store, comm, reducer, error));
}

WRAP(int, ls_factors_create, const struct ls_device *device, const struct ls_parameter_set *set,
     int workers, struct ls_factors **factors, struct ls_error *error)
{
    ON_ACCOUNT(OTHERS, __real_ls_factors_create(device, set, workers, factors, error));
}

WRAP(int, ls_factors_place, struct ls_factors *factors, const struct ls_graph *const *graphs,
     size_t micro_batches, struct ls_error *error)
{
    ON_ACCOUNT(FACTORS, __real_ls_factors_place(factors, graphs, micro_batches, error));
}

WRAP(int, ls_engine_bind, struct ls_engine *engine, struct ls_net *const *nets, size_t number,
     struct ls_error *error)
{
    ON_ACCOUNT(ARENAS, __real_ls_engine_bind(engine, nets, number, error));
}

WRAP(int, ls_binding_bind, struct ls_net_plan *plan, const struct ls_store *store,
     struct ls_reducer *reducer, const struct ls_slots *slots, struct ls_error *error)
{
    ON_ACCOUNT(OTHERS, __real_ls_binding_bind(plan, store, reducer, slots, error));
}

/* ---- Trainings ------------------------------------------------------------------------------- */

static struct ls_forecast forecasts[RANKS_MAX];
static size_t reducer_bytes[RANKS_MAX], factor_bytes[RANKS_MAX], parameters;
static int arena_blocks[RANKS_MAX];
static size_t found[RANKS_MAX][ACCOUNTS], found_arrays[RANKS_MAX][ACCOUNTS];

/* Some updates; then what has been taken, and what was forecast. */
static int train_and_look(struct rank *rank, struct ls_trainer *trainer)
{
    int r = rank->rank;
    for (int i = 0; i < UPDATES; i++)
        LS_TRY(ls_trainer_update(trainer, rank->error));
    forecasts[r] = trainer->forecast;
    reducer_bytes[r] = rank->job->ranks > 1 ? ls_reducer_sums_bytes(trainer->store->shards) : 0;
    arena_blocks[r] = trainer->engine->workers;
    parameters = trainer->parameters->count;
    factor_bytes[r] = 0;
    for (size_t i = 0; i < parameters; i++)
        if (trainer->parameters->items[i]->factoring.weight != NULL)
            factor_bytes[r] += ls_gradient_bytes(trainer->parameters->items[i]);
    pthread_mutex_lock(&lock);
    memcpy(found[r], live[r], sizeof live[r]);
    memcpy(found_arrays[r], arrays[r], sizeof arrays[r]);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* So much was forecast, and `most` bytes more may be taken. */
static void expect_bytes(const char *what, size_t forecast, size_t taken, size_t most)
{
    if (taken < forecast || taken > forecast + most)
        fail_msg("%s: %zu bytes were forecast, %zu taken", what, forecast, taken);
}

/* Arenas are what was forecast, but for a cache line in front of each arena. Arrays of
 * parameters have a cache line at most behind each; what is shared out among ranks is forecast for
 * the rank that has most. Sums and factors have small tables besides. */
static void check_forecasts(int ranks)
{
    size_t most_taken = 0, behind = 0;
    const size_t learned =
        forecasts[0].weights + forecasts[0].views + forecasts[0].history + forecasts[0].averages;
    for (int r = 0; r < ranks; r++) {
        const struct ls_forecast *forecast = &forecasts[r];
        const size_t sums = forecast->gradients - reducer_bytes[r] - factor_bytes[r];
        expect_bytes("arenas", ls_forecast_activations(forecast) + 64 * (size_t)arena_blocks[r],
                     found[r][ARENAS], 0);
        expect_bytes("factors", factor_bytes[r], found[r][FACTORS], 64 * parameters);
        /* There is room for sums of 64 bits, of which 48 are touched unless they do not fit. */
        expect_bytes("the reducer", reducer_bytes[r] / 6 * 8, found[r][REDUCER], 0);
        expect_bytes("sums", sums, found[r][SUMS], sums / 50 + 1024 * parameters);
        const size_t taken = found[r][STORE] - whole_bytes[r];
        most_taken = taken > most_taken ? taken : most_taken;
        behind = 64 * (found_arrays[r][STORE] + parameters);
        assert_int_equal(
            forecast->weights + forecast->views + forecast->history + forecast->averages, learned);
    }
    expect_bytes("weights, their history and averages", learned, most_taken, behind);
}

/* ---- Nets ------------------------------------------------------------------------------------ */

static const struct net {
    const char *settings, *file; /* of tests/nets */
} nets[] = {
    {"momentum: 0.9", "forecast_convolutions"},
    {"type: 'Adam' momentum: 0.9 weight_average { decay: 0.9 }", "forecast_norms"},
    {"", "forecast_products"},
    {"type: 'Muon' momentum: 0.9 param_group { max_axes: 1 type: 'AdamW' momentum: 0.9 }",
     "forecast_convolutions"},
    {"type: 'Muon' momentum: 0.9 param_group { max_axes: 1 type: 'SGD' }", "forecast_products"},
    {"type: 'Adafactor' weight_average { decay: 0.9 }", "forecast_convolutions"},
    {"type: 'Adafactor' momentum: 0.9", "forecast_products"},
    {"momentum: 0.9 precision: BF16", "forecast_convolutions"},
    {"weight_average { decay: 0.9 } precision: BF16", "forecast_norms"},
    {"precision: BF16", "forecast_products"},
};

static void compare_bytes(const struct net *net, int ranks, int workers)
{
    struct lockstep_solver *solver = load_solver(
        "lr_policy: 'fixed' max_iter: 9 base_lr: 0.001 micro_batch: 3 %s net_param { %s }\n",
        net->settings, ls_test_net(net->file, NULL));
    struct job job = {.solver = solver, .ranks = ranks, .act = train_and_look};
    struct rank of[RANKS_MAX];
    for (int r = 0; r < ranks; r++)
        job.workers[r] = workers + r;
    run_job(&job, of);
    for (int r = 0; r < ranks; r++)
        if (of[r].status != 0)
            fail_msg("%s", of[r].error->problems[0].message);
    check_forecasts(ranks);
    free_ranks(&job, of);
    lockstep_solver_free(solver);
    assert_int_equal(block_count, 0); /* all was given back */
}

static void the_forecast_is_what_is_allocated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        for (int ranks = 1; ranks <= 3; ranks++)
            for (int workers = 1; workers <= 3; workers += 2)
                compare_bytes(&nets[i], ranks, workers);
}

/* Views of weights in another type take what their type takes, and so do inputs of products that
 * were converted. */
static void the_forecast_counts_views_by_their_type(void **state)
{
    (void)state;
    static const enum ls_dtype types[] = {LS_BF16, LS_F64};
    size_t views[2];
    for (int t = 0; t < 2; t++) {
        narrow_products(NARROW_VIEWED, types[t]);
        for (int ranks = 1; ranks <= 2; ranks++)
            compare_bytes(&nets[2], ranks, 2);
        views[t] = forecasts[0].views;
    }
    narrow_products(NARROW_NOT, LS_F32);
    compare_bytes(&nets[2], 1, 2);
    assert_int_equal(forecasts[0].views, 0);
    /* There may be views in fp32 besides, for the backward pass. */
    const size_t numbers = 300 * 512 + 512 * 300 + 10 * 300;
    assert_true(views[0] >= 2 * numbers);
    assert_int_equal(views[1] - views[0], (8 - 2) * numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forecast_is_what_is_allocated),
        cmocka_unit_test(the_forecast_counts_views_by_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
