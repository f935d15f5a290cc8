/* What descriptors of cuDNN mean: checked when they are finalized. See cudnn.cc.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/fake/inner.h"

#if LS_CUDA_HAS_CUDNN

#include <algorithm>

#include "cuda/fake/cudnn_inner.h"

using namespace fake;

namespace fake_cudnn
{

/* ---- Tensors ---- */

size_t tensor::element() const
{
    return type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
}

size_t tensor::bytes() const
{
    int64_t last = 0;
    for (size_t a = 0; a < dim.size(); a++)
        last += (dim[a] - 1) * stride[a];
    return (size_t)(last + 1) * element();
}

int64_t tensor::size(int axis) const
{
    const int missing = 5 - (int)dim.size();
    return axis < 2 ? dim[(size_t)axis] : axis - missing < 2 ? 1 : dim[(size_t)(axis - missing)];
}

int64_t tensor::step(int axis) const
{
    const int missing = 5 - (int)dim.size();
    return axis < 2             ? stride[(size_t)axis]
           : axis - missing < 2 ? 0
                                : stride[(size_t)(axis - missing)];
}

namespace
{

tensor tensor_of(const descriptor *one)
{
    tensor of;
    of.number = one->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    of.alignment = one->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    of.type = one->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    of.dim = one->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    of.stride = one->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    of.is_virtual =
        one->has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && one->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    return of;
}

/* No two elements may have one place. */
void check_strides(const tensor &of)
{
    std::vector<std::pair<int64_t, int64_t>> axes; /* of more than one place: step, places */
    for (size_t a = 0; a < of.dim.size(); a++) {
        if (of.dim[a] < 1 || of.stride[a] < 1)
            stop("cudnnBackendFinalize: tensor %lld has axes or strides below 1",
                 (long long)of.number);
        if (of.dim[a] > 1)
            axes.push_back({of.stride[a], of.dim[a]});
    }
    std::sort(axes.begin(), axes.end());
    for (size_t a = 1; a < axes.size(); a++)
        if (axes[a].first < axes[a - 1].first * axes[a - 1].second)
            stop("cudnnBackendFinalize: strides of tensor %lld overlap", (long long)of.number);
}

void finalize_tensor(const descriptor *one)
{
    const tensor of = tensor_of(one);
    if (of.dim.size() != of.stride.size() || of.dim.size() < 3)
        stop("cudnnBackendFinalize: tensor %lld has %zu axes and %zu strides", (long long)of.number,
             of.dim.size(), of.stride.size());
    if (of.type != CUDNN_DATA_FLOAT && of.type != CUDNN_DATA_BFLOAT16)
        stop("cudnnBackendFinalize: a type that nothing here has");
    if (of.alignment < (int64_t)of.element() || (of.alignment & (of.alignment - 1)) != 0)
        stop("cudnnBackendFinalize: an alignment of %lld", (long long)of.alignment);
    check_strides(of);
}

/* ---- Convolutions ---- */

void finalize_windows(const descriptor *one)
{
    const size_t axes = (size_t)one->one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    for (cudnnBackendAttributeName_t name :
         {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
          CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS})
        if (one->all<int64_t>(name).size() != axes)
            stop("cudnnBackendFinalize: attribute %d is not of %zu axes", name, axes);
    if (axes < 2 || axes > 3)
        stop("cudnnBackendFinalize: windows of %zu axes", axes);
    if (one->one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) !=
            CUDNN_CROSS_CORRELATION ||
        one->one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT)
        stop("cudnnBackendFinalize: windows that are turned around, or no sums in fp32");
}

struct names {
    cudnnBackendDescriptorType_t op;
    pass what;
    cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
};

const names passes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, TO_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, TO_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, TO_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

const names *find_pass(const descriptor *one)
{
    for (const names &each : passes)
        if (each.op == one->type)
            return &each;
    return nullptr;
}

/* A pass as a problem, without what follows it. */
problem problem_of(const descriptor *one)
{
    const names &of = *find_pass(one);
    const descriptor *windows = one->other(of.windows);
    problem found;
    found.what = of.what;
    found.x = tensor_of(one->other(of.x));
    found.w = tensor_of(one->other(of.w));
    found.y = tensor_of(one->other(of.y));
    const size_t axes = (size_t)windows->one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    for (size_t a = 0; a < axes; a++) {
        const size_t at = 3 - axes + a;
        found.stride[at] = windows->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)[a];
        found.dilation[at] = windows->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)[a];
        found.pad[at] = windows->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)[a];
    }
    found.groups = found.x.dim[1] / found.w.dim[1];
    return found;
}

