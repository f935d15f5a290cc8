/* The records of all kinds of op (ir/ops.def), and what they are made of.
 *
 * Counts of FLOPs are rough: enough to tell cheap ops from expensive ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/op_type.h"

#include "base/hash.h"

/* ---- FLOPs ----------------------------------------------------------------------------------- */

static double elements(const struct ls_value *value)
{
    return value == NULL ? 0 : (double)(ls_value_bytes(value) / ls_dtype_size(value->type));
}

static double per_element(const struct ls_op *op, double flops)
{
    return op->outputs > 0 ? flops * elements(op->output[0]) : 0;
}

/* For ops whose memory traffic is nearly all of their cost. */
static double two_flops(const struct ls_op *op)
{
    return per_element(op, 2);
}

/* 2 for each product that is summed up: y positions, or x positions where it is transposed, times
 * what one of them takes part in. */
static double products(const struct ls_value *positions, const struct ls_value *weights)
{
    int64_t own = weights->shape.rank > 0 && weights->shape.dim[0] > 0 ? weights->shape.dim[0] : 1;
    return 2 * (double)ls_shape_size(&positions->shape) *
           ((double)ls_shape_size(&weights->shape) / (double)own);
}

/* A convolution by its output, which is output 0; also the data gradient of a deconvolution. */
static double convolution_flops(const struct ls_op *op)
{
    return products(op->output[0], op->input[1]);
}

/* The same where the output of the convolution, or its gradient, is input 0. */
static double transposed_flops(const struct ls_op *op)
{
    return products(op->input[0], op->input[1]);
}

static double convolution_weights_flops(const struct ls_op *op)
{
    return products(op->input[1], op->output[0]);
}

static double deconvolution_weights_flops(const struct ls_op *op)
{
    return products(op->input[0], op->output[0]);
}

static double inner_product_flops(const struct ls_op *op)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    return 2 * (double)attr->m * (double)attr->k * (double)attr->n;
}

/* The product, with gradients two more. */
static double linear_loss_flops(const struct ls_op *op)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    double products = 1;
    for (int i = 0; i < op->outputs && i < 2; i++)
        products += op->output[i] != NULL ? 1 : 0;
    return products * (double)attr->rows * (double)attr->classes * (2 * (double)attr->inputs + 10);
}

/* 2 for each product of two numbers: y's elements times the terms of each. */
static double matmul_flops(const struct ls_op *op)
{
    const struct ls_shape *a = &op->input[0]->shape, *b = &op->input[1]->shape;
    const struct ls_shape *y = &op->output[0]->shape;
    double flops = 2 * (double)a->dim[a->rank - (op->attr.matmul.transpose_a ? 2 : 1)];
    for (int i = 0; i < y->rank; i++)
        flops *= (double)(i >= y->rank - 2        ? y->dim[i]
                          : a->dim[i] > b->dim[i] ? a->dim[i]
                                                  : b->dim[i]);
    return flops;
}

static double glu_flops(const struct ls_op *op)
{
    return per_element(op, 20);
}

static double pooling_flops(const struct ls_op *op)
{
    const struct ls_window *window = &op->attr.pooling.window;
    double points = 1;
    for (int i = 0; i < window->axes; i++)
        points *= (double)window->kernel[i];
    return per_element(op, points);
}

static double activation_flops(const struct ls_op *op)
{
    return per_element(op, op->attr.activation.function == LS_RELU ? 1 : 20);
}

static double lrn_flops(const struct ls_op *op)
{
    return per_element(op, 100 + 2 * (double)op->attr.lrn.size);
}

static double dropout_flops(const struct ls_op *op)
{
    return per_element(op, op->inputs > 1 ? 2 : 60); /* 60: Philox, sixteen at a time */
}

static double softmax_flops(const struct ls_op *op)
{
    return per_element(op, 20);
}

/* The product of each step, forward or backward, and about 30 for each gate. */
static double recurrent_flops(const struct ls_op *op)
{
    const struct ls_recurrent_attr *attr = &op->attr.recurrent;
    const double hidden = (double)attr->hidden, gates = ls_cell_parts(attr->cell) * hidden;
    return (double)attr->steps * (double)attr->rows * gates * (2 * hidden + 30);
}

/* Two products forward, five backward, and the exponentials. */
static double attention_pairs(const struct ls_op *op, const struct ls_value *q)
{
    const struct ls_attention_attr *attr = &op->attr.attention;
    const double pairs =
        (double)q->shape.dim[0] * (double)attr->heads * (double)attr->queries * (double)attr->keys;
    return attr->causal ? pairs / 2 : pairs;
}

