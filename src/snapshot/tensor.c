/* Elements of an archive's tensors, and their conversion to fp32.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ir/convert.h"
#include "snapshot/archive.h"

void ls_tensor_copy(const struct ls_tensor *tensor, void *out)
{
    if (tensor->size > 0)
        memcpy(out, tensor->data, tensor->size);
}

void ls_tensor_floats(const struct ls_tensor *tensor, float *out)
{
    ls_dtype_convert(tensor->type, tensor->data, LS_F32, out,
                     tensor->size / ls_dtype_size(tensor->type));
}
