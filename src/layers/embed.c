/* Embed: a row of a learned table for each number of its bottom.
 *
 *   y[..., m] = w[index[...], m] + b[m]
 *
 * index [...], whole numbers 0 .. input_dim - 1; w [input_dim, num_output]; y [..., num_output].
 * Blobs: weight w, bias b (bias_term). It is an inner product with vectors that are 1 at the index
 * and else 0. An index that is none is an error, as a label that is no class. Caffe's embed_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/embed.h"

#include "layers/common.h"

static const Lockstep__EmbedParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__EmbedParameter defaults = LOCKSTEP__EMBED_PARAMETER__INIT;
    const Lockstep__EmbedParameter *param = layer->definition->embed_param;
    return param != NULL ? param : &defaults;
}

static int check_extent(const struct ls_layer *layer, struct ls_error *error, const char *field,
                        bool given, uint32_t extent)
{
    if (extent > 0 && extent <= INT32_MAX)
        return 0;
    return ls_layer_fail(layer, error, layer->definition->embed_param, given ? field : NULL, NULL,
                         given ? "%s must be 1 to 2147483647" : "%s is missing", field);
}

/* Whole numbers from 2^24 on are not all floats. */
static int check_index(const struct ls_layer *layer, struct ls_error *error)
{
    const uint32_t most = 1U << 24;
    if (param_of(layer)->input_dim <= most)
        return 0;
    return ls_layer_fail(layer, error, param_of(layer), "input_dim", NULL,
                         "input_dim %u is more than the %u that an index can name",
                         param_of(layer)->input_dim, most);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__EmbedParameter *p = param_of(layer);
    int status = ls_layer_begin(layer, error, NULL), failed;
    if ((failed = check_extent(layer, error, "num_output", p->has_num_output, p->num_output)))
        status = failed;
    if ((failed = check_extent(layer, error, "input_dim", p->has_input_dim, p->input_dim)))
        status = failed;
    LS_TRY(status);
    LS_TRY(check_index(layer, error));
    struct ls_shape *top = layer->state;
    const struct ls_shape weight = {.rank = 2, .dim = {p->input_dim, p->num_output}};
    *top = layer->bottom[0]->shape;
    if (top->rank == LS_RANK_MAX)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' has %d axes, so that the top would have one too many",
                             layer->bottom[0]->name, top->rank);
    top->dim[top->rank++] = p->num_output;
    LS_TRY(ls_layer_check_shape(layer, error, "the top", top));
    LS_TRY(ls_layer_check_shape(layer, error, "the weight", &weight));
    layer->request[0] =
        (struct ls_blob_request){.name = "weight", .shape = weight, .filler = p->weight_filler};
    layer->request[1] = (struct ls_blob_request){
        .name = "bias", .shape = {.rank = 1, .dim = {p->num_output}}, .filler = p->bias_filler};
    layer->blobs = p->bias_term ? 2 : 1;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    struct ls_value *weight = ls_graph_parameter(graph, layer, 0);
    struct ls_value *bias = layer->blobs > 1 ? ls_graph_parameter(graph, layer, 1) : NULL;
    struct ls_value *y = ls_layer_make_top(layer, 0, layer->state, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_EMBED);
    ls_op_in(graph, op, weight);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, bias);
    ls_op_out(graph, op, y);
    return 0;
}

/* Whether the table lies plain, so that it has rows: as the first op that reads it asks for it, be
 * it under another shape (share_mode: PERMISSIVE). */
static bool table_is_plain(const struct ls_layer *layer)
{
    const struct ls_graph *graph = layer->graph;
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        for (int k = 0; k < op->inputs; k++)
            if (op->input[k] != NULL && op->input[k]->parameter == layer->blob[0])
                return op->kind == LS_OP_EMBED || op->kind == LS_OP_EMBED_BAG;
    }
    return false;
}

/* Emits the gradient by the rows that occur, where they are fewer than those of the table: what it
 * takes then does not grow with the table. The sums are the same. */
static bool emit_rows(struct ls_layer *layer, struct ls_value *dy, struct ls_value *index,
                      struct ls_value *db)
{
    struct ls_graph *graph = layer->graph;
    const int64_t positions = ls_shape_size(&index->shape);
    const struct ls_shape *table = &layer->request[0].shape;
    if (!layer->train_blob[0] || positions >= table->dim[0] || !table_is_plain(layer))
        return false;
    const struct ls_shape shape = {.rank = 2, .dim = {positions, table->dim[1]}};
    const struct ls_shape numbers = {.rank = 1, .dim = {positions}};
    struct ls_value *rows = ls_graph_value(graph, "rows", &shape, NULL);
    struct ls_value *number = ls_graph_value(graph, "numbers", &numbers, NULL);
    if (number != NULL)
        number->type = LS_I32;
    struct ls_op *op = ls_graph_op(graph, LS_OP_EMBED_ROWS);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, index);
    ls_op_out(graph, op, rows);
    ls_op_out(graph, op, number);
    ls_op_out(graph, op, db);
    if (op != NULL)
        op->attr.embed_rows = table->dim[0];
    ls_graph_accumulate_rows(graph, layer, 0, rows, number);
    return true;
}

/* Emits the gradient as a whole table. */
static void emit_table(struct ls_layer *layer, struct ls_value *dy, struct ls_value *index,
                       struct ls_value *db)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *dw =
        layer->train_blob[0] ? ls_graph_parameter_gradient(graph, layer, 0) : NULL;
    struct ls_op *op = ls_graph_op(graph, LS_OP_EMBED_WEIGHTS);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, index);
    ls_op_out(graph, op, dw);
    ls_op_out(graph, op, db);
    ls_graph_accumulate(graph, layer, 0, dw);
}

void ls_embed_emit_gradient(struct ls_layer *layer, struct ls_value *dy, struct ls_value *index,
                            struct ls_value *db)
{
    if (!emit_rows(layer, dy, index, db))
        emit_table(layer, dy, index, db);
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_graph *graph = layer->graph;
    const bool weight = layer->train_blob[0], bias = layer->blobs > 1 && layer->train_blob[1];
    if (layer->propagate[0])
        return ls_layer_fail(
            layer, error, NULL, "bottom",
            "write propagate_down: false into the layer to stop the gradient there",
            "an Embed layer cannot backpropagate to its indices, but '%s' depends "
            "on learned parameters",
            layer->bottom[0]->name);
    if (!weight && !bias)
        return 0;
    struct ls_value *db = bias ? ls_graph_parameter_gradient(graph, layer, 1) : NULL;
    ls_embed_emit_gradient(layer, ls_graph_gradient(graph, layer->top[0]), layer->bottom[0], db);
    ls_graph_accumulate(graph, layer, 1, db);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double top = ls_layer_bytes(layer->top[0]), index = ls_layer_bytes(layer->bottom[0]);
    cost->forward_flops = layer->blobs > 1 ? top / 4 : 0;
    cost->forward_bytes = 2 * top + index;
    if (!ls_layer_trains_blob(layer, 0))
        return;
    cost->backward_weights_flops = top / 4;
    const double table = 4 * (double)ls_shape_size(&layer->request[0].shape);
    cost->backward_bytes = top + index + (top < table ? top : table);
}

const struct ls_layer_type ls_layer_embed = {
    .type = "Embed",
    .parameter = "embed_param",
    .state_size = sizeof(struct ls_shape),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
