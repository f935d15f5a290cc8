/* Numbers that are known before anything is computed, and that the op that takes them cannot take:
 * it follows from the shapes and from fillers which numbers there will be. They are followed
 * through ops that move numbers. (Constants: graph/label_fills.c.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/known_numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ir/layer.h"
#include "ir/op_type.h"
#include "ir/taken.h"

enum { DEPTH = 16 };

/* What is known of numbers: an op makes all of these, or, if they are `drawn`, any of them. */
struct known {
    const struct ls_op *maker;
    double least, most;
    bool drawn;
    bool broken; /* they are not whole */
};

struct search {
    const struct ls_op **writer; /* by value */
    const struct ls_op *taker;
    struct ls_taken taken;
    struct ls_error *error;
};

/* ---- What ops make --------------------------------------------------------------------------- */

static bool know_constant(const struct ls_op *op, struct known *known)
{
    const int64_t count = ls_shape_size(&op->output[0]->shape);
    const float *numbers = op->attr.constant.numbers;
    for (int64_t i = 0; i < count; i++) {
        const double number = (double)numbers[i];
        known->least = i == 0 || number < known->least ? number : known->least;
        known->most = i == 0 || number > known->most ? number : known->most;
    }
    return count > 0;
}

static bool know_fill(const struct ls_op *op, struct known *known)
{
    const Lockstep__FillerParameter *filler = op->attr.fill.filler;
    if (filler == NULL)
        return false;
    const char *type = filler->type != NULL ? filler->type : "constant";
    known->drawn = true;
    known->broken = strcmp(type, "integer") != 0 && strcmp(type, "boxes") != 0;
    known->least = (double)filler->min;
    known->most = (double)filler->max;
    return true;
}

/* `part`: only some of them are taken. */
static bool know(const struct ls_op *op, bool part, struct known *known)
{
    *known = (struct known){.maker = op};
    if (op->kind == LS_OP_FILL)
        return know_fill(op, known);
    if (part)
        return false;
    if (op->kind == LS_OP_CONSTANT)
        return know_constant(op, known);
    if (op->kind != LS_OP_POSITIONS || op->inputs > 0) /* segments may be shorter */
        return false;
    known->least = op->attr.offset;
    known->most = (double)op->attr.offset + (double)op->output[0]->shape.dim[1] - 1;
    return true;
}

/* ---- What is wrong with them ----------------------------------------------------------------- */

/* Whole numbers of [least, most] that are none of those that are taken. */
static double count_others(const struct ls_taken *taken, const struct known *known)
{
    const double first = (double)taken->first, behind = first + (double)taken->count;
    const double ignored = (double)taken->ignore_label;
    double below = (known->most < first ? known->most + 1 : first) - known->least;
    double above = known->most + 1 - (known->least > behind ? known->least : behind);
    const bool outside = ignored < first || ignored >= behind;
    const bool drawn = ignored >= known->least && ignored <= known->most;
    return (below > 0 ? below : 0) + (above > 0 ? above : 0) -
           (taken->has_ignore && outside && drawn);
}

/* Random numbers that are not whole. */
static int refuse_broken(const struct search *search, const struct known *known)
{
    const struct ls_taken *taken = &search->taken;
    const struct ls_layer *layer = search->taker->layer;
    const bool rows = taken->kind == LS_TAKEN_ROWS;
    const char *what = rows ? "rows" : "classes";
    char hint[200];
    snprintf(hint, sizeof hint,
             "data_filler { type: \"integer\" min: %" PRId64 " max: %" PRId64
             " } draws %s (Caffe cuts off what is behind the point)",
             taken->first, taken->first + taken->count - 1, what);
    return ls_layer_fail(
        layer, search->error, NULL, NULL,
        layer->graph->dummy ? "nothing says what these dummy data are like: --input NAME=N,... of "
                              "each top of their layer may"
                            : hint,
        "layer '%.100s' fills its %s with numbers that are not whole, which are "
        "none of its %" PRId64 " %s",
        known->maker->layer->name, rows ? "indices" : "labels", taken->count, what);
}

static int refuse(const struct search *search, const struct known *known)
{
    const struct ls_taken *taken = &search->taken;
    const bool rows = taken->kind == LS_TAKEN_ROWS;
    const int64_t last = taken->first + taken->count - 1;
    char hint[160] = "";
    if (known->broken)
        return refuse_broken(search, known);
    if (known->drawn)
        snprintf(hint, sizeof hint, "draw them with min: %" PRId64 " max: %" PRId64, taken->first,
                 last);
    else if (rows)
        snprintf(hint, sizeof hint, "input_dim: %.0f, or shorter sequences", known->most + 1);
    return ls_layer_fail(search->taker->layer, search->error, NULL, NULL, hint,
                         "it takes the numbers %.9g to %.9g, which layer '%.100s' makes, for %s, "
                         "and has %" PRId64 ", %" PRId64 " to %" PRId64,
                         known->least, known->most, known->maker->layer->name,
                         rows ? "rows" : "classes", taken->count, taken->first, last);
}

/* Follows a value to what makes it. */
static int follow(const struct search *search, const struct ls_value *value, bool part, int depth)
{
    const struct ls_op *op = value != NULL ? search->writer[value->index] : NULL;
    struct known known;
    if (op == NULL || depth > DEPTH)
        return 0;
    if (know(op, part, &known))
        return known.broken || count_others(&search->taken, &known) > 0 ? refuse(search, &known)
                                                                        : 0;
    if (ls_op_type(op->kind)->outputs != LS_OUTPUTS_MOVED || op->kind == LS_OP_PAD ||
        op->kind == LS_OP_UNPOOL)
        return 0;
    if (search->taken.kind == LS_TAKEN_BOXES) /* whose columns may have been put together */
        return 0;
    const bool all = op->kind == LS_OP_VIEW || op->kind == LS_OP_CONCAT || op->kind == LS_OP_TILE ||
                     op->kind == LS_OP_PERMUTE;
    const int inputs = op->kind == LS_OP_CONCAT ? op->inputs : 1;
    for (int i = 0; i < inputs; i++)
        LS_TRY(follow(search, op->input[i], part || !all, depth + 1));
    return 0;
}

int ls_graph_check_known_numbers(const struct ls_graph *graph, struct ls_error *error)
{
    struct search search = {.error = error};
    int status = 0;
    search.writer = ls_alloc(graph->value_count + 1, sizeof(const struct ls_op *));
    if (search.writer == NULL)
        return ls_fail_memory(error, "the graph");
    for (size_t i = 0; i < graph->op_count; i++)
        for (int k = 0; k < graph->ops[i]->outputs; k++)
            if (graph->ops[i]->output[k] != NULL)
                search.writer[graph->ops[i]->output[k]->index] = graph->ops[i];
    for (size_t i = 0; i < graph->op_count; i++) {
        search.taker = graph->ops[i];
        if (!ls_taken_by(search.taker, &search.taken) || search.taken.count == 0)
            continue;
        const int found = follow(&search, search.taker->input[search.taken.input], false, 0);
        status = status != 0 ? status : found;
    }
    ls_free((void *)search.writer);
    return status;
}
