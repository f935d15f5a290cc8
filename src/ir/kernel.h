/* Kernels: how a device carries out an op.
 *
 * A kernel sees one micro-batch, on one thread, in bound memory; it decides nothing and allocates
 * nothing while it runs. What it computes depends on its inputs and attributes alone: never on
 * which worker runs it, on addresses, or on what was in its outputs or scratch before.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_KERNEL_H
#define LS_IR_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/batch_numbers.h"
#include "ir/op.h"
#include "ir/sync.h"

struct ls_stream;
struct ls_accumulator;

/* Where a RECORD op keeps one side of the factors of a gradient: the rows of its micro-batch. */
struct ls_factor_target {
    float *rows;
    uint32_t *largest; /* bits of the largest, what is not finite included */
};

/* What a pass hands to its kernels. Numbers that kernels write are in the device's memory; what
 * they are told is in the host's. */
struct ls_context {
    /* Where a kernel gives work that is not over when it returns (device/stream.h). */
    struct ls_stream *stream;
    int64_t first_ordinal; /* of the micro-batch's first sample; samples are consecutive */
    int64_t samples;
    int64_t position;          /* of the first token in its text; 0, but in nets that write texts */
    const double *normalizers; /* by index: true counts over the whole update, at least 1 */
    /* The same in the device's memory; NULL where that is the host's. */
    const struct ls_batch_numbers *numbers;
    double *partials;                   /* the record of this micro-batch, zeroed before the pass */
    double *lists;                      /* behind it: the lists of rankings */
    int worker, micro_batch;            /* who runs, and what: its number in the update */
    struct ls_accumulator *accumulator; /* ACCUMULATE adds to it; NULL: there are no such ops */
    struct ls_factor_target factor;     /* of the RECORD op that runs */
    /* For sync points: by grouping of the graph, the parts of this micro-batch; by sync, its rows
     * of partial results, part by part, and what was merged, group by group (ls_part.merged). */
    const struct ls_parts *parts;
    double *const *partial;
    float *const *merged;
    /* What a kernel that fails says (ls_kernel_fail); NULL: it is not asked for. */
    struct ls_error *error;
};

struct ls_prepared;

/* Layouts of an op's values during planning, and the types of its inputs. (Those of its outputs are
 * the layer's affair.) */
struct ls_op_layouts {
    const struct ls_layout *in[LS_OP_VALUES_MAX];  /* given: what is there; set: what is wanted */
    enum ls_dtype in_type[LS_OP_VALUES_MAX];       /* the same; ls_dtype_converts must lead there */
    const struct ls_layout *out[LS_OP_VALUES_MAX]; /* to be set: what will be written */
};

/* What a kernel shall do of output 0: columns [begin, end), at most LS_TILE_COLUMNS_MAX, for rows
 * of input 0 that may be those of many micro-batches. */
struct ls_product_tile {
    struct ls_stream *stream;
    const void *rows; /* `count` of them, all of input 0, of its type */
    int64_t count, begin, end;
    void *out;     /* rows, all of output 0; what is outside of the columns stays as it is */
    void *scratch; /* of the step, for this call alone */
};

enum { LS_TILE_COLUMNS_MAX = 512 };

/* How the numeric environment of a net speaks of a kernel's bits (docs/numerics.md, section 11). */
enum ls_kernel_bits {
    LS_BITS_UNSAID, /* a kernel must say it: a test fails */
    LS_BITS_EXACT,  /* it copies, compares, counts or sums exactly: no rounding */
    LS_BITS_OWN,    /* in the hash of ls_device_environment.own, which is the same for all nets */
    LS_BITS_BY_SHAPES,  /* ls_device_environment.probe runs it in the net's own shapes */
    LS_BITS_DEFINED,    /* bit by bit in docs/numerics.md, the same on every processor */
    LS_BITS_NEEDS_SYNC, /* not probed: it does nothing without a sync point */
    LS_BITS_NOT_PROBED  /* it rounds, but is older than BY_SHAPES: a probe would change old notes */
};

