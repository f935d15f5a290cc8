/* Distributions of weights and gradients. See report/spread.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/spread.h"

#include <math.h>
#include <string.h>

const double ls_spread_part[LS_SPREAD_PARTS] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};

/* The numbers of an array; how many, -1: it is none, or they are too many or not finite. */
static int read_numbers(const struct ls_json_tree *tree, const struct ls_json_node *array,
                        double *numbers, int most)
{
    int count = 0;
    if (array == NULL || array->kind != LS_JSON_ARRAY || array->count > (uint32_t)most)
        return -1;
    for (const struct ls_json_node *node = ls_json_first(tree, array); node != NULL;
         node = ls_json_next(tree, node)) {
        if (node->kind != LS_JSON_INTEGER && node->kind != LS_JSON_NUMBER)
            return -1;
        const double number = node->kind == LS_JSON_INTEGER ? (double)node->integer : node->number;
        if (!isfinite(number))
            return -1;
        numbers[count++] = number;
    }
    return count;
}

/* A histogram of numbers between `edge`s that rise; false: it is none. */
static bool read_histogram(struct ls_spread *to, const struct ls_json_tree *tree,
                           const struct ls_json_node *histogram)
{
    double all = 0;
    const int edges =
        read_numbers(tree, ls_json_find(tree, histogram, "edges"), to->edge, LS_SPREAD_BINS + 1);
    to->bins =
        read_numbers(tree, ls_json_find(tree, histogram, "counts"), to->count, LS_SPREAD_BINS);
    if (to->bins < 1 || edges != to->bins + 1)
        return false;
    for (int i = 0; i < to->bins; i++) {
        if (to->edge[i + 1] < to->edge[i] || to->count[i] < 0)
            return false;
        all += to->count[i];
    }
    return all > 0 && isfinite(all) && isfinite(to->edge[to->bins] - to->edge[0]);
}

/* The number below which this part of all numbers is; within a bin they are taken to lie evenly. */
static double quantile_of(const struct ls_spread *spread, double part)
{
    double all = 0, below = 0;
    for (int i = 0; i < spread->bins; i++)
        all += spread->count[i];
    for (int i = 0; i < spread->bins; i++) {
        const double count = spread->count[i];
        if (count > 0 && below + count >= part * all)
            return spread->edge[i] + (spread->edge[i + 1] - spread->edge[i]) *
                                         fmin(1, fmax(0, part * all - below) / count);
        below += count;
    }
    return spread->edge[spread->bins];
}

/* The last moment stands for the present, and stays only where it is one of every so many. */
static void add_moment(struct ls_spread *spread, int64_t iteration)
{
    while (spread->moments > 0 && spread->moment[spread->moments - 1].iteration >= iteration)
        spread->moments--;
    if (spread->every == 0)
        spread->every = 1;
    if (spread->moments > 1 && (spread->seen - 1) % spread->every != 0)
        spread->moments--;
    if (spread->moments == LS_SPREAD_TIMES) {
        for (int i = 0; i < LS_SPREAD_TIMES / 2; i++)
            spread->moment[i] = spread->moment[2 * i];
        spread->moments = LS_SPREAD_TIMES / 2;
        spread->every *= 2;
    }
    struct ls_spread_moment *moment = &spread->moment[spread->moments++];
    moment->iteration = iteration;
    for (int p = 0; p < LS_SPREAD_PARTS; p++)
        moment->at[p] = quantile_of(spread, ls_spread_part[p]);
    spread->seen++;
}

void ls_spread_take(struct ls_spread *spread, const struct ls_json_tree *tree,
                    const struct ls_json_node *histogram, int64_t iteration)
{
    struct ls_spread read;
    if (histogram == NULL || !read_histogram(&read, tree, histogram))
        return;
    memcpy(spread->edge, read.edge, sizeof spread->edge);
    memcpy(spread->count, read.count, sizeof spread->count);
    spread->bins = read.bins;
    add_moment(spread, iteration);
}
