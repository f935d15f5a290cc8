/* Products with weights by kernels of our own, in the declared order: they are what portable nets
 * have on every device, and serve where no library's kernel fits. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/products.h"

#include "ir/op_type.h"
#include "ops/cuda/kernels/finish.h"
#include "ops/cuda/ops.h"

/* ---- Inner products -------------------------------------------------------------------------- */

/* Whether the operands of an op are bf16, and its result. */
static bool reads_bf16(const struct ls_op *op)
{
    return op->input[0]->type == LS_BF16;
}

static bool writes_bf16(const struct ls_op *op)
{
    return op->output[0]->type == LS_BF16;
}

/* Not the gradient of weights. */
static bool makes_data(enum ls_op_kind kind)
{
    return kind != LS_OP_INNER_PRODUCT_WEIGHTS && kind != LS_OP_CONVOLUTION_WEIGHTS &&
           kind != LS_OP_DECONVOLUTION_WEIGHTS;
}

bool ls_card_product_takes_bf16(const struct ls_op *op)
{
    bool takes = op->bf16;
    for (int i = 2; i < op->inputs; i++)
        takes = takes && (op->input[i] == NULL || op->input[i]->type == LS_F32);
    for (int i = 1; i < op->outputs; i++)
        takes = takes && (op->output[i] == NULL || op->output[i]->type == LS_F32);
    return takes && (makes_data(op->kind) || !writes_bf16(op));
}

static int layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++) {
        layouts->in[i] = &ls_layout_plain;
        if (i < ls_op_type(op->kind)->rounded_inputs && ls_card_product_takes_bf16(op))
            layouts->in_type[i] = LS_BF16;
    }
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = &ls_layout_plain;
    return 0;
}

static struct ls_cuda_inner inner_of(const struct ls_card_call *call)
{
    const struct ls_inner_product_attr *attr = &call->op->attr.inner_product;
    return (struct ls_cuda_inner){.m = attr->m,
                                  .n = attr->n,
                                  .k = attr->k,
                                  .transpose = attr->transpose,
                                  .bf16 = reads_bf16(call->op),
                                  .out_bf16 = writes_bf16(call->op)};
}

