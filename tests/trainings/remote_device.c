/* The remote device: the CPU's kernels and tables, called with addresses of its memory. See
 * remote_device.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/remote_device.h"

#include <pthread.h>
#include <stdlib.h>

#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/cpu/device.h"
#include "ops/devices.h"
#include "trainings/remote_parts.h"

/* ---- Kernels --------------------------------------------------------------------------------- */

enum { KERNELS_MAX = 200, SYNCS_MAX = 64 };

struct remote_kernel {
    struct ls_kernel kernel; /* first: it is found by its kernel */
    const struct ls_kernel *original;
};

static struct remote_kernel kernels[KERNELS_MAX];
static const struct ls_kernel *kernel_table[KERNELS_MAX + 1];

static const struct ls_kernel *original_of(const struct ls_prepared *prepared)
{
    return ((const struct remote_kernel *)(const void *)prepared->kernel)->original;
}

/* Pointers of a call as the CPU's kernels need them. */
struct call {
    struct ls_context context;
    double *partial[SYNCS_MAX];
    float *merged[SYNCS_MAX];
    void *in[LS_OP_VALUES_MAX], *out[LS_OP_VALUES_MAX], *scratch;
};

static void call_begin(struct call *call, const struct ls_prepared *prepared, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    const struct ls_op *op = prepared->op;
    for (int i = 0; i < op->inputs; i++)
        call->in[i] = remote_near(in[i]);
    for (int i = 0; i < op->outputs; i++)
        call->out[i] = remote_near(out[i]);
    call->scratch = remote_near(scratch);
    if (context == NULL)
        return;
    call->context = *context;
    call->context.partials = remote_near(context->partials);
    call->context.factor.rows = remote_near(context->factor.rows);
    call->context.factor.largest = remote_near(context->factor.largest);
    if (context->partial == NULL || op->layer == NULL || op->layer->graph == NULL)
        return;
    size_t syncs = op->layer->graph->sync_count;
    if (syncs > SYNCS_MAX)
        abort();
    for (size_t s = 0; s < syncs; s++) {
        call->partial[s] = remote_near(context->partial[s]);
        call->merged[s] = remote_near(context->merged[s]);
    }
    call->context.partial = call->partial;
    call->context.merged = call->merged;
}

static int kernel_bind(const struct ls_prepared *prepared, void *const *in, void *const *out,
                       void *scratch, void **local, struct ls_error *error)
{
    struct call call = {0};
    call_begin(&call, prepared, in, out, scratch, NULL);
    return original_of(prepared)->bind(prepared, call.in, call.out, call.scratch, local, error);
}

static int kernel_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    const enum ls_op_kind kind = prepared->op->kind;
    struct call call = {0};
    if (remote_call_fails(REMOTE_RUN))
        return LOCKSTEP_INTERNAL; /* without a word */
    call_begin(&call, prepared, in, out, scratch, context);
    if ((kind == LS_OP_ACCUMULATE && prepared->op->inputs == 1) || kind == LS_OP_RECORD) {
        remote_stream_give(prepared, original_of(prepared), call.in[0],
                           ls_value_bytes(prepared->op->input[0]) / sizeof(float), &call.context);
        return 0;
    }
    remote_enter();
    int status =
        original_of(prepared)->run(prepared, local, call.in, call.out, call.scratch, &call.context);
    remote_leave();
    return status;
}

static int kernel_run_channels(const struct ls_prepared *prepared, void *const *in,
                               void *const *out, void *scratch, const struct ls_context *context,
                               int64_t begin, int64_t end)
{
    struct call call = {0};
    if (remote_call_fails(REMOTE_RUN_CHANNELS))
        return LOCKSTEP_RESOURCE;
    call_begin(&call, prepared, in, out, scratch, context);
    remote_enter();
    int status = original_of(prepared)->run_channels(prepared, call.in, call.out, call.scratch,
                                                     &call.context, begin, end);
    remote_leave();
    return status;
}

static int kernel_tile(const struct ls_prepared *prepared, void *const *in,
                       const struct ls_product_tile *tile, struct ls_error *error)
{
    struct call call = {0};
    struct ls_product_tile there = *tile;
    REMOTE_MAY_FAIL(REMOTE_TILE, error);
    for (int i = 1; i < prepared->op->inputs; i++)
        call.in[i] = remote_near(in[i]);
    there.rows = remote_near(tile->rows);
    there.out = remote_near(tile->out);
    there.scratch = remote_near(tile->scratch);
    return original_of(prepared)->tile(prepared, call.in, &there, error);
}

static void make_kernels(void)
{
    const struct ls_kernel *const *original = ls_device_cpu.kernels();
    for (int i = 0; original[i] != NULL; i++) {
        if (i == KERNELS_MAX)
            abort();
        kernels[i] = (struct remote_kernel){.kernel = *original[i], .original = original[i]};
        struct ls_kernel *kernel = &kernels[i].kernel;
        kernel->bind = kernel->bind != NULL ? kernel_bind : NULL;
        kernel->run = kernel_run;
        kernel->run_channels = kernel->run_channels != NULL ? kernel_run_channels : NULL;
        kernel->tile = kernel->tile != NULL ? kernel_tile : NULL;
        kernel_table[i] = kernel;
    }
}

static const struct ls_kernel *const *remote_kernels(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_kernels);
    return kernel_table;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static int to_layout(const struct ls_layout *layout, const struct ls_shape *shape,
                     const float *plain, float *laid_out, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_TO_LAYOUT, error);
    return ls_device_cpu.parameter_from_plain(layout, shape, plain, remote_near(laid_out), error);
}

