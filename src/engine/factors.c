/* Factors of gradients in memory. See engine/factors.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/factors.h"

#include <float.h>
#include <limits.h>
#include <string.h>

#include "base/memory.h"

struct factor {
    const struct ls_factoring *of;
    float *side[LS_FACTOR_SIDES]; /* `capacity` rows */
    size_t capacity, rows;
    uint32_t largest[LS_FACTOR_SIDES]; /* bits, of the update */
    int first_not_finite;              /* micro-batch; INT_MAX: none */
};

struct ls_factors {
    const struct ls_device *device;
    struct factor *items;
    size_t count;
    int *index;    /* by parameter; -1: it is reduced as a sum */
    size_t *first; /* [micro-batch, and one behind the last][factor]: rows */
    size_t micro_batches, micro_batch_capacity;
    int workers;
    float *tiles;             /* one a worker */
    struct ls_mirror largest; /* [micro-batch][factor][side]: bits of what was recorded */
};

enum { TILE = LS_FACTOR_TILE_ROWS * LS_FACTOR_TILE_COLUMNS };

/* ---- Memory ---------------------------------------------------------------------------------- */

static void factors_list_factors(struct ls_factors *factors, const struct ls_parameter_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct ls_factoring *factoring = &set->items[i]->factoring;
        factors->index[i] = -1;
        if (factoring->weight == set->items[i]) {
            factors->index[i] = (int)factors->count;
            factors->items[factors->count++].of = factoring;
        }
    }
    for (size_t i = 0; i < set->count; i++) /* biases after their weights */
        if (set->items[i]->factoring.weight != NULL)
            factors->index[i] = factors->index[set->items[i]->factoring.weight->index];
}

int ls_factors_create(const struct ls_device *device, const struct ls_parameter_set *set,
                      int workers, struct ls_factors **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_factors *factors = ls_alloc(1, sizeof *factors);
    if (factors == NULL)
        return ls_fail_memory(error, "factors of gradients");
    factors->device = device;
    factors->workers = workers;
    factors->items = ls_alloc(set->count + 1, sizeof *factors->items);
    factors->index = ls_alloc(set->count + 1, sizeof *factors->index);
    bool ready = factors->items != NULL && factors->index != NULL;
    if (ready)
        factors_list_factors(factors, set);
    if (ready && factors->count > 0)
        ready = (factors->tiles = device->memory->create((size_t)workers * TILE *
                                                         sizeof *factors->tiles)) != NULL;
    if (!ready) {
        ls_factors_free(factors);
        return ls_fail_memory(error, "factors of gradients");
    }
    *out = factors;
    return 0;
}

void ls_factors_free(struct ls_factors *factors)
{
    if (factors == NULL)
        return;
    for (size_t f = 0; f < factors->count && factors->items != NULL; f++)
        for (int side = 0; side < LS_FACTOR_SIDES; side++)
            factors->device->memory->free(factors->items[f].side[side]);
    factors->device->memory->free(factors->tiles);
    ls_free(factors->items);
    ls_free(factors->index);
    ls_free(factors->first);
    ls_mirror_free(&factors->largest);
    ls_free(factors);
}

/* Room for so many rows; what was there is not needed any more. */
static int factors_reserve(const struct ls_device_memory *memory, struct factor *factor,
                           size_t rows, struct ls_error *error)
{
    factor->rows = rows;
    if (rows <= factor->capacity)
        return 0;
    factor->capacity = 0;
    for (int side = 0; side < LS_FACTOR_SIDES; side++) {
        memory->free(factor->side[side]);
        factor->side[side] =
            memory->create(ls_factor_bytes(factor->of, (enum ls_factor_side)side, rows));
        if (factor->side[side] == NULL)
            return ls_fail_memory(error, factor->of->weight->name);
    }
    factor->capacity = rows;
    return 0;
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Adds to `rows`, by factor, what a micro-batch of the graph records. */
static void factors_count_rows(const struct ls_factors *factors, const struct ls_graph *graph,
                               size_t *rows)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->kind == LS_OP_RECORD && op->attr.record.side == LS_FACTOR_OUTPUT)
            rows[factors->index[op->attr.record.parameter->index]] += (size_t)op->attr.record.rows;
    }
}

static size_t factors_largest_bytes(const struct ls_factors *factors, size_t micro_batches)
{
    return micro_batches * factors->count * LS_FACTOR_SIDES * sizeof(uint32_t);
}

/* Where the largest number of a side is, for a micro-batch. */
static size_t factors_largest_at(const struct ls_factors *factors, size_t micro_batch,
                                 size_t factor, size_t side)
{
    return (micro_batch * factors->count + factor) * LS_FACTOR_SIDES + side;
}

