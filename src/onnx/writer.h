/* A model that is made: nodes, weights, inputs and outputs, in the order in which they are added,
 * so that the same net gives the same bytes.
 *
 * After a failed allocation `failed` is set, and functions that return names return "", so that a
 * long run of calls needs one check at its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_WRITER_H
#define LS_ONNX_WRITER_H

#include <stdbool.h>

#include "base/names.h"
#include "onnx/tensor.h"

/* An initializer. Its numbers are not in the message, but written behind it. */
struct ls_onnx_weight {
    Onnx__TensorProto *tensor;
    const void *bytes; /* they outlive the writer, or are the arena's */
    size_t size;
    bool constant; /* a small tensor of ours, which others may use again */
};

struct ls_onnx_writer {
    struct ls_arena *arena;  /* owns everything */
    Onnx__ModelProto *model; /* without its graph's initializers */
    Onnx__NodeProto **nodes; /* these lists are freed with ls_free */
    size_t node_count, node_capacity;
    struct ls_onnx_weight *weights;
    size_t weight_count, weight_capacity;
    Onnx__ValueInfoProto **inputs, **outputs;
    size_t input_count, input_capacity, output_count, output_capacity;
    struct ls_names names;      /* of values: how many wanted to be called so */
    struct ls_names node_names; /* the same of nodes */
    const char *scope;          /* the layer that nodes are named after */
    bool failed;
};

/* An empty model for a version of the standard's operators, 13 to 17. Free also after a failure. */
int ls_onnx_writer_open(struct ls_onnx_writer *writer, int opset, struct ls_error *error);
void ls_onnx_writer_free(struct ls_onnx_writer *writer);
/* Says something about the model (metadata_props), in the order of the calls. */
void ls_onnx_note(struct ls_onnx_writer *writer, const char *key, const char *value);

/* A name for a value that no other has: `wish`, or with a number behind it. */
const char *ls_onnx_name(struct ls_onnx_writer *writer, const char *wish);

/* Adds a node that writes `outputs` values; NULL is an input or an output that is absent. Later
 * calls give it attributes. */
void ls_onnx_add_node(struct ls_onnx_writer *writer, const char *type, const char *const *inputs,
                      size_t input_count, const char *const *outputs, size_t output_count);
void ls_onnx_set_int(struct ls_onnx_writer *writer, const char *name, int64_t value);
void ls_onnx_set_float(struct ls_onnx_writer *writer, const char *name, float value);
void ls_onnx_set_string(struct ls_onnx_writer *writer, const char *name, const char *value);
void ls_onnx_set_ints(struct ls_onnx_writer *writer, const char *name, const int64_t *values,
                      size_t count);

/* Adds weights under a name that ls_onnx_name gave; the numbers are not copied. */
void ls_onnx_add_floats(struct ls_onnx_writer *writer, const char *name,
                        const struct ls_shape *shape, const float *numbers);
/* A constant; one that there is already is used again. Numbers are copied. */
const char *ls_onnx_constant(struct ls_onnx_writer *writer, const struct ls_shape *shape,
                             const float *numbers);
const char *ls_onnx_bools(struct ls_onnx_writer *writer, const struct ls_shape *shape,
                          const unsigned char *values);
const char *ls_onnx_integers(struct ls_onnx_writer *writer, const int64_t *values, size_t count);
/* Of rank 0. */
const char *ls_onnx_number(struct ls_onnx_writer *writer, float number);
const char *ls_onnx_integer(struct ls_onnx_writer *writer, int64_t number);

/* An input or an output of the model. Extent -1 is one that goes with the batch: `rows` times its
 * size; 0 for what a Filter layer leaves of them. `type` is a number of TensorProto.DataType. */
void ls_onnx_add_input(struct ls_onnx_writer *writer, const char *name, int32_t type,
                       const int64_t *dims, int rank, int64_t rows);
void ls_onnx_add_output(struct ls_onnx_writer *writer, const char *name, int32_t type,
                        const int64_t *dims, int rank, int64_t rows);

/* Writes the model. Weights go to a file beside it, called as it is with ".data" behind, where
 * `external` says so, or the model would have more than 2 GiB, which readers refuse. */
int ls_onnx_save(struct ls_onnx_writer *writer, const char *path, bool external,
                 struct ls_error *error);

#endif
