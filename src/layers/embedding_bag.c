/* EmbeddingBag: sums or means of rows of a learned table.
 *
 *   y[..., m] = sum over l of weight[..., l] w[index[..., l], m]
 *
 * index [..., L], whole numbers 0 .. input_dim - 1; w [input_dim, num_output]; y [..., num_output].
 * With mode MEAN it is divided by the number of indices that count. Those that do not: an index
 * that is `padding_index` (which may be one that names no row, such as -1), and with a bottom of
 * lengths, [...], those from the length of their bag on, which must name a row all the same, or be
 * padding. A bag without an index that counts gives 0. A bottom of weights, [..., L] like the
 * indices, is for mode SUM; without it weights are 1. Which bottom is which is seen by their axes;
 * lengths stand before weights. Blob: weight w. Lockstep's own embedding_bag_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/embed.h"
#include "layers/emit.h"

struct bag {
    struct ls_bag_attr attr;
    struct ls_shape top;
    int lengths, weights; /* bottoms; 0: there is none */
};

static const Lockstep__EmbeddingBagParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__EmbeddingBagParameter defaults = LOCKSTEP__EMBEDDING_BAG_PARAMETER__INIT;
    const Lockstep__EmbeddingBagParameter *param = layer->definition->embedding_bag_param;
    return param != NULL ? param : &defaults;
}

static int check_extent(const struct ls_layer *layer, struct ls_error *error, const char *field,
                        bool given, uint32_t extent, uint32_t most)
{
    if (extent > 0 && extent <= most)
        return 0;
    return ls_layer_fail(layer, error, layer->definition->embedding_bag_param, given ? field : NULL,
                         NULL, given ? "%s must be 1 to %u" : "%s is missing", field, most);
}

static bool has_axes(const struct ls_shape *shape, const struct ls_shape *index, int axes)
{
    bool fits = shape->rank == axes;
    for (int i = 0; fits && i < axes; i++)
        fits = shape->dim[i] == index->dim[i];
    return fits;
}

/* Finds out what the bottoms behind the indices are. */
static int read_bottoms(struct ls_layer *layer, struct ls_error *error)
{
    struct bag *state = layer->state;
    const struct ls_shape *index = &layer->bottom[0]->shape;
    for (int i = 1; i < layer->bottoms; i++) {
        const struct ls_shape *shape = &layer->bottom[i]->shape;
        LS_TRY(ls_layer_check_alike(layer, error, i));
        if (has_axes(shape, index, index->rank - 1) && state->lengths == 0 && state->weights == 0)
            state->lengths = i;
        else if (has_axes(shape, index, index->rank) && state->weights == 0)
            state->weights = i;
        else
            return ls_layer_fail_shape(layer, error, i,
                                       "have the axes of the indices (weights), or all but the "
                                       "last one (lengths, which stand before weights)");
    }
    if (state->weights > 0 && state->attr.mean)
        return ls_layer_fail(layer, error, param_of(layer), "mode",
                             "write mode: SUM, and divide the weights",
                             "'%s' has weights of indices, which are for sums, not for means",
                             layer->bottom[state->weights]->name);
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct bag *state = layer->state;
    const Lockstep__EmbeddingBagParameter *p = param_of(layer);
    const struct ls_value *index = layer->bottom[0];
    int status = ls_layer_begin(layer, error, NULL), failed;
    if ((failed =
             check_extent(layer, error, "num_output", p->has_num_output, p->num_output, INT32_MAX)))
        status = failed;
    if ((failed = check_extent(layer, error, "input_dim", p->has_input_dim, p->input_dim,
                               1U << 24))) /* whole numbers beyond are not all floats */
        status = failed;
    LS_TRY(status);
    state->attr =
        (struct ls_bag_attr){.mean = p->mode == LOCKSTEP__EMBEDDING_BAG_PARAMETER__MODE__MEAN,
                             .has_padding = p->has_padding_index,
                             .padding = p->padding_index};
    if (index->shape.rank < 2 || index->sample_axis >= index->shape.rank - 1)
        return ls_layer_fail_shape(layer, error, 0,
                                   "have an axis of indices behind that of the samples");
    LS_TRY(read_bottoms(layer, error));
    const struct ls_shape weight = {.rank = 2, .dim = {p->input_dim, p->num_output}};
    struct ls_shape rows = index->shape;
    state->top = index->shape;
    state->top.dim[state->top.rank - 1] = p->num_output;
    rows.dim[rows.rank < LS_RANK_MAX ? rows.rank : LS_RANK_MAX - 1] = p->num_output;
    rows.rank++;
    LS_TRY(ls_layer_check_shape(layer, error, "the top", &state->top));
    LS_TRY(ls_layer_check_shape(layer, error, "the weight", &weight));
    LS_TRY(ls_layer_check_shape(layer, error, "what is added up", &rows));
    layer->request[0] =
        (struct ls_blob_request){.name = "weight", .shape = weight, .filler = p->weight_filler};
    layer->blobs = 1;
    return 0;
}

