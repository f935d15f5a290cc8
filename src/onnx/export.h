/* From a net's graph to an ONNX model: what is needed for its outputs, op by op.
 *
 * The graph is that of a net in its test phase. Each op becomes one node of ONNX, or some; ops that
 * have no equivalent are refused, all of them at once. A model's arithmetic is fp32, whatever the
 * precision of the layers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_EXPORT_H
#define LS_ONNX_EXPORT_H

#include "ir/graph.h"
#include "onnx/writer.h"

enum { LS_ONNX_OPSET_MIN = 13, LS_ONNX_OPSET_MAX = 17 };

/* What is done to the numbers of the net's first input before the net sees them: (x - mean) scale,
 * with a mean for each channel, or for each number of a sample. */
struct ls_onnx_preprocessing {
    const float *mean; /* NULL: 0 */
    size_t mean_count;
    float scale;
};

struct ls_onnx_export {
    const struct ls_graph *graph;
    struct ls_value *const *outputs;
    size_t output_count;
    int opset;
    int64_t batch; /* samples of a run of the model; -1: any number */
    /* The weights, in Caffe's order, which last as long as the export. */
    int (*weights)(void *user, const struct ls_parameter *parameter, const float **numbers,
                   struct ls_error *error);
    const Lockstep__NetParameter *all; /* as it was before dummy data came into it */
    const struct ls_onnx_preprocessing *preprocessing; /* to be part of the model; NULL: none is */
    /* (optional) Told of what a user should know: what the model takes for granted. */
    void (*tell)(void *user, const char *sentence);
    void *user;
};

/* Adds the nodes, weights, inputs and outputs of a net to a model. LOCKSTEP_DEFINITION names what
 * has no equivalent. */
int ls_onnx_export(struct ls_onnx_writer *writer, const struct ls_onnx_export *options,
                   struct ls_error *error);

#endif
