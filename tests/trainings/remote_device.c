/* See remote_device.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/remote_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/cpu/device.h"
#include "ops/devices.h"

/* ---- Failures -------------------------------------------------------------------------------- */

const char *const remote_call_names[REMOTE_CALL_COUNT] = {
#define ENTRY(name) #name,
    REMOTE_CALLS(ENTRY)
#undef ENTRY
};

static _Atomic long calls[REMOTE_CALL_COUNT];
static _Atomic int to_fail = -1;
static _Atomic long calls_left;
static _Atomic bool has_failed;

static bool fails(enum remote_call call)
{
    atomic_fetch_add(&calls[call], 1);
    if (atomic_load(&to_fail) != (int)call || atomic_fetch_sub(&calls_left, 1) != 0)
        return false;
    atomic_store(&has_failed, true);
    return true;
}

static int fail(enum remote_call call, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "the remote device fails in %s",
                   remote_call_names[call]);
}

/* Leaves the calling function if the call is to fail. */
#define MAY_FAIL(call, error)                                                                      \
    do {                                                                                           \
        if (fails(call))                                                                           \
            return fail(call, error);                                                              \
    } while (0)

void remote_fail(enum remote_call call, long after)
{
    for (int c = 0; c < REMOTE_CALL_COUNT; c++)
        atomic_store(&calls[c], 0);
    atomic_store(&has_failed, false);
    atomic_store(&calls_left, after);
    atomic_store(&to_fail, (int)call);
}

void remote_fail_nothing(void)
{
    atomic_store(&to_fail, -1);
}

bool remote_has_failed(void)
{
    return atomic_load(&has_failed);
}

long remote_calls(enum remote_call call)
{
    return atomic_load(&calls[call]);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Far beyond what a process can have: code that follows such an address crashes. */
#define FAR (UINT64_C(1) << 62)

static _Atomic size_t bytes_out;
static _Thread_local int inside; /* the device's own code, which may call itself */

size_t remote_bytes(void)
{
    return atomic_load(&bytes_out);
}

static void *far_away(const void *near)
{
    return near != NULL ? (void *)((uintptr_t)near + FAR) : NULL;
}

static void *near(const void *address)
{
    uintptr_t place = (uintptr_t)address;
    if (address == NULL)
        return NULL;
    if (place >= FAR)
        return (void *)(place - FAR);
    if (inside == 0) {
        fprintf(stderr, "an address of the host's memory was given to the device\n");
        abort();
    }
    return (void *)place;
}

static void *memory_create(size_t bytes)
{
    size_t *block = fails(REMOTE_CREATE) ? NULL : ls_alloc_aligned(bytes + 64);
    if (block == NULL)
        return NULL;
    *block = bytes;
    atomic_fetch_add(&bytes_out, bytes);
    return far_away((char *)block + 64);
}

static void memory_free(void *memory)
{
    if (memory == NULL)
        return;
    size_t *block = (size_t *)(void *)((char *)near(memory) - 64);
    atomic_fetch_sub(&bytes_out, *block);
    ls_free_aligned(block);
}

static int memory_write(struct ls_stream *stream, void *target, const void *host, size_t bytes,
                        struct ls_error *error)
{
    (void)stream;
    MAY_FAIL(REMOTE_WRITE, error);
    if (bytes > 0)
        memcpy(near(target), host, bytes);
    return 0;
}

static int memory_read(struct ls_stream *stream, void *host, const void *source, size_t bytes,
                       struct ls_error *error)
{
    (void)stream;
    MAY_FAIL(REMOTE_READ, error);
    if (bytes > 0)
        memcpy(host, near(source), bytes);
    return 0;
}

static int memory_copy(struct ls_stream *stream, void *target, const void *source, size_t bytes,
                       struct ls_error *error)
{
    (void)stream;
    MAY_FAIL(REMOTE_COPY, error);
    if (bytes > 0)
        memcpy(near(target), near(source), bytes);
    return 0;
}

static int memory_zero(struct ls_stream *stream, void *target, size_t bytes, struct ls_error *error)
{
    (void)stream;
    MAY_FAIL(REMOTE_ZERO, error);
    if (bytes > 0)
        memset(near(target), 0, bytes);
    return 0;
}

static int memory_swap(void *a, void *b, size_t bytes, struct ls_error *error)
{
    MAY_FAIL(REMOTE_SWAP, error);
    return ls_host_memory.swap(near(a), near(b), bytes, error);
}

static int memory_hash(const void *memory, size_t bytes, uint64_t seed, uint64_t *hash,
                       struct ls_error *error)
{
    MAY_FAIL(REMOTE_HASH, error);
    return ls_host_memory.hash(near(memory), bytes, seed, hash, error);
}

static const struct ls_device_memory memory = {
    .create = memory_create,
    .free = memory_free,
    .write = memory_write,
    .read = memory_read,
    .copy = memory_copy,
    .zero = memory_zero,
    .swap = memory_swap,
    .hash = memory_hash,
};

/* ---- Streams --------------------------------------------------------------------------------- */

/* A kernel that runs later, on numbers as they were. */
struct task {
    struct task *next;
    const struct ls_prepared *prepared;
    const struct ls_kernel *kernel;
    struct ls_context context;
    float numbers[];
};

struct remote_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct task *first, **last;
    long given, done;
    bool ends;
};