static double attention_flops(const struct ls_op *op)
{
    const struct ls_attention_attr *attr = &op->attr.attention;
    return attention_pairs(op, op->input[0]) *
           (2 * (double)attr->depth + 2 * (double)attr->value_depth + 30);
}

static double attention_backward_flops(const struct ls_op *op)
{
    const struct ls_attention_attr *attr = &op->attr.attention;
    return attention_pairs(op, op->input[3]) *
           (6 * (double)attr->depth + 4 * (double)attr->value_depth + 30);
}

static double fill_flops(const struct ls_op *op)
{
    return per_element(op, op->attr.fill.filler == NULL ? 1 : 300); /* 300: one by one */
}

double ls_op_operand_bytes(const struct ls_op *op)
{
    double bytes = 0;
    for (int i = 0; i < op->inputs; i++)
        bytes += op->input[i] != NULL ? (double)ls_value_bytes(op->input[i]) : 0;
    for (int i = 0; i < op->outputs; i++)
        bytes += op->output[i] != NULL ? (double)ls_value_bytes(op->output[i]) : 0;
    return bytes;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static void softmax_loss_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_loss_attr *attr = &op->attr.loss;
    *labels = (struct ls_op_labels){.classes = op->input[0]->shape.dim[attr->axis],
                                    .has_ignore = attr->has_ignore,
                                    .ignore_label = attr->ignore_label};
}

static void log_loss_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_loss_attr *attr = &op->attr.loss;
    const struct ls_shape *shape = &op->input[0]->shape;
    *labels = (struct ls_op_labels){.classes = ls_shape_size(shape) / shape->dim[0],
                                    .has_ignore = attr->has_ignore,
                                    .ignore_label = attr->ignore_label};
}

static void linear_loss_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    *labels = (struct ls_op_labels){attr->classes, attr->loss.has_ignore, attr->loss.ignore_label};
}

static void embed_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    *labels = (struct ls_op_labels){.classes = op->input[0]->shape.dim[0]};
}

static void embed_bag_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    *labels = (struct ls_op_labels){.classes = op->input[0]->shape.dim[0],
                                    .has_ignore = op->attr.bag.has_padding,
                                    .ignore_label = op->attr.bag.padding};
}

static void accuracy_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_accuracy_attr *attr = &op->attr.accuracy;
    *labels = (struct ls_op_labels){attr->classes, attr->has_ignore, attr->ignore_label};
}

static void mean_iou_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_mean_iou_attr *attr = &op->attr.mean_iou;
    *labels = (struct ls_op_labels){attr->classes, attr->has_ignore, attr->ignore_label};
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static uint64_t add_number(int64_t number, uint64_t hash)
{
    return ls_hash(&number, sizeof number, hash);
}

static uint64_t convolution_attributes(const struct ls_op *op, uint64_t hash)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    for (int i = 0; i < attr->window.axes; i++) {
        hash = add_number(attr->window.kernel[i], hash);
        hash = add_number(attr->window.stride[i], hash);
        hash = add_number(attr->window.pad[i], hash);
        hash = add_number(attr->window.dilation[i], hash);
    }
    hash = add_number(attr->group, hash);
    hash = add_number(attr->relu, hash);
    return ls_hash(&attr->relu_slope, sizeof attr->relu_slope, hash);
}

static uint64_t inner_product_attributes(const struct ls_op *op, uint64_t hash)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    hash = add_number(attr->m, hash);
    hash = add_number(attr->k, hash);
    hash = add_number(attr->n, hash);
    hash = add_number(attr->transpose, hash);
    hash = add_number(attr->relu, hash);
    return ls_hash(&attr->relu_slope, sizeof attr->relu_slope, hash);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct ls_op_type op_types[] = {
#define LS_OP(kind_, name_, effect_, timing_, traffic_, ...)                                       \
    {.kind = LS_OP_##kind_,                                                                        \
     .name = (name_),                                                                              \
     .effect = LS_EFFECT_##effect_,                                                                \
     .timing = LS_TIMING_##timing_,                                                                \
     .traffic = (traffic_),                                                                        \
     .flops = __VA_ARGS__},
#include "ir/ops.def"
#undef LS_OP
};

const struct ls_op_type *ls_op_type(enum ls_op_kind kind)
{
    return &op_types[kind];
}

const char *ls_op_kind_name(enum ls_op_kind kind)
{
    return (unsigned)kind < LS_OP_KINDS ? op_types[kind].name : "unknown op";
}

unsigned ls_op_input_types(enum ls_op_kind kind, int input)
{
    unsigned types = input < LS_OP_TYPED_MAX ? op_types[kind].types[input] : 0;
    return types != 0 ? types : LS_TYPES(F32);
}

bool ls_op_has_effect(enum ls_op_kind kind)
{
    return op_types[kind].effect != LS_EFFECT_NONE;
}
