/* cuDNN: handles, descriptors, and plans that carry out graphs of ops. What is here is for the
 * family of kernels in ops/cuda/cudnn_ops.c.
 *
 * A graph is made of descriptors: tensors, ops on them, the graph. An engine of cuDNN is chosen for
 * it by a static rule, and made into a plan, which is carried out with the addresses of tensors.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CUDNN_H
#define LS_OPS_CUDA_CUDNN_H

#include <cudnn_graph.h>

#include "ir/kernel.h"

struct ls_text;

/* The most that a plan may want for itself while it runs. */
#define LS_CUDNN_WORKSPACE_MAX ((size_t)1 << 30)

/* ---- Descriptors ----------------------------------------------------------------------------- */

enum { LS_CUDNN_DESCRIPTORS = 96 };

/* Descriptors that are made one after the other. After a call that failed the others do nothing, so
 * that one look at `status` behind them is enough. */
struct ls_cudnn_set {
    cudnnBackendDescriptor_t made[LS_CUDNN_DESCRIPTORS];
    int count;
    cudnnStatus_t status; /* of the first call that failed */
};

/* NULL after a failure. */
cudnnBackendDescriptor_t ls_cudnn_make(struct ls_cudnn_set *set, cudnnBackendDescriptorType_t type);
void ls_cudnn_put(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void *values);
void ls_cudnn_put_descriptor(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                             cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
void ls_cudnn_put_int(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                      cudnnBackendAttributeName_t name, int64_t value);
void ls_cudnn_finalize(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor);
/* Up to `most` values; their number, 0 after a failure. */
int64_t ls_cudnn_get(struct ls_cudnn_set *set, cudnnBackendDescriptor_t descriptor,
                     cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t most, void *values);
/* Destroys the newest ones, until `count` are left. */
void ls_cudnn_drop(struct ls_cudnn_set *set, int count);
/* Destroys those of number [first, end), but `kept`. */
void ls_cudnn_drop_others(struct ls_cudnn_set *set, int first, int end,
                          cudnnBackendDescriptor_t kept);

/* Whether a status says that cuDNN cannot do what was asked for, and is no failure. */
bool ls_cudnn_is_unsupported(cudnnStatus_t status);
/* 0, or fails with what the card could not do for the op, and why. */
int ls_cudnn_check(cudnnStatus_t status, const struct ls_op *op, const char *what,
                   struct ls_error *error);

/* ---- Handles --------------------------------------------------------------------------------- */

/* The handle of the calling thread for its card, which plans are carried out with. It is made when
 * it is first asked for, and ends with the thread. */
int ls_cudnn_handle(const struct ls_op *op, cudnnHandle_t *handle, struct ls_error *error);

/* What of cuDNN decides the bits, as lines "key=value". */
void ls_cudnn_describe(struct ls_text *text);

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum ls_cudnn_pass { LS_CUDNN_TO_Y, LS_CUDNN_TO_X, LS_CUDNN_TO_W };

enum { LS_CUDNN_RANK = 5 };

/* Numbers of tensors in a graph. */
enum { LS_CUDNN_X = 1, LS_CUDNN_W, LS_CUDNN_Y, LS_CUDNN_BIAS, LS_CUDNN_SUMS, LS_CUDNN_BIASED };

struct ls_cudnn_tensor {
    cudnnDataType_t type;
    int64_t dim[LS_CUDNN_RANK], stride[LS_CUDNN_RANK]; /* samples, channels, spatial axes */
};

/* A convolution (windows over x make y with weights w): the pass that makes one of the three of the
 * other two, with what follows it in the same graph. */
struct ls_cudnn_convolution {
    enum ls_cudnn_pass pass;
    int axes; /* 2 or 3 */
    int64_t stride[3], dilation[3], pad[3];
    struct ls_cudnn_tensor x, w, y;
    bool bias, relu;
    float slope;
};

/* Makes the graph; NULL after a failure. Graphs belong to the card of the handle. */
cudnnBackendDescriptor_t ls_cudnn_graph(struct ls_cudnn_set *set, cudnnHandle_t handle,
                                        const struct ls_cudnn_convolution *of);

/* ---- Plans ----------------------------------------------------------------------------------- */

/* What an engine's arithmetic may be. */
struct ls_cudnn_demand {
    bool tensor_cores;          /* they may multiply */
    bool no_winograd, winograd; /* it must not be, or must be, Winograd's algorithm */
};

struct ls_cudnn_plan {
    struct ls_cudnn_set set;       /* all that it is made of */
    cudnnBackendDescriptor_t plan; /* NULL: there is none */
    int64_t engine;
    int choice; /* which of those that cuDNN's heuristics offer */
    size_t workspace;
};

/* Makes a plan with the first engine, in the order of cuDNN's heuristics, that is deterministic,
 * computes as demanded and needs no more workspace than LS_CUDNN_WORKSPACE_MAX; what failed is in
 * set.status. plan NULL: there is no such engine, or a failure. */
void ls_cudnn_plan_make(const struct ls_cudnn_convolution *of, const struct ls_cudnn_demand *demand,
                        cudnnHandle_t handle, struct ls_cudnn_plan *plan);
void ls_cudnn_plan_free(struct ls_cudnn_plan *plan);

/* Plans of a process: equal convolutions on a card share one, since making it may take seconds
 * (engines compile kernels). That there is none is remembered, too. */
struct ls_cudnn_shared;

int ls_cudnn_share(const struct ls_op *op, const struct ls_cudnn_convolution *of,
                   const struct ls_cudnn_demand *demand, struct ls_cudnn_shared **shared,
                   struct ls_error *error);
/* The last of those that share it frees it. */
void ls_cudnn_unshare(struct ls_cudnn_shared *shared);
/* NULL: there is no plan. */
const struct ls_cudnn_plan *ls_cudnn_shared_plan(const struct ls_cudnn_shared *shared);

/* Gives the plan's work to the stream. `number` are those of the tensors at `address`. A plan works
 * with the handle of any thread that uses its card. */
int ls_cudnn_run(struct ls_cudnn_shared *shared, const struct ls_op *op, cudaStream_t stream,
                 const int64_t *number, void *const *address, int count, void *workspace,
                 struct ls_error *error);

#endif
