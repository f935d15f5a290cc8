/* External data: numbers of a tensor in a file beside the model's.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_EXTERNAL_H
#define LS_ONNX_EXTERNAL_H

#include <stddef.h>

#include "base/error.h"
#include "onnx.pb-c.h"

/* Reads the `size` bytes of a tensor of the model in the file `path` into a new block (ls_free).
 * Its location is the name of a file in the model's folder, or in folders within it; absolute
 * paths, "..", and links are refused. A failure is LOCKSTEP_WEIGHTS. */
int ls_onnx_external_read(const Onnx__TensorProto *tensor, const char *path, size_t size,
                          void **bytes, struct ls_error *error);

#endif