struct remote_event {
    struct remote_stream *_Atomic stream;
    _Atomic long at;
};

static void *stream_work(void *argument)
{
    struct remote_stream *stream = argument;
    ls_device_cpu.enter_thread();
    inside = 1;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->first == NULL && !stream->ends)
            pthread_cond_wait(&stream->moved, &stream->lock);
        struct task *task = stream->first;
        if (task == NULL)
            break;
        pthread_mutex_unlock(&stream->lock);
        nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
        void *in[1] = {task->numbers};
        struct ls_prepared prepared = *task->prepared;
        prepared.kernel = task->kernel;
        if (task->kernel->run(&prepared, NULL, in, in + 1, NULL, &task->context) != 0)
            abort();
        pthread_mutex_lock(&stream->lock);
        stream->first = task->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        stream->done++;
        free(task);
        pthread_cond_broadcast(&stream->moved);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static int stream_create(struct ls_stream **out, struct ls_error *error)
{
    MAY_FAIL(REMOTE_STREAM, error);
    struct remote_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        abort();
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->moved, NULL);
    stream->last = &stream->first;
    if (pthread_create(&stream->thread, NULL, stream_work, stream) != 0)
        abort();
    *out = (struct ls_stream *)(void *)stream;
    return 0;
}

static void stream_free(struct ls_stream *public)
{
    struct remote_stream *stream = (void *)public;
    pthread_mutex_lock(&stream->lock);
    stream->ends = true;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Gives the stream a kernel that takes `count` numbers. */
static void stream_give(const struct ls_prepared *prepared, const struct ls_kernel *kernel,
                        const float *numbers, size_t count, const struct ls_context *context)
{
    struct remote_stream *stream = (void *)context->stream;
    struct task *task = malloc(sizeof *task + count * sizeof *numbers);
    if (task == NULL)
        abort();
    *task = (struct task){.prepared = prepared, .kernel = kernel, .context = *context};
    memcpy(task->numbers, numbers, count * sizeof *numbers);
    pthread_mutex_lock(&stream->lock);
    *stream->last = task;
    stream->last = &task->next;
    stream->given++;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
}

static void stream_await(struct remote_stream *stream, long at)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->done < (at >= 0 ? at : stream->given))
        pthread_cond_wait(&stream->moved, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

static int stream_wait(struct ls_stream *stream, struct ls_error *error)
{
    stream_await((void *)stream, -1); /* what was given ends, whatever is told of it */
    MAY_FAIL(REMOTE_WAIT, error);
    return 0;
}

static int event_create(struct ls_event **out, struct ls_error *error)
{
    MAY_FAIL(REMOTE_EVENT, error);
    struct remote_event *event = calloc(1, sizeof *event);
    if (event == NULL)
        abort();
    *out = (struct ls_event *)(void *)event;
    return 0;
}

static void event_free(struct ls_event *event)
{
    free(event);
}

static int event_record(struct ls_event *public, struct ls_stream *stream, struct ls_error *error)
{
    struct remote_event *event = (void *)public;
    struct remote_stream *from = (void *)stream;
    MAY_FAIL(REMOTE_RECORD, error);
    pthread_mutex_lock(&from->lock);
    atomic_store(&event->at, from->given);
    pthread_mutex_unlock(&from->lock);
    atomic_store(&event->stream, from);
    return 0;
}

static bool event_done(const struct ls_event *public)
{
    const struct remote_event *event = (const void *)public;
    struct remote_stream *stream = atomic_load(&event->stream);
    if (stream == NULL)
        return true;
    pthread_mutex_lock(&stream->lock);
    bool done = stream->done >= atomic_load(&event->at);
    pthread_mutex_unlock(&stream->lock);
    return done;
}

static int event_wait(struct ls_event *public, struct ls_error *error)
{
    struct remote_event *event = (void *)public;
    struct remote_stream *stream = atomic_load(&event->stream);
    if (stream != NULL)
        stream_await(stream, atomic_load(&event->at));
    MAY_FAIL(REMOTE_EVENT_WAIT, error);
    return 0;
}

static const struct ls_device_streams streams = {
    .create = stream_create,
    .free = stream_free,
    .wait = stream_wait,
    .event_create = event_create,
    .event_free = event_free,
    .event_record = event_record,
    .event_done = event_done,
    .event_wait = event_wait,
};

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
        call->in[i] = near(in[i]);
    for (int i = 0; i < op->outputs; i++)
        call->out[i] = near(out[i]);
    call->scratch = near(scratch);
    if (context == NULL)
        return;
    call->context = *context;
    call->context.partials = near(context->partials);
    call->context.factor.rows = near(context->factor.rows);
    call->context.factor.largest = near(context->factor.largest);
    if (context->partial == NULL || op->layer == NULL || op->layer->graph == NULL)
        return;
    size_t syncs = op->layer->graph->sync_count;
    if (syncs > SYNCS_MAX)
        abort();
    for (size_t s = 0; s < syncs; s++) {
        call->partial[s] = near(context->partial[s]);
        call->merged[s] = near(context->merged[s]);
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
    if (fails(REMOTE_RUN))
        return LOCKSTEP_INTERNAL; /* without a word */
    call_begin(&call, prepared, in, out, scratch, context);
    if (kind == LS_OP_ACCUMULATE || kind == LS_OP_RECORD) {
        stream_give(prepared, original_of(prepared), call.in[0],
                    ls_value_bytes(prepared->op->input[0]) / sizeof(float), &call.context);
        return 0;
    }
    inside++;
    int status =
        original_of(prepared)->run(prepared, local, call.in, call.out, call.scratch, &call.context);
    inside--;
    return status;
}

static int kernel_run_channels(const struct ls_prepared *prepared, void *const *in,
                               void *const *out, void *scratch, const struct ls_context *context,
                               int64_t begin, int64_t end)
{
    struct call call = {0};
    if (fails(REMOTE_RUN_CHANNELS))
        return LOCKSTEP_RESOURCE;
    call_begin(&call, prepared, in, out, scratch, context);
    inside++;
    int status = original_of(prepared)->run_channels(prepared, call.in, call.out, call.scratch,
                                                     &call.context, begin, end);
    inside--;
    return status;
}

static int kernel_tile(const struct ls_prepared *prepared, void *const *in,
                       const struct ls_product_tile *tile, struct ls_error *error)
{
    struct call call = {0};
    struct ls_product_tile there = *tile;
    MAY_FAIL(REMOTE_TILE, error);
    for (int i = 1; i < prepared->op->inputs; i++)
        call.in[i] = near(in[i]);
    there.rows = near(tile->rows);
    there.out = near(tile->out);
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
    MAY_FAIL(REMOTE_TO_LAYOUT, error);
    return ls_device_cpu.parameter_from_plain(layout, shape, plain, near(laid_out), error);
}

static int to_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                    const float *laid_out, float *plain, struct ls_error *error)
{
    MAY_FAIL(REMOTE_TO_PLAIN, error);
    return ls_device_cpu.parameter_to_plain(layout, shape, near(laid_out), plain, error);
}

