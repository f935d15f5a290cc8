/* The reference device: kernels from the tables of this folder, exact sums, update rules, fillers,
 * environment.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/reference/device.h"

#include <pthread.h>
#include <sleef.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/thread.h"
#include "device/plain.h"
#include "ir/convert.h"
#include "ir/layer.h"
#include "ops/reference/reference.h"

/* ---- Kernels --------------------------------------------------------------------------------- */

static void accumulate(const struct ls_ref_call *call)
{
    call->context->contribute(call->context->sums, call->op->attr.parameter->index, call->in[0],
                              (size_t)ls_ref_size(call->op->input[0]));
}

static void record(const struct ls_ref_call *call)
{
    const struct ls_record_attr *attr = &call->op->attr.record;
    call->context->record(call->context->recorder, attr->parameter, attr->side, call->in[0],
                          (size_t)(attr->rows * attr->columns));
}

static const struct ls_ref_compute ls_ref_gradients[LS_OP_KINDS] = {
    [LS_OP_ACCUMULATE] = {.run = accumulate},
    [LS_OP_RECORD] = {.run = record},
};

static const struct ls_ref_compute *compute_of(enum ls_op_kind kind)
{
    const struct ls_ref_compute *const tables[] = {ls_ref_elements, ls_ref_losses, ls_ref_norms,
                                                   ls_ref_windows, ls_ref_gradients};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        const struct ls_ref_compute *compute = &tables[t][kind];
        if (compute->element != NULL || compute->source != NULL || compute->terms != NULL ||
            compute->run != NULL)
            return compute;
    }
    return NULL;
}

/* The sums of terms, in double, in scratch: output 0 and then output 1. */
static void add_terms(const struct ls_ref_compute *compute, const struct ls_ref_call *call)
{
    const struct ls_op *op = call->op;
    double *sum[2] = {call->scratch, NULL};
    for (int k = 0; k < op->outputs && k < 2; k++) {
        const int64_t n = op->output[k] != NULL ? ls_ref_size(op->output[k]) : 0;
        sum[1] = k == 0 ? sum[0] + n : sum[1];
        memset(sum[k], 0, (size_t)n * sizeof(double));
    }
    for (int64_t i = 0; i < ls_ref_size(op->input[0]); i++) {
        double term[2] = {0, 0};
        const int64_t to = compute->terms(call, i, term);
        for (int k = 0; k < op->outputs && k < 2; k++)
            if (op->output[k] != NULL)
                sum[k][to] += term[k];
    }
    for (int k = 0; k < op->outputs && k < 2; k++)
        for (int64_t i = 0; call->out[k] != NULL && i < ls_ref_size(op->output[k]); i++)
            ((float *)call->out[k])[i] = (float)sum[k][i];
}

/* The copies that an op's outputs are. */
static void move(const struct ls_ref_compute *compute, const struct ls_ref_call *call)
{
    const size_t bytes = ls_dtype_size(call->op->input[0]->type);
    for (int k = 0; k < call->op->outputs; k++)
        for (int64_t i = 0; call->out[k] != NULL && i < ls_ref_size(call->op->output[k]); i++) {
            int input = 0;
            const int64_t from = compute->source(call, k, i, &input);
            char *to = (char *)call->out[k] + (size_t)i * bytes;
            if (from < 0)
                memset(to, 0, bytes);
            else
                memcpy(to, (const char *)call->in[input] + (size_t)from * bytes, bytes);
        }
}

static int run(const struct ls_prepared *prepared, void *local, void *const *in, void *const *out,
               void *scratch, const struct ls_context *context)
{
    const struct ls_ref_compute *compute = prepared->state;
    const struct ls_ref_call call = {prepared->op, in, out, scratch, context};
    (void)local;
    if (compute->run != NULL)
        compute->run(&call);
    else if (compute->terms != NULL)
        add_terms(compute, &call);
    else if (compute->source != NULL)
        move(compute, &call);
    for (int64_t i = 0; compute->element != NULL && i < ls_ref_size(prepared->op->output[0]); i++)
        ((float *)out[0])[i] = (float)compute->element(&call, i);
    return 0;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    const struct ls_ref_compute *compute = compute_of(op->kind);
    prepared->state = (void *)compute;
    strcpy(prepared->implementation, "reference");
    if (compute->scratch != NULL)
        prepared->scratch_bytes = compute->scratch(op);
    for (int k = 0; compute->terms != NULL && k < op->outputs; k++)
        if (op->output[k] != NULL)
            prepared->scratch_bytes += (size_t)ls_ref_size(op->output[k]) * sizeof(double);
    if (op->kind == LS_OP_CONVOLUTION && op->layer != NULL &&
        op->attr.convolution.algorithm == LS_CONVOLUTION_WINOGRAD)
        return ls_layer_fail(op->layer, error, NULL, NULL, "algorithm: AUTO or DIRECT",
                             "the device reference computes convolutions directly only");
    return 0;
}

