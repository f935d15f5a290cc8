/* cuDNN's backend: handles, descriptors and what may be said of them. It is as strict as its
 * documentation, and stricter where that leaves something open: a handle is its thread's, and what
 * another descriptor refers to outlives it. Wrong use ends the test program.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/fake/fake.h"
#include "cuda/fake/inner.h"

#if !LS_CUDA_HAS_CUDNN

namespace fake
{

void begin_cudnn()
{
}

void end_cudnn()
{
}

} // namespace fake

#else

#include <atomic>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "cuda/fake/cudnn_inner.h"

using namespace fake;
using namespace fake_cudnn;

namespace
{

std::set<descriptor *> live;
std::set<cudnnHandle_t> handles;
thread_local std::string last_error;
std::atomic<uint64_t> threads;
thread_local uint64_t this_thread;

uint64_t thread_number()
{
    if (this_thread == 0)
        this_thread = ++threads;
    return this_thread;
}

/* ---- Which attributes there are ---- */

struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t most; /* values; one of 1 has exactly one */
    bool required;
};

#define ONE(of, name, type)                                                                        \
    {                                                                                              \
        CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, true             \
    }
#define OPTIONAL(of, name, type)                                                                   \
    {                                                                                              \
        CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, false            \
    }
#define MANY(of, name, type, most)                                                                 \
    {                                                                                              \
        CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, most, true          \
    }
#define PASS(of, name, x, w, y)                                                                    \
    ONE(of, name##_CONV_DESC, BACKEND_DESCRIPTOR), ONE(of, name##_##x, BACKEND_DESCRIPTOR),        \
        ONE(of, name##_##w, BACKEND_DESCRIPTOR), ONE(of, name##_##y, BACKEND_DESCRIPTOR),          \
        ONE(of, name##_ALPHA, FLOAT), ONE(of, name##_BETA, FLOAT)

const rule rules[] = {
    ONE(TENSOR, TENSOR_UNIQUE_ID, INT64),
    ONE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE),
    ONE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64),
    MANY(TENSOR, TENSOR_DIMENSIONS, INT64, CUDNN_DIM_MAX),
    MANY(TENSOR, TENSOR_STRIDES, INT64, CUDNN_DIM_MAX),
    OPTIONAL(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN),
    ONE(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE),
    ONE(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE),
    ONE(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64),
    MANY(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64, 3),
    MANY(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64, 3),
    MANY(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64, 3),
    MANY(CONVOLUTION, CONVOLUTION_DILATIONS, INT64, 3),
    PASS(OPERATION_CONVOLUTION_FORWARD, OPERATION_CONVOLUTION_FORWARD, X, W, Y),
    PASS(OPERATION_CONVOLUTION_BACKWARD_DATA, OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY),
    PASS(OPERATION_CONVOLUTION_BACKWARD_FILTER, OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY),
    ONE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE),
    ONE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE),
    OPTIONAL(POINTWISE, POINTWISE_RELU_LOWER_CLIP, DOUBLE),
    OPTIONAL(POINTWISE, POINTWISE_RELU_LOWER_CLIP_SLOPE, DOUBLE),
    ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR),
    ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR),
    OPTIONAL(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR),
    MANY(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 50),
    ONE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE),
    ONE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR),
    ONE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE),
    ONE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR),
    ONE(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE),
    MANY(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 50),
    MANY(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 50),
    ONE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR),
};

size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
        return 8;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    default: /* floats and names */
        return 4;
    }
}

const rule &find_rule(const descriptor *of, cudnnBackendAttributeName_t name)
{
    for (const rule &one : rules)
        if (one.of == of->type && one.name == name)
            return one;
    stop("cudnnBackendSetAttribute: descriptor type %d has no attribute %d", of->type, name);
}

} // namespace

namespace fake_cudnn
{

bool descriptor::has(cudnnBackendAttributeName_t name) const
{
    return attributes.count(name) > 0;
}

descriptor *descriptor::other(cudnnBackendAttributeName_t name) const
{
    return (descriptor *)one<void *>(name);
}

descriptor *check(const char *who, cudnnBackendDescriptor_t one)
{
    if (live.count((descriptor *)one) == 0)
        stop("%s: a descriptor that there is not", who);
    return (descriptor *)one;
}

cudnnStatus_t say(cudnnStatus_t status, const char *more)
{
    last_error = more;
    return status;
}

cudnnContext *check_handle(const char *who, cudnnHandle_t handle)
{
    if (handles.count(handle) == 0)
        stop("%s: a handle that there is not", who);
    if (handle->card != current_card())
        stop("%s: a handle of card %d, on card %d", who, handle->card, current_card());
    return handle;
}

cudnnContext *check_own_handle(const char *who, cudnnHandle_t handle)
{
    check_handle(who, handle);
    if (handle->thread != thread_number())
        stop("%s: a handle of another thread", who);
    return handle;
}

bool is_handle(cudnnHandle_t handle)
{
    return handles.count(handle) > 0;
}

} // namespace fake_cudnn