struct ls_kernel {
    enum ls_op_kind kind;
    enum ls_kernel_bits bits;
    const char *name;
    /* Its arithmetic is the kernel library's: the bits are a matter of that library's version, the
     * instruction set and the caches. All others give the same bits on every processor. */
    bool library;
    /* (optional) Whether this kernel can do the op at all; the first of a table that can is taken.
     * A static rule from the op alone. */
    bool (*accepts)(const struct ls_op *op);
    /* (optional) Whether it takes and writes the values of the op with the types that they have,
     * bf16 among them, as if it read them as fp32, computed in fp32 and rounded each element of its
     * outputs once. Otherwise, and where this is NULL, the plan converts: the kernel sees fp32.
     * Inputs that a product rounds (ir/op_type.h) are bf16 when this is asked, but for weights,
     * which `layouts` asks for as bf16 in the order that the kernel likes; its outputs may be fp32
     * or bf16, as layers in front of it and behind it have it. Values in bf16 are plain, unless
     * `layouts` says something else. */
    bool (*takes_bf16)(const struct ls_op *op);
    /* (optional; default: everything plain) Which layouts it wants and writes. A parameter that has
     * no layout yet gets what the first op that reads it asks for, so that must not depend on the
     * number of samples in the micro-batch. */
    int (*layouts)(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error);
    /* (optional) Builds what all workers share; values have their layouts now. Sets
     * scratch_bytes and implementation. */
    int (*prepare)(struct ls_prepared *prepared, struct ls_error *error);
    void (*release)(struct ls_prepared *prepared); /* (optional) */
    /* (optional) Builds what one worker needs, for memory that stays where it is (pointers of
     * inputs that change with each micro-batch are NULL here). Result goes to run as `local`. */
    int (*bind)(const struct ls_prepared *prepared, void *const *in, void *const *out,
                void *scratch, void **local, struct ls_error *error);
    void (*unbind)(const struct ls_prepared *prepared, void *local); /* (optional) */
    /* Pointers of absent optional values are NULL. This and the two below return 0 or the status of
     * what failed: LOCKSTEP_RESOURCE when memory ran out, else LOCKSTEP_INTERNAL; what the outputs
     * hold is meaningless then, and no later step of the micro-batch runs. */
    int (*run)(const struct ls_prepared *prepared, void *local, void *const *in, void *const *out,
               void *scratch, const struct ls_context *context);
    /* (optional) Does channels [begin, end) of what `run` does, multiples of LS_SYNC_BLOCK or the
     * last ones: what it writes of a channel depends on that channel of its inputs alone, and on
     * what was merged for it. Several such steps are carried out together, some channels at a time,
     * so that each finds what the one before wrote in the nearest caches. Any order of the parts
     * gives the bits of `run`. */
    int (*run_channels)(const struct ls_prepared *prepared, void *const *in, void *const *out,
                        void *scratch, const struct ls_context *context, int64_t begin,
                        int64_t end);
    /* (optional) Where the rows of an output have nothing to do with each other, a part of it for
     * any number of rows; the bits are those of `run`. */
    int (*tile)(const struct ls_prepared *prepared, void *const *in,
                const struct ls_product_tile *tile, struct ls_error *error);
    /* The input that output 0 may lie on (elementwise kernels); LS_IN_PLACE_ANY: any one of them;
     * -1: none. */
    int in_place;
};

enum { LS_IN_PLACE_ANY = -2 };

struct ls_prepared {
    const struct ls_kernel *kernel;
    const struct ls_op *op;
    size_t scratch_bytes;    /* needed while it runs */
    int64_t channels;        /* that run_channels can be asked for; 0: not for this op */
    char implementation[64]; /* for `plan`: "jit:avx512_common", "lockstep:avx512" */
    bool slow;               /* a reference path, worth a warning */
    void *state;             /* the kernel's own */
};

/* The kernel of a device's table that does an op; NULL: there is none. */
const struct ls_kernel *ls_kernel_find(const struct ls_kernel *const *table,
                                       const struct ls_op *op);

/* Says that `library`, or the device of that name, could not carry out an op, and in which layer it
 * is; returns `status`. `error` may be NULL. */
int ls_kernel_fail(const struct ls_op *op, struct ls_error *error, int status, const char *library);

#endif
