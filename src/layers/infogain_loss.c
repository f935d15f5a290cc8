/* InfogainLoss: softmax along an axis, and a mean of logarithms that is weighted by the true class:
 *
 *   p = softmax(x);  loss = sum over positions of -sum_k H[label, k] log max(p[k], 1e-20) / divisor
 *
 * x [N, ..., C, ...] with the C classes along infogain_loss_param.axis (default 1); the label has a
 * number 0 .. C-1 for each position of the other axes, in their order. H, [C, C] numbers row by
 * row, is read from infogain_loss_param.source (a BlobProto, binary), or is a third bottom, which
 * belongs to no sample. With H the identity this is SoftmaxWithLoss. Positions whose label is
 * loss_param.ignore_label count nowhere. Divisor: see layers/loss.h; VALID is the default. An
 * optional second top is p, from which no gradient flows back, as in Caffe.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"
#include "base/memory.h"
#include "layers/loss.h"

struct infogain_loss {
    struct ls_loss loss;
    struct ls_value *prob;
};

enum { MATRIX_BYTES_MAX = 1 << 30 };

static const Lockstep__InfogainLossParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__InfogainLossParameter defaults = LOCKSTEP__INFOGAIN_LOSS_PARAMETER__INIT;
    const Lockstep__InfogainLossParameter *param = layer->definition->infogain_loss_param;
    return param != NULL ? param : &defaults;
}

/* Takes the matrix out of a BlobProto. */
static int copy_matrix(struct ls_layer *layer, struct ls_error *error,
                       const Lockstep__BlobProto *blob, int64_t classes)
{
    struct infogain_loss *state = layer->state;
    const size_t numbers = blob->n_data > 0 ? blob->n_data : blob->n_double_data;
    if (numbers != (size_t)(classes * classes))
        return ls_layer_fail(layer, error, param_of(layer), "source", NULL,
                             "the matrix in '%s' has %zu numbers, but %lld classes need %lld",
                             param_of(layer)->source, numbers, (long long)classes,
                             (long long)(classes * classes));
    float *matrix = ls_graph_own(layer->graph, ls_alloc(numbers, sizeof *matrix));
    if (matrix == NULL)
        return ls_fail_memory(error, "a matrix");
    for (size_t i = 0; i < numbers; i++)
        matrix[i] = blob->n_data > 0 ? blob->data[i] : (float)blob->double_data[i];
    state->loss.attr.matrix = matrix;
    return 0;
}

/* The bytes of the file that `source` names. */
static int read_file(const struct ls_layer *layer, struct ls_error *error, char **data,
                     size_t *size)
{
    const struct ls_definition *definition = layer->graph->definition;
    struct ls_error reading = {0};
    char *path =
        ls_resolve_path(param_of(layer)->source, definition != NULL ? definition->file : NULL);
    if (path == NULL)
        return ls_fail_memory(error, "a path");
    int status = ls_file_read(path, MATRIX_BYTES_MAX, LOCKSTEP_DEFINITION, data, size, &reading);
    ls_free(path);
    if (status == 0)
        return 0;
    return ls_layer_fail(layer, error, param_of(layer), "source",
                         "a path is tried from the working directory, then from the definition's "
                         "folder",
                         "'%s': %s", param_of(layer)->source, reading.problems[0].message);
}

static int read_matrix(struct ls_layer *layer, struct ls_error *error, int64_t classes)
{
    char *data = NULL;
    size_t size = 0;
    LS_TRY(read_file(layer, error, &data, &size));
    Lockstep__BlobProto *blob =
        lockstep__blob_proto__unpack(NULL, size, (const unsigned char *)data);
    ls_free(data);
    if (blob == NULL)
        return ls_layer_fail(layer, error, param_of(layer), "source", NULL,
                             "'%s' is not a BlobProto in binary form", param_of(layer)->source);
    int status = copy_matrix(layer, error, blob, classes);
    lockstep__blob_proto__free_unpacked(blob, NULL);
    return status;
}

/* Where H comes from. */
static int find_matrix(struct ls_layer *layer, struct ls_error *error, int64_t classes)
{
    const struct ls_value *matrix = layer->bottoms > 2 ? layer->bottom[2] : NULL;
    char text[160];
    if (matrix == NULL && !(param_of(layer)->source != NULL && param_of(layer)->source[0] != '\0'))
        return ls_layer_fail(layer, error, layer->definition->infogain_loss_param, NULL,
                             "write infogain_loss_param { source: \"H.binaryproto\" }",
                             "it needs a matrix: a source, or a third bottom");
    if (matrix == NULL)
        return read_matrix(layer, error, classes);
    if (matrix->sample_axis >= 0)
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "take it from a layer whose top belongs to no sample, or from a file",
                             "its bottom '%s', the matrix, has one for each sample", matrix->name);
    if (ls_shape_size(&matrix->shape) != classes * classes)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' must be a matrix of %lld x %lld numbers, but is %s",
                             matrix->name, (long long)classes, (long long)classes,
                             ls_shape_text(&matrix->shape, text, sizeof text));
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct infogain_loss *state = layer->state;
    struct ls_loss *loss = &state->loss;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, "loss_param"));
    int axis = ls_layer_axis(layer, error, layer->definition->infogain_loss_param, "axis",
                             param_of(layer)->axis, x, false);
    LS_TRY(axis < 0 ? LOCKSTEP_DEFINITION : 0);
    LS_TRY(ls_loss_check_bottoms(layer, error));
    LS_TRY(ls_loss_read(layer, &(struct ls_loss_rules){.missing = LS_NORM_VALID}, loss, error));
    loss->attr.axis = axis;
    int64_t outer = ls_shape_count(&x->shape, 0, axis) / ls_value_sample_rows(x) * x->rows;
    ls_loss_set_positions(loss, outer, ls_shape_count(&x->shape, axis + 1, x->shape.rank));
    LS_TRY(ls_layer_check_positions(layer, error, axis));
    return find_matrix(layer, error, x->shape.dim[axis]);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct infogain_loss *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    (void)error;
    ls_loss_begin(layer, &state->loss);
    state->prob = layer->tops > 1 ? ls_layer_make_top(layer, 1, &x->shape, x)
                                  : ls_layer_make_side(layer, "prob", x);
    struct ls_op *op = ls_graph_op(graph, LS_OP_INFOGAIN_LOSS);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(graph, op, state->loss.in[i]);
    ls_op_out(graph, op, state->prob);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct infogain_loss *state = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    if (layer->bottoms > 2)
        LS_TRY(ls_loss_check_unlearned(layer, error, 2));
    if (!layer->propagate[0] || layer->loss_weight[0] == 0)
        return 0;
    struct ls_value *inputs[] = {state->prob, state->loss.in[1], state->loss.in[2]};
    struct ls_op *op =
        ls_layer_emit_gradient(layer, 0, LS_OP_INFOGAIN_LOSS_BACKWARD, inputs, layer->bottoms);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 7, 3, 0);
}

const struct ls_layer_type ls_layer_infogain_loss = {
    .type = "InfogainLoss",
    .parameter = "infogain_loss_param",
    .state_size = sizeof(struct infogain_loss),
    .bottoms_min = 2,
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = 2,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
