/* Recurrent layers: one operator for the product of x and the cells.
 *
 * ONNX has other orders of parts: i, o, f, c for LSTM (ours: i, f, o, g), z, r, h for GRU (ours: r,
 * z, n). It knows no `cont`: a sequence begins where a run of the model does. So `cont` of the
 * first step says whether what is in front of it counts, as here, and behind it is taken for 1.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/exporter.h"

#include <string.h>

enum { Z, CONT, STILL, W, B, H0, C0 };
enum { H, GATES, BEFORE, C, H_LAST, C_LAST };

const struct ls_op *ls_onnx_recurrent_product(const struct ls_graph *graph,
                                              const struct ls_op *recurrent)
{
    const struct ls_op *product = NULL;
    if (ls_onnx_has(recurrent, STILL))
        return NULL;
    for (size_t i = 0; i < graph->op_count && product == NULL; i++)
        if (graph->ops[i]->outputs > 0 && graph->ops[i]->output[0] == recurrent->input[Z])
            product = graph->ops[i];
    return product != NULL && product->kind == LS_OP_INNER_PRODUCT &&
                   !product->attr.inner_product.transpose && !product->attr.inner_product.relu
               ? product
               : NULL;
}

/* Which of our parts is ONNX's part p. */
static int part_of(enum ls_cell cell, int p)
{
    static const int lstm[] = {0, 2, 1, 3}, gru[] = {1, 0, 2};
    return cell == LS_CELL_LSTM ? lstm[p] : cell == LS_CELL_GRU ? gru[p] : p;
}

/* Rows of `from` in ONNX's order of parts; NULL gives zeros, or a unit matrix. */
static void put_parts(const struct ls_recurrent_attr *attr, const float *from, int64_t columns,
                      bool unit, float *to)
{
    for (int p = 0; p < ls_cell_parts(attr->cell); p++)
        for (int64_t i = 0; i < attr->hidden; i++) {
            const int64_t ours = part_of(attr->cell, p) * attr->hidden + i;
            float *row = to + (p * attr->hidden + i) * columns;
            if (from != NULL)
                memcpy(row, from + ours * columns, (size_t)columns * sizeof *row);
            else if (unit)
                row[ours] = 1;
        }
}

/* Weights [1, G H, columns] of a parameter, which may be absent. */
static const char *parts(struct ls_exporter *x, const struct ls_value *parameter, int64_t columns,
                         bool unit, const char *name)
{
    const struct ls_recurrent_attr *attr = &x->op->attr.recurrent;
    const int64_t rows = ls_cell_parts(attr->cell) * attr->hidden;
    const struct ls_shape shape = {.rank = 3, .dim = {1, rows, columns}};
    const float *from = parameter != NULL ? ls_onnx_weights(x, parameter) : NULL;
    float *to = ls_onnx_new_numbers(x, (size_t)(rows * columns));
    if (to != NULL && (from != NULL || parameter == NULL))
        put_parts(attr, from, columns, unit, to);
    return ls_onnx_add_weights(x, parameter != NULL ? parameter->name : name, &shape, to);
}

/* The biases of both products, [1, 2 G H]. */
static const char *biases(struct ls_exporter *x, const struct ls_value *first,
                          const struct ls_value *second)
{
    const struct ls_recurrent_attr *attr = &x->op->attr.recurrent;
    const int64_t rows = ls_cell_parts(attr->cell) * attr->hidden;
    const struct ls_shape shape = {.rank = 2, .dim = {1, 2 * rows}};
    const struct ls_value *both[] = {first, second};
    if (first == NULL && second == NULL)
        return NULL;
    float *to = ls_onnx_new_numbers(x, (size_t)(2 * rows));
    for (int i = 0; i < 2 && to != NULL; i++)
        if (both[i] != NULL) {
            const float *from = ls_onnx_weights(x, both[i]);
            if (from != NULL)
                put_parts(attr, from, 1, false, to + i * rows);
        }
    return ls_onnx_add_weights(x, first != NULL ? first->name : second->name, &shape, to);
}

/* What is in front of the first step, times its cont. A state that goes on from one window to the
 * next is none of a run: it is zeros. */
static const char *start(struct ls_exporter *x, const struct ls_op *op, int index)
{
    if (!ls_onnx_has(op, index) || !x->needed[op->input[index]->index])
        return NULL;
    for (size_t i = 0; i < x->graph->sample_state_count; i++)
        if (x->graph->sample_states[i].value == op->input[index])
            return NULL;
    const char *first = ls_onnx_cut(x, ls_onnx_as_floats(x, op->input[CONT]), NULL, 0, 0, 1);
    const int64_t behind = 2;
    return LS_EMIT(x, "Mul", NULL, ls_onnx_in(x, index),
                   ls_onnx_unsqueeze(x, first, NULL, &behind, 1));
}

