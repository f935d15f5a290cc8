/* Op types: what the program knows of each kind of op, in one record, so that no other file decides
 * by a list of kinds. How a device carries an op out is a matter of its kernels (ir/kernel.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_OP_TYPE_H
#define LS_IR_OP_TYPE_H

#include "ir/op.h"

/* What an op does besides writing its outputs. An op with an effect runs once in a pass; any other
 * one may be recomputed. */
enum ls_op_effect {
    LS_EFFECT_NONE,
    LS_EFFECT_METRIC,   /* adds to the record of the micro-batch */
    LS_EFFECT_GRADIENT, /* adds to a gradient, or records a factor of one */
    LS_EFFECT_SYNC,     /* leaves or merges partial results of a sync point */
    LS_EFFECT_STATE     /* keeps what the next window reads */
};

/* What the time of an op is counted as (solver/timing.c). */
enum ls_op_timing {
    LS_TIMING_PASS,    /* the forward pass, or the gradients of data: as op->backward says */
    LS_TIMING_WEIGHTS, /* the gradients of weights */
    LS_TIMING_WEIGHTS_IF_MADE, /* the gradients of weights; of data, where it has no output */
    LS_TIMING_REDUCTION        /* the sum of gradients */
};

/* Which outputs an op of a layer in bf16 writes as bf16, going forward. The gradient of a value has
 * the value's type, whatever op writes it. */
enum ls_op_outputs {
    LS_OUTPUTS_FP32,    /* none: statistics, figures, losses, places, gradients of weights */
    LS_OUTPUTS_ROUNDED, /* output 0 */
    LS_OUTPUTS_MOVED    /* elements are not computed but moved: all outputs have the type of the
                           inputs, or fp32 where these differ */
};

/* Labels that an op takes from input 1 as numbers of classes. */
struct ls_op_labels {
    int64_t classes;
    bool has_ignore;
    int ignore_label;
};

enum { LS_OP_BACKWARD_MAX = 2, LS_OP_TYPED_MAX = 11 };

/* A set of element types. */
#define LS_TYPES(type) (1U << LS_##type)
#define LS_TYPES_ANY   (~0U)

struct ls_op_type {
    enum ls_op_kind kind;
    const char *name; /* for messages and tables: "convolution backward data" */
    enum ls_op_effect effect;
    enum ls_op_timing timing;
    int traffic; /* how many times the bytes of its operands are moved; 0: there is no work */
    double (*flops)(const struct ls_op *op); /* roughly */
    /* What follows may be left out of a record. */
    bool heavy;     /* is recomputed only to keep to a limit on memory (plan/budget.c) */
    bool by_engine; /* the engine carries it out (engine/binding.c): no device has a kernel */
    enum ls_op_kind backward[LS_OP_BACKWARD_MAX]; /* what its gradients are made of, then 0 */
    enum ls_op_outputs outputs;
    /* In a layer in bf16, so many inputs (x or dy, weights) are rounded to bf16: it is a product.
     */
    int rounded_inputs;
    bool tf32; /* a product that takes its factors in TF32 in a layer in TF32 */
    /* By input, the types that its elements may have; 0, and for inputs behind these: F32 alone. */
    unsigned types[LS_OP_TYPED_MAX];
    /* Sets what the op takes from input 1 as labels of classes; NULL: it takes none. */
    void (*labels)(const struct ls_op *op, struct ls_op_labels *labels);
    /* Adds what decides the result besides shapes and inputs to a hash, for kernels whose bits are
     * probed in a net's own shapes (LS_BITS_BY_SHAPES); NULL: nothing does. */
    uint64_t (*attributes)(const struct ls_op *op, uint64_t hash);
    /* Which value is a net's prediction (api/predict.c): output 0 of an op with predicts_output.
     * A net without one, and without a top that no layer reads, predicts input 0 of the op with the
     * lowest predicts_input above 0. */
    bool predicts_output;
    int predicts_input;
};

enum { LS_PREDICTS_INPUT_MAX = 5 };

const struct ls_op_type *ls_op_type(enum ls_op_kind kind);

/* The types that the elements of an input may have where the definition says them. What a layer in
 * bf16 hands on may be bf16 all the same: the plan converts it for kernels that do not take it. */
unsigned ls_op_input_types(enum ls_op_kind kind, int input);

/* Bytes of all operands of an op, each once. */
double ls_op_operand_bytes(const struct ls_op *op);

#endif
