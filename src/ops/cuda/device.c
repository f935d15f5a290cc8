/* The device of NVIDIA's cards: kernels from the tables of ops/cuda/ops.h, and what a device does
 * besides. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/device.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/plain.h"
#include "ir/layer.h"
#include "ops/cuda/accumulator.h"
#include "ops/cuda/contract.h"
#include "ops/cuda/convert.h"
#if LS_CUDA_HAS_CUBLASLT
#include "ops/cuda/cublaslt.h"
#endif
#if LS_CUDA_HAS_CUDNN
#include "ops/cuda/cudnn.h"
#endif
#include "ops/cuda/ops.h"
#include "ops/cuda/samples.h"

enum { SCRATCH_ALIGNMENT = 256 };

/* ---- Kernels --------------------------------------------------------------------------------- */

/* An op of a family, as a kernel. */
struct card_kernel {
    struct ls_kernel kernel; /* first: it is found by its kernel */
    const struct ls_card_op *of;
};

#define FAMILY_ENTRY(family) ls_card_##family,
static const struct ls_card_op *const families[] = {LS_CARD_FAMILIES(FAMILY_ENTRY)};
enum { FAMILIES = sizeof families / sizeof *families };

static struct card_kernel kernel[FAMILIES * LS_OP_KINDS];
static const struct ls_kernel *kernel_table[FAMILIES * LS_OP_KINDS + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct ls_card_op *card_op_of(const struct ls_prepared *prepared)
{
    return ((const struct card_kernel *)(const void *)prepared->kernel)->of;
}

/* The numbers of the definition that an op's kernel reads are the step's state. */
static int copy_constants(struct ls_prepared *prepared, const struct ls_card_op *of,
                          struct ls_error *error)
{
    size_t count = 0;
    const float *numbers = of->constants != NULL ? of->constants(prepared->op, &count) : NULL;
    if (count == 0)
        return 0;
    prepared->state = ls_card_memory.create(count * sizeof *numbers);
    if (prepared->state == NULL)
        return ls_fail_memory(error, "numbers of a layer on a card");
    return ls_card_memory.write(NULL, prepared->state, numbers, count * sizeof *numbers, error);
}

/* The same of a table that is computed. */
static int copy_table(struct ls_prepared *prepared, const struct ls_card_op *of,
                      struct ls_error *error)
{
    const size_t bytes = of->table_bytes != NULL ? of->table_bytes(prepared->op) : 0;
    if (bytes == 0)
        return copy_constants(prepared, of, error);
    void *table = ls_alloc(bytes, 1);
    prepared->state = ls_card_memory.create(bytes);
    int status = 0;
    if (table == NULL || prepared->state == NULL)
        status = ls_fail_memory(error, "numbers of a layer on a card");
    if (status == 0) {
        of->make_table(prepared->op, table);
        status = ls_card_memory.write(NULL, prepared->state, table, bytes, error);
    }
    ls_free(table);
    return status;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_card_op *of = card_op_of(prepared);
    const struct ls_op *op = prepared->op;
    strcpy(prepared->implementation, "lockstep:cuda");
    prepared->slow = of->slow;
    if (of->check != NULL)
        LS_TRY(of->check(op, error));
    if (of->scratch != NULL)
        prepared->scratch_bytes = of->scratch(op);
    if (of->prepare != NULL)
        LS_TRY(of->prepare(prepared, error));
    if (prepared->scratch_bytes > 0) /* the arena is aligned to 64 bytes */
        prepared->scratch_bytes += SCRATCH_ALIGNMENT;
    return of->prepare != NULL ? 0 : copy_table(prepared, of, error);
}

static void release(struct ls_prepared *prepared)
{
    const struct ls_card_op *of = card_op_of(prepared);
    if (of->prepare == NULL)
        ls_card_memory.free(prepared->state);
    else if (prepared->state != NULL)
        of->release(prepared->state);
    prepared->state = NULL;
}

static void *align_scratch(void *scratch)
{
    const uintptr_t mask = SCRATCH_ALIGNMENT - 1, at = (uintptr_t)scratch;
    return scratch == NULL ? NULL : (char *)scratch + (((at + mask) & ~mask) - at);
}

int ls_card_check_op(int code, const struct ls_op *op, const char *what, struct ls_error *error)
{
    const struct ls_layer *layer = op->layer;
    struct ls_text text = {0};
    if (code == cudaSuccess)
        return 0;
    ls_text_format(&text, "%s %s%s%s%s", what, ls_op_kind_name(op->kind),
                   layer != NULL ? " of layer '" : "", layer != NULL ? layer->name : "",
                   layer != NULL ? "'" : "");
    const int status = ls_card_check(code, text.data != NULL ? text.data : what, error);
    ls_text_free(&text);
    return status;
}

static int run(const struct ls_prepared *prepared, void *local, void *const *in, void *const *out,
               void *scratch, const struct ls_context *context)
{
    const struct ls_card_op *of = card_op_of(prepared);
    struct ls_card_call call = {prepared->op,
                                in,
                                out,
                                align_scratch(scratch),
                                ls_card_stream(context->stream, context->error),
                                context,
                                of->prepare == NULL ? prepared->state : NULL,
                                prepared->state};
    (void)local;
    if (call.stream == NULL)
        return LOCKSTEP_RESOURCE;
    if (of->try_run != NULL)
        return of->try_run(&call);
    return ls_card_check_op(of->run(&call), prepared->op, "carry out", context->error);
}

static void make_kernels(void)
{
    size_t n = 0;
    for (size_t f = 0; f < FAMILIES; f++)
        for (int kind = 0; kind < LS_OP_KINDS; kind++) {
            const struct ls_card_op *of = &families[f][kind];
            if (of->run == NULL && of->try_run == NULL && of->check == NULL)
                continue;
            kernel[n] = (struct card_kernel){
                .kernel = {.kind = (enum ls_op_kind)kind,
                           .bits = of->bits != LS_BITS_UNSAID ? of->bits : LS_BITS_OWN,
                           .name = ls_op_kind_name((enum ls_op_kind)kind),
                           .library = of->library,
                           .accepts = of->accepts,
                           .takes_bf16 = of->takes_bf16,
                           .layouts = of->layouts,
                           .prepare = prepare,
                           .release = release,
                           .run = run,
                           .in_place = -1},
                .of = of};
            kernel_table[n] = &kernel[n].kernel;
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

/* ---- Environment ----------------------------------------------------------------------------- */

static const char *isa(void)
{
    return "cuda";
}

/* What kernels are compiled for and what libraries choose by. */
static void name_card(struct ls_text *text)
{
    struct cudaDeviceProp card;
    int number = 0;
    if (ls_card_enter(NULL) != 0 || cudaGetDevice(&number) != cudaSuccess ||
        cudaGetDeviceProperties(&card, number) != cudaSuccess) {
        (void)cudaGetLastError();
        ls_text_add(text, "card=unknown\n");
        return;
    }
    ls_text_format(text, "card=%s\ncompute=%d.%d\nprocessors=%d\n", card.name, card.major,
                   card.minor, card.multiProcessorCount);
}

/* Engines of cuDNN that are compiled when they are chosen are compiled by the runtime's compiler.
 */
static void name_device(struct ls_text *text)
{
    ls_text_add(text, "device=cuda\n");
#if LS_CUDA_HAS_CUBLASLT
    ls_cublaslt_describe(text);
#endif
    name_card(text);
    ls_text_format(text, "cuda=%d\n", CUDART_VERSION);
#if LS_CUDA_HAS_CUDNN
    ls_cudnn_describe(text);
#endif
}

/* Which engine or algorithm a library has chosen may depend on more than its version: on whether
 * kernels could be compiled when a plan was made, say. What was chosen decides the bits. */
static bool probes(const struct ls_prepared *prepared)
{
    return prepared->kernel->library;
}

static uint64_t add_value(const struct ls_value *value, uint64_t hash)
{
    if (value == NULL)
        return ls_hash("", 1, hash);
    hash = ls_hash(value->shape.dim, (size_t)value->shape.rank * sizeof *value->shape.dim, hash);
    hash = ls_hash(&value->type, sizeof value->type, hash);
    return ls_hash_string((value->layout != NULL ? value->layout : &ls_layout_plain)->name, hash);
}

static int probe(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                 uint64_t *hash, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    (void)samples;
    (void)work;
    (void)error;
    *hash = ls_hash_string(prepared->implementation, ls_hash(&op->kind, sizeof op->kind, 0));
    for (int i = 0; i < op->inputs; i++)
        *hash = add_value(op->input[i], *hash);
    for (int i = 0; i < op->outputs; i++)
        *hash = add_value(op->output[i], *hash);
    return 0;
}

/* Not portable: products in BF16 whose algorithm is AUTO are a library's. */
static const struct ls_device_environment environment = {
    .named = true,
    .isa = isa,
    .widest_isa = isa,
    .describe = name_device,
    .library = "the card's model and the versions of cuDNN and cuBLASLt",
    .probes = probes,
    .probe = probe,
};

const struct ls_device ls_device_cuda = {
    .name = "cuda",
    .kernels = kernels,
    .supports = supports,
    .memory = &ls_card_memory,
    .streams = &ls_card_streams,
    .recordings = &ls_card_recordings,
#if LS_CUDA_HAS_NCCL
    .collectives = &ls_card_collectives,
#endif
    .cards = &ls_card_cards,
    .parameter_from_plain = ls_card_from_plain,
    .parameter_to_plain = ls_card_to_plain,
    .converter_new = ls_card_converter_new,
    .converter_run = ls_card_converter_run,
    .converter_free = ls_card_converter_free,
    .merge = ls_card_merge,
    .fill = ls_plain_fill,
    .sums = &ls_card_sums,
    .accumulator = &ls_card_accumulator,
    .weight_gradient = ls_card_weight_gradient,
    .bias_gradient = ls_card_bias_gradient,
    .update = ls_card_update,
    .update_from_sums = ls_card_update_from_sums,
    .clear_masked = ls_card_clear_masked,
    .take_thread = ls_card_take_thread,
    .give_thread_back = ls_card_give_thread_back,
    .make_samples = ls_card_make_samples,
#if LS_CUDA_HAS_CUBLASLT
    .tf32 = true,
#endif
    .environment = &environment,
};
