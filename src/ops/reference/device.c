/* The reference device: kernels from the tables of this folder, gradients from factors, its name.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/text.h"
#include "base/thread.h"
#include "device/factor_sum.h"
#include "device/products.h"
#include "device/regions.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "device/defined.h"
#include "ops/reference/portable.h"

/* ---- Kernels --------------------------------------------------------------------------------- */

static void accumulate(const struct ls_call *call)
{
    const struct ls_shape *shape = &call->op->input[0]->shape;
    const int parameter = call->op->attr.parameter->index;
    if (call->op->inputs > 1) {
        const struct ls_accumulated_rows rows = {call->in[0], call->in[1], (size_t)shape->dim[0],
                                                 (size_t)shape->dim[1]};
        ls_plain_accumulate_rows(call->context->accumulator, call->context->micro_batch, parameter,
                                 &rows);
        return;
    }
    ls_plain_accumulate(call->context->accumulator, call->context->micro_batch, parameter,
                        call->in[0]);
}

static void record(const struct ls_call *call)
{
    const size_t numbers = (size_t)ls_size(call->op->input[0]);
    memcpy(call->context->factor.rows, call->in[0], numbers * sizeof(float));
    ls_plain_sums.largest(call->in[0], numbers, call->context->factor.largest, NULL);
}

static int call_plugin(const struct ls_call *call)
{
    return call->op->attr.plugin.run(call->op, call->in, call->out, call->scratch,
                                     call->context->first_ordinal, call->context->error);
}

static size_t plugin_scratch(const struct ls_op *op)
{
    return op->attr.plugin.scratch_bytes;
}

static const struct ls_compute ls_ref_gradients[LS_OP_KINDS] = {
    [LS_OP_ACCUMULATE] = {.run = accumulate},
    [LS_OP_RECORD] = {.run = record},
    [LS_OP_PLUGIN] = {.call = call_plugin, .scratch = plugin_scratch},
    [LS_OP_PLUGIN_BACKWARD] = {.call = call_plugin, .scratch = plugin_scratch},
};

/* Tables of all kinds, one behind the other. */
static const struct ls_compute *find(const struct ls_compute *const *tables, size_t count,
                                     enum ls_op_kind kind)
{
    static const struct ls_compute none;
    for (size_t t = 0; t < count; t++)
        if (memcmp(&tables[t][kind], &none, sizeof none) != 0)
            return &tables[t][kind];
    return NULL;
}

/* Ops that all devices compute alike. */
static void run_defined(const struct ls_call *call)
{
    const struct ls_defined_call defined = {call->op, call->in, call->out, call->scratch,
                                            call->context};
    ls_defined_find(call->op)->run(&defined);
}

static size_t defined_scratch(const struct ls_op *op)
{
    const struct ls_defined *defined = ls_defined_find(op);
    return defined->scratch != NULL ? defined->scratch(op) : 0;
}

static const struct ls_compute ls_ref_defined = {.run = run_defined, .scratch = defined_scratch};

static const struct ls_compute *compute_of(enum ls_op_kind kind)
{
    static const struct ls_compute *const tables[] = {
        ls_ref_attention, ls_ref_elements, ls_ref_losses,    ls_ref_norms,    ls_ref_recurrent,
        ls_ref_regions,   ls_ref_windows,  ls_ref_sequences, ls_ref_gradients};
    const struct ls_compute *found = find(tables, sizeof tables / sizeof *tables, kind);
    return found == NULL && ls_defined_of(kind) != NULL ? &ls_ref_defined : found;
}

/* Whether the bits of an op are declared for all devices. */
static bool is_portable(const struct ls_op *op)
{
    return ls_op_is_portable_product(op) || (op->layer != NULL && op->layer->graph->portable);
}

/* How an op is computed. */
static const struct ls_compute *choose(const struct ls_op *op)
{
    static const struct ls_compute *const tables[] = {ls_portable_elements, ls_portable_losses,
                                                      ls_portable_norms,    ls_portable_products,
                                                      ls_portable_windows,  ls_portable_sequences};
    if (ls_defined_find(op) != NULL)
        return &ls_ref_defined;
    const struct ls_compute *found =
        is_portable(op) ? find(tables, sizeof tables / sizeof *tables, op->kind) : NULL;
    return found != NULL ? found : compute_of(op->kind);
}

static void add_terms(const struct ls_compute *compute, const struct ls_call *call)
{
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++) {
        double term[2] = {0, 0};
        const int64_t to = compute->terms(call, i, term);
        for (int k = 0; k < 2; k++)
            if (call->sum[k] != NULL)
                call->sum[k][to] += term[k];
    }
}

/* What is added up, rounded. */
static void round_sums(const struct ls_call *call)
{
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; call->sum[k] != NULL && i < ls_size(call->op->output[k]); i++)
            ((float *)call->out[k])[i] = (float)call->sum[k][i];
}

