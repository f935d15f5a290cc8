/* What the functions that export ops share; for the files export*.c alone.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_EXPORTER_H
#define LS_ONNX_EXPORTER_H

#include "ir/layer.h"
#include "onnx/export.h"

struct ls_exporter {
    const struct ls_onnx_export *options;
    const struct ls_graph *graph;
    struct ls_onnx_writer *writer;
    struct ls_error *error;
    const struct ls_op *op;        /* at hand */
    const char **names;            /* by value: what it is called in the model; NULL: not yet */
    bool *needed;                  /* by value: an output depends on it */
    const struct ls_value *anchor; /* an input that has samples: what the batch is seen by */
    const char *anchor_name;
    int status;
};

/* Adds what an op computes to the model. */
typedef void (*ls_onnx_exporter)(struct ls_exporter *x, const struct ls_op *op);
/* By kind of op; NULL: it has no equivalent. */
extern const ls_onnx_exporter ls_onnx_exporters[LS_OP_KINDS];

/* By file: the tables that make up that one. */
extern const ls_onnx_exporter ls_onnx_products[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_windows[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_elements[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_norms[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_shapes[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_lookups[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_attention[LS_OP_KINDS];
extern const ls_onnx_exporter ls_onnx_recurrent[LS_OP_KINDS];

/* The op cannot be exported as it is, because of ...; `hint` may be NULL. */
void ls_onnx_refuse(struct ls_exporter *x, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What an input, or an output, of the op at hand is called; NULL: it is absent. The name of an
 * input that is a parameter makes it one of the model's weights. */
const char *ls_onnx_in(struct ls_exporter *x, int index);
const char *ls_onnx_out(struct ls_exporter *x, int index);
/* The same of any value. */
const char *ls_onnx_of(struct ls_exporter *x, const struct ls_value *value);
/* Whether the op at hand has that input, or output. */
static inline bool ls_onnx_has(const struct ls_op *op, int input)
{
    return input < op->inputs && op->input[input] != NULL;
}

/* Adds a node with one output, `out` or, where that is NULL, a new one, and returns its name. The
 * inputs may be absent (NULL). Attributes can be set behind it. */
const char *ls_onnx_emit(struct ls_exporter *x, const char *type, const char *out,
                         const char *const *inputs, size_t count);
#define LS_EMIT(x, type, out, ...)                                                                 \
    ls_onnx_emit(x, type, out, (const char *const[]){__VA_ARGS__},                                 \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* The value `out` is the one called `name`: no node, where that is possible. */
void ls_onnx_same(struct ls_exporter *x, const char *name, const struct ls_value *out);

/* The extents of a value in the model; -1: that of its samples, where the model takes any number of
 * them. */
void ls_onnx_dims(const struct ls_exporter *x, const struct ls_value *value,
                  int64_t dims[LS_RANK_MAX]);
/* `in` under another shape, at most one extent of which is -1. */
const char *ls_onnx_reshape(struct ls_exporter *x, const char *in, const char *out,
                            const int64_t *dims, int rank);
/* `in`, which may be of any shape with as many numbers, as `value` is shaped. */
const char *ls_onnx_reshape_as(struct ls_exporter *x, const char *in, const char *out,
                               const struct ls_value *value);
/* The axes of `in` in another order; `in` itself where that is the one it has and `out` is NULL. */
const char *ls_onnx_transpose(struct ls_exporter *x, const char *in, const char *out,
                              const int64_t *order, int rank);
/* Integers that are the shape of a value, taken from the input at run time where they must be. */
const char *ls_onnx_shape_of(struct ls_exporter *x, const struct ls_value *value);
/* A value of whole numbers as integers, or as fp32 numbers. */
const char *ls_onnx_as_integers(struct ls_exporter *x, const struct ls_value *value);
const char *ls_onnx_as_floats(struct ls_exporter *x, const struct ls_value *value);
/* 1 and 0 for true and false. */
const char *ls_onnx_as_numbers(struct ls_exporter *x, const char *in, const char *out);
/* `in` with axes of extent 1 put in, or taken out. */
const char *ls_onnx_unsqueeze(struct ls_exporter *x, const char *in, const char *out,
                              const int64_t *axes, size_t count);
const char *ls_onnx_squeeze(struct ls_exporter *x, const char *in, const char *out, int64_t axis);
/* The part of `in` from `begin` to `end` along an axis. */
const char *ls_onnx_cut(struct ls_exporter *x, const char *in, const char *out, int64_t axis,
                        int64_t begin, int64_t end);

/* The numbers of a parameter; NULL after a failure. */
const float *ls_onnx_weights(struct ls_exporter *x, const struct ls_value *parameter);
/* New numbers in place of them, `count` of the arena's, which the caller fills in; NULL after a
 * failure. They are added under the parameter's name. */
float *ls_onnx_new_numbers(struct ls_exporter *x, size_t count);
const char *ls_onnx_add_weights(struct ls_exporter *x, const char *name,
                                const struct ls_shape *shape, const float *numbers);
/* A function of one number, of `in`. */
const char *ls_onnx_activate(struct ls_exporter *x, const char *in, const char *out,
                             const struct ls_activation_attr *attr);
/* y > 0 ? y : slope y, where `relu` says so; else `in` as `out`, which may be NULL. */
const char *ls_onnx_relu(struct ls_exporter *x, const char *in, const char *out, float slope);

/* For RECURRENT: the inner product whose result z it reads, if only its weights are needed, so that
 * both become one operator; NULL: there is none. */
const struct ls_op *ls_onnx_recurrent_product(const struct ls_graph *graph,
                                              const struct ls_op *recurrent);

#endif