static int inner_product(const struct ls_card_call *call)
{
    const struct ls_inner_product_attr *attr = &call->op->attr.inner_product;
    struct ls_cuda_inner of = inner_of(call);
    of.bias = ls_card_in(call, 2);
    of.relu = attr->relu;
    of.slope = attr->relu_slope;
    return ls_cuda_inner_product(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int inner_product_data(const struct ls_card_call *call)
{
    const struct ls_cuda_inner of = inner_of(call);
    return ls_cuda_inner_product_data(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int inner_product_weights(const struct ls_card_call *call)
{
    const struct ls_cuda_inner of = inner_of(call);
    float *db = ls_card_out(call, 1);
    int code =
        ls_cuda_inner_product_weights(call->stream, &of, call->in[0], call->in[1], call->out[0]);
    if (code == cudaSuccess && db != NULL)
        code = ls_cuda_sum_columns(call->stream, call->in[1], reads_bf16(call->op), of.m, of.n, db);
    return code;
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* Windows move over x and make y; a deconvolution makes x of y. */
struct sides {
    const struct ls_value *x, *y;
};

static struct sides sides_of(const struct ls_op *op)
{
    const struct ls_value *const *in = (const struct ls_value *const *)op->input;
    const struct ls_value *out = op->output[0];
    switch (op->kind) {
    case LS_OP_CONVOLUTION:
    case LS_OP_DECONVOLUTION_DATA:
        return (struct sides){in[0], out};
    case LS_OP_DECONVOLUTION:
    case LS_OP_CONVOLUTION_DATA:
        return (struct sides){out, in[0]};
    case LS_OP_CONVOLUTION_WEIGHTS:
        return (struct sides){in[0], in[1]};
    default: /* of a deconvolution */
        return (struct sides){in[1], in[0]};
    }
}

struct ls_cuda_convolution ls_card_convolution(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_window *window = &attr->window;
    const struct sides sides = sides_of(op);
    const struct ls_shape *x = &sides.x->shape, *y = &sides.y->shape;
    const int channel = x->rank - window->axes - 1; /* the axis of channels */
    struct ls_cuda_convolution of = {.last = sides.x->layout == &ls_layout_channels_last,
                                     .samples = ls_shape_count(x, 0, channel),
                                     .groups = attr->group,
                                     .x_channels = x->dim[channel] / attr->group,
                                     .y_channels = y->dim[channel] / attr->group,
                                     .w_x = 1,
                                     .bf16 = reads_bf16(op),
                                     .out_bf16 = writes_bf16(op)};
    for (int a = 0; a < 3; a++) {
        const bool used = a < window->axes;
        of.x[a] = used ? x->dim[channel + 1 + a] : 1;
        of.y[a] = used ? y->dim[channel + 1 + a] : 1;
        of.kernel[a] = used ? window->kernel[a] : 1;
        of.stride[a] = used ? window->stride[a] : 1;
        of.dilation[a] = used ? window->dilation[a] : 1;
        of.pad[a] = used ? window->pad[a] : 0;
        of.w_x *= of.kernel[a];
    }
    of.w_y = of.x_channels * of.w_x;
    of.w_group = of.y_channels * of.w_y;
    of.w_x = of.last ? 1 : of.w_x;
    return of;
}

static struct ls_cuda_convolution forward_of(const struct ls_card_call *call)
{
    const struct ls_convolution_attr *attr = &call->op->attr.convolution;
    struct ls_cuda_convolution of = ls_card_convolution(call->op);
    of.bias = ls_card_in(call, 2);
    of.relu = attr->relu;
    of.slope = attr->relu_slope;
    return of;
}

static int convolution(const struct ls_card_call *call)
{
    const struct ls_cuda_convolution of = forward_of(call);
    return ls_cuda_convolve_to_y(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int convolution_data(const struct ls_card_call *call)
{
    const struct ls_cuda_convolution of = ls_card_convolution(call->op);
    return ls_cuda_convolve_to_x(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int deconvolution(const struct ls_card_call *call)
{
    const struct ls_cuda_convolution of = forward_of(call);
    return ls_cuda_convolve_to_x(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int deconvolution_data(const struct ls_card_call *call)
{
    const struct ls_cuda_convolution of = ls_card_convolution(call->op);
    return ls_cuda_convolve_to_y(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

/* The bias's gradient: the sum of dy, which is input 1, over all but its channels. */
static int sum_bias(const struct ls_card_call *call)
{
    float *db = ls_card_out(call, 1);
    const struct ls_shape *dy = &call->op->input[1]->shape;
    const int channel = dy->rank - call->op->attr.convolution.window.axes - 1;
    return db == NULL ? cudaSuccess
                      : ls_cuda_sum_channels(call->stream, call->in[1], reads_bf16(call->op),
                                             ls_shape_count(dy, 0, channel), dy->dim[channel],
                                             ls_shape_count(dy, channel + 1, dy->rank), db);
}

static int convolution_weights(const struct ls_card_call *call)
{
    const struct ls_cuda_convolution of = ls_card_convolution(call->op);
    const bool forward = call->op->kind == LS_OP_CONVOLUTION_WEIGHTS;
    const void *x = call->in[forward ? 0 : 1], *y = call->in[forward ? 1 : 0];
    const int code = ls_cuda_convolve_to_w(call->stream, &of, x, y, call->out[0]);
    return code == cudaSuccess ? sum_bias(call) : code;
}

#define PRODUCT .layouts = layouts, .takes_bf16 = ls_card_product_takes_bf16

const struct ls_card_op ls_card_products[LS_OP_KINDS] = {
    [LS_OP_INNER_PRODUCT] = {.run = inner_product, PRODUCT},
    [LS_OP_INNER_PRODUCT_DATA] = {.run = inner_product_data, PRODUCT},
    [LS_OP_INNER_PRODUCT_WEIGHTS] = {.run = inner_product_weights, PRODUCT},
    [LS_OP_CONVOLUTION] = {.run = convolution, PRODUCT},
    [LS_OP_CONVOLUTION_DATA] = {.run = convolution_data, PRODUCT},
    [LS_OP_CONVOLUTION_WEIGHTS] = {.run = convolution_weights, PRODUCT},
    [LS_OP_DECONVOLUTION] = {.run = deconvolution, PRODUCT},
    [LS_OP_DECONVOLUTION_DATA] = {.run = deconvolution_data, PRODUCT},
    [LS_OP_DECONVOLUTION_WEIGHTS] = {.run = convolution_weights, PRODUCT},
};
