/* Muon's whole matrices. See engine/muon.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/muon.h"

#include <math.h>

#include "base/memory.h"
#include "base/thread.h"
#include "device/plain.h"
#include "engine/engine.h"
#include "engine/pass.h"

enum { ALIGNMENT = 64 }; /* bytes, of scratch */

/* What the largest parameters of this rule need. */
struct muon_sizes {
    size_t laid_out; /* elements, with padding */
    size_t elements;
    size_t square;  /* elements of a matrix of the shorter side */
    size_t scratch; /* bytes of a worker */
};

struct ls_muon {
    const struct ls_device_memory *memory;
    struct muon_sizes sizes;
    float *direction;                      /* the device's: u, and then d */
    float *gradient;                       /* the device's, LS_SUMS_TILE a worker */
    float *plain, *x, *next, *first, *sum; /* x and b x; a and b */
    char *scratch;
};

/* A matrix whose sides are those of the parameter, or of its transpose if it is high. */
struct muon_matrix {
    int64_t rows, columns, least, most; /* least: the shorter side */
};

static struct muon_matrix muon_matrix_of(const struct ls_parameter *parameter)
{
    const int64_t rows = parameter->shape.dim[0];
    const int64_t columns = ls_shape_size(&parameter->shape) / rows;
    return (struct muon_matrix){.rows = rows,
                                .columns = columns,
                                .least = rows < columns ? rows : columns,
                                .most = rows < columns ? columns : rows};
}

static size_t muon_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static struct muon_sizes muon_measure(const struct ls_device *device,
                                      const struct ls_parameter_set *set,
                                      const struct ls_store_options *options)
{
    struct muon_sizes sizes = {0};
    for (size_t i = 0; i < set->count && options->state != NULL; i++) {
        const struct ls_parameter *parameter = set->items[i];
        if (!options->state[i].whole || !parameter->trained)
            continue;
        const struct muon_matrix m = muon_matrix_of(parameter);
        const size_t needs[] = {device->products->scratch(m.least, m.least, m.most),
                                device->products->scratch(m.least, m.least, m.least),
                                device->products->scratch(m.least, m.most, m.least)};
        sizes.laid_out = muon_larger(sizes.laid_out, ls_parameter_elements(parameter));
        sizes.elements = muon_larger(sizes.elements, (size_t)(m.least * m.most));
        sizes.square = muon_larger(sizes.square, (size_t)(m.least * m.least));
        for (size_t n = 0; n < sizeof needs / sizeof *needs; n++)
            sizes.scratch = muon_larger(sizes.scratch, needs[n]);
    }
    sizes.scratch = (sizes.scratch + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return sizes;
}

size_t ls_muon_bytes(const struct ls_device *device, const struct ls_parameter_set *set,
                     const struct ls_store_options *options, size_t *of_worker)
{
    const struct muon_sizes sizes = muon_measure(device, set, options);
    *of_worker = sizes.elements > 0 ? sizes.scratch + LS_SUMS_TILE * ls_dtype_size(LS_F32) : 0;
    return (sizes.laid_out + 3 * sizes.elements + 2 * sizes.square) * ls_dtype_size(LS_F32);
}

int ls_muon_create(const struct ls_engine *engine, const struct ls_store_options *options,
                   struct ls_muon **out, struct ls_error *error)
{
    *out = NULL;
    const struct muon_sizes sizes = muon_measure(engine->device, engine->store->set, options);
    if (sizes.elements == 0)
        return 0;
    struct ls_muon *muon = *out = ls_alloc(1, sizeof *muon);
    if (muon == NULL)
        return ls_fail_memory(error, "the update");
    const size_t workers = (size_t)engine->workers;
    muon->memory = engine->device->memory;
    muon->sizes = sizes;
    muon->direction = muon->memory->create(sizes.laid_out * sizeof *muon->direction);
    muon->gradient = muon->memory->create(workers * LS_SUMS_TILE * sizeof *muon->gradient);
    muon->plain = ls_alloc_aligned(sizes.elements * sizeof *muon->plain);
    muon->x = ls_alloc_aligned(sizes.elements * sizeof *muon->x);
    muon->next = ls_alloc_aligned(sizes.elements * sizeof *muon->next);
    muon->first = ls_alloc_aligned(sizes.square * sizeof *muon->first);
    muon->sum = ls_alloc_aligned(sizes.square * sizeof *muon->sum);
    muon->scratch = ls_alloc_aligned(workers * sizes.scratch + 1);
    const bool ready = muon->direction != NULL && muon->gradient != NULL && muon->plain != NULL &&
                       muon->x != NULL && muon->next != NULL && muon->first != NULL &&
                       muon->sum != NULL && muon->scratch != NULL;
    return ready ? 0 : ls_fail_memory(error, "the update"); /* the optimizer frees it */
}

void ls_muon_free(struct ls_muon *muon)
{
    if (muon == NULL)
        return;
    muon->memory->free(muon->direction);
    muon->memory->free(muon->gradient);
    ls_free_aligned(muon->plain);
    ls_free_aligned(muon->x);
    ls_free_aligned(muon->next);
    ls_free_aligned(muon->first);
    ls_free_aligned(muon->sum);
    ls_free_aligned(muon->scratch);
    ls_free(muon);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* One parameter. */
struct muon_pass {
    const struct ls_engine *engine;
    struct ls_muon *muon;
    const struct ls_update_rule *rule;
    float *weights;
    int parameter;
    bool move;           /* the second pass */
    size_t first, end;   /* of its tiles */
    _Atomic size_t next; /* tile */
    _Atomic uint32_t *seen_gradient, *seen_weight;
    struct muon_matrix matrix;
    struct ls_worker_failure failure;
};

/* Masked weights have no history, and no part of a step: what others do changes none of them. */
static int muon_clear_masked(const struct ls_store *store, int parameter, size_t begin,
                             const struct ls_update_slice *slice, struct ls_error *error)
{
    float *const arrays[] = {slice->weight, slice->history[0], slice->direction, slice->average};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i] != NULL)
            LS_TRY(ls_store_clear_masked(store, parameter, begin, arrays[i], slice->n, error));
    return 0;
}

