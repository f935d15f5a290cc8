/* A fingerprint of the kernels: a hash of what each gives for one fixed small input.
 *
 * Two machines (or two versions of a library) whose fingerprints differ do not train the same bits.
 * Kernels say whether they take part (enum ls_kernel_bits); they do in plain layouts and, where
 * they take pictures, in blocked ones. That of Lockstep's own kernels is a hash of results in plain
 * order, which no instruction set changes; it is in snapshots. Convolutions, inner products and
 * what is newer than the list of probes (ops/cpu/fingerprint_probes.c) are probed in the shapes of
 * each net instead (ops/cpu/probe.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "ops/cpu/device.h"
#include "ops/cpu/environment.h"
#include "ops/cpu/fingerprint_probes.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/onednn.h"
#include "ops/cpu/parameter_layout.h"

enum { VALUES_MAX = LS_PROBE_INPUTS + LS_PROBE_OUTPUTS, PARTIALS = 16 };

/* A probe in the making: values, their bytes, the prepared kernel. */
struct run {
    struct ls_op op;
    struct ls_value value[VALUES_MAX];
    struct ls_value *in[LS_PROBE_INPUTS], *out[LS_PROBE_OUTPUTS];
    void *data[VALUES_MAX];
    void *in_data[LS_PROBE_INPUTS], *out_data[LS_PROBE_OUTPUTS];
    struct ls_prepared prepared;
    void *scratch, *local;
    bool bound;
};

/* What the kernels of a kind say of their bits, but for those whose bits are defined. */
static enum ls_kernel_bits bits_of(enum ls_op_kind kind)
{
    for (const struct ls_kernel *const *kernel = ls_device_cpu.kernels(); *kernel != NULL; kernel++)
        if ((*kernel)->kind == kind && (*kernel)->bits != LS_BITS_DEFINED)
            return (*kernel)->bits;
    return LS_BITS_UNSAID;
}

bool ls_cpu_has_own_probe(enum ls_op_kind kind)
{
    bool found = false;
    for (size_t i = 0; i < ls_fingerprint_probe_count; i++)
        found |= ls_fingerprint_probes[i].op.kind == kind;
    return found;
}

static void fill(float *data, int64_t size, enum ls_probe_content content, uint64_t salt)
{
    for (int64_t i = 0; i < size; i++) {
        float uniform = ls_random_uniform(salt, 0, (uint64_t)i);
        if (content == LS_PROBE_SIGNED)
            data[i] = 2 * uniform - 1;
        else if (content == LS_PROBE_POSITIVE)
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

static int lay_out(struct run *run, const struct ls_value *value, enum ls_probe_content content)
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

static struct ls_value *add_value(struct run *run, const struct ls_shape *shape)
{
    int index = run->op.inputs + run->op.outputs;
    struct ls_value *value = &run->value[index];
    value->index = index;
    value->shape = *shape;
    value->rows = 1;
    return value;
}

static void make_op(struct run *run, const struct ls_fingerprint_probe *probe)
{
    run->op.kind = probe->op.kind;
    run->op.attr = probe->op.attr;
    run->op.input = run->in;
    run->op.output = run->out;
    for (int i = 0; i < LS_PROBE_INPUTS && probe->in[i] != NULL; i++, run->op.inputs++)
        run->in[i] = add_value(run, probe->in[i]);
    for (int i = 0; i < LS_PROBE_OUTPUTS && probe->out[i] != NULL; i++, run->op.outputs++)
        run->out[i] = add_value(run, probe->out[i]);
}

/* Values, their memory, the prepared kernel. */
static int start(struct run *run, const struct ls_fingerprint_probe *probe,
                 const struct ls_layout *picture)
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

static int try_probe(const struct ls_fingerprint_probe *probe, const struct ls_layout *picture,
                     bool plain, uint64_t *hash)
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
    for (size_t i = 0; i < ls_fingerprint_probe_count && status == 0; i++) {
        if (own && bits_of(ls_fingerprint_probes[i].op.kind) == LS_BITS_BY_SHAPES)
            continue;
        status = try_probe(&ls_fingerprint_probes[i], &ls_layout_plain, own, hash);
        if (status == 0)
            status = try_probe(&ls_fingerprint_probes[i], wide, own, hash);
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
