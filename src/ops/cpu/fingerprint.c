/* A fingerprint of the kernels: a hash of what each gives for one fixed small input.
 *
 * Two machines (or two versions of a library) whose fingerprints differ do not train the same bits.
 * Kernels say whether they take part (enum ls_kernel_bits); they do in plain layouts and, where
 * they take pictures, in blocked ones. That of Lockstep's own kernels is a hash of results in plain
 * order, which no instruction set changes; it is in snapshots, so that the list of its probes does
 * not grow any more. Convolutions, inner products and what is newer than the list are probed in the
 * shapes of each net instead (ops/cpu/probe.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ops/cpu/device.h"
#include "ops/cpu/environment.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/onednn.h"
#include "ops/cpu/parameter_layout.h"

enum { VALUES_MAX = 6, PARTIALS = 16 };

/* What an input holds. */
enum content { SIGNED, POSITIVE, LABELS };

/* Shapes of the probes; 20 channels leave lanes of padding in blocks of 8 and of 16, which
 * convolutions of planes (ops/cpu/planes.c) may be for; 32 do not. */
enum shape {
    NONE,
    PICTURE,
    TILED,
    POOLED,
    IMAGE,
    FEATURES,
    FILTERS,
    OWN_FILTERS,
    IMAGE_FILTERS,
    BLOCKS,
    BLOCK_FILTERS,
    VOLUME,
    VOLUME_FEATURES,
    VOLUME_FILTERS,
    BIAS,
    ROWS,
    MATRIX,
    PRODUCTS,
    OFFSETS,
    CLASSES,
    LABEL,
    STATS
};

static const struct ls_shape shapes[] = {
    [PICTURE] = {4, {2, 20, 7, 6}},
    [TILED] = {4, {2, 20, 21, 6}},
    [POOLED] = {4, {2, 20, 3, 2}},
    [IMAGE] = {4, {2, 3, 7, 6}},
    [FEATURES] = {4, {2, 24, 7, 6}},
    [FILTERS] = {4, {24, 20, 3, 3}},
    [OWN_FILTERS] = {4, {24, 1, 3, 3}},
    [IMAGE_FILTERS] = {4, {24, 3, 3, 3}},
    [BLOCKS] = {4, {2, 32, 7, 6}},
    [BLOCK_FILTERS] = {4, {24, 32, 3, 3}},
    [VOLUME] = {5, {2, 20, 4, 5, 6}},
    [VOLUME_FEATURES] = {5, {2, 24, 4, 5, 6}},
    [VOLUME_FILTERS] = {5, {24, 20, 3, 3, 3}},
    [BIAS] = {1, {24}},
    [ROWS] = {2, {4, 300}},
    [MATRIX] = {2, {33, 300}},
    [PRODUCTS] = {2, {4, 33}},
    [OFFSETS] = {1, {33}},
    [CLASSES] = {2, {4, 10}},
    [LABEL] = {1, {4}},
    [STATS] = {2, {2, 12}},
};

struct probe {
    enum ls_op_kind kind;
    int variant; /* of the attributes, see set_attributes */
    enum shape in[4], out[2];
    enum content content[4];
};