/* Elements [begin, begin + n): the gradient is given in the first pass. */
static int muon_update_row(const struct muon_pass *pass, size_t begin, size_t n,
                           const float *gradient, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    const struct ls_parameter_state *slot = &store->slots[pass->parameter];
    float *direction = pass->muon->direction + begin;
    const size_t own = begin - slot->shard_begin;
    const struct ls_update_slice slice = {
        .n = n,
        .gradient = pass->move ? direction : gradient,
        .weight = pass->weights + begin,
        .history = {slot->history[0] + own},
        .direction = pass->move ? NULL : direction,
        .average = pass->move && slot->average != NULL ? slot->average + own : NULL};
    struct ls_update_seen seen;
    LS_TRY(store->device->update(pass->rule, &slice, &seen, error));
    if (slot->mask != NULL)
        LS_TRY(muon_clear_masked(store, pass->parameter, begin, &slice, error));
    ls_raise_to(pass->seen_gradient, seen.gradient);
    ls_raise_to(pass->seen_weight, seen.weight);
    return 0;
}

static int muon_update_tile(const struct muon_pass *pass, const struct ls_gradient_piece *piece,
                            int worker, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    float *gradient = pass->muon->gradient + (size_t)worker * LS_SUMS_TILE;
    if (!pass->move && ls_store_has_factors(store, pass->parameter)) {
        gradient = ls_factors_tile(store->factors, worker);
        LS_TRY(ls_factors_gradient(store->factors, store->slots[pass->parameter].parameter, piece,
                                   gradient, error));
    } else if (!pass->move) { /* one row */
        LS_TRY(ls_sums_read(store->sums, pass->parameter, piece->begin, piece->columns, gradient,
                            error));
    }
    for (size_t r = 0; r < piece->rows; r++)
        LS_TRY(muon_update_row(pass, piece->begin + r * piece->row, piece->columns,
                               pass->move ? NULL : gradient + r * piece->columns, error));
    return 0;
}

static void muon_update_some(void *argument, int worker)
{
    struct muon_pass *pass = argument;
    struct ls_error *error = ls_worker_error();
    int status = 0;
    for (size_t i; status == 0 && (i = atomic_fetch_add(&pass->next, 1)) < pass->end;)
        status = muon_update_tile(pass, &pass->engine->store->tiles[i].piece, worker, error);
    ls_worker_failure_note(&pass->failure, status, error);
}

static int muon_update_tiles(struct muon_pass *pass, bool move)
{
    pass->move = move;
    atomic_store(&pass->next, pass->first);
    ls_thread_pool_run(pass->engine->pool, muon_update_some, pass);
    return atomic_load(&pass->failure.status);
}

/* ---- Newton and Schulz ----------------------------------------------------------------------- */

/* Rows of the shorter side that a worker computes. */
static void muon_rows(const struct muon_pass *pass, int worker, int64_t *begin, int64_t *end)
{
    const int64_t workers = pass->engine->workers, least = pass->matrix.least;
    *begin = least * worker / workers;
    *end = least * (worker + 1) / workers;
}

/* Rows of out = rows of a times b, which has `columns` columns. */
static void muon_multiply(const struct muon_pass *pass, int worker, const float *a, const float *b,
                          bool by_term, int64_t columns, int64_t depth, float *out)
{
    int64_t begin, end;
    muon_rows(pass, worker, &begin, &end);
    const struct ls_matrix_product product = {.rows = end - begin,
                                              .columns = columns,
                                              .depth = depth,
                                              .a = a + begin * depth,
                                              .b = b,
                                              .by_term = by_term,
                                              .out = out + begin * columns};
    if (begin < end)
        pass->engine->device->products->multiply(
            &product, pass->muon->scratch + (size_t)worker * pass->muon->sizes.scratch);
}

/* a = x x^T */
static void muon_square(void *argument, int worker)
{
    const struct muon_pass *pass = argument;
    const struct ls_muon *muon = pass->muon;
    muon_multiply(pass, worker, muon->x, muon->x, false, pass->matrix.least, pass->matrix.most,
                  muon->first);
}

