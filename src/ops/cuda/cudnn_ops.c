/* Convolutions and deconvolutions by cuDNN, whose family of kernels stands in front of our own
 * (ops/cuda/products.c). PORTABLE ones are not for it: their sums have a declared order.
 *
 * Values and weights lie with channels last where tensor cores may multiply: they take such
 * operands as they are. cuDNN's engines for fp32 without them take plain ones so, and would
 * transpose others in their workspace.
 *
 * What cuDNN computes is, in this order, what it has an engine for (cudnn_engine.c):
 *
 *   1. the op as it is, with bias and ReLU in one graph;
 *   2. its sums in fp32, which a kernel of our own gives bias, ReLU and the result's type;
 *   3. the same of operands in bf16 that are widened to fp32, in which they are exact;
 *
 * and else kernels of our own carry it out. It is chosen by what cuDNN says of the op's shape
 * on this model of card, when the step is prepared.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "ir/layer.h"
#include "ops/cuda/cudnn.h"
#include "ops/cuda/kernels/convolution_ends.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/products.h"

/* ---- What an op is --------------------------------------------------------------------------- */

/* What operands are multiplied as. */
enum math { MATH_FP32, MATH_TF32, MATH_BF16 };

static enum math math_of(const struct ls_op *op)
{
    return op->bf16 ? MATH_BF16 : op->tf32 ? MATH_TF32 : MATH_FP32;
}

/* AUTO: any algorithm; DIRECT: not Winograd's; WINOGRAD: that, but for gradients of weights, which
 * have none on the CPU either. */
static struct ls_cudnn_demand demand_of(const struct ls_op *op)
{
    const enum ls_convolution_algorithm algorithm = op->attr.convolution.algorithm;
    return (struct ls_cudnn_demand){.tensor_cores = math_of(op) != MATH_FP32,
                                    .no_winograd = algorithm == LS_CONVOLUTION_DIRECT,
                                    .winograd = algorithm == LS_CONVOLUTION_WINOGRAD &&
                                                op->kind != LS_OP_CONVOLUTION_WEIGHTS};
}

static bool accepts(const struct ls_op *op)
{
    return op->attr.convolution.algorithm != LS_CONVOLUTION_PORTABLE;
}

/* By operand: windows move over x and make y with weights w. An index below 0: that output. */
struct roles {
    enum ls_cudnn_pass pass;
    int x, w, y;
};

static struct roles roles_of(enum ls_op_kind kind)
{
    switch (kind) {
    case LS_OP_CONVOLUTION:
    case LS_OP_DECONVOLUTION_DATA:
        return (struct roles){LS_CUDNN_TO_Y, 0, 1, -1};
    case LS_OP_CONVOLUTION_DATA:
    case LS_OP_DECONVOLUTION:
        return (struct roles){LS_CUDNN_TO_X, -1, 1, 0};
    case LS_OP_CONVOLUTION_WEIGHTS:
        return (struct roles){LS_CUDNN_TO_W, 0, -1, 1};
    default: /* of a deconvolution */
        return (struct roles){LS_CUDNN_TO_W, 1, -1, 0};
    }
}

static const struct ls_value *value_of(const struct ls_op *op, int role)
{
    return role < 0 ? op->output[0] : op->input[role];
}

static bool makes_weights(const struct ls_op *op)
{
    return roles_of(op->kind).pass == LS_CUDNN_TO_W;
}

/* The axis of channels of values; weights have it in place 1. */
static int channel_axis(const struct ls_op *op)
{
    return op->input[0]->shape.rank - op->attr.convolution.window.axes - 1;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

static int layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    const bool last = math_of(op) != MATH_FP32 && channel_axis(op) == 1;
    const struct ls_layout *layout = last ? &ls_layout_channels_last : &ls_layout_plain;
    (void)error;
    layouts->in[0] = layouts->in[1] = layouts->out[0] = layout;
    for (int i = 2; i < op->inputs; i++)
        layouts->in[i] = &ls_layout_plain;
    if (ls_card_product_takes_bf16(op))
        layouts->in_type[0] = layouts->in_type[1] = LS_BF16;
    return 0;
}

/* ---- As cuDNN has it ------------------------------------------------------------------------- */

/* The tensor of a value, whose axes are lead, 1 and the spatial ones; of `spatial` axes, where 1 of
 * them becomes 2. */
