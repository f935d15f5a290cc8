/* Figures of a training in bounded memory. See report/series.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/series.h"

#include "base/hash.h"
#include "base/memory.h"

static struct lockstep_point join(const struct lockstep_point *a, const struct lockstep_point *b)
{
    const double count = (double)(a->count + b->count);
    return (struct lockstep_point){.first = a->first,
                                   .last = b->last,
                                   .count = a->count + b->count,
                                   /* Each part by itself: a sum of large figures could overflow. */
                                   .mean = a->mean * ((double)a->count / count) +
                                           b->mean * ((double)b->count / count),
                                   .least = a->least < b->least ? a->least : b->least,
                                   .most = a->most > b->most ? a->most : b->most,
                                   .hash = a->hash + b->hash};
}

/* Halves the points. */
static void thin(struct ls_series *series)
{
    size_t kept = 0;
    for (size_t i = 0; i + 1 < series->count; i += 2)
        series->points[kept++] = join(&series->points[i], &series->points[i + 1]);
    if (series->count % 2 != 0)
        series->points[kept++] = series->points[series->count - 1];
    series->count = kept;
    series->width *= 2;
}

bool ls_series_add(struct ls_series *series, int64_t iteration, double value, uint64_t bits)
{
    struct lockstep_point point = {.first = iteration,
                                   .last = iteration,
                                   .count = 1,
                                   .mean = value,
                                   .least = value,
                                   .most = value,
                                   .hash = ls_mix((uint64_t)iteration ^ ls_mix(bits))};
    /* A point with earlier figures, too, stays: it is wrong by what was computed again at most. */
    while (series->count > 0 && series->points[series->count - 1].first >= iteration)
        series->count--;
    if (series->width == 0)
        series->width = 1;
    series->last_iteration = iteration;
    series->last = value;
    if (series->count > 0 && series->points[series->count - 1].count < series->width) {
        struct lockstep_point *last = &series->points[series->count - 1];
        *last = join(last, &point);
        return true;
    }
    if (series->count == LS_SERIES_POINTS)
        thin(series);
    if (!LS_GROW(series->points, series->count, series->capacity))
        return false;
    series->points[series->count++] = point;
    return true;
}

void ls_series_free(struct ls_series *series)
{
    ls_free(series->name);
    ls_free(series->points);
}
