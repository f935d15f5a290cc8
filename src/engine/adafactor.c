/* Adafactor's steps. See engine/adafactor.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/adafactor.h"

#include <math.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/whole.h"

enum { STRIP = 256 }; /* columns whose sums a worker has at a time */

struct ls_adafactor {
    double weights;      /* mean of the squares of the weights at hand */
    float *row, *column; /* what elements are multiplied by: a and b */
};

/* The matrices of a parameter. */
struct adafactor_shape {
    int64_t matrices, rows, columns;
};

static struct adafactor_shape adafactor_shape_of(const struct ls_parameter *parameter)
{
    const struct ls_shape *shape = &parameter->shape;
    struct adafactor_shape of = {
        .matrices = 1, .rows = shape->dim[shape->rank - 2], .columns = shape->dim[shape->rank - 1]};
    for (int axis = 0; axis < shape->rank - 2; axis++)
        of.matrices *= shape->dim[axis];
    return of;
}

/* The most rows and columns that a parameter of this rule has; false: there is none. */
static bool adafactor_measure(const struct ls_parameter_set *set,
                              const struct ls_store_options *options, size_t *rows, size_t *columns)
{
    bool used = false;
    *rows = *columns = 0;
    for (size_t i = 0; i < set->count && options->state != NULL; i++) {
        const struct ls_optimizer_state *state = &options->state[i];
        used = used || (state->whole && !state->orthogonal && set->items[i]->trained);
        if (!state->factored || !set->items[i]->trained)
            continue;
        const struct adafactor_shape of = adafactor_shape_of(set->items[i]);
        const size_t all_rows = (size_t)(of.matrices * of.rows);
        const size_t all_columns = (size_t)(of.matrices * of.columns);
        *rows = all_rows > *rows ? all_rows : *rows;
        *columns = all_columns > *columns ? all_columns : *columns;
    }
    return used;
}

size_t ls_adafactor_bytes(const struct ls_parameter_set *set,
                          const struct ls_store_options *options)
{
    size_t rows, columns;
    (void)adafactor_measure(set, options, &rows, &columns);
    return (rows + columns) * ls_dtype_size(LS_F32);
}

int ls_adafactor_create(const struct ls_engine *engine, const struct ls_store_options *options,
                        struct ls_adafactor **out, struct ls_error *error)
{
    size_t rows, columns;
    *out = NULL;
    if (!adafactor_measure(engine->store->set, options, &rows, &columns))
        return 0;
    struct ls_adafactor *adafactor = *out = ls_alloc(1, sizeof *adafactor);
    if (adafactor == NULL)
        return ls_fail_memory(error, "the update");
    adafactor->row = ls_alloc_aligned(rows * ls_dtype_size(LS_F32));
    adafactor->column = ls_alloc_aligned(columns * ls_dtype_size(LS_F32));
    return adafactor->row != NULL && adafactor->column != NULL
               ? 0
               : ls_fail_memory(error, "the update"); /* the optimizer frees it */
}

void ls_adafactor_free(struct ls_adafactor *adafactor)
{
    if (adafactor == NULL)
        return;
    ls_free_aligned(adafactor->row);
    ls_free_aligned(adafactor->column);
    ls_free(adafactor);
}

/* ---- Moments --------------------------------------------------------------------------------- */

/* One parameter. */
struct adafactor_pass {
    const struct ls_engine *engine;
    struct ls_adafactor *adafactor;
    const struct ls_update_rule *rule;
    const struct ls_parameter_state *slot;
    struct adafactor_shape shape;
    int64_t elements;
    float *numbers;
    const float *measured; /* whose squares are added up */
    double squares;
};

/* A worker's part of `all` that there are. */
static void adafactor_part(const struct adafactor_pass *pass, int64_t all, int worker,
                           int64_t *begin, int64_t *end)
{
    *begin = all * worker / pass->engine->workers;
    *end = all * (worker + 1) / pass->engine->workers;
}

/* A moment that a mean of squares is added to. */
static float adafactor_moment(const struct adafactor_pass *pass, float moment, double mean)
{
    const float keep = 1 - pass->rule->fresh;
    return (float)((double)keep * (double)moment +
                   (double)pass->rule->fresh * (mean + (double)pass->rule->square_min));
}