namespace fake
{

void end_cudnn()
{
    if (!handles.empty() || !live.empty())
        stop("%zu handles and %zu descriptors of cuDNN are left", handles.size(), live.size());
}

} // namespace fake

/* ---- Handles ---- */

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS            ? "CUDNN_STATUS_SUCCESS"
           : status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
           : status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
               ? "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
               : "CUDNN_STATUS_INTERNAL_ERROR";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    std::snprintf(message, size, "%s", last_error.c_str());
    last_error.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    call here("cudnnCreate");
    *handle = nullptr;
    if (!may_allocate())
        stop("cudnnCreate while this thread captures a stream");
    if (here.fails)
        return say(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "a failure of the fake");
    *handle = new cudnnContext{current_card(), nullptr, thread_number()};
    handles.insert(*handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    call here("cudnnDestroy");
    check_handle("cudnnDestroy", handle);
    wait_for_card("cudnnDestroy");
    if (handle->stream != nullptr)
        card_of("cudnnDestroy", handle->stream);
    handles.erase(handle);
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    call here("cudnnSetStream");
    check_own_handle("cudnnSetStream", handle);
    if (here.fails)
        return say(CUDNN_STATUS_INTERNAL_ERROR, "a failure of the fake");
    if (card_of("cudnnSetStream", stream) != handle->card)
        stop("cudnnSetStream: a stream of another card");
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Descriptors ---- */

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    call here("cudnnBackendCreateDescriptor");
    *out = nullptr;
    if (here.fails)
        return say(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "a failure of the fake");
    descriptor *one = new descriptor;
    one->type = type;
    live.insert(one);
    *out = one;
    return CUDNN_STATUS_SUCCESS;
}

/* The descriptor that refers to another; NULL: none does. */
static const descriptor *find_user(const descriptor *of)
{
    for (const descriptor *one : live)
        for (const auto &entry : one->attributes)
            if (entry.second.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
                for (void *other : one->all<void *>(entry.first))
                    if (other == of)
                        return one;
    return nullptr;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t gone)
{
    call here("cudnnBackendDestroyDescriptor");
    descriptor *one = check("cudnnBackendDestroyDescriptor", gone);
    if (find_user(one) != nullptr)
        stop("cudnnBackendDestroyDescriptor: one of type %d refers to it", find_user(one)->type);
    live.erase(one);
    delete one;
    return CUDNN_STATUS_SUCCESS;
}

static void check_others(const void *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!check("cudnnBackendSetAttribute", ((void *const *)values)[i])->finalized)
            stop("cudnnBackendSetAttribute: a descriptor that is not finalized");
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    call here("cudnnBackendSetAttribute");
    descriptor *one = check("cudnnBackendSetAttribute", of);
    if (here.fails)
        return say(CUDNN_STATUS_INTERNAL_ERROR, "a failure of the fake");
    const rule &found = find_rule(one, name);
    if (one->finalized)
        stop("cudnnBackendSetAttribute: descriptor type %d is finalized", one->type);
    if (type != found.type || values == nullptr)
        stop("cudnnBackendSetAttribute: attribute %d is not of type %d", name, type);
    if (count < 1 || count > found.most)
        stop("cudnnBackendSetAttribute: attribute %d has no %lld values", name, (long long)count);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        check_others(values, count);
    if (type == CUDNN_TYPE_HANDLE)
        check_handle("cudnnBackendSetAttribute", *(cudnnHandle_t const *)values);
    const char *bytes = (const char *)values;
    one->attributes[name] = {type, count,
                             std::vector<char>(bytes, bytes + (size_t)count * size_of(type))};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of)
{
    call here("cudnnBackendFinalize");
    descriptor *one = check("cudnnBackendFinalize", of);
    if (here.fails)
        return say(CUDNN_STATUS_INTERNAL_ERROR, "a failure of the fake");
    if (one->finalized)
        stop("cudnnBackendFinalize: descriptor type %d is finalized", one->type);
    for (const rule &each : rules)
        if (each.of == one->type && each.required && !one->has(each.name))
            stop("cudnnBackendFinalize: descriptor type %d lacks attribute %d", one->type,
                 each.name);
    const cudnnStatus_t status = finalize(one);
    one->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

#endif
