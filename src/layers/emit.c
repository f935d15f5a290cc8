/* See layers/emit.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/emit.h"

#include <stdio.h>

enum { NAME_SIZE = 256 };

static struct ls_emitted emit(struct ls_layer *layer, enum ls_op_kind kind, struct ls_value *value,
                              struct ls_value *const *inputs, int count)
{
    struct ls_op *op = ls_graph_op(layer->graph, kind);
    for (int i = 0; i < count; i++)
        ls_op_in(layer->graph, op, inputs[i]);
    ls_op_out(layer->graph, op, value);
    return (struct ls_emitted){op, value};
}

static struct ls_value *make_side(struct ls_layer *layer, const char *suffix,
                                  const struct ls_shape *shape, const struct ls_value *like)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.200s.%s", layer->name, suffix);
    return ls_graph_value(layer->graph, name, shape, like);
}

struct ls_emitted ls_emit_side(struct ls_layer *layer, enum ls_op_kind kind, const char *suffix,
                               const struct ls_shape *shape, const struct ls_value *like,
                               struct ls_value *const *inputs, int count)
{
    return emit(layer, kind, make_side(layer, suffix, shape, like), inputs, count);
}

struct ls_emitted ls_emit_top(struct ls_layer *layer, enum ls_op_kind kind, int top,
                              const struct ls_shape *shape, const struct ls_value *like,
                              struct ls_value *const *inputs, int count)
{
    return emit(layer, kind, ls_layer_make_top(layer, top, shape, like), inputs, count);
}

struct ls_emitted ls_emit_slope(struct ls_layer *layer, enum ls_op_kind kind,
                                const struct ls_value *of, struct ls_value *const *inputs,
                                int count)
{
    return emit(layer, kind, ls_graph_gradient_value(layer->graph, of), inputs, count);
}

struct ls_value *ls_emit_view(struct ls_layer *layer, const char *suffix, struct ls_value *x,
                              const struct ls_shape *shape, const struct ls_value *like)
{
    return ls_emit_side(layer, LS_OP_VIEW, suffix, shape, like, &x, 1).value;
}

static void set_order(struct ls_op *op, const int order[LS_RANK_MAX], int rank)
{
    for (int i = 0; op != NULL && i < rank; i++)
        op->attr.order[i] = order[i];
}

struct ls_value *ls_emit_permuted(struct ls_layer *layer, int top, const char *suffix,
                                  struct ls_value *x, const int order[LS_RANK_MAX])
{
    if (x == NULL)
        return NULL;
    struct ls_shape shape = x->shape;
    int samples = -1;
    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = x->shape.dim[order[i]];
        samples = order[i] == x->sample_axis ? i : samples;
    }
    struct ls_value *y =
        top >= 0 ? ls_layer_make_top(layer, top, &shape, x) : make_side(layer, suffix, &shape, x);
    if (y != NULL)
        y->sample_axis = samples;
    set_order(emit(layer, LS_OP_PERMUTE, y, &x, 1).op, order, shape.rank);
    return y;
}

struct ls_value *ls_emit_permuted_slope(struct ls_layer *layer, const struct ls_value *of,
                                        struct ls_value *dy, const int order[LS_RANK_MAX])
{
    if (of == NULL)
        return NULL;
    int back[LS_RANK_MAX] = {0};
    for (int i = 0; i < of->shape.rank; i++)
        back[order[i]] = i;
    struct ls_emitted emitted = ls_emit_slope(layer, LS_OP_PERMUTE, of, &dy, 1);
    set_order(emitted.op, back, of->shape.rank);
    return emitted.value;
}
