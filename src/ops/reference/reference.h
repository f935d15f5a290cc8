/* The reference device: every op in plain C. It is slow, and it is what other devices are compared
 * with.
 *
 * All values are plain (row-major). An element of a result is computed in double, in an order that
 * depends on the shapes alone, and rounded to float once.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_REFERENCE_REFERENCE_H
#define LS_OPS_REFERENCE_REFERENCE_H

#include "device/plain.h"

/* What an op is carried out with. */
struct ls_call {
    const struct ls_op *op;
    void *const *in, *const *out; /* NULL where an optional value is absent */
    double *sum[2];               /* for `add`: outputs 0 and 1 in double; NULL where absent */
    void *scratch;
    const struct ls_context *context;
};

/* How a kind of op is computed: by one of these. */
struct ls_compute {
    /* Element i of output 0. */
    double (*element)(const struct ls_call *call, int64_t i);
    /* The same in fp32. */
    float (*number)(const struct ls_call *call, int64_t i);
    /* Element i of input 0 adds term[k] to the element of output k that is returned. */
    int64_t (*terms)(const struct ls_call *call, int64_t i, double term[2]);
    /* Adds to call->sum, which are zeros and become the outputs. */
    void (*add)(const struct ls_call *call);
    /* Adds to the record of the micro-batch (device/counts.h). */
    void (*count)(const struct ls_op *op, void *const *in, double *partials);
    /* Writes the outputs, or something else. */
    void (*run)(const struct ls_call *call);
    int (*call)(const struct ls_call *call);   /* the same, which may fail */
    size_t (*scratch)(const struct ls_op *op); /* (optional) bytes */
};

extern const struct ls_device ls_device_reference;

/* By kind; empty where another file has it. */
extern const struct ls_compute ls_ref_attention[LS_OP_KINDS], ls_ref_elements[LS_OP_KINDS],
    ls_ref_losses[LS_OP_KINDS], ls_ref_norms[LS_OP_KINDS], ls_ref_recurrent[LS_OP_KINDS],
    ls_ref_regions[LS_OP_KINDS], ls_ref_sequences[LS_OP_KINDS], ls_ref_windows[LS_OP_KINDS];

/* f(x), or its derivative by x or y, as enum ls_activation says. */
double ls_ref_activation(const struct ls_activation_attr *attr, double x, bool slope);

/* Input k of a call; NULL where it is absent, also behind the end of the list. */
static inline const float *ls_in(const struct ls_call *call, int k)
{
    return k < call->op->inputs ? call->in[k] : NULL;
}

/* Element i of input k. */
static inline double ls_at(const struct ls_call *call, int k, int64_t i)
{
    return (double)((const float *)call->in[k])[i];
}

static inline int64_t ls_size(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* Whether the mask of a softmax, if it has one, is 0 for element i of x. */
bool ls_ref_masked(const struct ls_call *call, int64_t i);

/* A shape around some of its axes: those in front, they themselves, those behind. */
struct ls_axes {
    int64_t outer, dim, inner;
};

static inline struct ls_axes ls_axes(const struct ls_value *value, int axis, int axes)
{
    const struct ls_shape *shape = &value->shape;
    return (struct ls_axes){ls_shape_count(shape, 0, axis),
                            ls_shape_count(shape, axis, axis + axes),
                            ls_shape_count(shape, axis + axes, shape->rank)};
}

/* The index of element i along the axes of a split. */
static inline int64_t ls_along(const struct ls_axes *split, int64_t i)
{
    return i / split->inner % split->dim;
}

/* f(z) = z > 0 ? z : slope z, which leaves a NaN what it is; slope 0 gives 0 for infinities, too.
 */
static inline double ls_relu(double z, float slope)
{
    return !(z < 0) ? z : slope == 0 ? 0 : (double)slope * z;
}

static inline double ls_relu_backward(double dy, bool positive, float slope)
{
    return positive ? dy : slope == 0 ? 0 : (double)slope * dy;
}

#endif
