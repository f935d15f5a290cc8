/* Descriptors. See ops/cuda/cudnn.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/cudnn.h"

/* Kernels that an engine compiles when its plan is made may be more than an installation can. */
bool ls_cudnn_is_unsupported(cudnnStatus_t status)
{
    return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ||
           status == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
}

cudnnBackendDescriptor_t ls_cudnn_make(struct ls_cudnn_set *set, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = NULL;
    if (set->status == CUDNN_STATUS_SUCCESS && set->count == LS_CUDNN_DESCRIPTORS)
        set->status = CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
    if (set->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    set->status = cudnnBackendCreateDescriptor(type, &descriptor);
    if (set->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    set->made[set->count++] = descriptor;
    return descriptor;
}

void ls_cudnn_put(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void *values)
{
    if (set->status == CUDNN_STATUS_SUCCESS)
        set->status = cudnnBackendSetAttribute(descriptor, name, type, count, values);
}

void ls_cudnn_put_descriptor(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                             cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    ls_cudnn_put(set, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void ls_cudnn_put_int(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                      cudnnBackendAttributeName_t name, int64_t value)
{
    ls_cudnn_put(set, descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}

void ls_cudnn_finalize(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor)
{
    if (set->status == CUDNN_STATUS_SUCCESS)
        set->status = cudnnBackendFinalize(descriptor);
}

int64_t ls_cudnn_get(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                     cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t most, void *values)
{
    int64_t count = 0;
    if (set->status != CUDNN_STATUS_SUCCESS)
        return 0;
    set->status = cudnnBackendGetAttribute(descriptor, name, type, most, &count, values);
    return set->status != CUDNN_STATUS_SUCCESS ? 0 : most > 0 && count > most ? most : count;
}

void ls_cudnn_drop(struct ls_cudnn_set *set, int count)
{
    while (set->count > count)
        (void)cudnnBackendDestroyDescriptor(set->made[--set->count]);
}

void ls_cudnn_drop_others(struct ls_cudnn_set *set, int first, int end,
                          cudnnBackendDescriptor_t kept)
{
    int left = first;
    for (int i = first; i < set->count; i++)
        if (i >= end || set->made[i] == kept)
            set->made[left++] = set->made[i];
        else
            (void)cudnnBackendDestroyDescriptor(set->made[i]);
    set->count = left;
}