static bool is_plain(const struct ls_op *op)
{
    return op->kind != LS_OP_REORDER || op->input[0]->layout == op->output[0]->layout;
}

static struct ls_kernel kernel[LS_OP_KINDS];
static const struct ls_kernel *kernel_table[LS_OP_KINDS + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_kernels(void)
{
    for (int kind = 0, n = 0; kind < LS_OP_KINDS; kind++)
        if (compute_of((enum ls_op_kind)kind) != NULL) {
            kernel[n] = (struct ls_kernel){.kind = (enum ls_op_kind)kind,
                                           .name = ls_op_kind_name((enum ls_op_kind)kind),
                                           .accepts = is_plain,
                                           .prepare = prepare,
                                           .run = run,
                                           .in_place = -1};
            kernel_table[n] = &kernel[n];
            n++;
        }
}

static const struct ls_kernel *const *kernels(void)
{
    pthread_once(&once, make_kernels);
    return kernel_table;
}

static bool supports(const struct ls_op *op)
{
    return ls_kernel_find(kernels(), op) != NULL;
}

/* ---- Gradients from factors ---- */

static void weight_gradient(const struct ls_factoring *factoring,
                            const struct ls_factor_rows *factors,
                            const struct ls_gradient_piece *piece, float *gradient)
{
    const size_t inputs = (size_t)factoring->size[LS_FACTOR_INPUT];
    const size_t outputs = (size_t)factoring->size[LS_FACTOR_OUTPUT];
    for (size_t i = 0; i < piece->rows * piece->columns; i++) {
        const size_t at = piece->begin + i / piece->columns * piece->row + i % piece->columns;
        const size_t in = factoring->transpose ? at / outputs : at % inputs;
        const size_t out = factoring->transpose ? at % outputs : at / inputs;
        double sum = 0;
        for (size_t r = 0; r < factors->rows; r++)
            sum += (double)factors->side[LS_FACTOR_INPUT][r * inputs + in] *
                   (double)factors->side[LS_FACTOR_OUTPUT][r * outputs + out];
        gradient[i] = (float)sum;
    }
}

static void bias_gradient(const struct ls_factoring *factoring,
                          const struct ls_factor_rows *factors,
                          const struct ls_gradient_piece *piece, float *gradient)
{
    for (size_t i = 0; i < piece->columns; i++) {
        double sum = 0;
        for (size_t r = 0; r < factors->rows; r++)
            sum +=
                (double)
                    factors->side[LS_FACTOR_OUTPUT]
                                 [r * (size_t)factoring->size[LS_FACTOR_OUTPUT] + piece->begin + i];
        gradient[i] = (float)sum;
    }
}

/* ---- Environment ----------------------------------------------------------------------------- */

static const char *isa(void)
{
    return "reference";
}

static void name_device(struct ls_text *text)
{
    ls_text_add(text, "device=reference\n");
}

static int describe(struct ls_text *text, struct ls_error *error)
{
    name_device(text);
    return text->failed ? ls_fail_memory(error, "the numeric environment") : 0;
}

/* Everything but these functions is defined to the bit. */
static int own(uint64_t *hash, struct ls_error *error)
{
    (void)error;
    *hash = 0;
    for (int i = 1; i < 64; i++) {
        const double x = (double)i / 7;
        const double y[] = {Sleef_cinz_expd1_u10purec(-x),     Sleef_cinz_logd1_u10purec(x),
                            Sleef_cinz_powd1_u10purec(x, 1.3), Sleef_cinz_tanhd1_u10purec(x),
                            Sleef_cinz_expm1d1_u10purec(-x),   Sleef_cinz_log1pd1_u10purec(x)};
        *hash = ls_hash(y, sizeof y, *hash);
    }
    return 0;
}

static const struct ls_device_environment environment = {
    .named = true,
    .isa = isa,
    .widest_isa = isa,
    .describe = name_device,
    .own = own,
};

const struct ls_device ls_device_reference = {
    .name = "reference",
    .kernels = kernels,
    .supports = supports,
    .memory = &ls_host_memory,
    .streams = &ls_thread_streams,
    .parameter_from_plain = ls_plain_parameter,
    .parameter_to_plain = ls_plain_parameter,
    .convert = ls_dtype_convert,
    .converter_new = ls_plain_converter_new,
    .converter_run = ls_plain_converter_run,
    .converter_free = ls_plain_converter_free,
    .merge = ls_plain_merge,
    .fill = ls_plain_fill,
    .sums = &ls_plain_sums,
    .weight_gradient = weight_gradient,
    .bias_gradient = bias_gradient,
    .update = ls_plain_update,
    .enter_thread = ls_set_float_mode,
    .describe = describe,
    .environment = &environment,
};
