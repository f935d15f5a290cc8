/* Statistics of parameters. See solver/statistics.h.
 *
 * Every rank has all weights, and gets the whole gradient of each parameter; rank 0 keeps a copy of
 * the weights from before the update, for the difference.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/statistics.h"

#include <math.h>

#include "base/memory.h"
#include "engine/copies.h"
#include "engine/engine.h"
#include "solver/trainer.h"
#include "transport/comm.h"

enum {
    BINS = 40,            /* of a histogram */
    FILTERS_MAX = 1 << 16 /* elements that a picture is made of */
};

/* Memory of a parameter's two histograms. */
struct bins {
    double weight_edges[BINS + 1], gradient_edges[BINS + 1];
    uint64_t weight_counts[BINS], gradient_counts[BINS];
};

struct ls_statistics {
    struct lockstep_statistics found;
    struct lockstep_parameter_statistics *parameters; /* of those that are trained */
    struct bins *bins;                                /* by these */
    int *index;                                       /* of these in the set */
    size_t count;
    float *before; /* rank 0: the weights of all of them, one behind the other */
    float *plain;  /* room for any one of them */
    bool due;      /* of the update under way */
    struct lockstep_filters filters;
    int filtering; /* the parameter that they are of, in the list; -1: none */
    float *shown;  /* its weights */
};

/* ---- Memory ---------------------------------------------------------------------------------- */

size_t ls_statistics_bytes(const struct ls_parameter_set *set, const struct ls_store_options *store)
{
    size_t all = 0, most = 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t bytes = set->items[i]->trained ? ls_parameter_plain_bytes(set->items[i]) : 0;
        all += bytes > 0 ? bytes + sizeof(struct bins) : 0;
        most = bytes > most ? bytes : most;
    }
    return (store->rank == 0 ? all : 0) + 2 * most; /* a gradient is collected in one more */
}

/* The weights of a convolution over one or three channels (of groups, one at a time). */
static bool is_filters(const struct ls_parameter *parameter)
{
    const struct ls_shape *shape = &parameter->shape;
    return shape->rank == 4 && (shape->dim[1] == 1 || shape->dim[1] == 3) && shape->dim[2] > 2 &&
           shape->dim[3] > 2 && ls_shape_size(shape) <= FILTERS_MAX;
}

static int choose_filters(const struct ls_trainer *trainer, struct ls_statistics *statistics,
                          struct ls_error *error)
{
    statistics->filtering = -1;
    for (size_t i = 0; i < statistics->count; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[statistics->index[i]];
        if (!is_filters(parameter))
            continue;
        const int64_t *dim = parameter->shape.dim;
        statistics->shown =
            ls_alloc((size_t)ls_shape_size(&parameter->shape), sizeof *statistics->shown);
        if (statistics->shown == NULL)
            return ls_fail_memory(error, "statistics of parameters");
        statistics->filters = (struct lockstep_filters){.name = parameter->name,
                                                        .count = dim[0],
                                                        .channels = dim[1],
                                                        .height = dim[2],
                                                        .width = dim[3],
                                                        .weights = statistics->shown};
        statistics->filtering = (int)i;
        statistics->found.filters = &statistics->filters;
        return 0;
    }
    return 0;
}

static void statistics_list(const struct ls_trainer *trainer, struct ls_statistics *statistics)
{
    for (size_t i = 0; i < trainer->train_parameters; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        if (!parameter->trained)
            continue;
        struct bins *bins = &statistics->bins[statistics->count];
        statistics->index[statistics->count] = (int)i;
        statistics->parameters[statistics->count++] = (struct lockstep_parameter_statistics){
            .name = parameter->name,
            .size = ls_shape_size(&parameter->shape),
            .weights = {.edges = bins->weight_edges, .counts = bins->weight_counts},
            .gradient = {.edges = bins->gradient_edges, .counts = bins->gradient_counts}};
    }
    statistics->found.parameters = statistics->parameters;
    statistics->found.parameter_count = statistics->count;
}

int ls_statistics_create(const struct ls_trainer *trainer, struct ls_statistics **out,
                         struct ls_error *error)
{
    const size_t count = trainer->train_parameters + 1;
    struct ls_statistics *statistics = *out = ls_alloc(1, sizeof *statistics);
    if (statistics == NULL)
        return ls_fail_memory(error, "statistics of parameters");
    statistics->parameters = ls_alloc(count, sizeof *statistics->parameters);
    statistics->bins = ls_alloc(count, sizeof *statistics->bins);
    statistics->index = ls_alloc(count, sizeof *statistics->index);
    size_t all = 1, most = 1;
    for (size_t i = 0; i < trainer->train_parameters; i++) {
        const struct ls_parameter *parameter = trainer->parameters->items[i];
        size_t bytes = parameter->trained ? ls_parameter_plain_bytes(parameter) : 0;
        all += bytes;
        most = bytes > most ? bytes : most;
    }
    statistics->plain = ls_alloc_aligned(most);
    if (trainer->comm->rank == 0)
        statistics->before = ls_alloc_aligned(all);
    if (statistics->parameters == NULL || statistics->bins == NULL || statistics->index == NULL ||
        statistics->plain == NULL || (trainer->comm->rank == 0 && statistics->before == NULL))
        return ls_fail_memory(error, "statistics of parameters"); /* the trainer frees them */
    statistics_list(trainer, statistics);
    return choose_filters(trainer, statistics, error);
}

