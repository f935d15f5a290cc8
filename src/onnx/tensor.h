/* Tensors of ONNX models: TensorProto, the numbers of weights and constants.
 *
 * A file may give numbers in one of several lists, as raw bytes, or in a file beside it ("external
 * data"). A reader sees none of that: it gets an array as memory has it. What a file says is not
 * trusted: shapes that overflow, lists of another length than the shape, numbers that do not fit
 * their type, and paths that lead out of the model's folder are refused.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_TENSOR_H
#define LS_ONNX_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/shape.h"
#include "onnx.pb-c.h" /* IWYU pragma: export */
#include "schema/arena.h"

/* Numbers of a tensor, row-major, little-endian as in memory. */
struct ls_onnx_array {
    struct ls_shape shape; /* rank 0: one number; an extent may be 0 */
    enum ls_dtype type;
    size_t count; /* of numbers */
    const void
        *numbers; /* not aligned; `owned`, or a part of the message; NULL if there are none */
    void *owned;
};

/* The type that a number of TensorProto.DataType stands for; false: strings, complex numbers, and
 * what is unknown. */
bool ls_onnx_type(int32_t data_type, enum ls_dtype *type);

/* Reads a tensor of the model in the file `path`, which messages name and beside which external
 * data are looked for: by names of files in that folder or in folders within it, none of which may
 * be a link. The array may share memory with the message; ls_onnx_array_free takes it back, also
 * after a failure, which is LOCKSTEP_WEIGHTS. */
int ls_onnx_tensor_read(const Onnx__TensorProto *tensor, const char *path,
                        struct ls_onnx_array *array, struct ls_error *error);
void ls_onnx_array_free(struct ls_onnx_array *array);

/* Number i as an integer; of floating-point types what is behind the point is cut off, and what no
 * int64_t can hold (nor a NaN) gives INT64_MIN. */
int64_t ls_onnx_array_integer(const struct ls_onnx_array *array, size_t i);
/* All numbers as fp32, rounded once; BOOL as 0 and 1. */
void ls_onnx_array_floats(const struct ls_onnx_array *array, float *out);

/* New tensors, which are the arena's; NULL: it has no memory. The numbers are not copied. */
Onnx__TensorProto *ls_onnx_new_floats(struct ls_arena *arena, const char *name,
                                      const struct ls_shape *shape, const float *numbers);
/* Of rank 1. */
Onnx__TensorProto *ls_onnx_new_integers(struct ls_arena *arena, const char *name,
                                        const int64_t *numbers, size_t count);

#endif