static struct ls_cudnn_tensor tensor_of(const struct ls_value *value, int channel, int spatial,
                                        bool wide)
{
    const struct ls_shape *shape = &value->shape;
    const bool last = value->layout == &ls_layout_channels_last;
    const int axes = shape->rank - channel - 1, rank = spatial + 2;
    struct ls_cudnn_tensor tensor = {.type = value->type == LS_BF16 && !wide ? CUDNN_DATA_BFLOAT16
                                                                             : CUDNN_DATA_FLOAT};
    tensor.dim[0] = ls_shape_count(shape, 0, channel);
    tensor.dim[1] = shape->dim[channel];
    for (int a = 0; a < spatial; a++) {
        const int own = a - (spatial - axes);
        tensor.dim[2 + a] = own < 0 ? 1 : shape->dim[channel + 1 + own];
    }
    int64_t step = last ? tensor.dim[1] : 1;
    for (int a = rank - 1; a >= 2; a--) {
        tensor.stride[a] = step;
        step *= tensor.dim[a];
    }
    tensor.stride[1] = last ? 1 : step;
    tensor.stride[0] = last ? step : step * tensor.dim[1];
    return tensor;
}

/* `ends`: with bias and ReLU, and a result of the op's type; else sums in fp32. `wide`: of fp32
 * copies of its operands. */
static struct ls_cudnn_convolution convolution_of(const struct ls_op *op, bool ends, bool wide)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_window *window = &attr->window;
    const struct roles roles = roles_of(op->kind);
    const int channel = channel_axis(op), spatial = window->axes < 2 ? 2 : window->axes;
    struct ls_cudnn_convolution of = {
        .pass = roles.pass,
        .axes = spatial,
        .x = tensor_of(value_of(op, roles.x), channel, spatial, roles.x < 0 ? !ends : wide),
        .w = tensor_of(value_of(op, roles.w), 1, spatial, roles.w < 0 ? !ends : wide),
        .y = tensor_of(value_of(op, roles.y), channel, spatial, roles.y < 0 ? !ends : wide),
        .bias = ends && op->inputs > 2 && op->input[2] != NULL,
        .relu = ends && attr->relu && !makes_weights(op),
        .slope = attr->relu_slope};
    for (int a = 0; a < spatial; a++) {
        const int own = a - (spatial - window->axes);
        of.stride[a] = own < 0 ? 1 : window->stride[own];
        of.dilation[a] = own < 0 ? 1 : window->dilation[own];
        of.pad[a] = own < 0 ? 0 : window->pad[own];
    }
    return of;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

/* What is in the scratch of a step, by part: where it begins; SIZE_MAX: it is not there. */
enum { WORKSPACE, WIDE_0, WIDE_1, SUMS, PARTIALS, PARTS };

/* What is asked of cuDNN for an op, in this order. */
enum { ATTEMPTS = 4 };

struct step {
    struct ls_cudnn_shared *attempt[ATTEMPTS]; /* the last one has the plan, if there is one */
    int attempts;
    struct ls_cudnn_shared *with;     /* that one; NULL: our own kernels compute the sums */
    const struct ls_cudnn_plan *plan; /* its plan */
    bool ends;                        /* the plan has bias, ReLU and the result's type in it */
    bool wide;                        /* operands are widened to fp32 before */
    size_t part[PARTS];
};

static bool has_bf16(const struct ls_op *op)
{
    return op->input[0]->type == LS_BF16 || op->input[1]->type == LS_BF16;
}

/* Whether something is to be done to the sums before they are the result. */
static bool has_ends(const struct ls_op *op)
{
    const struct ls_cudnn_convolution of = convolution_of(op, true, false);
    return of.bias || of.relu || op->output[0]->type != LS_F32;
}

static int try_plan(const struct ls_op *op, struct step *step, bool ends, bool wide,
                    struct ls_error *error)
{
    const struct ls_cudnn_demand demand = demand_of(op);
    const struct ls_cudnn_convolution of = convolution_of(op, ends, wide);
    struct ls_cudnn_shared *shared = NULL;
    LS_TRY(ls_cudnn_share(op, &of, &demand, &shared, error));
    step->attempt[step->attempts++] = shared;
    step->plan = ls_cudnn_shared_plan(shared);
    step->with = step->plan != NULL ? shared : NULL;
    step->ends = ends;
    step->wide = wide;
    return 0;
}

