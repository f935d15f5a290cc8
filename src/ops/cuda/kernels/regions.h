/* Maxima and averages over bins of regions, for host code; as kernels.h says. The bits are those of
 * the reference device (device/region_bins.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_REGIONS_H
#define LS_OPS_CUDA_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* x [pictures, planes, plane...], y [regions, channels, bins...]. Averages look at planes of their
 * own. A region of no picture, or with edges that are no finite numbers, gives NaN. */
struct ls_cuda_regions {
    bool average;
    int64_t pictures, planes, plane[2], regions, channels, bins[2];
    float scale;
};
/* Bytes of scratch. */
size_t ls_cuda_regions_scratch(const struct ls_cuda_regions *of);
/* index: NULL where it is not asked for. */
int ls_cuda_pool_regions(cudaStream_t stream, const struct ls_cuda_regions *of, const float *x,
                         const float *region, void *scratch, float *y, int32_t *index);
/* index: of maxima. */
int ls_cuda_pool_regions_backward(cudaStream_t stream, const struct ls_cuda_regions *of,
                                  const float *dy, const int32_t *index, const float *region,
                                  void *scratch, float *dx);

#ifdef __cplusplus
}
#endif

#endif