void finalize_pass(const descriptor *one)
{
    const names &of = *find_pass(one);
    if (one->other(of.windows)->type != CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
        stop("cudnnBackendFinalize: windows of another type");
    for (cudnnBackendAttributeName_t name : {of.x, of.w, of.y})
        if (one->other(name)->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
            stop("cudnnBackendFinalize: an operand that is no tensor");
    const problem found = problem_of(one);
    const tensor &x = found.x, &w = found.w, &y = found.y;
    bool right = x.dim.size() == w.dim.size() && x.dim.size() == y.dim.size() &&
                 x.dim[0] == y.dim[0] && w.dim[0] == y.dim[1] && x.dim[1] % w.dim[1] == 0 &&
                 y.dim[1] % found.groups == 0;
    for (int a = 0; a < 3 && right; a++) {
        const int64_t reach = found.dilation[a] * (w.size(2 + a) - 1) + 1;
        right = y.size(2 + a) == (x.size(2 + a) + 2 * found.pad[a] - reach) / found.stride[a] + 1;
    }
    if (!right)
        stop("cudnnBackendFinalize: shapes of a convolution do not fit");
    if (one->one<float>(of.alpha) != 1 || one->one<float>(of.beta) != 0)
        stop("cudnnBackendFinalize: a convolution that is scaled or added");
}

void finalize_pointwise(const descriptor *one)
{
    const descriptor *function = one->other(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const bool adds =
        function->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD;
    if (one->has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC) != adds)
        stop("cudnnBackendFinalize: an op of one operand with two, or the other way around");
    const tensor x = tensor_of(one->other(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const tensor y = tensor_of(one->other(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    if (x.dim != y.dim)
        stop("cudnnBackendFinalize: shapes of an op do not fit");
    if (!adds)
        return;
    const tensor b = tensor_of(one->other(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    for (size_t a = 0; a < b.dim.size(); a++)
        if (b.dim.size() != y.dim.size() || (b.dim[a] != 1 && b.dim[a] != y.dim[a]))
            stop("cudnnBackendFinalize: what is added cannot be repeated to the result");
}

/* ---- Graphs ---- */

/* Follows what is done to `from`; the number of ops. */
size_t follow(const std::vector<void *> &ops, problem *of)
{
    tensor at = of->result();
    size_t count = 0;
    for (bool more = at.is_virtual; more;) {
        more = false;
        for (void *each : ops) {
            const descriptor *op = (const descriptor *)each;
            if (op->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
                tensor_of(op->other(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)).number != at.number)
                continue;
            const descriptor *function = op->other(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
            if (op->has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) {
                of->has_bias = true;
                of->bias = tensor_of(op->other(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
            } else {
                of->has_relu = true;
                of->slope = function->one<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
            }
            at = tensor_of(op->other(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
            count++;
            more = at.is_virtual;
            break;
        }
    }
    of->out = at;
    return count;
}

/* A number is that of one tensor. */
void check_numbers(const problem &of)
{
    const std::vector<tensor> all = of.given();
    for (size_t i = 0; i < all.size(); i++)
        for (size_t k = 0; k < i; k++)
            if (all[i].number == all[k].number)
                stop("cudnnBackendFinalize: two tensors of number %lld", (long long)all[i].number);
}

cudnnStatus_t finalize_graph(descriptor *one)
{
    const std::vector<void *> ops = one->all<void *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    std::shared_ptr<problem> found;
    for (void *op : ops)
        if (find_pass((const descriptor *)op) != nullptr)
            found = std::make_shared<problem>(problem_of((const descriptor *)op));
    if (found == nullptr)
        return say(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "no convolution");
    const size_t behind = follow(ops, found.get());
    if (found->out.is_virtual)
        stop("cudnnBackendFinalize: a graph without a result");
    if (behind + 1 != ops.size())
        return say(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "ops that do not follow each other");
    check_numbers(*found);
    found->handle = one->one<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    found->card = check_handle("cudnnBackendFinalize", found->handle)->card;
    one->graph = found;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- What is made for a graph ---- */

cudnnStatus_t finalize_heuristics(descriptor *one)
{
    const descriptor *graph = one->other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (graph->type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
        stop("cudnnBackendFinalize: heuristics for what is no graph");
    one->graph = graph->graph;
    one->offered = offer(*one->graph, one->one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(descriptor *one)
{
    const descriptor *config = one->other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        stop("cudnnBackendFinalize: a plan of what is no configuration");
    if (!may_allocate())
        stop("cudnnBackendFinalize of a plan while this thread captures a stream");
    one->graph = config->graph;
    one->by = config->by;
    return one->by.unsupported
               ? say(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "this engine never supports anything")
               : CUDNN_STATUS_SUCCESS;
}

void finalize_pack(const descriptor *one)
{
    std::vector<int64_t> numbers = one->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (numbers.size() != one->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size())
        stop("cudnnBackendFinalize: as many numbers of tensors as addresses are wanted");
    std::sort(numbers.begin(), numbers.end());
    if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end())
        stop("cudnnBackendFinalize: a tensor has two addresses");
}

} // namespace

const tensor &problem::result() const
{
    return what == TO_Y ? y : what == TO_X ? x : w;
}

std::vector<tensor> problem::given() const
{
    std::vector<tensor> all;
    for (const tensor *one : {&x, &w, &y})
        if (one != &result())
            all.push_back(*one);
    if (has_bias)
        all.push_back(bias);
    all.push_back(out);
    return all;
}

cudnnStatus_t finalize(descriptor *one)
{
    switch (one->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        finalize_tensor(one);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        finalize_windows(one);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        finalize_pointwise(one);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return finalize_graph(one);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return finalize_heuristics(one);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return finalize_plan(one);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        finalize_pack(one);
        return CUDNN_STATUS_SUCCESS;
    default:
        if (find_pass(one) == nullptr)
            stop("cudnnBackendFinalize: descriptor type %d is filled by a query", one->type);
        finalize_pass(one);
        return CUDNN_STATUS_SUCCESS;
    }
}

} // namespace fake_cudnn

#endif