static const struct probe probes[] = {
    {LS_OP_CONVOLUTION, 0, {IMAGE, IMAGE_FILTERS, BIAS}, {FEATURES}, {0}},
    {LS_OP_CONVOLUTION, 1, {PICTURE, FILTERS, BIAS}, {FEATURES}, {0}},
    {LS_OP_CONVOLUTION_DATA, 0, {FEATURES, FILTERS}, {PICTURE}, {0}},
    {LS_OP_CONVOLUTION_DATA, 24, {FEATURES, OWN_FILTERS}, {FEATURES}, {0}},
    {LS_OP_CONVOLUTION_WEIGHTS, 0, {IMAGE, FEATURES}, {IMAGE_FILTERS, BIAS}, {0}},
    {LS_OP_CONVOLUTION_WEIGHTS, 0, {PICTURE, FEATURES}, {FILTERS, BIAS}, {0}},
    {LS_OP_CONVOLUTION, 1, {BLOCKS, BLOCK_FILTERS, BIAS}, {FEATURES}, {0}},
    {LS_OP_CONVOLUTION_DATA, 0, {FEATURES, BLOCK_FILTERS}, {BLOCKS}, {0}},
    {LS_OP_CONVOLUTION_WEIGHTS, 0, {BLOCKS, FEATURES}, {BLOCK_FILTERS, BIAS}, {0}},
    {LS_OP_CONVOLUTION, 1, {VOLUME, VOLUME_FILTERS, BIAS}, {VOLUME_FEATURES}, {0}},
    {LS_OP_CONVOLUTION_DATA, 0, {VOLUME_FEATURES, VOLUME_FILTERS}, {VOLUME}, {0}},
    {LS_OP_CONVOLUTION_WEIGHTS, 0, {VOLUME, VOLUME_FEATURES}, {VOLUME_FILTERS, BIAS}, {0}},
    {LS_OP_INNER_PRODUCT, 0, {ROWS, MATRIX, OFFSETS}, {PRODUCTS}, {0}},
    {LS_OP_INNER_PRODUCT_DATA, 0, {PRODUCTS, MATRIX}, {ROWS}, {0}},
    {LS_OP_INNER_PRODUCT_WEIGHTS, 0, {ROWS, PRODUCTS}, {MATRIX, OFFSETS}, {0}},
    {LS_OP_POOLING, 0, {PICTURE}, {POOLED}, {0}},
    {LS_OP_POOLING_BACKWARD, 0, {POOLED}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_SIGMOID, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_TANH, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION_BACKWARD, LS_SIGMOID, {PICTURE, PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION_BACKWARD, LS_TANH, {PICTURE, PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_ELU, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_SWISH, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_EXP, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_LOG, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_POWER, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION, LS_BNLL, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION_BACKWARD, LS_SWISH, {PICTURE, PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION_BACKWARD, LS_POWER, {PICTURE, PICTURE}, {PICTURE}, {0}},
    {LS_OP_ACTIVATION_BACKWARD, LS_BNLL, {PICTURE, PICTURE}, {PICTURE}, {0}},
    {LS_OP_PRELU, 0, {FEATURES, BIAS}, {FEATURES}, {0}},
    {LS_OP_PRELU_SLOPE, 0, {FEATURES, FEATURES}, {BIAS}, {0}},
    {LS_OP_NORMALIZE, 0, {FEATURES, BIAS, BIAS}, {FEATURES, STATS}, {0}},
    {LS_OP_NORMALIZE_DATA, 0, {FEATURES, FEATURES, STATS, BIAS}, {FEATURES}, {0}},
    {LS_OP_NORMALIZE_SUMS, 0, {FEATURES, FEATURES, STATS}, {BIAS, BIAS}, {0}},
    {LS_OP_LRN, 0, {PICTURE}, {PICTURE, PICTURE}, {0}},
    {LS_OP_LRN, 1, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_LRN_BACKWARD,
     0,
     {PICTURE, PICTURE, PICTURE, PICTURE},
     {PICTURE},
     {SIGNED, SIGNED, SIGNED, POSITIVE}},
    {LS_OP_LRN_BACKWARD, 1, {PICTURE, PICTURE, PICTURE}, {PICTURE}, {0}},
    {LS_OP_BATCH_NORM, 0, {FEATURES, BIAS, BIAS}, {FEATURES}, {SIGNED, SIGNED, POSITIVE}},
    {LS_OP_DROPOUT, 0, {PICTURE}, {PICTURE}, {0}},
    {LS_OP_SOFTMAX, 0, {CLASSES}, {CLASSES}, {0}},
    {LS_OP_SOFTMAX_BACKWARD, 0, {CLASSES, CLASSES}, {CLASSES}, {0}},
    {LS_OP_SOFTMAX_LOSS, 0, {CLASSES, LABEL}, {CLASSES}, {SIGNED, LABELS}},
    {LS_OP_SOFTMAX_LOSS_BACKWARD, 0, {CLASSES, LABEL}, {CLASSES}, {POSITIVE, LABELS}},
    {LS_OP_LOG_LOSS, 0, {CLASSES, LABEL}, {NONE}, {POSITIVE, LABELS}},
    {LS_OP_LOG_LOSS_BACKWARD, 0, {CLASSES, LABEL}, {CLASSES}, {POSITIVE, LABELS}},
    {LS_OP_SIGMOID_LOSS, 0, {CLASSES, CLASSES}, {NONE}, {SIGNED, POSITIVE}},
    {LS_OP_SIGMOID_LOSS_BACKWARD, 0, {CLASSES, CLASSES}, {CLASSES}, {SIGNED, POSITIVE}},
    {LS_OP_EUCLIDEAN_LOSS, 0, {CLASSES, CLASSES}, {NONE}, {0}},
    {LS_OP_TILE_BACKWARD, 0, {TILED}, {PICTURE}, {0}},
    {LS_OP_REDUCE, LS_REDUCE_SUM, {ROWS}, {LABEL}, {0}},
    {LS_OP_REDUCE, LS_REDUCE_SUMSQ, {ROWS}, {LABEL}, {0}},
    {LS_OP_REDUCE_LOSS, LS_REDUCE_ASUM, {ROWS}, {NONE}, {0}},
    {LS_OP_ELTWISE, 0, {PICTURE, PICTURE, PICTURE}, {PICTURE}, {0}},
};

static const struct ls_window keeps_size = {2, {3, 3, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}};
static const struct ls_window keeps_volume = {3, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
static const struct ls_window halves = {2, {3, 3, 1}, {2, 2, 1}, {0, 0, 0}, {1, 1, 1}};

/* ---- What is said of each kind ----------------------------------------------------------------
 */

static void set_convolution(struct ls_op *op, int variant)
{
    op->attr.convolution = (struct ls_convolution_attr){
        .window = op->input[0]->shape.rank == 5 ? keeps_volume : keeps_size,
        .group = variant > 1 ? variant : 1,
        .bias = true,
        .relu = variant == 1};
}

static void set_inner_product(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.inner_product = (struct ls_inner_product_attr){.m = 4, .k = 300, .n = 33};
}

static void set_pooling(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.pooling = (struct ls_pooling_attr){LS_POOL_AVERAGE, halves};
}

static void set_activation(struct ls_op *op, int variant)
{
    op->attr.activation = (struct ls_activation_attr){.function = (enum ls_activation)variant,
                                                      .slope = 0.5f,
                                                      .scale = 0.5f,
                                                      .shift = 0.75f,
                                                      .factor = 1.5f,
                                                      .power = 1.7f};
}

static void set_nothing(struct ls_op *op, int variant)
{
    (void)op, (void)variant;
}

static void set_normalize(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.normalize =
        (struct ls_normalize_attr){.axis = 1, .groups = 3, .variance = true, .eps = 1e-3f};
}

static void set_lrn(struct ls_op *op, int variant)
{
    op->attr.lrn = (struct ls_lrn_attr){
        .within = variant == 1, .size = 3, .alpha = 0.5f, .beta = 0.75f, .k = 1};
}

/* By saved averages, which need no sync point. */
static void set_batch_norm(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.batch_norm = (struct ls_batch_norm_attr){.moments = -1, .sums = -1, .eps = 1e-3f};
}

static void set_dropout(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.dropout = (struct ls_dropout_attr){.ratio = 0.3f, .key = 12345};
}

static void set_softmax(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.axis = 1;
}

static void set_tile(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.tile = (struct ls_tile_attr){.axis = 2, .tiles = 3};
}

static void set_reduction(struct ls_op *op, int variant)
{
    op->attr.reduction = (struct ls_reduction_attr){
        .axis = 1, .method = (enum ls_reduction)variant, .coeff = 0.75f, .normalizer = -1};
}

static void set_eltwise(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.eltwise = (struct ls_eltwise_attr){.method = LS_ELTWISE_SUM};
}

static void set_loss(struct ls_op *op, int variant)
{
    (void)variant;
    op->attr.loss = (struct ls_loss_attr){.axis = 1, .loss_weight = 1};
}

/* The attributes of probes, by kind. */
static void (*const set_attributes[LS_OP_KINDS])(struct ls_op *op, int variant) = {
    [LS_OP_CONVOLUTION] = set_convolution,
    [LS_OP_CONVOLUTION_DATA] = set_convolution,
    [LS_OP_CONVOLUTION_WEIGHTS] = set_convolution,
    [LS_OP_INNER_PRODUCT] = set_inner_product,
    [LS_OP_INNER_PRODUCT_DATA] = set_inner_product,
    [LS_OP_INNER_PRODUCT_WEIGHTS] = set_inner_product,
    [LS_OP_POOLING] = set_pooling,
    [LS_OP_POOLING_BACKWARD] = set_pooling,
    [LS_OP_ACTIVATION] = set_activation,
    [LS_OP_ACTIVATION_BACKWARD] = set_activation,
    [LS_OP_PRELU] = set_nothing,
    [LS_OP_PRELU_SLOPE] = set_nothing,
    [LS_OP_LRN] = set_lrn,
    [LS_OP_LRN_BACKWARD] = set_lrn,
    [LS_OP_DROPOUT] = set_dropout,
    [LS_OP_SOFTMAX] = set_softmax,
    [LS_OP_SOFTMAX_BACKWARD] = set_softmax,
    [LS_OP_SOFTMAX_LOSS] = set_loss,
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = set_loss,
    [LS_OP_LOG_LOSS] = set_loss,
    [LS_OP_LOG_LOSS_BACKWARD] = set_loss,
    [LS_OP_SIGMOID_LOSS] = set_loss,
    [LS_OP_SIGMOID_LOSS_BACKWARD] = set_loss,
    [LS_OP_EUCLIDEAN_LOSS] = set_loss,
    [LS_OP_TILE_BACKWARD] = set_tile,
    [LS_OP_REDUCE] = set_reduction,
    [LS_OP_REDUCE_LOSS] = set_reduction,
    [LS_OP_ELTWISE] = set_eltwise,
    [LS_OP_BATCH_NORM] = set_batch_norm,
    [LS_OP_NORMALIZE] = set_normalize,
    [LS_OP_NORMALIZE_DATA] = set_normalize,
    [LS_OP_NORMALIZE_SUMS] = set_normalize,
};

/* A probe in the making: values, their bytes, the prepared kernel. */
struct run {
    struct ls_op op;
    struct ls_value value[VALUES_MAX];
    struct ls_value *in[4], *out[2];
    void *data[VALUES_MAX];
    void *in_data[4], *out_data[2];
    struct ls_prepared prepared;
    void *scratch, *local;
    bool bound;
};

/* What the kernels of a kind say of their bits. */
static enum ls_kernel_bits bits_of(enum ls_op_kind kind)
{
    for (const struct ls_kernel *const *kernel = ls_device_cpu.kernels(); *kernel != NULL; kernel++)
        if ((*kernel)->kind == kind)
            return (*kernel)->bits;
    return LS_BITS_UNSAID;
}

bool ls_cpu_has_own_probe(enum ls_op_kind kind)
{
    bool found = false;
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        found |= probes[i].kind == kind;
    return found && set_attributes[kind] != NULL;
}

static void fill(float *data, int64_t size, enum content content, uint64_t salt)
{
    for (int64_t i = 0; i < size; i++) {
        float uniform = ls_random_uniform(salt, 0, (uint64_t)i);
        if (content == SIGNED)
            data[i] = 2 * uniform - 1;
        else if (content == POSITIVE)
            data[i] = uniform * 0.5f + 0.0625f;
        else
            data[i] = (float)(i % 10);
    }
}

/* Says which layouts the values have; those of inputs are offered, pictures as `picture`. */
static int set_layouts(struct run *run, const struct ls_kernel *kernel,
                       const struct ls_layout *picture)
{
    struct ls_op_layouts layouts = {0};
    for (int i = 0; i < run->op.inputs; i++)
        layouts.in[i] = run->in[i]->shape.rank == 4 ? picture : &ls_layout_plain;
    for (int i = 0; i < run->op.outputs; i++)
        layouts.out[i] = &ls_layout_plain;
    if (kernel->layouts != NULL)
        LS_TRY(kernel->layouts(&run->op, &layouts, NULL));
    for (int i = 0; i < run->op.inputs; i++)
        run->in[i]->layout = kernel->layouts != NULL ? layouts.in[i] : &ls_layout_plain;
    for (int i = 0; i < run->op.outputs; i++)
        run->out[i]->layout = layouts.out[i];
    return 0;
}

static int lay_out(struct run *run, const struct ls_value *value, enum content content)
{
    int64_t size = ls_shape_size(&value->shape);
    float *plain = ls_alloc_aligned((size_t)size * sizeof *plain);
    if (plain == NULL)
        return LOCKSTEP_RESOURCE;
    fill(plain, size, content, (uint64_t)value->index + 1);
    int status = ls_cpu_parameter_from_plain(value->layout, &value->shape, plain,
                                             run->data[value->index], NULL);
    ls_free_aligned(plain);
    return status;
}

static struct ls_value *add_value(struct run *run, enum shape shape)
{
    int index = run->op.inputs + run->op.outputs;
    struct ls_value *value = &run->value[index];
    value->index = index;
    value->shape = shapes[shape];
    value->rows = 1;
    return value;
}

static void make_op(struct run *run, const struct probe *probe)
{
    run->op.kind = probe->kind;
    run->op.input = run->in;
    run->op.output = run->out;
    for (int i = 0; i < 4 && probe->in[i] != NONE; i++, run->op.inputs++)
        run->in[i] = add_value(run, probe->in[i]);
    for (int i = 0; i < 2 && probe->out[i] != NONE; i++, run->op.outputs++)
        run->out[i] = add_value(run, probe->out[i]);
    set_attributes[probe->kind](&run->op, probe->variant);
}

/* Values, their memory, the prepared kernel. */
static int start(struct run *run, const struct probe *probe, const struct ls_layout *picture)
{
    *run = (struct run){0};
    make_op(run, probe);
    const struct ls_kernel *kernel = ls_kernel_find(ls_device_cpu.kernels(), &run->op);
    if (kernel == NULL)
        return LOCKSTEP_INTERNAL;
    LS_TRY(set_layouts(run, kernel, picture));
    int inputs = run->op.inputs, values = inputs + run->op.outputs;
    for (int i = 0; i < values; i++) {
        const struct ls_value *value = &run->value[i];
        size_t elements = ls_layout_elements(value->layout, &value->shape);
        void *data = run->data[i] = ls_alloc_aligned(elements * sizeof(float));
        if (data == NULL)
            return LOCKSTEP_RESOURCE;
        if (i < inputs)
            LS_TRY(lay_out(run, value, probe->content[i]));
        *(i < inputs ? &run->in_data[i] : &run->out_data[i - inputs]) = data;
    }
    run->prepared.op = &run->op;
    run->prepared.kernel = kernel;
    return kernel->prepare != NULL ? kernel->prepare(&run->prepared, NULL) : 0;
}

/* Adds an output to the hash: as it lies, or in plain order. */
static int add_output(const struct run *run, int index, bool plain, uint64_t *hash)
{
    const struct ls_value *value = run->out[index];
    size_t bytes = ls_layout_elements(value->layout, &value->shape) * sizeof(float);
    if (!plain || value->layout == &ls_layout_plain || value->type != LS_F32) {
        *hash = ls_hash(run->out_data[index], bytes, *hash);
        return 0;
    }
    size_t elements = (size_t)ls_shape_size(&value->shape);
    float *numbers = ls_alloc_aligned(elements * sizeof *numbers);
    if (numbers == NULL)
        return LOCKSTEP_RESOURCE;
    int status = ls_cpu_parameter_to_plain(value->layout, &value->shape, run->out_data[index],
                                           numbers, NULL);
    if (status == 0)
        *hash = ls_hash(numbers, elements * sizeof *numbers, *hash);
    ls_free_aligned(numbers);
    return status;
}

static int carry_out(struct run *run, bool plain, uint64_t *hash)
{
    static const double normalizers[1] = {4};
    const struct ls_kernel *kernel = run->prepared.kernel;
    double partials[PARTIALS] = {0};
    struct ls_context context = {.samples = 2, .normalizers = normalizers, .partials = partials};
    run->scratch = ls_alloc_aligned(run->prepared.scratch_bytes);
    if (run->scratch == NULL)
        return LOCKSTEP_RESOURCE;
    if (kernel->bind != NULL) {
        LS_TRY(kernel->bind(&run->prepared, run->in_data, run->out_data, run->scratch, &run->local,
                            NULL));
        run->bound = true;
    }
    LS_TRY(kernel->run(&run->prepared, run->local, run->in_data, run->out_data, run->scratch,
                       &context));
    for (int i = 0; i < run->op.outputs; i++)
        LS_TRY(add_output(run, i, plain, hash));
    *hash = ls_hash(partials, sizeof partials, *hash);
    return 0;
}

static void finish(struct run *run)
{
    const struct ls_kernel *kernel = run->prepared.kernel;
    if (run->bound && kernel->unbind != NULL)
        kernel->unbind(&run->prepared, run->local);
    if (kernel != NULL && kernel->release != NULL && run->prepared.state != NULL)
        kernel->release(&run->prepared);
    for (int i = 0; i < VALUES_MAX; i++)
        ls_free_aligned(run->data[i]);
    ls_free_aligned(run->scratch);
}

static int try_probe(const struct probe *probe, const struct ls_layout *picture, bool plain,
                     uint64_t *hash)
{
    struct run run;
    int status = start(&run, probe, picture);
    if (status == 0)
        status = carry_out(&run, plain, hash);
    finish(&run);
    return status;
}

/* `own`: of Lockstep's own kernels, in plain order. */
static int run_probes(bool own, uint64_t *hash)
{
    const struct ls_layout *wide =
        ls_cpu_isa() == LS_ISA_AVX512 ? &ls_layout_blocked16 : &ls_layout_blocked8;
    int status = 0;
    uint64_t mode = ls_float_mode();
    int threads = ls_onednn_one_thread();
    ls_set_float_mode();
    *hash = 0;
    for (size_t i = 0; i < sizeof probes / sizeof *probes && status == 0; i++) {
        if (own && bits_of(probes[i].kind) == LS_BITS_BY_SHAPES)
            continue;
        status = try_probe(&probes[i], &ls_layout_plain, own, hash);
        if (status == 0)
            status = try_probe(&probes[i], wide, own, hash);
    }
    ls_restore_float_mode(mode);
    ls_onednn_restore_threads(threads);
    return status;
}

/* The probes are known to work; what they can run out of is memory. */
static int say(int status, struct ls_error *error)
{
    if (status == LOCKSTEP_RESOURCE)
        return ls_fail_memory(error, "probes of the kernels");
    return status == 0 ? 0
                       : ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                                 "a probe of the kernels cannot be carried out");
}

int ls_cpu_fingerprint(uint64_t *hash, struct ls_error *error)
{
    return say(run_probes(false, hash), error);
}

int ls_cpu_own_fingerprint(uint64_t *hash, struct ls_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t found;
    static bool known; /* once made it stays as it is */
    int status = 0;
    pthread_mutex_lock(&lock);
    if (!known)
        status = run_probes(true, &found);
    known = status == 0;
    *hash = found;
    pthread_mutex_unlock(&lock);
    return say(status, error);
}