static struct ls_value *bottom_of(const struct ls_layer *layer, int bottom)
{
    return bottom > 0 ? layer->bottom[bottom] : NULL;
}

static void set_attr(const struct ls_layer *layer, struct ls_op *op)
{
    const struct bag *state = layer->state;
    if (op != NULL)
        op->attr.bag = state->attr;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct bag *state = layer->state;
    struct ls_value *inputs[] = {ls_graph_parameter(layer->graph, layer, 0), layer->bottom[0],
                                 bottom_of(layer, state->lengths),
                                 bottom_of(layer, state->weights)};
    set_attr(layer,
             ls_emit_top(layer, LS_OP_EMBED_BAG, 0, &state->top, layer->bottom[0], inputs, 4).op);
    return 0;
}

/* What each index adds to the row that it names, and these by rows. */
static void emit_rows(struct ls_layer *layer, struct ls_value *dy)
{
    const struct bag *state = layer->state;
    struct ls_value *index = layer->bottom[0];
    struct ls_value *inputs[] = {dy, index, bottom_of(layer, state->lengths),
                                 bottom_of(layer, state->weights)};
    struct ls_shape shape = index->shape;
    shape.dim[shape.rank++] = state->top.dim[state->top.rank - 1];
    const struct ls_emitted rows =
        ls_emit_side(layer, LS_OP_EMBED_BAG_ROWS, "rows", &shape, index, inputs, 4);
    set_attr(layer, rows.op);
    ls_embed_emit_gradient(layer, rows.value, index, NULL);
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct bag *state = layer->state;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    for (int i = 0; i < layer->bottoms; i++)
        if (layer->propagate[i] && i != state->weights)
            return ls_layer_fail(layer, error, NULL, "bottom",
                                 "write propagate_down for each bottom into the layer, false for "
                                 "this one, to stop the gradient there",
                                 "an EmbeddingBag layer cannot backpropagate to its indices and "
                                 "lengths, but '%s' depends on learned parameters",
                                 layer->bottom[i]->name);
    if (layer->train_blob[0])
        emit_rows(layer, dy);
    if (state->weights == 0 || !layer->propagate[state->weights])
        return 0;
    struct ls_value *inputs[] = {dy, ls_graph_parameter(layer->graph, layer, 0), layer->bottom[0],
                                 bottom_of(layer, state->lengths)};
    set_attr(layer,
             ls_layer_emit_gradient(layer, state->weights, LS_OP_EMBED_BAG_FACTORS, inputs, 4));
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct bag *state = layer->state;
    const double rows = (double)ls_shape_size(&layer->bottom[0]->shape) *
                        (double)state->top.dim[state->top.rank - 1];
    cost->forward_flops = 2 * rows;
    cost->forward_bytes = 4 * rows + ls_layer_bytes(layer->top[0]);
    if (!ls_layer_trains_blob(layer, 0))
        return;
    cost->backward_weights_flops = 2 * rows;
    cost->backward_bytes = 8 * rows + 4 * (double)ls_shape_size(&layer->request[0].shape);
}

const struct ls_layer_type ls_layer_embedding_bag = {
    .type = "EmbeddingBag",
    .parameter = "embedding_bag_param",
    .state_size = sizeof(struct bag),
    .bottoms_min = 1,
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
