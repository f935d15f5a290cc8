/* Ops that hand numbers over: the sum of any value as a loss, the count of labels, gradients to
 * the exact sums.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/accumulator.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/kernels.h"
#include "device/label.h"

static int sum_run(const struct ls_prepared *prepared, void *local, void *const *in,
                   void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    double sum = ls_sum_floats(in[0], ls_value_elements(op->input[0]));
    context->partials[op->attr.loss.metric_offset] += sum;
    return 0;
}

static int sum_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                            void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)in, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    float *dx = out[0];
    size_t n = ls_value_elements(op->output[0]);
    for (size_t i = 0; i < n; i++)
        dx[i] = op->attr.loss.loss_weight;
    return 0;
}

/* The numbers of labels that count. */
static double sum_numbers(const struct ls_loss_attr *attr, const float *label, const float *numbers,
                          size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (!ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            sum += (double)numbers[i];
    return sum;
}

static int count_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const float *label = in[0];
    size_t n = ls_value_elements(op->input[0]), ignored = 0;
    double weights = 0;
    if (op->inputs > 1) {
        context->partials[attr->metric_offset] += sum_numbers(attr, label, in[1], n);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label)) {
            ignored++;
        } else if (attr->normalization == LS_NORM_WEIGHTS) {
            int64_t class = ls_label_class(label[i], attr->classes);
            weights += class >= 0 ? (double)attr->class_weight[class] : 0;
        }
    }
    context->partials[attr->metric_offset] +=
        attr->normalization == LS_NORM_WEIGHTS ? weights : (double)(n - ignored);
    return 0;
}

/* The gradient must lie as its parameter does: the sums are kept in that order. */
static int accumulate_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                              struct ls_error *error)
{
    layouts->in[0] = op->attr.parameter->layout;
    if (op->inputs > 1 && op->attr.parameter->layout != &ls_layout_plain)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "rows of '%s' do not lie as such",
                       op->attr.parameter->name);
    return 0;
}

static int accumulate_run(const struct ls_prepared *prepared, void *local, void *const *in,
                          void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    if (op->inputs > 1) {
        const struct ls_shape *shape = &op->input[0]->shape;
        const struct ls_accumulated_rows rows = {in[0], in[1], (size_t)shape->dim[0],
                                                 (size_t)shape->dim[1]};
        ls_cpu_accumulate_rows(context->accumulator, context->micro_batch,
                               op->attr.parameter->index, &rows);
        return 0;
    }
    ls_cpu_accumulate(context->accumulator, context->worker, context->micro_batch,
                      op->attr.parameter->index, in[0]);
    return 0;
}

const struct ls_kernel ls_kernel_sum_loss = {
    .kind = LS_OP_SUM_LOSS,
    .bits = LS_BITS_NOT_PROBED,
    .name = "sum loss",
    .prepare = ls_own_prepare,
    .run = sum_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_sum_loss_backward = {
    .kind = LS_OP_SUM_LOSS_BACKWARD,
    .bits = LS_BITS_EXACT,
    .name = "sum loss backward",
    .prepare = ls_own_prepare,
    .run = sum_backward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_count_labels = {
    .kind = LS_OP_COUNT_LABELS,
    .bits = LS_BITS_NOT_PROBED,
    .name = "count labels",
    .prepare = ls_own_prepare,
    .run = count_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_accumulate = {
    .kind = LS_OP_ACCUMULATE,
    .bits = LS_BITS_EXACT,
    .name = "accumulate",
    .layouts = accumulate_layouts,
    .prepare = ls_own_prepare,
    .run = accumulate_run,
    .in_place = -1,
};
