/* Values: what ops read and write, and parameters: what training changes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_VALUE_H
#define LS_IR_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "ir/dtype.h"
#include "ir/factors.h"
#include "ir/layout.h"
#include "ir/mask.h"
#include "ir/shape.h"
#include "lockstep_names.h"

/* Where the bytes of a value are. */
enum ls_storage {
    LS_STORE_ARENA,     /* in the worker's arena, from its first writer to its last reader */
    LS_STORE_INPUT,     /* handed in with each micro-batch: a top of a data layer */
    LS_STORE_PARAMETER, /* a parameter, shared by all workers, read only during a pass */
    LS_STORE_NONE       /* no bytes: metrics, which live in the record of the micro-batch */
};

/* A learnable tensor: fp32 numbers, of which kernels may read views in other types and layouts
 * (plan/plan.h). One object for all graphs (micro-batch sizes, phases) of a program. */
struct ls_parameter {
    int index;             /* in its ls_parameter_set */
    char *name;            /* "conv1.weight": unique; the owner's where layers share it */
    const char *layer;     /* the owner's layer name */
    int blob;              /* which blob of the owner, as in a caffemodel */
    struct ls_shape shape; /* in Caffe's order */
    const Lockstep__FillerParameter *filler; /* NULL: zeros */
    float lr_mult, decay_mult;
    const Lockstep__MaskParameter *mask_definition; /* NULL: none */
    char *mask_file;                /* the file that it names, found; NULL: it names none */
    struct ls_mask *mask;           /* weights that stay zero; owned; NULL: none, or not read yet */
    bool average;                   /* a moving average that the engine advances; lr_mult is 0 */
    bool trained;                   /* some loss reaches it in training and lr_mult is not 0 */
    char *share;                    /* ParamSpec.name, or NULL */
    int uses;                       /* how many gradient contributions a micro-batch makes */
    struct ls_factoring factoring;  /* how its gradient is exchanged; set once, in backward */
    const struct ls_layout *layout; /* the layout it lives in; set once, by the plan */
};

struct ls_parameter_set {
    struct ls_parameter **items; /* in the order of the net */
    size_t count, capacity;
    struct ls_names names;  /* by name: index */
    struct ls_names shares; /* by the name that they are shared by: index of the first one */
};

/* One tensor of a micro-batch (or a parameter) inside a graph. */
struct ls_value {
    int index;             /* in its graph */
    const char *name;      /* blob name, or "conv1.weight", or "grad(conv1)" */
    struct ls_shape shape; /* for this graph's number of samples */
    enum ls_dtype type;
    enum ls_storage storage;
    /* What a sample is in it: the axis along which samples lie and how many rows each has;
     * axis -1: the value mixes samples, or does not depend on them. */
    int sample_axis;
    int64_t rows;
    /* By row along axis 0: 1, or 0 where a Filter layer leaves the row out, so that nothing may
     * count it (ir/filter.h); NULL: all rows are there. */
    struct ls_value *selected;
    bool learned;    /* depends on a parameter, or on a sync point: not known before the pass */
    bool needs_grad; /* some trained parameter is upstream, so its gradient is worth having */
    struct ls_parameter *parameter; /* LS_STORE_PARAMETER */
    struct ls_value *other_shape;   /* the same parameter once more, in another shape */
    int input;                      /* LS_STORE_INPUT: which of the graph's inputs */
    /* The forward value that this is the gradient of. Kernels should choose its layout. */
    const struct ls_value *gradient_of;
    /* Set by the plan. */
    const struct ls_layout *layout;
    struct ls_value *same_memory; /* the value whose memory this one shares (views, in place) */
};

/* The value whose memory this one lies in: itself, unless it is a view or was written in place.
 * NULL for NULL. */
static inline const struct ls_value *ls_value_root(const struct ls_value *value)
{
    while (value != NULL && value->same_memory != NULL)
        value = value->same_memory;
    return value;
}

/* Bytes that a value takes in its layout; a value without one is plain. */
size_t ls_value_bytes(const struct ls_value *value);
/* Rows of all samples along the axis of samples, which the value has. */
static inline int64_t ls_value_sample_rows(const struct ls_value *value)
{
    return value->shape.dim[value->sample_axis];
}
/* Elements of one sample. */
static inline int64_t ls_value_sample_size(const struct ls_value *value)
{
    return ls_shape_size(&value->shape) / ls_value_sample_rows(value) * value->rows;
}
/* Elements, padding included, that a parameter has in its layout. */
size_t ls_parameter_elements(const struct ls_parameter *parameter);
/* Bytes of an array of a parameter's size in its layout: the weights themselves, which are fp32, or
 * what an optimizer keeps of them. */
size_t ls_parameter_bytes(const struct ls_parameter *parameter);
/* The same in Caffe's order, as files have it. */
size_t ls_parameter_plain_bytes(const struct ls_parameter *parameter);

#endif
