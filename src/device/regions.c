/* See device/regions.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/regions.h"

#include <math.h>

#include "ir/layer.h"

static struct ls_bin bin_of(const struct ls_regions_attr *attr, bool fine, const float *region,
                            const int64_t at[2], const int64_t extent[2])
{
    struct ls_bin bin;
    for (int a = 0; a < 2; a++) {
        const struct ls_region_cut cut = {fine, a, attr->bins[a], extent[a], attr->scale};
        ls_region_range(&cut, region, at[a], &bin.begin[a], &bin.end[a]);
    }
    return bin;
}

struct ls_bin ls_region_bin(const struct ls_regions_attr *attr, const float *region, int64_t i,
                            int64_t j, int64_t height, int64_t width)
{
    return bin_of(attr, false, region, (int64_t[]){i, j}, (int64_t[]){height, width});
}

struct ls_bin ls_region_fine_bin(const struct ls_regions_attr *attr, const float *region, int64_t i,
                                 int64_t j, int64_t height, int64_t width)
{
    return bin_of(attr, true, region, (int64_t[]){i, j}, (int64_t[]){height, width});
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* How an op is told which of what it takes. */
struct told {
    const struct ls_value *value; /* the numbers; NULL: there are none */
    const float *number;
    int64_t step;  /* from one to the next */
    int64_t count; /* of what they name */
    const char *what;
};

static struct told told_of(const struct ls_op *op, void *const *in)
{
    const enum ls_op_kind kind = op->kind;
    const bool back = kind == LS_OP_PICK_BACKWARD || kind == LS_OP_REGION_MAX_BACKWARD ||
                      kind == LS_OP_REGION_AVERAGE_BACKWARD;
    const bool picks = kind == LS_OP_PICK || kind == LS_OP_PICK_BACKWARD;
    const int which = kind == LS_OP_REGION_MAX_BACKWARD ? 2 : 1;
    if (kind == LS_OP_GATHER || kind == LS_OP_GATHER_BACKWARD) {
        const struct ls_value *x = kind == LS_OP_GATHER ? op->input[0] : op->output[0];
        return (struct told){op->input[1], in[1], 1, x->shape.dim[op->attr.gather.axis], "place"};
    }
    if (!picks && !back && kind != LS_OP_REGION_MAX && kind != LS_OP_REGION_AVERAGE)
        return (struct told){0};
    return (struct told){.value = op->input[which],
                         .number = in[which],
                         .step = picks ? 1 : LS_REGION_NUMBERS,
                         .count = (back ? op->output[0] : op->input[0])->shape.dim[0],
                         .what = picks ? "row" : "picture"};
}

static int refuse(const struct ls_op *op, const struct told *told, int64_t at,
                  struct ls_error *error)
{
    char place[LS_PLACE_SIZE] = "";
    const float *number = told->number + at * told->step;
    const char *name = op->layer != NULL ? op->layer->name : ls_op_kind_name(op->kind);
    if (op->layer != NULL)
        ls_layer_place(op->layer, NULL, NULL, place);
    if (!(number[0] > -1 && number[0] < (float)told->count))
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "%s: entry %lld of '%s' names %s %g, but there are %lld, 0 to %lld", name,
                       (long long)at, told->value->name, told->what, (double)number[0],
                       (long long)told->count, (long long)told->count - 1);
    return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                   "%s: region %lld of '%s' is (%g, %g, %g, %g), which are no finite numbers", name,
                   (long long)at, told->value->name, (double)number[1], (double)number[2],
                   (double)number[3], (double)number[4]);
}

/* Lengths of bags, if the op has any. */
static int check_lengths(const struct ls_op *op, void *const *in, struct ls_error *error)
{
    const int which = op->kind == LS_OP_EMBED_BAG_FACTORS ? 3 : 2;
    if (which >= op->inputs || in[which] == NULL)
        return 0;
    const struct ls_shape *index = &op->input[which - 1]->shape;
    const int64_t most = index->dim[index->rank - 1];
    const float *length = in[which];
    char place[LS_PLACE_SIZE] = "";
    for (int64_t i = 0; i < ls_shape_size(&op->input[which]->shape); i++) {
        if (length[i] >= 0 && length[i] <= (float)most)
            continue;
        if (op->layer != NULL)
            ls_layer_place(op->layer, NULL, NULL, place);
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "%s: entry %lld of '%s' is a length of %g, but a bag has 0 to %lld indices",
                       op->layer != NULL ? op->layer->name : ls_op_kind_name(op->kind),
                       (long long)i, op->input[which]->name, (double)length[i], (long long)most);
    }
    return 0;
}

int ls_check_numbers(const struct ls_op *op, void *const *in, struct ls_error *error)
{
    const struct told told = told_of(op, in);
    const int64_t numbers = told.value != NULL ? ls_shape_size(&told.value->shape) : 0;
    for (int64_t i = 0; i * told.step < numbers; i++) {
        const float *number = told.number + i * told.step;
        bool good = number[0] > -1 && number[0] < (float)told.count;
        for (int64_t k = 1; k < told.step; k++)
            good = good && isfinite(number[k]);
        if (!good)
            return refuse(op, &told, i, error);
    }
    if (op->kind == LS_OP_EMBED_BAG || op->kind == LS_OP_EMBED_BAG_ROWS ||
        op->kind == LS_OP_EMBED_BAG_FACTORS)
        return check_lengths(op, in, error);
    return 0;
}
