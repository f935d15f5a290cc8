/* From an ONNX model to a net: layers as text, and their weights.
 *
 * A node becomes a layer, or some. What depends on no input is worked out here (shapes, masks); an
 * operator that has no equivalent is refused, all of them at once. A model's inference form of a
 * batch norm becomes one that goes on learning.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_IMPORT_H
#define LS_ONNX_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "ir/shape.h"

enum { LS_ONNX_IMPORT_MIN = 6, LS_ONNX_IMPORT_MAX = 28 }; /* versions of the operators */

struct ls_onnx_import {
    const char *const *shapes; /* "input=1,3,224,224": of inputs that leave extents open */
    size_t shape_count;
    bool tie; /* layers that begin with the same weights keep them in common */
};

/* A weight, in Caffe's order. */
struct ls_onnx_net_weight {
    const char *name; /* "conv1.weight" */
    const char *from; /* the model's name of it; may be empty */
    struct ls_shape shape;
    const float *numbers;
    const char *share; /* the name of its `param`; NULL: it has none */
};

struct ls_onnx_input {
    const char *name;
    struct ls_shape shape;
};

/* All of it is the net's until it is freed. */
struct ls_onnx_net {
    struct ls_onnx_input *inputs;
    size_t input_count;
    struct ls_text layers; /* in the prototxt's language */
    /* The model's first output: its blob, and where the layer that makes it begins in `layers`. */
    const char *output;
    struct ls_shape output_shape;
    /* The same before a softmax (or its logarithm) that the model ends with; else NULL. */
    const char *scores;
    size_t softmax_begin;
    bool softmax_last; /* nothing stands behind that layer */
    struct ls_onnx_net_weight *weights;
    size_t weight_count;
    struct ls_text notes; /* what the user should know, a sentence a line */
    struct ls_onnx_memory *memory;
};

/* Reads the model in the file `path`. A damaged file is LOCKSTEP_WEIGHTS, and what has no
 * equivalent LOCKSTEP_DEFINITION. On failure the net is empty. */
int ls_onnx_import(const char *path, const struct ls_onnx_import *options, struct ls_onnx_net *net,
                   struct ls_error *error);
void ls_onnx_net_free(struct ls_onnx_net *net);

#endif