int ls_factors_place(struct ls_factors *factors, const struct ls_graph *const *graphs,
                     size_t micro_batches, struct ls_error *error)
{
    size_t count = factors->count;
    if (count == 0)
        return 0;
    factors->micro_batches = 0;
    if (micro_batches > factors->micro_batch_capacity) {
        size_t *longer =
            ls_resize(factors->first, (micro_batches + 1) * count, sizeof *factors->first);
        if (longer == NULL)
            return ls_fail_memory(error, "factors of gradients");
        factors->first = longer;
        factors->micro_batch_capacity = 0;
        ls_mirror_free(&factors->largest);
        LS_TRY(ls_mirror_create(&factors->largest, factors->device->memory,
                                factors_largest_bytes(factors, micro_batches),
                                "factors of gradients", error));
        factors->micro_batch_capacity = micro_batches;
    }
    memset(factors->first, 0, count * sizeof *factors->first);
    for (size_t m = 0; m < micro_batches; m++) {
        size_t *next = factors->first + (m + 1) * count;
        memcpy(next, next - count, count * sizeof *next);
        factors_count_rows(factors, graphs[m], next);
    }
    for (size_t f = 0; f < count; f++)
        LS_TRY(factors_reserve(factors->device->memory, &factors->items[f],
                               factors->first[micro_batches * count + f], error));
    factors->micro_batches = micro_batches;
    return 0;
}

/* ---- Updates --------------------------------------------------------------------------------- */

int ls_factors_begin(struct ls_factors *factors, struct ls_error *error)
{
    size_t bytes = factors_largest_bytes(factors, factors->micro_batches);
    for (size_t f = 0; f < factors->count; f++) {
        struct factor *factor = &factors->items[f];
        for (int side = 0; side < LS_FACTOR_SIDES; side++)
            factor->largest[side] = 0;
        factor->first_not_finite = INT_MAX;
    }
    return bytes > 0 ? factors->device->memory->zero(NULL, factors->largest.device, bytes, error)
                     : 0;
}

size_t ls_factors_of(const struct ls_factors *factors, const struct ls_parameter *parameter)
{
    return (size_t)factors->index[parameter->index];
}

struct ls_factor_target ls_factors_target(const struct ls_factors *factors,
                                          const struct ls_record_attr *record, int micro_batch)
{
    size_t index = ls_factors_of(factors, record->parameter);
    const struct factor *factor = &factors->items[index];
    size_t row = ls_factors_row(factors, index, (size_t)micro_batch);
    return (struct ls_factor_target){
        .rows = factor->side[record->side] + row * (size_t)factor->of->size[record->side],
        .largest = (uint32_t *)factors->largest.device +
                   factors_largest_at(factors, (size_t)micro_batch, index, (size_t)record->side)};
}

int ls_factors_collect(struct ls_factors *factors, struct ls_error *error)
{
    const uint32_t *largest = factors->largest.host;
    LS_TRY(ls_mirror_read(&factors->largest, 0,
                          factors_largest_bytes(factors, factors->micro_batches), error));
    for (size_t f = 0; f < factors->count; f++)
        for (size_t m = 0; m < factors->micro_batches; m++)
            for (size_t side = 0; side < LS_FACTOR_SIDES; side++) {
                struct factor *factor = &factors->items[f];
                uint32_t bits = largest[factors_largest_at(factors, m, f, side)];
                factor->largest[side] = bits > factor->largest[side] ? bits : factor->largest[side];
                if (bits >= LS_NOT_FINITE && (int)m < factor->first_not_finite)
                    factor->first_not_finite = (int)m;
            }
    return 0;
}

/* ---- Several ranks --------------------------------------------------------------------------- */

float *ls_factors_side(const struct ls_factors *factors, size_t factor, enum ls_factor_side side,
                       size_t *width)
{
    *width = (size_t)factors->items[factor].of->size[side];
    return factors->items[factor].side[side];
}

size_t ls_factors_row(const struct ls_factors *factors, size_t factor, size_t micro_batch)
{
    return factors->first[micro_batch * factors->count + factor];
}

const struct ls_parameter *ls_factors_weight(const struct ls_factors *factors, size_t factor)
{
    return factors->items[factor].of->weight;
}

void ls_factors_note(const struct ls_factors *factors, struct ls_factor_note *notes)
{
    for (size_t f = 0; f < factors->count; f++) {
        const struct factor *factor = &factors->items[f];
        memcpy(notes[f].largest, factor->largest, sizeof notes[f].largest);
        notes[f].first_not_finite = factor->first_not_finite;
    }
}

void ls_factors_hear(struct ls_factors *factors, const struct ls_factor_note *notes)
{
    for (size_t f = 0; f < factors->count; f++) {
        struct factor *factor = &factors->items[f];
        for (int side = 0; side < LS_FACTOR_SIDES; side++)
            if (notes[f].largest[side] > factor->largest[side])
                factor->largest[side] = notes[f].largest[side];
        if (notes[f].first_not_finite < factor->first_not_finite)
            factor->first_not_finite = notes[f].first_not_finite;
    }
}

