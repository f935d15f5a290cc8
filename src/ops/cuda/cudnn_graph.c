/* Graphs of convolutions. See ops/cuda/cudnn.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/cudnn.h"

/* What is in an arena or a store lies at a multiple of 64 bytes. */
enum { ALIGNMENT = 16 };

static cudnnBackendDescriptor_t make_tensor(struct ls_cudnn_set *set, int64_t number,
                                            const struct ls_cudnn_tensor *of, int rank,
                                            bool is_virtual)
{
    cudnnBackendDescriptor_t tensor = ls_cudnn_make(set, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    ls_cudnn_put_int(set, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
    ls_cudnn_put(set, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &of->type);
    ls_cudnn_put_int(set, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    ls_cudnn_put(set, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, of->dim);
    ls_cudnn_put(set, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, of->stride);
    if (is_virtual)
        ls_cudnn_put(set, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    ls_cudnn_finalize(set, tensor);
    return tensor;
}

/* A tensor that only ops of the graph see: sums in fp32 that lie as those of `like` do. */
static cudnnBackendDescriptor_t make_virtual(struct ls_cudnn_set *set, int64_t number,
                                             const struct ls_cudnn_tensor *like, int rank)
{
    struct ls_cudnn_tensor of = *like;
    of.type = CUDNN_DATA_FLOAT;
    return make_tensor(set, number, &of, rank, true);
}

static cudnnBackendDescriptor_t make_windows(struct ls_cudnn_set *set,
                                             const struct ls_cudnn_convolution *of)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t windows = ls_cudnn_make(set, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    ls_cudnn_put(set, windows, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    ls_cudnn_put(set, windows, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
                 &mode);
    ls_cudnn_put_int(set, windows, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, of->axes);
    ls_cudnn_put(set, windows, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, of->axes,
                 of->pad);
    ls_cudnn_put(set, windows, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, of->axes,
                 of->pad);
    ls_cudnn_put(set, windows, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, of->axes,
                 of->stride);
    ls_cudnn_put(set, windows, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, of->axes,
                 of->dilation);
    ls_cudnn_finalize(set, windows);
    return windows;
}

/* How a pass is called in cuDNN. */
struct names {
    cudnnBackendDescriptorType_t op;
    cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
};

static const struct names names_of[] = {
    [LS_CUDNN_TO_Y] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [LS_CUDNN_TO_X] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [LS_CUDNN_TO_W] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnBackendDescriptor_t make_pass(struct ls_cudnn_set *set, enum ls_cudnn_pass pass,
                                          cudnnBackendDescriptor_t windows,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t w,
                                          cudnnBackendDescriptor_t y)
{
    const struct names *names = &names_of[pass];
    const float alpha = 1, beta = 0;
    cudnnBackendDescriptor_t op = ls_cudnn_make(set, names->op);
    ls_cudnn_put_descriptor(set, op, names->windows, windows);
    ls_cudnn_put_descriptor(set, op, names->x, x);
    ls_cudnn_put_descriptor(set, op, names->w, w);
    ls_cudnn_put_descriptor(set, op, names->y, y);
    ls_cudnn_put(set, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    ls_cudnn_put(set, op, names->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    ls_cudnn_finalize(set, op);
    return op;
}

/* What is done with each number: ADD of `other`, or RELU_FWD with a slope below 0. */
static cudnnBackendDescriptor_t make_pointwise(struct ls_cudnn_set *set, cudnnPointwiseMode_t mode,
                                               float slope, cudnnBackendDescriptor_t from,
                                               cudnnBackendDescriptor_t other,
                                               cudnnBackendDescriptor_t to)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const double zero = 0, below = (double)slope;
    cudnnBackendDescriptor_t function = ls_cudnn_make(set, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    ls_cudnn_put(set, function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    ls_cudnn_put(set, function, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (other == NULL) {
        ls_cudnn_put(set, function, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 1,
                     &zero);
        ls_cudnn_put(set, function, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE,
                     1, &below);
    }
    ls_cudnn_finalize(set, function);
    cudnnBackendDescriptor_t op = ls_cudnn_make(set, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    ls_cudnn_put_descriptor(set, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
    ls_cudnn_put_descriptor(set, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
    if (other != NULL)
        ls_cudnn_put_descriptor(set, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    ls_cudnn_put_descriptor(set, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    ls_cudnn_finalize(set, op);
    return op;
}

/* A number for each channel of `like`, repeated along the other axes. */
static struct ls_cudnn_tensor bias_of(const struct ls_cudnn_tensor *like, int rank)
{
    struct ls_cudnn_tensor bias = {.type = CUDNN_DATA_FLOAT};
    for (int a = 0; a < rank; a++) {
        bias.dim[a] = a == 1 ? like->dim[1] : 1;
        bias.stride[a] = a == 1 ? 1 : like->dim[1];
    }
    return bias;
}

/* The ops that follow, behind the pass that makes `sums`; their number. */
static int make_ends(struct ls_cudnn_set *set, const struct ls_cudnn_convolution *of,
                     const struct ls_cudnn_tensor *like, cudnnBackendDescriptor_t sums,
                     cudnnBackendDescriptor_t to, cudnnBackendDescriptor_t *ops)
{
    const int rank = of->axes + 2;
    int count = 0;
    cudnnBackendDescriptor_t at = sums;
    if (of->bias) {
        const struct ls_cudnn_tensor each = bias_of(like, rank);
        cudnnBackendDescriptor_t bias = make_tensor(set, LS_CUDNN_BIAS, &each, rank, false);
        cudnnBackendDescriptor_t biased =
            of->relu ? make_virtual(set, LS_CUDNN_BIASED, like, rank) : to;
        ops[count++] = make_pointwise(set, CUDNN_POINTWISE_ADD, 0, at, bias, biased);
        at = biased;
    }
    if (of->relu)
        ops[count++] = make_pointwise(set, CUDNN_POINTWISE_RELU_FWD, of->slope, at, NULL, to);
    return count;
}

cudnnBackendDescriptor_t ls_cudnn_graph(struct ls_cudnn_set *set, cudnnHandle_t handle,
                                        const struct ls_cudnn_convolution *of)
{
    const int rank = of->axes + 2;
    const bool ends = of->bias || of->relu;
    cudnnBackendDescriptor_t value[] = {make_tensor(set, LS_CUDNN_X, &of->x, rank, false),
                                        make_tensor(set, LS_CUDNN_W, &of->w, rank, false),
                                        make_tensor(set, LS_CUDNN_Y, &of->y, rank, false)};
    const struct ls_cudnn_tensor *const tensor[] = {&of->x, &of->w, &of->y};
    const int made = of->pass == LS_CUDNN_TO_Y ? 2 : of->pass == LS_CUDNN_TO_W ? 1 : 0;
    cudnnBackendDescriptor_t to = value[made], op[3];
    if (ends)
        value[made] = make_virtual(set, LS_CUDNN_SUMS, tensor[made], rank);
    op[0] = make_pass(set, of->pass, make_windows(set, of), value[0], value[1], value[2]);
    const int ops = 1 + (ends ? make_ends(set, of, tensor[made], value[made], to, op + 1) : 0);
    cudnnBackendDescriptor_t graph = ls_cudnn_make(set, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    ls_cudnn_put(set, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, ops, op);
    ls_cudnn_put(set, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    ls_cudnn_finalize(set, graph);
    return graph;
}
