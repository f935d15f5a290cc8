/* Ops whose work is one primitive of oneDNN: which value is which tensor, and running it.
 *
 * The primitive is built once and shared; each worker binds an execution to its arena. Pointers
 * that come with the micro-batch are handed on when they change.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/primitive.h"

#include <stdio.h>
#include <string.h>

#include "ir/layer.h"

/* Where the value of each slot stands in its op: input i >= 0, an output, or nowhere. */
#define ABSENT    (-1)
#define OUTPUT(i) (-2 - (i))

static const int forward_places[LS_SLOTS] = {0, 1, 2, OUTPUT(0)};
static const int data_places[LS_SLOTS] = {OUTPUT(0), 1, ABSENT, 0};
static const int weights_places[LS_SLOTS] = {0, OUTPUT(0), OUTPUT(1), 1};
/* A deconvolution is a convolution with the parts of x and y exchanged; its bias is no part of the
 * primitive. */
static const int transposed_places[LS_SLOTS] = {OUTPUT(0), 1, ABSENT, 0};
static const int transposed_data_places[LS_SLOTS] = {0, 1, ABSENT, OUTPUT(0)};
static const int transposed_weights_places[LS_SLOTS] = {1, OUTPUT(0), ABSENT, 0};
static const int reorder_places[LS_SLOTS] = {0, ABSENT, ABSENT, OUTPUT(0)};

static const int *places(const struct ls_op *op)
{
    switch (op->kind) {
    case LS_OP_REORDER:
        return reorder_places;
    case LS_OP_DECONVOLUTION:
        return transposed_places;
    case LS_OP_DECONVOLUTION_DATA:
        return transposed_data_places;
    case LS_OP_DECONVOLUTION_WEIGHTS:
        return transposed_weights_places;
    default:
        break;
    }
    switch (ls_primitive_pass(op)) {
    case LS_PASS_FORWARD:
        return forward_places;
    case LS_PASS_DATA:
        return data_places;
    default:
        return weights_places;
    }
}

enum ls_onednn_pass ls_primitive_pass(const struct ls_op *op)
{
    switch (op->kind) {
    case LS_OP_CONVOLUTION_DATA:
    case LS_OP_INNER_PRODUCT_DATA:
    case LS_OP_DECONVOLUTION:
        return LS_PASS_DATA;
    case LS_OP_CONVOLUTION_WEIGHTS:
    case LS_OP_INNER_PRODUCT_WEIGHTS:
    case LS_OP_DECONVOLUTION_WEIGHTS:
        return LS_PASS_WEIGHTS;
    default:
        return LS_PASS_FORWARD;
    }
}

struct ls_value *ls_primitive_value(const struct ls_op *op, enum ls_tensor_slot slot)
{
    int place = places(op)[slot];
    if (place >= 0)
        return place < op->inputs ? op->input[place] : NULL;
    int output = OUTPUT(0) - place;
    return place != ABSENT && output < op->outputs ? op->output[output] : NULL;
}

const struct ls_layout **ls_primitive_layout(const struct ls_op *op, struct ls_op_layouts *layouts,
                                             enum ls_tensor_slot slot)
{
    if (ls_primitive_value(op, slot) == NULL)
        return NULL;
    int place = places(op)[slot];
    return place >= 0 ? &layouts->in[place] : &layouts->out[OUTPUT(0) - place];
}

/* oneDNN's problem, said of the layer that has it. */
static int say_where(const struct ls_op *op, const struct ls_error *found, struct ls_error *error)
{
    char place[LS_PLACE_SIZE] = "";
    const struct ls_problem *problem = &found->problems[0];
    const char *hint = problem->hint[0] != '\0' ? problem->hint : NULL;
    if (op->layer == NULL)
        return ls_fail(error, problem->status, NULL, hint, "%s", problem->message);
    ls_layer_place(op->layer, NULL, NULL, place);
    return ls_fail(error, problem->status, place, hint, "%s: %s: %s", op->layer->name,
                   ls_op_kind_name(op->kind), problem->message);
}

