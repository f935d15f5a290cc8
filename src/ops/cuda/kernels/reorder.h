/* Elements in another order and of another type, for host code; as kernels.h says. The bits are
 * those of ir/convert.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_REORDER_H
#define LS_OPS_CUDA_REORDER_H

#include <stdint.h>

#include "ir/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* From [outer, rows, columns] to [outer, columns, rows]; with rows 1 the order stays. ls_dtype_
 * converts leads from the one type to the other. */
struct ls_cuda_reorder {
    enum ls_dtype from, to;
    int64_t outer, rows, columns;
};
int ls_cuda_lay_out(cudaStream_t stream, const struct ls_cuda_reorder *of, const void *in,
                    void *out);

#ifdef __cplusplus
}
#endif

#endif
