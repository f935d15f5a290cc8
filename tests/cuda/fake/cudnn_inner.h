/* What the files of the fake cuDNN share. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_FAKE_CUDNN_INNER_H
#define LS_TESTS_CUDA_FAKE_CUDNN_INNER_H

#include <map>
#include <memory>
#include <vector>

#include <cudnn_graph.h>

namespace fake_cudnn
{

/* A tensor with up to three spatial axes, which stand behind axes of one place where there are
 * fewer. */
struct tensor {
    int64_t number = 0, alignment = 0;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<int64_t> dim, stride;
    bool is_virtual = false;

    size_t element() const;
    size_t bytes() const; /* from the first to the last element */
    int64_t size(int axis) const;
    int64_t step(int axis) const; /* samples, channels, three spatial axes */
};

enum pass { TO_Y, TO_X, TO_W };

/* What a graph computes. */
struct problem {
    pass what = TO_Y;
    tensor x, w, y; /* of the convolution; its result may be virtual */
    int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
    int64_t groups = 1;
    bool has_bias = false, has_relu = false;
    tensor bias;
    double slope = 0;
    tensor out;
    int card = 0;
    cudnnHandle_t handle = nullptr; /* that the graph was made with */

    const tensor &result() const;
    bool is_bf16() const; /* what is multiplied */
    bool suits_winograd() const;
    std::vector<tensor> given() const; /* that are not virtual */
};

struct engine {
    int64_t index;
    unsigned notes;
    int64_t workspace;
    bool unsupported; /* says so when its plan is made */
};

/* What a mode of the heuristics names, best first. */
std::vector<engine> offer(const problem &of, cudnnBackendHeurMode_t mode);

/* Computes it with what the engine rounds. Arrays by number of tensor. */
void compute(const problem &of, const engine &by, const std::map<int64_t, void *> &at);

/* ---- Descriptors ---- */

struct attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
};

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized = false; /* or, of engines and their configurations, filled by a query */
    std::map<cudnnBackendAttributeName_t, attribute> attributes;
    std::shared_ptr<problem> graph; /* of graphs, and of what is made for one */
    engine by = {};                 /* of engines, configurations, plans */
    std::vector<engine> offered;    /* of heuristics */

    bool has(cudnnBackendAttributeName_t name) const;
    template <class T> std::vector<T> all(cudnnBackendAttributeName_t name) const
    {
        const attribute &found = attributes.at(name);
        const T *values = (const T *)found.bytes.data();
        return std::vector<T>(values, values + found.count);
    }
    template <class T> T one(cudnnBackendAttributeName_t name) const
    {
        return all<T>(name)[0];
    }
    descriptor *other(cudnnBackendAttributeName_t name) const;
};

descriptor *check(const char *who, cudnnBackendDescriptor_t one);
/* What cudnnBackendFinalize does of each kind; wrong use ends the test program. */
cudnnStatus_t finalize(descriptor *one);
/* Says more about the status that is returned next. */
cudnnStatus_t say(cudnnStatus_t status, const char *more);

} // namespace fake_cudnn

/* A handle. */
struct cudnnContext {
    int card;
    cudaStream_t stream;
    uint64_t thread;
};

namespace fake_cudnn
{

/* Ends the test program unless it is one for this thread's card. */
cudnnContext *check_handle(const char *who, cudnnHandle_t handle);
/* The same unless it is this thread's own. */
cudnnContext *check_own_handle(const char *who, cudnnHandle_t handle);
bool is_handle(cudnnHandle_t handle);

} // namespace fake_cudnn

#endif