static int converter_new(const struct ls_layout *from, const struct ls_layout *to,
                         const struct ls_shape *shape, enum ls_dtype type,
                         struct ls_converter **converter, struct ls_error *error)
{
    MAY_FAIL(REMOTE_CONVERTER, error);
    return ls_device_cpu.converter_new(from, to, shape, type, converter, error);
}

static bool converter_run(struct ls_converter *converter, const float *source, void *target)
{
    return !fails(REMOTE_CONVERT) &&
           ls_device_cpu.converter_run(converter, near(source), near(target));
}

static void merge(const struct ls_sync *sync, const double *const *rows, int count, int64_t begin,
                  int64_t end, float *merged)
{
    const double **there = calloc((size_t)count + 1, sizeof *there);
    if (there == NULL)
        abort();
    for (int i = 0; i < count; i++)
        there[i] = near(rows[i]);
    ls_device_cpu.merge(sync, there, count, begin, end, near(merged));
    free((void *)there);
}

static void gradient(bool weight, const struct ls_factoring *factoring,
                     const struct ls_factor_rows *factors, const struct ls_gradient_piece *piece,
                     float *out)
{
    struct ls_factor_rows rows = *factors;
    struct ls_gradient_piece there = *piece;
    for (int side = 0; side < LS_FACTOR_SIDES; side++)
        rows.side[side] = near(factors->side[side]);
    for (int i = 0; i < LS_GRADIENT_NEXT; i++)
        there.next[i] = near(piece->next[i]);
    (weight ? ls_device_cpu.weight_gradient : ls_device_cpu.bias_gradient)(factoring, &rows, &there,
                                                                           near(out));
}

static void weight_gradient(const struct ls_factoring *factoring,
                            const struct ls_factor_rows *factors,
                            const struct ls_gradient_piece *piece, float *out)
{
    gradient(true, factoring, factors, piece, out);
}