/* ---- What is finite -------------------------------------------------------------------------- */

static float factors_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Whether the largest factors prove all products and sums finite, so that no check is needed. */
static bool factors_bounded(const struct factor *factor)
{
    double x = (double)factors_float_of(factor->largest[LS_FACTOR_INPUT]);
    double dy = (double)factors_float_of(factor->largest[LS_FACTOR_OUTPUT]);
    double most = x > 1 ? x : 1; /* of the bias: 1 */
    return (double)factor->rows * most * dy < (double)FLT_MAX / 2;
}

static int factors_gradient_of_rows(const struct ls_factors *factors, size_t rows,
                                    const struct ls_parameter *parameter,
                                    const struct ls_gradient_piece *piece, float *gradient,
                                    struct ls_error *error)
{
    const struct factor *factor = &factors->items[factors->index[parameter->index]];
    const struct ls_factor_rows what = {
        .side = {factor->side[LS_FACTOR_INPUT], factor->side[LS_FACTOR_OUTPUT]}, .rows = rows};
    return parameter == factor->of->weight
               ? factors->device->weight_gradient(factor->of, &what, piece, gradient, error)
               : factors->device->bias_gradient(factor->of, &what, piece, gradient, error);
}

/* Whether the gradient over the first `rows` rows is finite, by looking at all of it. */
static int factors_finite_over(const struct ls_factors *factors, size_t rows,
                               const struct ls_parameter *parameter, bool *finite,
                               struct ls_error *error)
{
    size_t elements = (size_t)ls_shape_size(&parameter->shape);
    size_t width = (size_t)parameter->shape.dim[parameter->shape.rank - 1];
    *finite = true;
    for (size_t begin = 0; *finite && begin < elements;) {
        size_t left = width - begin % width;
        uint32_t largest = 0;
        struct ls_gradient_piece piece = {
            .begin = begin, .rows = 1, .columns = left < TILE ? left : TILE};
        LS_TRY(factors_gradient_of_rows(factors, rows, parameter, &piece, factors->tiles, error));
        LS_TRY(factors->device->sums->largest(factors->tiles, piece.columns, &largest, error));
        *finite = largest < LS_NOT_FINITE;
        begin += piece.columns;
    }
    return 0;
}

/* The first micro-batch with whose rows the gradient is not finite; INT_MAX: it is. */
static int factors_first_overflow(const struct ls_factors *factors, size_t index,
                                  const struct ls_parameter *parameter, int *micro_batch,
                                  struct ls_error *error)
{
    const struct factor *factor = &factors->items[index];
    bool finite = true;
    *micro_batch = INT_MAX;
    if (parameter != NULL)
        LS_TRY(factors_finite_over(factors, factor->rows, parameter, &finite, error));
    for (size_t m = 0; !finite && *micro_batch == INT_MAX && m < factors->micro_batches; m++) {
        size_t rows = factors->first[(m + 1) * factors->count + index];
        bool until = true;
        LS_TRY(factors_finite_over(factors, rows, parameter, &until, error));
        *micro_batch = until ? INT_MAX : (int)m;
    }
    return 0;
}

int ls_factors_find_not_finite(const struct ls_factors *factors, bool all_have_run, int *parameter,
                               int *micro_batch, struct ls_error *error)
{
    *micro_batch = INT_MAX;
    for (size_t f = 0; f < factors->count; f++) {
        const struct factor *factor = &factors->items[f];
        const struct ls_parameter *which = factor->of->weight;
        int bad = factor->first_not_finite, bias;
        if (bad == INT_MAX && all_have_run && !factors_bounded(factor)) {
            LS_TRY(factors_first_overflow(factors, f, which, &bad, error));
            LS_TRY(factors_first_overflow(factors, f, factor->of->bias, &bias, error));
            which = bias < bad ? factor->of->bias : which;
            bad = bias < bad ? bias : bad;
        }
        if (bad < *micro_batch) {
            *micro_batch = bad;
            *parameter = which->index;
        }
    }
    return 0;
}

/* ---- Gradients ------------------------------------------------------------------------------- */

size_t ls_factors_count(const struct ls_factors *factors)
{
    return factors->count;
}

int ls_factors_gradient(const struct ls_factors *factors, const struct ls_parameter *parameter,
                        const struct ls_gradient_piece *piece, float *gradient,
                        struct ls_error *error)
{
    const struct factor *factor = &factors->items[factors->index[parameter->index]];
    return factors_gradient_of_rows(factors, factor->rows, parameter, piece, gradient, error);
}

float *ls_factors_tile(const struct ls_factors *factors, int worker)
{
    return factors->tiles + (size_t)worker * TILE;
}
