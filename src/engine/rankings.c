/* Rankings. See engine/rankings.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/rankings.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ir/layer.h"
#include "transport/comm.h"

/* What was found. */
struct find {
    double score;
    int64_t number; /* of finds and gaps before it */
    int class;
    bool right;
};

/* All that one layer has found. */
struct ranked {
    struct find *finds;
    size_t count, capacity;
    int64_t number; /* of the next */
};

struct ls_rankings {
    struct ranked *ranked; /* by number in the graph */
    size_t count;
};

int ls_rankings_create(struct ls_pass *pass, struct ls_error *error)
{
    const size_t count = ls_net_graph(pass->net)->ranking_count;
    if (count == 0)
        return 0;
    pass->rankings = ls_alloc(1, sizeof *pass->rankings);
    if (pass->rankings == NULL)
        return ls_fail_memory(error, "a pass");
    pass->rankings->ranked = ls_alloc(count, sizeof *pass->rankings->ranked);
    if (pass->rankings->ranked == NULL)
        return ls_fail_memory(error, "a pass");
    pass->rankings->count = count;
    return 0;
}

void ls_rankings_free(struct ls_rankings *rankings)
{
    if (rankings == NULL)
        return;
    for (size_t r = 0; r < rankings->count; r++)
        ls_free(rankings->ranked[r].finds);
    ls_free(rankings->ranked);
    ls_free(rankings);
}

size_t ls_rankings_bytes(const struct ls_graph *graph, int64_t samples)
{
    const double finds = (double)graph->list_size / LS_FIND / (double)graph->samples;
    return (size_t)(finds * (double)samples * sizeof(struct find));
}

void ls_rankings_begin(struct ls_rankings *rankings)
{
    for (size_t r = 0; rankings != NULL && r < rankings->count; r++) {
        rankings->ranked[r].count = 0;
        rankings->ranked[r].number = 0;
    }
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static int rankings_add_list(struct ranked *ranked, const double *list, int64_t finds,
                             struct ls_error *error)
{
    for (int64_t i = 0; i < finds; i++, list += LS_FIND) {
        const int64_t number = ranked->number++;
        if (list[0] == 0)
            continue;
        if (!LS_GROW(ranked->finds, ranked->count, ranked->capacity))
            return ls_fail_memory(error, "what a test has found");
        ranked->finds[ranked->count++] = (struct find){.score = list[1],
                                                       .number = number,
                                                       .class = (int)fabs(list[0]) - 1,
                                                       .right = list[0] > 0};
    }
    return 0;
}

int ls_rankings_add(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; pass->rankings != NULL && unit < pass->unit_count; unit++) {
        /* Lists are as long as a micro-batch has samples. */
        const int64_t samples = pass->units[unit].range.count;
        const double *lists = ls_pass_record(pass, unit) + pass->record_size;
        for (size_t r = 0; r < graph->ranking_count; r++) {
            const struct ls_ranking *ranking = &graph->rankings[r];
            LS_TRY(rankings_add_list(&pass->rankings->ranked[r],
                                     lists + ranking->list / graph->samples * samples,
                                     ranking->finds / graph->samples * samples, error));
        }
    }
    return 0;
}

/* ---- Figures --------------------------------------------------------------------------------- */

/* By class; then the highest score first, what is no number last, then as they were found. */
static int rankings_compare(const void *first, const void *second)
{
    const struct find *a = first, *b = second;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->score > b->score || (isnan(b->score) && !isnan(a->score)))
        return -1;
    if (b->score > a->score || (isnan(a->score) && !isnan(b->score)))
        return 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* The average precision of a class with `truths` true boxes, from its sorted finds. The recall
 * grows by 1 / truths with each right one. */
static double rankings_average(enum ls_average_precision rule, const struct find *finds,
                               size_t count, double truths)
{
    double right = 0, best = 0, sum = 0;
    int level = 10;
    for (size_t i = 0; i < count; i++)
        right += finds[i].right;
    if (truths == 0)
        return 0;
    /* From the last one, so that the best precision at a higher recall is known. */
    for (size_t i = count; i > 0; i--) {
        const double precision = right / (double)i;
        if (rule == LS_PRECISION_11_POINT) {
            for (; level >= 0 && right * 10 < level * truths; level--)
                sum += best;
        }
        best = fmax(best, precision);
        if (rule != LS_PRECISION_11_POINT && finds[i - 1].right)
            sum += rule == LS_PRECISION_INTEGRAL ? precision : best;
        right -= finds[i - 1].right;
    }
    if (rule == LS_PRECISION_11_POINT)
        return (sum + (level + 1) * best) / 11;
    return sum / truths;
}

static void rankings_set_figures(const struct ls_graph *graph, const struct ls_ranking *ranking,
                                 struct ranked *ranked, double *record)
{
    const int ranks = ranking->classes - (ranking->background >= 0);
    double sum = 0;
    size_t end = 0;
    if (ranked->count > 0)
        qsort(ranked->finds, ranked->count, sizeof *ranked->finds, rankings_compare);
    for (int c = 0; c < ranking->classes; c++) {
        const size_t begin = end;
        while (end < ranked->count && ranked->finds[end].class == c)
            end++;
        const double figure = rankings_average(graph->average_precision, ranked->finds + begin,
                                               end - begin, record[ranking->truths + c]);
        record[ranking->figures + 1 + c] = figure;
        sum += figure;
    }
    record[ranking->figures] = ranks > 0 ? sum / ranks : 0;
}

int ls_rankings_conclude(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t r = 0; pass->rankings != NULL && r < graph->ranking_count; r++) {
        const struct ls_ranking *ranking = &graph->rankings[r];
        const double unknown = pass->total[ranking->truths + ranking->classes];
        char place[LS_PLACE_SIZE];
        ls_layer_place(ranking->layer, NULL, NULL, place);
        if (unknown > 0)
            return ls_comm_common(pass->engine->comm,
                                  ls_fail(error, LOCKSTEP_DATA, place,
                                          "classes of true boxes are whole numbers, and that of "
                                          "the background is none (docs/caffe.md, \"Boxes\")",
                                          "%.0f true boxes have a class that is none of those that "
                                          "are ranked",
                                          unknown));
        rankings_set_figures(graph, ranking, &pass->rankings->ranked[r], pass->total);
    }
    return 0;
}