void ls_primitive_set_ends(struct ls_primitive_spec *spec, int64_t outputs, bool bias, bool relu,
                           float slope)
{
    struct ls_onednn_tensor *tensor = &spec->tensor[LS_BIAS];
    if (bias) {
        tensor->rank = 1;
        tensor->dim[0] = outputs;
        tensor->layout = &ls_layout_plain;
    }
    if (spec->pass == LS_PASS_FORWARD) {
        spec->relu = relu;
        spec->slope = slope;
    }
}

int ls_primitive_query_weights(const struct ls_op *op, const struct ls_primitive_spec *spec,
                               const struct ls_layout *preferred, struct ls_primitive_plan *plan,
                               struct ls_error *error)
{
    struct ls_primitive_spec trial = *spec;
    struct ls_primitive_plan forced;
    struct ls_error found;
    ls_error_clear(&found);
    trial.tensor[LS_WEIGHTS].layout = NULL;
    if (ls_primitive_query(&trial, plan, &found) != 0)
        return say_where(op, &found, error);
    if (preferred == NULL || preferred == plan->weights)
        return 0;
    trial.tensor[LS_WEIGHTS].layout = preferred;
    int status = ls_primitive_query(&trial, &forced, NULL);
    if (status == LOCKSTEP_RESOURCE)
        return ls_fail_memory(error, "a kernel's description");
    if (status == 0 && strcmp(forced.implementation, plan->implementation) == 0)
        *plan = forced;
    return 0;
}

/* Plain loops, and convolutions by general products of matrices where these are bad at it: many
 * small ones, for groups of few channels (2 % of the peak, or 1 % for single ones), and the
 * gradient of weights of three axes that is read with gaps (12 %). */
bool ls_primitive_plan_is_slow(const struct ls_primitive_spec *spec,
                               const struct ls_primitive_plan *plan)
{
    enum { CHANNELS_FEW = 8 };
    const struct ls_onednn_tensor *weights = &spec->tensor[LS_WEIGHTS];
    bool dilated = false;
    if (plan->reference)
        return true;
    if (spec->kind != LS_PRIMITIVE_CONVOLUTION || strstr(plan->implementation, "gemm") == NULL)
        return false;
    for (int i = 0; i < spec->window.axes; i++)
        dilated |= spec->window.dilation[i] > 1;
    if (spec->window.axes == 3 && dilated && spec->pass == LS_PASS_WEIGHTS)
        return true;
    return weights->grouped && (weights->dim[1] < CHANNELS_FEW || weights->dim[2] < CHANNELS_FEW);
}

int ls_primitive_prepare(struct ls_prepared *prepared, const struct ls_primitive_spec *spec,
                         struct ls_error *error)
{
    struct ls_primitive *primitive;
    struct ls_error found;
    ls_error_clear(&found);
    if (ls_primitive_new(spec, &primitive, &found) != 0)
        return say_where(prepared->op, &found, error);
    prepared->state = primitive;
    prepared->scratch_bytes = ls_primitive_scratch(primitive);
    const struct ls_primitive_plan *plan = ls_primitive_plan_of(primitive);
    snprintf(prepared->implementation, sizeof prepared->implementation, "%s", plan->implementation);
    prepared->slow = ls_primitive_plan_is_slow(spec, plan);
    return 0;
}

void ls_primitive_release(struct ls_prepared *prepared)
{
    ls_primitive_free(prepared->state);
    prepared->state = NULL;
}

int ls_primitive_bind(const struct ls_prepared *prepared, void *const *in, void *const *out,
                      void *scratch, void **local, struct ls_error *error)
{
    (void)in;
    (void)out;
    struct ls_execution *execution;
    LS_TRY(ls_execution_new(prepared->state, scratch, &execution, error));
    *local = execution;
    return 0;
}

void ls_primitive_unbind(const struct ls_prepared *prepared, void *local)
{
    (void)prepared;
    ls_execution_free(local);
}

int ls_primitive_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)scratch;
    const struct ls_op *op = prepared->op;
    void *data[LS_SLOTS] = {0};
    for (int slot = 0; slot < LS_SLOTS; slot++) {
        int place = places(op)[slot];
        if (ls_primitive_value(op, (enum ls_tensor_slot)slot) != NULL)
            data[slot] = place >= 0 ? in[place] : out[OUTPUT(0) - place];
    }
    int status = ls_execution_run(local, data);
    return status == 0 ? 0 : ls_kernel_fail(op, context->error, status, "oneDNN");
}
