/* The walk over a graph: what is needed, what it is called, inputs and outputs. See onnx/export.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ir/op_type.h"
#include "onnx/exporter.h"

/* ---- What has an equivalent ------------------------------------------------------------------ */

static ls_onnx_exporter find_exporter(enum ls_op_kind kind)
{
    static const ls_onnx_exporter *const tables[] = {
        ls_onnx_products, ls_onnx_windows, ls_onnx_elements,  ls_onnx_norms,
        ls_onnx_shapes,   ls_onnx_lookups, ls_onnx_attention, ls_onnx_recurrent};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i][kind] != NULL)
            return tables[i][kind];
    return NULL;
}

void ls_onnx_refuse(struct ls_exporter *x, const char *hint, const char *format, ...)
{
    char why[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    x->status = ls_layer_fail(x->op->layer, x->error, NULL, "type", hint, "%s", why);
}

/* ---- What is needed -------------------------------------------------------------------------- */

static void need_value(struct ls_exporter *x, const struct ls_value *value)
{
    if (value != NULL)
        x->needed[value->index] = true;
}

static bool is_needed(const struct ls_exporter *x, const struct ls_op *op)
{
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL && x->needed[op->output[i]->index])
            return true;
    return false;
}

/* From the last op to the first: what the outputs depend on. */
static void find_needed(struct ls_exporter *x)
{
    for (size_t i = 0; i < x->options->output_count; i++)
        need_value(x, x->options->outputs[i]);
    for (size_t i = x->graph->op_count; i-- > 0;) {
        const struct ls_op *op = x->graph->ops[i];
        const struct ls_op *product =
            op->kind == LS_OP_RECURRENT ? ls_onnx_recurrent_product(x->graph, op) : NULL;
        if (!is_needed(x, op))
            continue;
        const bool is_loss = ls_op_type(op->kind)->predicts_output;
        for (int j = 0; j < op->inputs; j++)
            if (!(is_loss && j > 0) && !(product != NULL && j == 0)) /* labels are not */
                need_value(x, op->input[j]);
        for (int j = 0; product != NULL && j < product->inputs; j++)
            need_value(x, product->input[j]);
    }
}

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

static int32_t type_of(const struct ls_value *value)
{
    switch (value->type) {
    case LS_I32:
        return ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
    case LS_U8:
        return ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    case LS_I8:
        return ONNX__TENSOR_PROTO__DATA_TYPE__INT8;
    default: /* arithmetic is fp32 */
        return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    }
}

static void add_input(struct ls_exporter *x, const struct ls_value *value)
{
    int64_t dims[LS_RANK_MAX];
    if (x->names[value->index] != NULL)
        return;
    ls_onnx_dims(x, value, dims);
    const char *name = ls_onnx_name(x->writer, value->name);
    x->names[value->index] = name;
    ls_onnx_add_input(x->writer, name, type_of(value), dims, value->shape.rank, value->rows);
    if (x->anchor == NULL && value->sample_axis >= 0) {
        x->anchor = value;
        x->anchor_name = name;
    }
}

/* Whether a layer is DummyData of the definition itself, not in the place of data. */
static bool is_own(const struct ls_exporter *x, const struct ls_layer *layer)
{
    const Lockstep__NetParameter *all = x->options->all;
    for (size_t i = 0; all != NULL && i < all->n_layer; i++)
        if (all->layer[i]->name != NULL && strcmp(all->layer[i]->name, layer->name) == 0 &&
            strcmp(all->layer[i]->type, "DummyData") != 0)
            return false;
    return true;
}

/* DummyData in the place of data, and with random numbers, stand for what comes from elsewhere. */
static bool is_data(const struct ls_exporter *x, const struct ls_op *op)
{
    if (op->kind != LS_OP_FILL)
        return false;
    const Lockstep__FillerParameter *filler = op->attr.fill.filler;
    const bool random =
        filler != NULL && filler->type != NULL && strcmp(filler->type, "constant") != 0;
    return random || !is_own(x, op->layer);
}

static void add_inputs(struct ls_exporter *x)
{
    for (size_t i = 0; i < x->graph->input_count; i++)
        if (x->needed[x->graph->inputs[i].value->index])
            add_input(x, x->graph->inputs[i].value);
    for (size_t i = 0; i < x->graph->op_count; i++)
        if (is_data(x, x->graph->ops[i]) && is_needed(x, x->graph->ops[i]))
            add_input(x, x->graph->ops[i]->output[0]);
}

/* The last value of a name has it; those that it was written in place of get numbers. */
static void reserve_outputs(struct ls_exporter *x)
{
    for (size_t i = 0; i < x->options->output_count; i++) {
        const struct ls_value *value = x->options->outputs[i];
        if (x->names[value->index] == NULL)
            x->names[value->index] = ls_onnx_name(x->writer, value->name);
    }
}