void ls_statistics_free(struct ls_statistics *statistics)
{
    if (statistics == NULL)
        return;
    ls_free(statistics->parameters);
    ls_free(statistics->bins);
    ls_free(statistics->index);
    ls_free(statistics->shown);
    ls_free_aligned(statistics->before);
    ls_free_aligned(statistics->plain);
    ls_free(statistics);
}

/* ---- Figures --------------------------------------------------------------------------------- */

static double sum_of_squares(const float *numbers, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)numbers[i] * (double)numbers[i];
    return sum;
}

static double difference(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double by = (double)a[i] - (double)b[i];
        sum += by * by;
    }
    return sum;
}

/* Bins of one width from the least number to the largest; one bin where all are the same. */
static void fill_histogram(const float *numbers, int64_t count,
                           struct lockstep_histogram *histogram, double *edges, uint64_t *counts)
{
    double least = count > 0 ? (double)numbers[0] : 0, most = least;
    histogram->sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double number = (double)numbers[i];
        least = number < least ? number : least;
        most = number > most ? number : most;
        histogram->sum += number;
    }
    double width = most - least, margin = fmax(fabs(least) / 2, 0.5);
    histogram->count = width > 0 ? BINS : 1;
    for (int i = 0; i < BINS; i++)
        counts[i] = 0;
    if (!(width > 0)) {
        edges[0] = least - margin;
        edges[1] = least + margin;
        counts[0] = (uint64_t)count;
        return;
    }
    for (int i = 0; i < BINS; i++)
        edges[i] = least + width * i / BINS;
    edges[BINS] = most;
    for (int64_t i = 0; i < count; i++) {
        int bin = (int)(((double)numbers[i] - least) / width * BINS);
        counts[bin < BINS ? bin : BINS - 1]++;
    }
}

/* Rank 0: the weights that the update begins with. */
static int copy_weights(const struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_statistics *statistics = trainer->statistics;
    float *at = statistics->before;
    for (size_t i = 0; i < statistics->count && trainer->comm->rank == 0; i++) {
        LS_TRY(ls_copies_read(trainer->engine, statistics->index[i], LS_WEIGHTS, at, error));
        at += statistics->parameters[i].size;
    }
    return 0;
}

int ls_statistics_before(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_statistics *statistics = trainer->statistics;
    const int64_t display = trainer->schedule.display;
    if (statistics == NULL)
        return 0;
    statistics->due = display > 0 && trainer->iteration % display == 0;
    if (!statistics->due)
        return 0;
    LS_TRY(ls_comm_agree(trainer->comm, copy_weights(trainer, error), error));
    double all = 0;
    for (size_t i = 0; i < statistics->count; i++) {
        struct lockstep_parameter_statistics *figures = &statistics->parameters[i];
        LS_TRY(ls_copies_read_gradient(trainer->engine, statistics->index[i], statistics->plain,
                                       error));
        if (trainer->comm->rank != 0)
            continue;
        double squares = sum_of_squares(statistics->plain, figures->size);
        figures->gradient_norm = sqrt(squares);
        all += squares;
        fill_histogram(statistics->plain, figures->size, &figures->gradient,
                       statistics->bins[i].gradient_edges, statistics->bins[i].gradient_counts);
    }
    statistics->found.gradient_norm = sqrt(all);
    return 0;
}

int ls_statistics_after(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_statistics *statistics = trainer->statistics;
    if (statistics == NULL || !statistics->due || trainer->comm->rank != 0)
        return 0;
    const float *before = statistics->before;
    double weights = 0, updates = 0;
    for (size_t i = 0; i < statistics->count; i++) {
        struct lockstep_parameter_statistics *figures = &statistics->parameters[i];
        LS_TRY(ls_copies_read(trainer->engine, statistics->index[i], LS_WEIGHTS, statistics->plain,
                              error));
        double squares = sum_of_squares(statistics->plain, figures->size);
        double changes = difference(statistics->plain, before, figures->size);
        figures->weight_norm = sqrt(squares);
        figures->update_norm = sqrt(changes);
        weights += squares;
        updates += changes;
        before += figures->size;
        for (int64_t k = 0; (int)i == statistics->filtering && k < figures->size; k++)
            statistics->shown[k] = statistics->plain[k];
        fill_histogram(statistics->plain, figures->size, &figures->weights,
                       statistics->bins[i].weight_edges, statistics->bins[i].weight_counts);
    }
    statistics->found.weight_norm = sqrt(weights);
    statistics->found.update_norm = sqrt(updates);
    return 0;
}

const struct lockstep_statistics *ls_statistics_found(const struct ls_statistics *statistics)
{
    return &statistics->found;
}