/* Bytes of the sums of output k. */
static size_t sum_bytes(const struct ls_op *op, int k)
{
    const bool there = k < op->outputs && op->output[k] != NULL && op->output[k]->type == LS_F32;
    return there ? (size_t)ls_size(op->output[k]) * sizeof(double) : 0;
}

static int run(const struct ls_prepared *prepared, void *local, void *const *in, void *const *out,
               void *scratch, const struct ls_context *context)
{
    const struct ls_op *op = prepared->op;
    const struct ls_compute *compute = prepared->state;
    struct ls_call call = {op, in, out, {NULL, NULL}, scratch, context};
    (void)local;
    LS_TRY(ls_check_numbers(op, in, context->error));
    if (compute->terms != NULL || compute->add != NULL) {
        char *place = memset(scratch, 0, sum_bytes(op, 0) + sum_bytes(op, 1));
        for (int k = 0; k < 2; place += sum_bytes(op, k++))
            if (sum_bytes(op, k) > 0 && out[k] != NULL)
                call.sum[k] = (double *)(void *)place;
        call.scratch = place;
        if (compute->add != NULL)
            compute->add(&call);
        else
            add_terms(compute, &call);
        round_sums(&call);
    } else if (compute->call != NULL) {
        return compute->call(&call);
    } else if (compute->run != NULL) {
        compute->run(&call);
    } else if (compute->count != NULL) {
        compute->count(op, in, context->partials);
    }
    for (int64_t i = 0; compute->element != NULL && i < ls_size(op->output[0]); i++)
        ((float *)out[0])[i] = (float)compute->element(&call, i);
    for (int64_t i = 0; compute->number != NULL && i < ls_size(op->output[0]); i++)
        ((float *)out[0])[i] = compute->number(&call, i);
    return 0;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    const struct ls_compute *compute = choose(op);
    prepared->state = (void *)compute;
    strcpy(prepared->implementation, "reference");
    if (compute->terms != NULL || compute->add != NULL)
        prepared->scratch_bytes = sum_bytes(op, 0) + sum_bytes(op, 1);
    if (compute->scratch != NULL)
        prepared->scratch_bytes += compute->scratch(op);
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
                                           .bits = LS_BITS_OWN,
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

/* ---- Gradients from factors ------------------------------------------------------------------ */

/* The sum over rows of x[in] dy[out], or of dy[out]. */
static float add_rows(const struct ls_factoring *factoring, const struct ls_factor_rows *factors,
                      const size_t *in, size_t out)
{
    return ls_factor_sum(
        in != NULL ? factors->side[LS_FACTOR_INPUT] + *in : NULL,
        (size_t)factoring->size[LS_FACTOR_INPUT], factors->side[LS_FACTOR_OUTPUT] + out,
        (size_t)factoring->size[LS_FACTOR_OUTPUT], factors->rows, factoring->portable);
}

static int weight_gradient(const struct ls_factoring *factoring,
                           const struct ls_factor_rows *factors,
                           const struct ls_gradient_piece *piece, float *gradient,
                           struct ls_error *error)
{
    (void)error;
    const bool transpose = factoring->transpose;
    const size_t row = (size_t)factoring->size[transpose ? LS_FACTOR_OUTPUT : LS_FACTOR_INPUT];
    for (size_t i = 0; i < piece->rows * piece->columns; i++) {
        const size_t at = piece->begin + i / piece->columns * piece->row + i % piece->columns;
        const size_t in = transpose ? at / row : at % row, out = transpose ? at % row : at / row;
        gradient[i] = add_rows(factoring, factors, &in, out);
    }
    return 0;
}

static int bias_gradient(const struct ls_factoring *factoring, const struct ls_factor_rows *factors,
                         const struct ls_gradient_piece *piece, float *gradient,
                         struct ls_error *error)
{
    (void)error;
    for (size_t i = 0; i < piece->columns; i++)
        gradient[i] = add_rows(factoring, factors, NULL, piece->begin + i);
    return 0;
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

static const struct ls_device_environment environment = {
    .named = true,
    .portable = true,
    .isa = isa,
    .widest_isa = isa,
    .describe = name_device,
};

const struct ls_device ls_device_reference = {
    .name = "reference",
    .kernels = kernels,
    .supports = supports,
    .memory = &ls_host_memory,
    .streams = &ls_thread_streams,
    .parameter_from_plain = ls_plain_parameter,
    .parameter_to_plain = ls_plain_parameter,
    .converter_new = ls_plain_converter_new,
    .converter_run = ls_plain_converter_run,
    .converter_free = ls_plain_converter_free,
    .merge = ls_plain_merge,
    .fill = ls_plain_fill,
    .sums = &ls_plain_sums,
    .accumulator = &ls_plain_accumulator,
    .weight_gradient = weight_gradient,
    .bias_gradient = bias_gradient,
    .update = ls_plain_update,
    .clear_masked = ls_plain_clear_masked,
    .products = &ls_plain_products,
    .enter_thread = ls_set_float_mode,
    .environment = &environment,
};