static void add_outputs(struct ls_exporter *x)
{
    for (size_t i = 0; i < x->options->output_count; i++) {
        const struct ls_value *value = x->options->outputs[i];
        int64_t dims[LS_RANK_MAX];
        ls_onnx_dims(x, value, dims);
        ls_onnx_add_output(x->writer, x->names[value->index], type_of(value), dims,
                           value->shape.rank, value->selected != NULL ? 0 : value->rows);
    }
}

/* ---- Preprocessing --------------------------------------------------------------------------- */

/* x becomes (x - mean) scale: what the net reads is called otherwise than the model's input. */
static void preprocess(struct ls_exporter *x)
{
    const struct ls_onnx_preprocessing *p = x->options->preprocessing;
    const struct ls_value *input = x->anchor;
    if (p == NULL || input == NULL || input->type != LS_F32) /* it is no picture */
        return;
    struct ls_shape shape = {.rank = input->shape.rank - 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = (size_t)ls_shape_count(&input->shape, 1, input->shape.rank) == p->mean_count
                           ? input->shape.dim[i + 1]
                       : i == 0 ? (int64_t)p->mean_count
                                : 1;
    const char *in = x->names[input->index];
    x->writer->scope = "preprocessing";
    if (p->mean != NULL)
        in = LS_EMIT(x, "Sub", NULL, in, ls_onnx_constant(x->writer, &shape, p->mean));
    if (p->scale != 1)
        in = LS_EMIT(x, "Mul", NULL, in, ls_onnx_number(x->writer, p->scale));
    x->names[input->index] = in;
}

/* ---- The walk -------------------------------------------------------------------------------- */

/* Why an op is refused. */
static const char *reason_of(enum ls_op_kind kind)
{
    switch (kind) {
    case LS_OP_DETECTION_OUTPUT:
    case LS_OP_YOLO_OUTPUT:
    case LS_OP_PROPOSAL:
        return "NonMaxSuppression lists places of boxes, so many of each class, and not rows of a "
               "fixed number with the best boxes first";
    case LS_OP_REGION_AVERAGE:
        return "no operator averages bins with rounded edges, each in planes of its own";
    case LS_OP_HARDEST_REGIONS:
    case LS_OP_SOFTMAX_EACH:
    case LS_OP_SMOOTH_L1_EACH:
        return "it is a part of losses, for training alone";
    case LS_OP_PLUGIN:
        return "what a plugin computes its own code alone knows";
    default:
        return ls_op_kind_name(kind);
    }
}

static void export_op(struct ls_exporter *x, const struct ls_op *op)
{
    const ls_onnx_exporter exporter = find_exporter(op->kind);
    x->op = op;
    x->writer->scope = op->layer != NULL ? op->layer->name : "net";
    if (exporter != NULL)
        exporter(x, op);
    else
        ls_onnx_refuse(x, "name a blob in front of it as the output: --blob",
                       "a layer of type %s has no equivalent in ONNX: %s",
                       op->layer != NULL ? op->layer->type->type : "none", reason_of(op->kind));
}

static bool is_folded(const struct ls_exporter *x, const struct ls_op *op)
{
    return !is_needed(x, op) || op->kind == LS_OP_SYNC || is_data(x, op);
}

static int walk(struct ls_exporter *x)
{
    find_needed(x);
    add_inputs(x);
    reserve_outputs(x);
    preprocess(x);
    for (size_t i = 0; i < x->graph->op_count && !x->writer->failed; i++)
        if (!x->graph->ops[i]->backward && !is_folded(x, x->graph->ops[i]))
            export_op(x, x->graph->ops[i]);
    add_outputs(x);
    x->writer->model->graph->name = ls_arena_copy_string(
        x->writer->arena,
        x->graph->net != NULL && x->graph->net->name != NULL ? x->graph->net->name : "net");
    if (x->writer->failed || x->writer->model->graph->name == NULL)
        return ls_fail_memory(x->error, "a model");
    return x->status;
}

int ls_onnx_export(struct ls_onnx_writer *writer, const struct ls_onnx_export *options,
                   struct ls_error *error)
{
    const size_t values = options->graph->value_count;
    struct ls_exporter x = {.options = options,
                            .graph = options->graph,
                            .writer = writer,
                            .error = error,
                            .names = ls_alloc(values + 1, sizeof *x.names),
                            .needed = ls_alloc(values + 1, sizeof *x.needed)};
    int status = x.names == NULL || x.needed == NULL ? ls_fail_memory(error, "a model") : walk(&x);
    ls_free(x.names);
    ls_free(x.needed);
    return status;
}