static void bias_gradient(const struct ls_factoring *factoring,
                          const struct ls_factor_rows *factors,
                          const struct ls_gradient_piece *piece, float *out)
{
    gradient(false, factoring, factors, piece, out);
}

static struct ls_update_seen update(const struct ls_update_rule *rule,
                                    const struct ls_update_slice *slice)
{
    struct ls_update_slice there = *slice;
    there.gradient = near(slice->gradient);
    there.weight = near(slice->weight);
    there.average = near(slice->average);
    there.history[0] = near(slice->history[0]);
    there.history[1] = near(slice->history[1]);
    return ls_device_cpu.update(rule, &there);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static uint32_t sums_largest(const float *x, size_t n)
{
    return ls_device_cpu.sums->largest(near(x), n);
}

static double sums_squares(const float *x, size_t n)
{
    return ls_device_cpu.sums->squares(near(x), n);
}

static double sums_magnitudes(const float *x, size_t n)
{
    return ls_device_cpu.sums->magnitudes(near(x), n);
}

static const struct ls_device_sums sums = {
    .largest = sums_largest,
    .squares = sums_squares,
    .magnitudes = sums_magnitudes,
};

static int accumulator_create(const size_t *elements, const size_t *place, size_t count,
                              int workers, struct ls_accumulator **accumulator,
                              struct ls_error *error)
{
    *accumulator = NULL;
    MAY_FAIL(REMOTE_ACCUMULATOR, error);
    return ls_device_cpu.accumulator->create(elements, place, count, workers, accumulator, error);
}

static void accumulator_free(struct ls_accumulator *accumulator)
{
    ls_device_cpu.accumulator->free(accumulator);
}

static int accumulator_cut(struct ls_accumulator *accumulator, int parameter, size_t rows,
                           const float *row, struct ls_error *error)
{
    MAY_FAIL(REMOTE_CUT, error);
    return ls_device_cpu.accumulator->cut(accumulator, parameter, rows, near(row), error);
}

static void accumulator_part(const struct ls_accumulator *accumulator, int parameter,
                             struct ls_accumulated *part)
{
    ls_device_cpu.accumulator->part(accumulator, parameter, part);
    part->exponent = far_away(part->exponent);
    part->largest = far_away(part->largest);
    part->first_not_finite = far_away(part->first_not_finite);
}

static int accumulator_begin(struct ls_accumulator *accumulator, bool measure,
                             struct ls_error *error)
{
    MAY_FAIL(REMOTE_BEGIN, error);
    return ls_device_cpu.accumulator->begin(accumulator, measure, error);
}

static int64_t *accumulator_all(const struct ls_accumulator *accumulator)
{
    return far_away(ls_device_cpu.accumulator->all(accumulator));
}

static int accumulator_clear_rest(struct ls_accumulator *accumulator, int parameter,
                                  struct ls_error *error)
{
    MAY_FAIL(REMOTE_CLEAR_REST, error);
    return ls_device_cpu.accumulator->clear_rest(accumulator, parameter, error);
}

static int accumulator_read(const struct ls_accumulator *accumulator, int parameter, size_t begin,
                            size_t count, float *out, struct ls_error *error)
{
    MAY_FAIL(REMOTE_READ_SUM, error);
    return ls_device_cpu.accumulator->read(accumulator, parameter, begin, count, near(out), error);
}

static int accumulator_squares(const struct ls_accumulator *accumulator, int parameter,
                               size_t begin, size_t count, double *chunk, struct ls_error *error)
{
    MAY_FAIL(REMOTE_SQUARES, error);
    return ls_device_cpu.accumulator->squares(accumulator, parameter, begin, count, chunk, error);
}

static const struct ls_device_accumulator accumulator = {
    .create = accumulator_create,
    .free = accumulator_free,
    .cut = accumulator_cut,
    .part = accumulator_part,
    .begin = accumulator_begin,
    .all = accumulator_all,
    .clear_rest = accumulator_clear_rest,
    .read = accumulator_read,
    .squares = accumulator_squares,
};

/* ---- The device ------------------------------------------------------------------------------ */

/* Probes run kernels in memory of their own. */
static int probe(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                 uint64_t *hash, struct ls_error *error)
{
    inside++;
    int status = ls_device_cpu.environment->probe(prepared, samples, work, hash, error);
    inside--;
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
    remote_device.memory = &memory;
    remote_device.streams = &streams;
    remote_device.parameter_from_plain = to_layout;
    remote_device.parameter_to_plain = to_plain;
    remote_device.converter_new = converter_new;
    remote_device.converter_run = converter_run;
    remote_device.merge = merge;
    remote_device.sums = &sums;
    remote_device.accumulator = &accumulator;
    remote_device.weight_gradient = weight_gradient;
    remote_device.bias_gradient = bias_gradient;
    remote_device.update = update;
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
