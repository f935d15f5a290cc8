/* Ops on a card: tables by kind, which the device's kernels come from (ops/cuda/device.c).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_OPS_H
#define LS_OPS_CUDA_OPS_H

#include <cuda_runtime_api.h>

#include "ir/kernel.h"

/* What an op is carried out with. Arrays are the card's. */
struct ls_card_call {
    const struct ls_op *op;
    void *const *in, *const *out; /* NULL where an optional value is absent */
    void *scratch;                /* aligned to 256 bytes */
    cudaStream_t stream;
    const struct ls_context *context;
    const float *constants; /* what ls_card_op.constants names; NULL: nothing */
    void *state;            /* what ls_card_op.prepare has made */
};

/* How a kind of op is carried out. An update may be captured as a graph once and replayed for other
 * micro-batches, so what changes with the micro-batch is read on the card, from context->numbers.
 */
struct ls_card_op {
    /* Gives the work to the stream and returns at once: a cudaError_t, 0 where all was taken. It
     * allocates nothing and waits for nothing. */
    int (*run)(const struct ls_card_call *call);
    int (*try_run)(const struct ls_card_call *call); /* the same, with a status and its message */
    size_t (*scratch)(const struct ls_op *op);       /* (optional) bytes */
    bool (*accepts)(const struct ls_op *op);         /* (optional) of a kind, these ops alone */
    /* (optional) As in struct ls_kernel: the layouts that it wants and writes, and whether it takes
     * and writes bf16. Without them values are plain, and fp32. */
    int (*layouts)(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error);
    bool (*takes_bf16)(const struct ls_op *op);
    /* (optional) Numbers of the definition, in the host's memory, that kernels read: they are
     * copied to the card once. *count 0: none. */
    const float *(*constants)(const struct ls_op *op, size_t *count);
    /* (optional) Instead of `constants`: bytes of a table, 0: none, and what computes it in the
     * host's memory. It is copied to the card once, as struct ls_card_call.constants. */
    size_t (*table_bytes)(const struct ls_op *op);
    void (*make_table)(const struct ls_op *op, void *table);
    /* (optional) Makes prepared->state, on a thread of the card that the op will run on; it may set
     * scratch_bytes, implementation and slow. */
    int (*prepare)(struct ls_prepared *prepared, struct ls_error *error);
    void (*release)(void *state); /* where there is `prepare`; not of NULL */
    /* (optional) The op is refused, with a message that names its layer, before anything runs. */
    int (*check)(const struct ls_op *op, struct ls_error *error);
    enum ls_kernel_bits bits; /* LS_BITS_UNSAID: LS_BITS_OWN */
    bool slow;                /* a path without parallel work, worth a warning */
    bool library;             /* as in struct ls_kernel */
};

#if LS_CUDA_HAS_CUBLASLT
#define LS_CARD_CUBLASLT(FAMILY) FAMILY(cublaslt)
#else
#define LS_CARD_CUBLASLT(FAMILY)
#endif
#if LS_CUDA_HAS_CUDNN
#define LS_CARD_CUDNN(FAMILY) FAMILY(cudnn)
#else
#define LS_CARD_CUDNN(FAMILY)
#endif

/* By kind; empty where another family has it, and where an earlier one accepts the op. A new family
 * is a line here. */
/* clang-format off */
#define LS_CARD_FAMILIES(FAMILY) \
    LS_CARD_CUBLASLT(FAMILY) \
    FAMILY(moves) \
    FAMILY(shaping) \
    FAMILY(attention) \
    FAMILY(linear_loss) \
    FAMILY(recurrent) \
    FAMILY(regions) \
    FAMILY(gradients) \
    LS_CARD_CUDNN(FAMILY) \
    FAMILY(products) \
    FAMILY(elements) \
    FAMILY(windows) \
    FAMILY(norms) \
    FAMILY(losses) \
    FAMILY(pair_losses) \
    FAMILY(sequences) \
    FAMILY(detection)
/* clang-format on */

#define LS_CARD_DECLARE(family) extern const struct ls_card_op ls_card_##family[LS_OP_KINDS];
LS_CARD_FAMILIES(LS_CARD_DECLARE)
#undef LS_CARD_DECLARE

/* 0, or fails with what the card could not do for an op ("carry out"), and why. */
int ls_card_check_op(int code, const struct ls_op *op, const char *what, struct ls_error *error);

/* Input k of a call; NULL where it is absent, also behind the end of the list. */
static inline const void *ls_card_in(const struct ls_card_call *call, int k)
{
    return k < call->op->inputs ? call->in[k] : NULL;
}

static inline void *ls_card_out(const struct ls_card_call *call, int k)
{
    return k < call->op->outputs ? call->out[k] : NULL;
}

#endif