static int find_plan(const struct ls_op *op, struct step *step, struct ls_error *error)
{
    for (int wide = 0; wide <= (int)has_bf16(op); wide++)
        for (int ends = 1; ends >= (has_ends(op) ? 0 : 1); ends--) {
            LS_TRY(try_plan(op, step, ends != 0, wide != 0, error));
            if (step->plan != NULL)
                return 0;
        }
    step->ends = true; /* our own kernels do all of it */
    step->wide = false;
    return 0;
}

static int refuse_winograd(const struct ls_op *op, struct ls_error *error)
{
    static const char *const hint = "algorithm: AUTO or DIRECT";
    static const char *const text = "cuDNN has no algorithm of Winograd's for this %s on this card";
    if (op->layer == NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, NULL, hint, text, ls_op_kind_name(op->kind));
    return ls_layer_fail(op->layer, error, NULL, NULL, hint, text, ls_op_kind_name(op->kind));
}

static struct ls_cuda_channel_planes planes_of(const struct ls_value *value, int channel)
{
    const struct ls_shape *shape = &value->shape;
    return (struct ls_cuda_channel_planes){.samples = ls_shape_count(shape, 0, channel),
                                           .channels = shape->dim[channel],
                                           .points =
                                               ls_shape_count(shape, channel + 1, shape->rank),
                                           .last = value->layout == &ls_layout_channels_last,
                                           .bf16 = value->type == LS_BF16};
}

static bool makes_bias(const struct ls_op *op)
{
    return op->outputs > 1 && op->output[1] != NULL;
}

