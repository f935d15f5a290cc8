/* What the steps of a net's own shapes give: those of kernels that say so (LS_BITS_BY_SHAPES),
 * above all convolutions, deconvolutions and inner products, whose kernels and blocks are chosen by
 * their shapes.
 *
 * A step is carried out once, as the plan has prepared it, on numbers that follow from their place;
 * the hash of the result belongs to the numeric environment of the net. Kernels of oneDNN are
 * hashed with what it says of them, and in the layouts that they were given; ours in plain order
 * and without regard to the instruction set, whose bits they share. To the result belongs what an
 * op adds to the record of the micro-batch.
 *
 * What that may take is bounded: a whole micro-batch of up to 2^27 multiply-adds is computed, else
 * one sample of up to 2^30, and 2^32 in all (the caller's `work`); a slow kernel counts 64 times.
 * Of what is larger the description stands for the result. Memory is that of the step's tensors,
 * at most 32 MiB, which a training needs anyway.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ir/graph.h"
#include "ir/layer.h"
#include "ir/op_type.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/environment.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/parameter_layout.h"
#include "ops/cpu/primitive.h"

enum {
    PROBE_VALUES = 128,   /* of a probe; ops with more are not probed */
    SLOW = 64,            /* a slow kernel takes so many times as long as others */
    FLOATS_MAX = 1 << 23, /* of all tensors of a probe, in floats */
    PATTERN = 4099,       /* numbers that inputs repeat: a prime, so that no row is as another */
    KNOWN = 512           /* results that a process remembers */
};
#define WHOLE_MAX  ((uint64_t)1 << 27)
#define SAMPLE_MAX ((uint64_t)1 << 30)

bool ls_cpu_probes(const struct ls_prepared *prepared)
{
    return prepared->kernel->bits == LS_BITS_BY_SHAPES &&
           prepared->op->inputs + prepared->op->outputs <= PROBE_VALUES;
}

static bool is_product(const struct ls_op *op)
{
    return op->kind == LS_OP_INNER_PRODUCT || op->kind == LS_OP_INNER_PRODUCT_DATA ||
           op->kind == LS_OP_INNER_PRODUCT_WEIGHTS;
}