static int to_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                    const float *laid_out, float *plain, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_TO_PLAIN, error);
    return ls_device_cpu.parameter_to_plain(layout, shape, remote_near(laid_out), plain, error);
}

static int converter_new(const struct ls_layout *from, const struct ls_layout *to,
                         const struct ls_shape *shape, enum ls_dtype type,
                         struct ls_converter **converter, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_CONVERTER, error);
    return ls_device_cpu.converter_new(from, to, shape, type, converter, error);
}

static int converter_run(struct ls_converter *converter, const float *source, void *target,
                         struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_CONVERT, error);
    return ls_device_cpu.converter_run(converter, remote_near(source), remote_near(target), error);
}

static int merge(struct ls_stream *stream, const struct ls_sync *sync, const double *const *rows,
                 int count, int64_t begin, int64_t end, float *merged, struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_MERGE, error);
    const double **there = calloc((size_t)count + 1, sizeof *there);
    if (there == NULL)
        abort();
    for (int i = 0; i < count; i++)
        there[i] = remote_near(rows[i]);
    int status =
        ls_device_cpu.merge(stream, sync, there, count, begin, end, remote_near(merged), error);
    free((void *)there);
    return status;
}

/* Factors and a piece of their gradient as the CPU needs them. */
static struct ls_factor_rows near_factors(const struct ls_factor_rows *factors)
{
    struct ls_factor_rows near = *factors;
    for (int side = 0; side < LS_FACTOR_SIDES; side++)
        near.side[side] = remote_near(factors->side[side]);
    return near;
}

static struct ls_gradient_piece near_piece(const struct ls_gradient_piece *piece)
{
    struct ls_gradient_piece near = *piece;
    for (int i = 0; i < LS_GRADIENT_NEXT; i++)
        near.next[i] = remote_near(piece->next[i]);
    return near;
}

static int weight_gradient(const struct ls_factoring *factoring,
                           const struct ls_factor_rows *factors,
                           const struct ls_gradient_piece *piece, float *out,
                           struct ls_error *error)
{
    const struct ls_factor_rows rows = near_factors(factors);
    const struct ls_gradient_piece there = near_piece(piece);
    REMOTE_MAY_FAIL(REMOTE_WEIGHT_GRADIENT, error);
    return ls_device_cpu.weight_gradient(factoring, &rows, &there, remote_near(out), error);
}

static int bias_gradient(const struct ls_factoring *factoring, const struct ls_factor_rows *factors,
                         const struct ls_gradient_piece *piece, float *out, struct ls_error *error)
{
    const struct ls_factor_rows rows = near_factors(factors);
    const struct ls_gradient_piece there = near_piece(piece);
    REMOTE_MAY_FAIL(REMOTE_BIAS_GRADIENT, error);
    return ls_device_cpu.bias_gradient(factoring, &rows, &there, remote_near(out), error);
}

static int update(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                  struct ls_update_seen *seen, struct ls_error *error)
{
    struct ls_update_slice there = *slice;
    REMOTE_MAY_FAIL(REMOTE_UPDATE, error);
    there.gradient = remote_near(slice->gradient);
    there.weight = remote_near(slice->weight);
    there.average = remote_near(slice->average);
    there.history[0] = remote_near(slice->history[0]);
    there.history[1] = remote_near(slice->history[1]);
    there.direction = remote_near(slice->direction);
    return ls_device_cpu.update(rule, &there, seen, error);
}

static int clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                        struct ls_error *error)
{
    REMOTE_MAY_FAIL(REMOTE_CLEAR_MASKED, error);
    return ls_device_cpu.clear_masked(remote_near(mask), first, remote_near(numbers), n, error);
}

/* ---- The device ------------------------------------------------------------------------------ */

/* Probes run kernels in memory of their own. */
static int probe(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                 uint64_t *hash, struct ls_error *error)
{
    remote_enter();
    int status = ls_device_cpu.environment->probe(prepared, samples, work, hash, error);
    remote_leave();
    return status;
}

static struct ls_device remote_device;
static struct ls_device_environment environment;
static bool used;

void remote_use(bool on)
{
    environment = *ls_device_cpu.environment;
    environment.probe = probe;
    remote_device = ls_device_cpu; /* its name, too: the same environment */
    remote_device.kernels = remote_kernels;
    remote_device.memory = &remote_memory;
    remote_device.streams = &remote_streams;
    remote_device.parameter_from_plain = to_layout;
    remote_device.parameter_to_plain = to_plain;
    remote_device.converter_new = converter_new;
    remote_device.converter_run = converter_run;
    remote_device.merge = merge;
    remote_device.sums = &remote_sums;
    remote_device.accumulator = &remote_accumulator;
    remote_device.weight_gradient = weight_gradient;
    remote_device.bias_gradient = bias_gradient;
    remote_device.update = update;
    remote_device.clear_masked = clear_masked;
    remote_device.environment = &environment;
    used = on;
}

int __real_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);
int __wrap_ls_device_find(const char *name, const struct ls_device **device,
                          struct ls_error *error);

int __wrap_ls_device_find(const char *name, const struct ls_device **device, struct ls_error *error)
{
    int status = __real_ls_device_find(name, device, error);
    if (status == 0 && name == NULL && used)
        *device = &remote_device;
    return status;
}