/* Lays out the scratch; the bytes of it. */
static size_t lay_out(const struct ls_op *op, struct step *step)
{
    enum { ALIGNMENT = 256 };
    size_t bytes[PARTS] = {[WORKSPACE] = step->plan != NULL ? step->plan->workspace : 0}, all = 0;
    for (int i = 0; i < 2 && step->wide; i++)
        if (op->input[i]->type == LS_BF16)
            bytes[WIDE_0 + i] = (size_t)ls_shape_size(&op->input[i]->shape) * sizeof(float);
    if (!step->ends && op->output[0]->type != LS_F32)
        bytes[SUMS] = (size_t)ls_shape_size(&op->output[0]->shape) * sizeof(float);
    if (makes_bias(op)) {
        const struct ls_cuda_channel_planes dy = planes_of(op->input[1], channel_axis(op));
        bytes[PARTIALS] = ls_cuda_bias_partials(&dy) * sizeof(float);
    }
    if (LS_MUTANT(CRAMPED) && bytes[WORKSPACE] > 0)
        bytes[WORKSPACE] = 1;
    for (int p = 0; p < PARTS; p++) {
        step->part[p] = bytes[p] > 0 ? all : SIZE_MAX;
        all += (bytes[p] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return all;
}

static void release(void *state)
{
    struct step *step = state;
    while (step->attempts > 0)
        ls_cudnn_unshare(step->attempt[--step->attempts]);
    ls_free(step);
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    struct step *step = ls_alloc(1, sizeof *step);
    if (step == NULL)
        return ls_fail_memory(error, "a convolution");
    int status = find_plan(op, step, error);
    if (status == 0 && step->plan == NULL && demand_of(op).winograd)
        status = refuse_winograd(op, error);
    if (status != 0) {
        release(step);
        return status;
    }
    prepared->state = step;
    prepared->scratch_bytes = lay_out(op, step);
    prepared->slow = step->plan == NULL;
    if (step->plan != NULL)
        snprintf(prepared->implementation, sizeof prepared->implementation,
                 "cudnn:engine %lld, choice %d%s%s", (long long)step->plan->engine,
                 step->plan->choice, step->ends ? "" : ", ends apart",
                 step->wide ? ", widened" : "");
    return 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void *part_of(const struct ls_card_call *call, const struct step *step, int part)
{
    return step->part[part] == SIZE_MAX ? NULL : (char *)call->scratch + step->part[part];
}

/* What a step works on: the op's own values, or what stands for them in its scratch. */
struct operands {
    const void *in[2];
    void *out;
};

static int find_operands(const struct ls_card_call *call, const struct step *step,
                         struct operands *operands)
{
    for (int i = 0; i < 2; i++) {
        float *wide = part_of(call, step, WIDE_0 + i);
        operands->in[i] = wide != NULL ? wide : call->in[i];
        if (wide == NULL)
            continue;
        const int code = ls_cuda_widen(call->stream, call->in[i],
                                       ls_shape_size(&call->op->input[i]->shape), wide);
        if (code != cudaSuccess)
            return code;
    }
    void *sums = part_of(call, step, SUMS);
    operands->out = sums != NULL ? sums : call->out[0];
    return cudaSuccess;
}

static int run_own(const struct ls_card_call *call)
{
    const struct ls_convolution_attr *attr = &call->op->attr.convolution;
    const struct roles roles = roles_of(call->op->kind);
    struct ls_cuda_convolution of = ls_card_convolution(call->op);
    of.bias = ls_card_in(call, 2);
    of.relu = attr->relu && !makes_weights(call->op);
    of.slope = attr->relu_slope;
    switch (roles.pass) {
    case LS_CUDNN_TO_Y:
        return ls_cuda_convolve_to_y(call->stream, &of, call->in[roles.x], call->in[roles.w],
                                     call->out[0]);
    case LS_CUDNN_TO_X:
        return ls_cuda_convolve_to_x(call->stream, &of, call->in[roles.y], call->in[roles.w],
                                     call->out[0]);
    default:
        return ls_cuda_convolve_to_w(call->stream, &of, call->in[roles.x], call->in[roles.y],
                                     call->out[0]);
    }
}

static int run_plan(const struct ls_card_call *call, const struct step *step,
                    const struct operands *operands)
{
    static const int64_t number[] = {LS_CUDNN_X, LS_CUDNN_W, LS_CUDNN_Y, LS_CUDNN_BIAS};
    const struct roles roles = roles_of(call->op->kind);
    const int role[] = {roles.x, roles.w, roles.y};
    void *address[4];
    int count = 0;
    for (; count < 3; count++)
        address[count] =
            role[count] < 0 ? operands->out : (void *)(uintptr_t)operands->in[role[count]];
    if (step->ends && ls_card_in(call, 2) != NULL)
        address[count++] = call->in[2];
    return ls_cudnn_run(step->with, call->op, call->stream, number, address, count,
                        part_of(call, step, WORKSPACE), call->context->error);
}

/* Bias, ReLU and type of the result, where the plan has not done it. */
static int end_sums(const struct ls_card_call *call, const struct step *step, const void *sums)
{
    const struct ls_op *op = call->op;
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    if (step->ends)
        return cudaSuccess;
    const struct ls_cuda_ends ends = {
        .of = planes_of(op->output[0], makes_weights(op) ? 1 : channel_axis(op)),
        .bias = ls_card_in(call, 2),
        .relu = attr->relu && !makes_weights(op),
        .slope = attr->relu_slope};
    return ls_cuda_end_convolution(call->stream, &ends, sums, call->out[0]);
}

static int sum_bias(const struct ls_card_call *call, const struct step *step)
{
    if (!makes_bias(call->op))
        return cudaSuccess;
    const struct ls_cuda_channel_planes dy = planes_of(call->op->input[1], channel_axis(call->op));
    return ls_cuda_bias_gradient(call->stream, &dy, call->in[1], part_of(call, step, PARTIALS),
                                 call->out[1]);
}

static int check_kernel(const struct ls_card_call *call, int code, const char *what)
{
    return ls_card_check_op(code, call->op, what, call->context->error);
}

static int run(const struct ls_card_call *call)
{
    const struct step *step = call->state;
    struct operands operands = {{NULL, NULL}, NULL};
    LS_TRY(check_kernel(call, find_operands(call, step, &operands), "widen operands of"));
    if (step->plan != NULL)
        LS_TRY(run_plan(call, step, &operands));
    else
        LS_TRY(check_kernel(call, run_own(call), "carry out"));
    LS_TRY(check_kernel(call, end_sums(call, step, operands.out), "end"));
    return check_kernel(call, sum_bias(call, step), "sum the bias's gradient of");
}

#define CONVOLUTION                                                                                \
    {                                                                                              \
        .try_run = run, .accepts = accepts, .layouts = layouts,                                    \
        .takes_bf16 = ls_card_product_takes_bf16, .prepare = prepare, .release = release,          \
        .library = true                                                                            \
    }

const struct ls_card_op ls_card_cudnn[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = CONVOLUTION,         [LS_OP_CONVOLUTION_DATA] = CONVOLUTION,
    [LS_OP_CONVOLUTION_WEIGHTS] = CONVOLUTION, [LS_OP_DECONVOLUTION] = CONVOLUTION,
    [LS_OP_DECONVOLUTION_DATA] = CONVOLUTION,  [LS_OP_DECONVOLUTION_WEIGHTS] = CONVOLUTION,
};
