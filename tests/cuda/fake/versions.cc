/* The versions of the libraries, where no fake of them says more.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <cstddef>

#if LS_CUDA_HAS_CUDNN
#include <cudnn.h>

__attribute__((weak)) size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}
#endif

#if LS_CUDA_HAS_CUBLASLT
#include <cublasLt.h>

__attribute__((weak)) size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}
#endif

#if LS_CUDA_HAS_NCCL
#include <nccl.h>

__attribute__((weak)) ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
#endif
