/* Where two trainings part. See report/parting.h.
 *
 * Points of two series may stand for different numbers of figures. They are added up until both end
 * at the same update; then the sums of their hashes are equal exactly where all figures are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/parting.h"

#include <math.h>

/* A stretch of updates for which both series have whole points. */
struct stretch {
    int64_t last;
    int64_t count[2];
    double sum[2]; /* of figures, by their weights */
    uint64_t hash[2];
};

static void add_point(struct stretch *stretch, int which, const struct lockstep_point *point)
{
    stretch->sum[which] += point->mean * (double)point->count;
    stretch->count[which] += point->count;
    stretch->hash[which] += point->hash;
}

/* Takes the next stretch from places *i and *j; false: there is none. */
static bool next_stretch(const struct ls_series *a, const struct ls_series *b, size_t *i, size_t *j,
                         struct stretch *stretch)
{
    *stretch = (struct stretch){.last = 0};
    while (*i < a->count && *j < b->count) {
        const struct lockstep_point *p = &a->points[*i], *q = &b->points[*j];
        if (p->last <= q->last) {
            add_point(stretch, 0, p);
            (*i)++;
        }
        if (q->last <= p->last) {
            add_point(stretch, 1, q);
            (*j)++;
        }
        if (p->last == q->last) {
            stretch->last = p->last;
            return true;
        }
        /* Figures of updates that only one of the two has are none that both could share. */
        const bool first_alone = stretch->count[1] == 0 && p->last < q->first,
                   second_alone = stretch->count[0] == 0 && q->last < p->first;
        if (first_alone || second_alone)
            *stretch = (struct stretch){.last = 0};
    }
    return false;
}

static void compare_losses(const struct ls_series *a, const struct ls_series *b,
                           struct lockstep_parting *parting)
{
    struct stretch stretch;
    size_t i = 0, j = 0;
    while (next_stretch(a, b, &i, &j, &stretch)) {
        const double first = stretch.sum[0] / (double)stretch.count[0],
                     second = stretch.sum[1] / (double)stretch.count[1];
        const bool same = stretch.hash[0] == stretch.hash[1];
        parting->common +=
            stretch.count[0] < stretch.count[1] ? stretch.count[0] : stretch.count[1];
        if (same && parting->differs_by == 0)
            parting->same_until = stretch.last;
        if (!same && parting->differs_by == 0) {
            parting->differs_by = stretch.last;
            parting->first = first;
            parting->second = second;
        }
        if (fabs(first - second) > parting->largest) {
            parting->largest = fabs(first - second);
            parting->largest_iteration = stretch.last;
        }
    }
}

static void compare_hashes(const struct ls_series *a, const struct ls_series *b,
                           struct lockstep_parting *parting)
{
    struct stretch stretch;
    size_t i = 0, j = 0;
    parting->weights_same_until = -1;
    while (parting->weights_differ_by == 0 && next_stretch(a, b, &i, &j, &stretch)) {
        if (stretch.hash[0] == stretch.hash[1])
            parting->weights_same_until = stretch.last;
        else
            parting->weights_differ_by = stretch.last;
    }
}

void ls_log_compare(const struct lockstep_log *a, const struct lockstep_log *b,
                    struct lockstep_parting *parting)
{
    const struct ls_series *first = ls_log_find(a, "loss"), *second = ls_log_find(b, "loss");
    *parting = (struct lockstep_parting){.common = 0};
    if (first != NULL && second != NULL)
        compare_losses(first, second, parting);
    compare_hashes(&a->hashes, &b->hashes, parting);
}