static bool is_convolution(const struct ls_op *op)
{
    return op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_CONVOLUTION_DATA ||
           op->kind == LS_OP_CONVOLUTION_WEIGHTS || op->kind == LS_OP_DECONVOLUTION ||
           op->kind == LS_OP_DECONVOLUTION_DATA || op->kind == LS_OP_DECONVOLUTION_WEIGHTS;
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

static uint64_t add_number(int64_t number, uint64_t hash)
{
    return ls_hash(&number, sizeof number, hash);
}

static uint64_t add_value(const struct ls_value *value, bool layout, uint64_t hash)
{
    if (value == NULL)
        return add_number(-1, hash);
    hash = add_number(value->shape.rank, hash);
    for (int i = 0; i < value->shape.rank; i++)
        hash = add_number(value->shape.dim[i], hash);
    if (value->type != LS_F32)
        hash = add_number((int64_t)value->type, hash);
    if (!layout)
        return hash;
    hash = ls_hash_string(value->layout->name, hash);
    return add_number((int64_t)ls_layout_elements(value->layout, &value->shape), hash);
}

/* All that is known of a step before it is run; of a kernel of oneDNN also how that does it. */
static uint64_t describe(const struct ls_prepared *prepared)
{
    const struct ls_op *op = prepared->op;
    bool library = prepared->kernel->library;
    uint64_t hash = ls_hash_string(prepared->kernel->name, 0);
    for (int i = 0; i < op->inputs; i++)
        hash = add_value(op->input[i], library, hash);
    for (int i = 0; i < op->outputs; i++)
        hash = add_value(op->output[i], library, hash);
    if (ls_op_type(op->kind)->attributes != NULL)
        hash = ls_op_type(op->kind)->attributes(op, hash);
    if (!library)
        return hash;
    hash = ls_hash_string(prepared->implementation, hash);
    return add_number((int64_t)prepared->scratch_bytes, hash);
}

static uint64_t multiply(uint64_t a, int64_t b)
{
    int64_t product;
    return ls_multiply((int64_t)a, b, &product) ? (uint64_t)product : INT64_MAX;
}

/* Multiply-adds of a convolution; INT64_MAX: more than that. */
static uint64_t convolution_work(const struct ls_op *op)
{
    const struct ls_value *weights = ls_primitive_value(op, LS_WEIGHTS);
    const struct ls_shape *target = &ls_primitive_value(op, LS_TARGET)->shape;
    int channels = target->rank - op->attr.convolution.window.axes - 1;
    uint64_t work = (uint64_t)ls_shape_size(&weights->shape);
    for (int i = 0; i < target->rank; i++)
        work = i == channels ? work : multiply(work, target->dim[i]);
    return work;
}

/* Multiply-adds of a step, exact for convolutions and products: they decide what is probed. */
static uint64_t work_of(const struct ls_prepared *prepared)
{
    const struct ls_op *op = prepared->op;
    const struct ls_inner_product_attr *product = &op->attr.inner_product;
    uint64_t work;
    if (is_product(op))
        work = multiply(multiply((uint64_t)product->m, product->k), product->n);
    else if (is_convolution(op))
        work = convolution_work(op);
    else
        work = (uint64_t)fmin(ls_op_type(op->kind)->flops(op) / 2 + 1, 0x1p62);
    return prepared->slow ? multiply(work, SLOW) : work;
}

static size_t floats_of(const struct ls_prepared *prepared)
{
    const struct ls_op *op = prepared->op;
    size_t floats = prepared->scratch_bytes / sizeof(float);
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            floats += ls_value_bytes(op->input[i]) / sizeof(float);
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            floats += ls_value_bytes(op->output[i]) / sizeof(float);
    return floats;
}

static bool may_run(const struct ls_prepared *prepared, uint64_t most, uint64_t left)
{
    uint64_t work = work_of(prepared);
    return work <= most && work <= left && floats_of(prepared) <= FLOATS_MAX;
}

/* ---- Running --------------------------------------------------------------------------------- */

struct run {
    const struct ls_prepared *prepared;
    void *data[PROBE_VALUES]; /* inputs, then outputs, as they lie */
    void *in[PROBE_VALUES], *out[PROBE_VALUES];
    void *scratch, *local;
    double *record, *normalizers; /* of the op's graph, one behind the other; NULL: it has none */
    size_t record_size;
    bool bound;
};

/* Numbers from -1 to 1 that no two tensors have alike. */
static void fill(float *data, size_t count, int which)
{
    uint64_t state = (uint64_t)which + 1;
    size_t first = count < PATTERN ? count : PATTERN;
    for (size_t i = 0; i < first; i++) {
        state = ls_mix(state + i + 1);
        data[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    for (size_t i = first; i < count; i++)
        data[i] = data[i - PATTERN];
}

/* Numbers of classes, where input 1 is labels. */
static bool fill_labels(const struct ls_op *op, int which, float *data, size_t count)
{
    struct ls_op_labels labels = {0};
    if (which != 1 || ls_op_type(op->kind)->labels == NULL)
        return false;
    ls_op_type(op->kind)->labels(op, &labels);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)((int64_t)i % labels.classes);
    return true;
}

/* Fills an input of floating-point numbers: as it lies for oneDNN's kernels, which do not ask what
 * is in lanes of padding; in plain order for ours. Integers (places, say) stay zeros. */
static int fill_input(const struct run *run, const struct ls_value *value, int which, void *data,
                      struct ls_error *error)
{
    size_t elements = (size_t)ls_shape_size(&value->shape);
    if (!ls_dtype_is_float(value->type) || fill_labels(run->prepared->op, which, data, elements))
        return 0;
    bool as_it_lies = run->prepared->kernel->library || value->layout == &ls_layout_plain;
    if (as_it_lies && value->type == LS_F32) {
        fill(data, ls_layout_elements(value->layout, &value->shape), which);
        return 0;
    }
    elements = as_it_lies ? ls_layout_elements(value->layout, &value->shape) : elements;
    float *plain = ls_alloc_aligned(elements * sizeof *plain);
    if (plain == NULL)
        return ls_fail_memory(error, "a probe");
    int status = 0;
    fill(plain, elements, which);
    if (as_it_lies)
        ls_cpu_convert(LS_F32, plain, value->type, data, elements);
    else
        status = ls_cpu_parameter_from_plain(value->layout, &value->shape, plain, data, error);
    ls_free_aligned(plain);
    return status;
}

static int add_output(const struct run *run, const struct ls_value *value, const void *data,
                      uint64_t *hash, struct ls_error *error)
{
    size_t elements = (size_t)ls_shape_size(&value->shape);
    if (run->prepared->kernel->library || value->layout == &ls_layout_plain) {
        *hash = ls_hash(data, ls_value_bytes(value), *hash);
        return 0;
    }
    float *plain = ls_alloc_aligned(elements * sizeof *plain);
    if (plain == NULL)
        return ls_fail_memory(error, "a probe");
    int status = ls_cpu_parameter_to_plain(value->layout, &value->shape, data, plain, error);
    if (status == 0)
        *hash = ls_hash(plain, elements * sizeof *plain, *hash);
    ls_free_aligned(plain);
    return status;
}

/* For ops that add to the record of the micro-batch, or are divided by counts of the update. */
static int make_record(struct run *run, struct ls_error *error)
{
    const struct ls_layer *layer = run->prepared->op->layer;
    if (layer == NULL || layer->graph == NULL)
        return 0;
    const size_t size = (size_t)layer->graph->record_size;
    const size_t counts = layer->graph->normalizer_count;
    run->record = ls_alloc(size + counts + 1, sizeof *run->record);
    if (run->record == NULL)
        return ls_fail_memory(error, "a probe");
    run->record_size = size;
    run->normalizers = run->record + size;
    for (size_t i = 0; i < counts; i++)
        run->normalizers[i] = 3;
    return 0;
}

static int lay_out(struct run *run, struct ls_error *error)
{
    const struct ls_op *op = run->prepared->op;
    for (int i = 0; i < op->inputs + op->outputs; i++) {
        const struct ls_value *value = i < op->inputs ? op->input[i] : op->output[i - op->inputs];
        if (value == NULL)
            continue;
        void *data = run->data[i] = ls_alloc_aligned(ls_value_bytes(value));
        if (data == NULL)
            return ls_fail_memory(error, "a probe");
        ls_populate_aligned(data);
        if (i < op->inputs)
            LS_TRY(fill_input(run, value, i, data, error));
        *(i < op->inputs ? &run->in[i] : &run->out[i - op->inputs]) = data;
    }
    run->scratch = ls_alloc_aligned(run->prepared->scratch_bytes);
    return run->scratch != NULL ? make_record(run, error) : ls_fail_memory(error, "a probe");
}

static int carry_out(struct run *run, uint64_t *hash, struct ls_error *error)
{
    const struct ls_prepared *prepared = run->prepared;
    const struct ls_kernel *kernel = prepared->kernel;
    const struct ls_context context = {
        .samples = 1, .partials = run->record, .normalizers = run->normalizers};
    if (kernel->bind != NULL) {
        LS_TRY(kernel->bind(prepared, run->in, run->out, run->scratch, &run->local, error));
        run->bound = true;
    }
    int status = kernel->run(prepared, run->local, run->in, run->out, run->scratch, &context);
    if (status != 0)
        return status == LOCKSTEP_RESOURCE
                   ? ls_fail_memory(error, "a probe")
                   : ls_fail(error, status, NULL, NULL,
                             "a probe of the kernels cannot be carried out");
    for (int i = 0; i < prepared->op->outputs; i++)
        if (prepared->op->output[i] != NULL)
            LS_TRY(add_output(run, prepared->op->output[i], run->out[i], hash, error));
    for (size_t i = 0; i < run->record_size; i++) /* wherever in the record they are */
        if (run->record[i] != 0)
            *hash = ls_hash(&run->record[i], sizeof run->record[i], *hash);
    return 0;
}

static int run_step(const struct ls_prepared *prepared, uint64_t *hash, struct ls_error *error)
{
    struct run run = {.prepared = prepared};
    int status = lay_out(&run, error);
    if (status == 0)
        status = carry_out(&run, hash, error);
    if (run.bound && prepared->kernel->unbind != NULL)
        prepared->kernel->unbind(prepared, run.local);
    for (int i = 0; i < PROBE_VALUES; i++)
        ls_free_aligned(run.data[i]);
    ls_free_aligned(run.scratch);
    ls_free(run.record);
    return status;
}

/* The step for one of `samples`: its values are copies with so much less in them. */
static void shrink(const struct ls_prepared *prepared, int64_t samples, struct ls_op *op,
                   struct ls_value values[PROBE_VALUES], struct ls_value *list[PROBE_VALUES])
{
    *op = *prepared->op;
    for (int i = 0; i < op->inputs + op->outputs; i++) {
        const struct ls_value *value = i < op->inputs ? op->input[i] : op->output[i - op->inputs];
        if (value == NULL)
            continue;
        values[i] = *value;
        list[i] = &values[i];
        int axis = value->sample_axis;
        if (axis >= 0 && values[i].shape.dim[axis] % samples == 0)
            values[i].shape.dim[axis] /= samples;
    }
    op->input = list;
    op->output = list + op->inputs;
    if (is_product(op) && op->attr.inner_product.m % samples == 0)
        op->attr.inner_product.m /= samples;
}

static int run_sample(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                      uint64_t *hash, struct ls_error *error)
{
    struct ls_op op;
    struct ls_value values[PROBE_VALUES], *list[PROBE_VALUES] = {NULL};
    struct ls_prepared one = {.kernel = prepared->kernel, .op = &op};
    shrink(prepared, samples, &op, values, list);
    if (work_of(&one) > SAMPLE_MAX || work_of(&one) > *work)
        return 0;
    if (is_convolution(&op) && strstr(prepared->implementation, "wino") != NULL)
        op.attr.convolution.algorithm =
            LS_CONVOLUTION_WINOGRAD; /* which few samples would not pay */
    int status = one.kernel->prepare != NULL ? one.kernel->prepare(&one, NULL) : 0;
    if (status == LOCKSTEP_RESOURCE)
        ls_fail_memory(error, "a probe");
    else if (status != 0)
        status = 0; /* there is no such kernel for one sample: the description must do */
    else if (may_run(&one, SAMPLE_MAX, *work)) {
        *work -= work_of(&one);
        *hash = ls_mix(*hash ^ describe(&one));
        status = run_step(&one, hash, error);
    }
    if (one.kernel->release != NULL && one.state != NULL)
        one.kernel->release(&one);
    return status;
}

/* ---- What is known --------------------------------------------------------------------------- */

/* Results that this process has seen already, by what was probed; they never change. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known {
    uint64_t key, hash, work;
} known[KNOWN];

static bool recall(uint64_t key, struct known *result)
{
    pthread_mutex_lock(&known_lock);
    *result = known[key % KNOWN];
    pthread_mutex_unlock(&known_lock);
    return result->key == key;
}

static void remember(const struct known *result)
{
    pthread_mutex_lock(&known_lock);
    known[result->key % KNOWN] = *result;
    pthread_mutex_unlock(&known_lock);
}

int ls_cpu_probe(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                 uint64_t *hash, struct ls_error *error)
{
    struct known result, mine = {.hash = describe(prepared)};
    const uint64_t before = *work;
    bool whole = may_run(prepared, WHOLE_MAX, before); /* what fits what is left, or one sample */
    uint64_t key = add_number(samples, add_number((int64_t)ls_cpu_isa(), mine.hash));
    mine.key = add_number(whole, key) | 1; /* 0 is no key: the table begins with that */
    if (recall(mine.key, &result) && result.work <= before) {
        *work = before - result.work;
        *hash = result.hash;
        return 0;
    }
    uint64_t mode = ls_float_mode();
    int threads = ls_onednn_one_thread(), status = 0;
    ls_set_float_mode();
    if (whole) {
        *work -= work_of(prepared);
        status = run_step(prepared, &mine.hash, error);
    } else if (samples > 1) {
        status = run_sample(prepared, samples, work, &mine.hash, error);
    }
    ls_restore_float_mode(mode);
    ls_onednn_restore_threads(threads);
    *hash = mine.hash;
    mine.work = before - *work;
    if (status == 0 && mine.work > 0)
        remember(&mine);
    return status;
}