/* b = -4.775 a + 2.0315 a a^T */
static void muon_sum(void *argument, int worker)
{
    const struct muon_pass *pass = argument;
    const struct ls_muon *muon = pass->muon;
    const int64_t least = pass->matrix.least;
    int64_t begin, end;
    muon_multiply(pass, worker, muon->first, muon->first, false, least, least, muon->sum);
    muon_rows(pass, worker, &begin, &end);
    for (int64_t i = begin * least; i < end * least; i++)
        muon->sum[i] = -4.775F * muon->first[i] + 2.0315F * muon->sum[i];
}

/* next = 3.4445 x + b x */
static void muon_step(void *argument, int worker)
{
    const struct muon_pass *pass = argument;
    const struct ls_muon *muon = pass->muon;
    const int64_t most = pass->matrix.most;
    int64_t begin, end;
    muon_multiply(pass, worker, muon->sum, muon->x, true, most, pass->matrix.least, muon->next);
    muon_rows(pass, worker, &begin, &end);
    for (int64_t i = begin * most; i < end * most; i++)
        muon->next[i] = 3.4445F * muon->x[i] + muon->next[i];
}

/* to = from * factor, transposed if the parameter has more rows than columns; `back` says that
 * `from` is what has been transposed. */
static void muon_scale(const struct muon_matrix *m, const float *from, float factor, bool back,
                       float *to)
{
    const bool turn = m->rows > m->columns;
    const int64_t rows = turn && back ? m->columns : m->rows;
    const int64_t columns = turn && back ? m->rows : m->columns;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[turn ? j * rows + i : i * columns + j] = from[i * columns + j] * factor;
}

/* From the plain u to x, by one worker, since all workers flush denormal numbers. */
static void muon_begin(void *argument, int worker)
{
    const struct muon_pass *pass = argument;
    const struct ls_muon *muon = pass->muon;
    double squares;
    if (worker > 0)
        return;
    (void)ls_plain_sums.squares(muon->plain, (size_t)(pass->matrix.rows * pass->matrix.columns),
                                &squares, NULL); /* cannot fail */
    const double norm = sqrt(squares) + (double)pass->rule->delta;
    muon_scale(&pass->matrix, muon->plain, norm != 0 ? (float)(1 / norm) : 0, false, muon->x);
}

/* From x to the plain d. */
static void muon_end(void *argument, int worker)
{
    const struct muon_pass *pass = argument;
    const struct muon_matrix *m = &pass->matrix;
    const double ratio = (double)m->rows / (double)m->columns;
    const double scale = pass->rule->match_rms ? 0.2 * sqrt((double)m->most)
                         : ratio > 1           ? sqrt(ratio)
                                               : 1;
    if (worker == 0)
        muon_scale(m, pass->muon->x, (float)scale, true, pass->muon->plain);
}

static void muon_orthogonalize(struct muon_pass *pass)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    struct ls_muon *muon = pass->muon;
    ls_thread_pool_run(pool, muon_begin, pass);
    for (int i = 0; i < pass->rule->iterations; i++) {
        ls_thread_pool_run(pool, muon_square, pass);
        ls_thread_pool_run(pool, muon_sum, pass);
        ls_thread_pool_run(pool, muon_step, pass);
        float *x = muon->x;
        muon->x = muon->next;
        muon->next = x;
    }
    ls_thread_pool_run(pool, muon_end, pass);
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static int muon_update(struct muon_pass *pass, struct ls_error *error)
{
    const struct ls_device *device = pass->engine->device;
    const struct ls_parameter *parameter = pass->engine->store->slots[pass->parameter].parameter;
    struct ls_muon *muon = pass->muon;
    pass->matrix = muon_matrix_of(parameter);
    LS_TRY(muon_update_tiles(pass, false));
    LS_TRY(device->parameter_to_plain(parameter->layout, &parameter->shape, muon->direction,
                                      muon->plain, error));
    muon_orthogonalize(pass);
    LS_TRY(device->parameter_from_plain(parameter->layout, &parameter->shape, muon->plain,
                                        muon->direction, error));
    return muon_update_tiles(pass, true);
}

int ls_muon_run(struct ls_engine *engine, struct ls_muon *muon, float *const *weights,
                const struct ls_update_rule *rules, _Atomic uint32_t *seen, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    for (size_t begin = 0, end = 0; begin < store->tile_count; begin = end) {
        const int parameter = store->tiles[begin].parameter;
        const struct ls_parameter_state *slot = &store->slots[parameter];
        while (end < store->tile_count && store->tiles[end].parameter == parameter)
            end++;
        if (rules[parameter].kind != LS_UPDATE_MUON || slot->shard_begin == slot->shard_end)
            continue;
        struct muon_pass pass = {.engine = engine,
                                 .muon = muon,
                                 .rule = &rules[parameter],
                                 .weights = weights[parameter],
                                 .parameter = parameter,
                                 .first = begin,
                                 .end = end,
                                 .seen_gradient = &seen[parameter],
                                 .seen_weight = &seen[store->set->count + 1 + (size_t)parameter],
                                 .failure = {.error = error}};
        LS_TRY(muon_update(&pass, error));
    }
    return 0;
}