static void adafactor_move_rows(void *argument, int worker)
{
    const struct adafactor_pass *pass = argument;
    const int64_t columns = pass->shape.columns;
    float *rows = pass->slot->rows;
    int64_t begin, end;
    adafactor_part(pass, pass->shape.matrices * pass->shape.rows, worker, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        rows[i] = adafactor_moment(
            pass, rows[i],
            ls_whole_squares(pass->engine, pass->numbers + i * columns, columns) / (double)columns);
}

/* Columns [begin, begin + n) of a matrix. */
static void adafactor_move_strip(const struct adafactor_pass *pass, int64_t matrix, int64_t begin,
                                 int64_t n)
{
    const struct adafactor_shape *shape = &pass->shape;
    const float *from = pass->numbers + matrix * shape->rows * shape->columns + begin;
    double sum[STRIP] = {0};
    for (int64_t i = 0; i < shape->rows; i++, from += shape->columns)
        for (int64_t j = 0; j < n; j++)
            sum[j] += (double)from[j] * (double)from[j];
    for (int64_t j = 0; j < n; j++) {
        const int64_t column = matrix * shape->columns + begin + j;
        float *moment = &pass->slot->columns[column];
        *moment = adafactor_moment(pass, *moment, sum[j] / (double)shape->rows);
        pass->adafactor->column[column] = *moment > 0 ? (float)(1 / sqrt((double)*moment)) : 0;
    }
}

static void adafactor_move_columns(void *argument, int worker)
{
    const struct adafactor_pass *pass = argument;
    const int64_t columns = pass->shape.columns;
    int64_t begin, end;
    adafactor_part(pass, pass->shape.matrices * columns, worker, &begin, &end);
    for (int64_t at = begin, n; at < end; at += n) {
        n = columns - at % columns;
        n = n < end - at ? n : end - at;
        n = n < STRIP ? n : STRIP;
        adafactor_move_strip(pass, at / columns, at % columns, n);
    }
}

static void adafactor_find_row_factors(void *argument, int worker)
{
    const struct adafactor_pass *pass = argument;
    const int64_t rows = pass->shape.rows;
    int64_t begin, end;
    adafactor_part(pass, pass->shape.matrices, worker, &begin, &end);
    for (int64_t matrix = begin; matrix < end; matrix++) {
        const float *moment = pass->slot->rows + matrix * rows;
        float *factor = pass->adafactor->row + matrix * rows;
        double mean = 0;
        for (int64_t i = 0; i < rows; i++)
            mean += (double)moment[i];
        mean /= (double)rows;
        for (int64_t i = 0; i < rows; i++)
            factor[i] = moment[i] > 0 ? (float)sqrt(mean / (double)moment[i]) : 0;
    }
}

static void adafactor_multiply(void *argument, int worker)
{
    const struct adafactor_pass *pass = argument;
    const struct adafactor_shape *shape = &pass->shape;
    int64_t begin, end;
    adafactor_part(pass, shape->matrices * shape->rows, worker, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const float *column = pass->adafactor->column + i / shape->rows * shape->columns;
        float *row = pass->numbers + i * shape->columns;
        for (int64_t j = 0; j < shape->columns; j++)
            row[j] = (row[j] * pass->adafactor->row[i]) * column[j];
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* By one worker, since all workers flush denormal numbers. */
static void adafactor_measure_all(void *argument, int worker)
{
    struct adafactor_pass *pass = argument;
    if (worker == 0)
        pass->squares = ls_whole_squares(pass->engine, pass->measured, pass->elements);
}

void ls_adafactor_look(const struct ls_engine *engine, struct ls_adafactor *adafactor,
                       const struct ls_parameter *parameter, const float *weights)
{
    struct adafactor_pass pass = {
        .engine = engine, .elements = ls_shape_size(&parameter->shape), .measured = weights};
    ls_whole_share(engine, parameter->index, adafactor_measure_all, &pass);
    adafactor->weights = pass.squares / (double)pass.elements;
}

void ls_adafactor_scale(const struct ls_engine *engine, struct ls_adafactor *adafactor,
                        const struct ls_parameter_state *slot, float *numbers,
                        struct ls_update_rule *rule)
{
    struct adafactor_pass pass = {.adafactor = adafactor,
                                  .rule = rule,
                                  .slot = slot,
                                  .elements = ls_shape_size(&slot->parameter->shape),
                                  .engine = engine,
                                  .numbers = numbers,
                                  .measured = numbers};
    const int index = slot->parameter->index;
    if (slot->parameter->shape.rank >= 2) {
        pass.shape = adafactor_shape_of(slot->parameter);
        ls_whole_share(engine, index, adafactor_move_rows, &pass);
        ls_whole_share(engine, index, adafactor_move_columns, &pass);
        ls_whole_share(engine, index, adafactor_find_row_factors, &pass);
        ls_whole_share(engine, index, adafactor_multiply, &pass);
    }
    ls_whole_share(engine, index, adafactor_measure_all, &pass);
    const double size = sqrt(pass.squares / (double)pass.elements) / (double)rule->clip;
    const double weights = sqrt(adafactor->weights);
    double step = (double)(rule->rate < rule->rate_most ? rule->rate : rule->rate_most);
    if (rule->scale_parameter)
        step *= weights > (double)rule->scale_min ? weights : (double)rule->scale_min;
    rule->trust = (float)(size > 1 ? step / size : step);
}
