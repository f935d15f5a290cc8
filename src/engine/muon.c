/* Muon's whole matrices. See engine/muon.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/muon.h"

#include <math.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/whole.h"

enum { ALIGNMENT = 64 }; /* bytes, of scratch */

/* What the largest parameters of this rule need. */
struct muon_sizes {
    size_t elements;
    size_t square;  /* elements of a matrix of the shorter side */
    size_t scratch; /* bytes of a worker */
};

struct ls_muon {
    struct muon_sizes sizes;
    float *x, *next, *first, *sum; /* x and b x; a and b */
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
        if (!options->state[i].orthogonal || !parameter->trained)
            continue;
        const struct muon_matrix m = muon_matrix_of(parameter);
        const size_t needs[] = {device->products->scratch(m.least, m.least, m.most),
                                device->products->scratch(m.least, m.least, m.least),
                                device->products->scratch(m.least, m.most, m.least)};
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
    *of_worker = sizes.scratch;
    return 2 * (sizes.elements + sizes.square) * ls_dtype_size(LS_F32);
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
    muon->sizes = sizes;
    muon->x = ls_alloc_aligned(sizes.elements * sizeof *muon->x);
    muon->next = ls_alloc_aligned(sizes.elements * sizeof *muon->next);
    muon->first = ls_alloc_aligned(sizes.square * sizeof *muon->first);
    muon->sum = ls_alloc_aligned(sizes.square * sizeof *muon->sum);
    muon->scratch = ls_alloc_aligned(workers * sizes.scratch + 1);
    const bool ready = muon->x != NULL && muon->next != NULL && muon->first != NULL &&
                       muon->sum != NULL && muon->scratch != NULL;
    return ready ? 0 : ls_fail_memory(error, "the update"); /* the optimizer frees it */
}

void ls_muon_free(struct ls_muon *muon)
{
    if (muon == NULL)
        return;
    ls_free_aligned(muon->x);
    ls_free_aligned(muon->next);
    ls_free_aligned(muon->first);
    ls_free_aligned(muon->sum);
    ls_free_aligned(muon->scratch);
    ls_free(muon);
}

/* ---- Newton and Schulz ----------------------------------------------------------------------- */

/* One parameter. */
struct muon_pass {
    const struct ls_engine *engine;
    struct ls_muon *muon;
    const struct ls_update_rule *rule;
    struct muon_matrix matrix;
    float *plain; /* u, and then d */
};

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
    if (worker > 0)
        return;
    const double squares =
        ls_whole_squares(pass->engine, pass->plain, pass->matrix.rows * pass->matrix.columns);
    const double norm = sqrt(squares) + (double)pass->rule->delta;
    muon_scale(&pass->matrix, pass->plain, norm != 0 ? (float)(1 / norm) : 0, false, muon->x);
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
        muon_scale(m, pass->muon->x, (float)scale, true, pass->plain);
}

void ls_muon_orthogonalize(const struct ls_engine *engine, struct ls_muon *muon,
                           const struct ls_update_rule *rule, const struct ls_parameter *parameter,
                           float *numbers)
{
    struct muon_pass pass = {.engine = engine,
                             .muon = muon,
                             .rule = rule,
                             .matrix = muon_matrix_of(parameter),
                             .plain = numbers};
    const int index = parameter->index;
    ls_whole_share(engine, index, muon_begin, &pass);
    for (int i = 0; i < rule->iterations; i++) {
        ls_whole_share(engine, index, muon_square, &pass);
        ls_whole_share(engine, index, muon_sum, &pass);
        ls_whole_share(engine, index, muon_step, &pass);
        float *x = muon->x;
        muon->x = muon->next;
        muon->next = x;
    }
    ls_whole_share(engine, index, muon_end, &pass);
}
