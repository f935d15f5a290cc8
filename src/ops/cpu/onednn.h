/* Convolutions, inner products and reorders by oneDNN: the only door to that library.
 *
 * A primitive is what oneDNN built for one set of shapes and layouts; it is constant and shared by
 * all workers. An execution is a worker's own: the memory that the primitive works on. Both run on
 * the calling thread alone: with more threads inside a primitive, sums would be cut by their
 * number. All that knows oneDNN's types is in onednn*.c, and what its versions 2.x and 3.x have
 * different functions for in onednn_api2.c and onednn_api3.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ONEDNN_H
#define LS_OPS_CPU_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/layout.h"
#include "ir/op.h"

/* The four tensors of a primitive. In a backward pass the names stand for the gradients where the
 * pass computes or receives them: TARGET is dy, and SOURCE or WEIGHTS and BIAS are the result. */
enum ls_tensor_slot { LS_SOURCE, LS_WEIGHTS, LS_BIAS, LS_TARGET, LS_SLOTS };

enum { LS_TENSOR_RANK_MAX = 6 }; /* group, output, input, three spatial axes */

struct ls_onednn_tensor {
    int rank; /* 0: absent */
    int64_t dim[LS_TENSOR_RANK_MAX];
    enum ls_dtype type;
    const struct ls_layout *layout; /* NULL: as oneDNN likes it (weights only) */
    bool transposed; /* rank 2: plain (Caffe's order) means that the second axis comes first */
    bool grouped;    /* the first axis of these weights is the group */
    /* Axis 1 as the primitive sees it, where that is more than dim[1]: a multiple of the channels
     * per block, the lanes behind dim[1] being zero. 0: dim[1]. */
    int64_t widened;
};

enum ls_primitive_kind {
    LS_PRIMITIVE_CONVOLUTION,
    LS_PRIMITIVE_INNER_PRODUCT,
    LS_PRIMITIVE_REORDER /* SOURCE to TARGET: other layout, same elements */
};
enum ls_onednn_pass { LS_PASS_FORWARD, LS_PASS_DATA, LS_PASS_WEIGHTS };

struct ls_primitive_spec {
    enum ls_primitive_kind kind;
    enum ls_onednn_pass pass;
    struct ls_onednn_tensor tensor[LS_SLOTS];
    struct ls_window window; /* convolution */
    bool winograd;           /* convolution: by Winograd's algorithm, else directly */
    bool relu;               /* forward: y = y > 0 ? y : slope * y */
    float slope;
};

/* What oneDNN would do for a spec. */
struct ls_primitive_plan {
    char implementation[64];         /* "jit:avx512_common" */
    bool reference;                  /* plain loops, far slower than a kernel should be */
    const struct ls_layout *weights; /* the layout of WEIGHTS */
};

/* Finds out; builds nothing. Fails with LOCKSTEP_DEFINITION where oneDNN cannot do it at all. */
int ls_primitive_query(const struct ls_primitive_spec *spec, struct ls_primitive_plan *plan,
                       struct ls_error *error);

struct ls_primitive;
/* Builds a primitive; all layouts must be given. */
int ls_primitive_new(const struct ls_primitive_spec *spec, struct ls_primitive **primitive,
                     struct ls_error *error);
void ls_primitive_free(struct ls_primitive *primitive);
size_t ls_primitive_scratch(const struct ls_primitive *primitive); /* bytes */
/* How it does it; the layout of the weights is not said. */
const struct ls_primitive_plan *ls_primitive_plan_of(const struct ls_primitive *primitive);

struct ls_execution;
/* `scratch` stays where it is; it may be NULL where ls_primitive_scratch is 0. */
int ls_execution_new(const struct ls_primitive *primitive, void *scratch,
                     struct ls_execution **execution, struct ls_error *error);
void ls_execution_free(struct ls_execution *execution);
/* Runs on the tensors that `data` points to, by slot; pointers of absent tensors are not read.
 * LOCKSTEP_RESOURCE where oneDNN found no memory, LOCKSTEP_INTERNAL where it failed otherwise. */
int ls_execution_run(struct ls_execution *execution, void *const data[LS_SLOTS]);

/* The layout of ungrouped weights of three spatial axes in blocks of 8 or 16 channels on both
 * sides, those of y innermost ("OIdhw16i16o"), or those of x. It is kept for good, as all opaque
 * layouts are. */
int ls_layout_of_filters(const struct ls_onednn_tensor *tensor, int block, bool outputs_last,
                         const struct ls_layout **layout, struct ls_error *error);

/* The layout of a convolution's weights [O, I, 1 to 3 axes] as [O, axes, I]. */
int ls_onednn_channels_last(const struct ls_shape *weights, const struct ls_layout **layout,
                            struct ls_error *error);

/* Windows of convolutions are computed with in 32 bits: larger ones are refused. */
bool ls_window_is_too_large(const struct ls_window *window);
#define LS_WINDOW_TOO_LARGE "a window of more than 2^20 places along an axis is too large"

/* The tensor that an opaque layout was made for. */
const struct ls_onednn_tensor *ls_layout_tensor(const struct ls_layout *layout);

/* Keeps oneDNN on the calling thread, as every thread that runs executions must. Returns what the
 * thread's setting was, which ls_onednn_restore_threads gives back to a thread that is not ours. */
int ls_onednn_one_thread(void);
void ls_onednn_restore_threads(int threads);
/* The instruction set that oneDNN uses ("avx512"), and its version ("2.6.3"). */
const char *ls_onednn_isa(void);
const char *ls_onednn_version(void);
/* Whether that is major.minor or a later one. */
bool ls_onednn_is_from(int major, int minor);

#endif