static void tell(struct ls_exporter *x, const struct ls_op *op)
{
    if (x->options->tell == NULL)
        return;
    struct ls_problem note;
    ls_problem_set(
        &note, LOCKSTEP_DEFINITION, NULL,
        "layer '%.100s': a run of the model is one sequence: '%.100s' counts in its first "
        "step alone, and is taken for 1 behind that",
        op->layer->name, op->input[CONT]->name);
    if (op->attr.recurrent.steps > 1)
        x->options->tell(x->options->user, note.message);
}

/* x, W, R, B, no lengths, h0, c0. */
static void make_inputs(struct ls_exporter *x, const struct ls_op *op, const char *inputs[7])
{
    const struct ls_recurrent_attr *attr = &op->attr.recurrent;
    const struct ls_op *product = ls_onnx_recurrent_product(x->graph, op);
    const int64_t width = ls_cell_parts(attr->cell) * attr->hidden;
    int64_t dims[LS_RANK_MAX];
    const struct ls_value *in = product != NULL ? product->input[0] : op->input[Z];
    const int64_t columns = product != NULL ? product->attr.inner_product.k : width;
    const struct ls_value *bias =
        product != NULL && ls_onnx_has(product, 2) ? product->input[2] : NULL;
    inputs[0] = ls_onnx_of(x, in);
    ls_onnx_dims(x, op->output[H], dims);
    if (in->shape.rank != 3) {
        dims[2] = columns;
        inputs[0] = ls_onnx_reshape(x, inputs[0], NULL, dims, 3);
    }
    if (ls_onnx_has(op, STILL))
        inputs[0] = LS_EMIT(x, "Add", NULL, inputs[0], ls_onnx_in(x, STILL));
    inputs[1] = parts(x, product != NULL ? product->input[1] : NULL, columns, true, "unit");
    inputs[2] = parts(x, ls_onnx_has(op, W) ? op->input[W] : NULL, attr->hidden, false, "zeros");
    inputs[3] = biases(x, bias, ls_onnx_has(op, B) ? op->input[B] : NULL);
    inputs[4] = NULL;
    inputs[5] = start(x, op, H0);
    inputs[6] = attr->cell == LS_CELL_LSTM ? start(x, op, C0) : NULL;
}

static bool wants(const struct ls_exporter *x, const struct ls_op *op, int output)
{
    return output < op->outputs && op->output[output] != NULL &&
           x->needed[op->output[output]->index];
}

static void recurrent(struct ls_exporter *x, const struct ls_op *op)
{
    static const char *const types[] = {
        [LS_CELL_RNN] = "RNN", [LS_CELL_LSTM] = "LSTM", [LS_CELL_GRU] = "GRU"};
    const enum ls_cell cell = op->attr.recurrent.cell;
    const char *inputs[7], *outputs[3] = {ls_onnx_name(x->writer, "hidden"), NULL, NULL};
    make_inputs(x, op, inputs);
    tell(x, op);
    for (int i = 0; i < (cell == LS_CELL_LSTM ? 2 : 1); i++)
        if (wants(x, op, H_LAST + i))
            outputs[1 + i] = ls_onnx_out(x, H_LAST + i);
    if (wants(x, op, C)) { /* of an LSTMUnit */
        if (op->attr.recurrent.steps > 1 || outputs[2] != NULL)
            ls_onnx_refuse(x, NULL, "ONNX has the cells of the last step alone");
        outputs[2] = ls_onnx_out(x, C);
    }
    ls_onnx_add_node(x->writer, types[cell], inputs, 7, outputs, 3);
    ls_onnx_set_int(x->writer, "hidden_size", op->attr.recurrent.hidden);
    if (cell == LS_CELL_GRU)
        ls_onnx_set_int(x->writer, "linear_before_reset", 1);
    ls_onnx_squeeze(x, outputs[0], ls_onnx_out(x, H), 1); /* of the directions, one */
}

/* What the previous window has left is none of a run (see above): the cells begin with zeros. */
static void recall(struct ls_exporter *x, const struct ls_op *op)
{
    LS_EMIT(x, "Expand", ls_onnx_out(x, 0), ls_onnx_number(x->writer, 0),
            ls_onnx_shape_of(x, op->output[0]));
}

const ls_onnx_exporter ls_onnx_recurrent[LS_OP_KINDS] = {
    [LS_OP_RECURRENT] = recurrent,
    [LS_OP_RECALL] = recall,
};
