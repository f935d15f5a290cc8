/* cuDNN's engines: which a graph is offered, what they say of themselves, and plans that are
 * carried out. Most of them may not be taken, and those stand in front. See cudnn.cc.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/fake/fake.h"
#include "cuda/fake/inner.h"

#if LS_CUDA_HAS_CUDNN

#include <algorithm>
#include <cstring>

#include "cuda/fake/cudnn_inner.h"

using namespace fake;
using namespace fake_cudnn;

namespace
{

unsigned lacks;
long given_engine = -1;

constexpr unsigned note(cudnnBackendNumericalNote_t name)
{
    return 1u << (unsigned)name;
}

constexpr unsigned TENSOR = note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
                   DOWN = note(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS),
                   REDUCED = note(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
                   FFT = note(CUDNN_NUMERICAL_NOTE_FFT),
                   UNSURE = note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
                   WINOGRAD = note(CUDNN_NUMERICAL_NOTE_WINOGRAD);

bool has_engines(const problem &of)
{
    const bool ends = of.has_bias || of.has_relu, fp32 = of.out.type == CUDNN_DATA_FLOAT;
    return of.x.type == of.w.type || of.what != TO_Y
               ? !((lacks & FAKE_CUDNN_ALL) != 0 || (ends && (lacks & FAKE_CUDNN_ENDS) != 0) ||
                   (of.is_bf16() && (lacks & FAKE_CUDNN_BF16) != 0) ||
                   (of.is_bf16() && fp32 && (lacks & FAKE_CUDNN_MIXED) != 0))
               : false;
}

/* Heuristics know little of what is rare. */
bool is_rare(const problem &of)
{
    return of.dilation[0] > 1 || of.dilation[1] > 1 || of.dilation[2] > 1;
}

} // namespace

namespace fake
{

void begin_cudnn()
{
    lacks = 0;
    given_engine = -1;
}

} // namespace fake

namespace fake_cudnn
{

bool problem::is_bf16() const
{
    const tensor &operand = what == TO_W ? x : w;
    return operand.type == CUDNN_DATA_BFLOAT16;
}

bool problem::suits_winograd() const
{
    bool suits = what != TO_W && groups == 1 && !is_bf16() && w.dim.size() == 4;
    for (int a = 1; a < 3; a++)
        suits = suits && w.size(2 + a) == 3 && stride[a] == 1 && dilation[a] == 1;
    return suits;
}

std::vector<engine> offer(const problem &of, cudnnBackendHeurMode_t mode)
{
    const bool bf16 = of.is_bf16();
    std::vector<engine> all;
    if (!has_engines(of))
        return all;
    if (mode == CUDNN_HEUR_MODE_FALLBACK)
        return {{4, UNSURE, 0, false}, {bf16 ? 1 : 0, bf16 ? TENSOR : 0, 0, false}};
    if (mode != CUDNN_HEUR_MODE_A)
        stop("heuristics that may not be asked by several threads, or are gone");
    if (is_rare(of))
        return all;
    all = {{3, UNSURE, 64, false},
           {5, 0, 0, true},
           {11, bf16 ? TENSOR : 0, (int64_t)1 << 31, false},
           {14, FFT, 1024, false},
           {16, TENSOR | REDUCED, 0, false}};
    if (bf16) {
        all.push_back({21, TENSOR, 768, false});
        return all;
    }
    all.push_back({7, TENSOR | DOWN, 0, false});
    all.push_back({20, TENSOR, 512, false});
    if (of.suits_winograd())
        all.push_back({9, WINOGRAD, 2048, false});
    all.push_back({12, 0, 1000, false});
    return all;
}

} // namespace fake_cudnn

void fake_cudnn_lacks(unsigned what)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    lacks = what;
}

long fake_cudnn_engine(void)
{
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    return given_engine;
}

/* ---- Queries ---- */

/* Fills descriptors that the caller has made: as many as there are, and he has room for. */
static int64_t fill(const descriptor *from, const std::vector<engine> &engines,
                    cudnnBackendDescriptorType_t type, int64_t most, void *const *to)
{
    const int64_t count = std::min((int64_t)engines.size(), most);
    for (int64_t i = 0; i < count; i++) {
        descriptor *one = check("cudnnBackendGetAttribute", to[i]);
        if (one->type != type || one->finalized)
            stop("cudnnBackendGetAttribute: a descriptor of another type, or filled already");
        one->finalized = true;
        one->graph = from->graph;
        one->by = engines[(size_t)i];
    }
    return count;
}

static int64_t read_notes(const descriptor *one, int64_t most, void *to)
{
    int64_t count = 0;
    for (int name = 0; name < CUDNN_NUMERICAL_NOTE_TYPE_COUNT && count < most; name++)
        if ((one->by.notes & 1u << name) != 0)
            ((cudnnBackendNumericalNote_t *)to)[count++] = (cudnnBackendNumericalNote_t)name;
    return count;
}

static int64_t read_one(int64_t value, int64_t most, void *to)
{
    if (most != 1)
        stop("cudnnBackendGetAttribute: room for %lld of one value", (long long)most);
    *(int64_t *)to = value;
    return 1;
}

/* As with cuDNN, a question for the number of results alone is answered with those that are not
 * looked at any closer. */
static int64_t read(const descriptor *one, cudnnBackendAttributeName_t name, int64_t most, void *to)
{
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return most == 0 ? (int64_t)one->offered.size() + 2
                         : fill(one, one->offered, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most,
                                (void *const *)to);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        return fill(one, {one->by}, CUDNN_BACKEND_ENGINE_DESCRIPTOR, most, (void *const *)to);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return read_one(one->by.index, most, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        return read_notes(one, most, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        return read_one(one->by.workspace, most, to);
    default:
        stop("cudnnBackendGetAttribute: attribute %d, which nothing here asks for", name);
    }
}

static cudnnBackendDescriptorType_t owner_of(cudnnBackendAttributeName_t name)
{
    return name == CUDNN_ATTR_ENGINEHEUR_RESULTS ? CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
           : name == CUDNN_ATTR_ENGINECFG_ENGINE ? CUDNN_BACKEND_ENGINECFG_DESCRIPTOR
           : name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE
               ? CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
               : CUDNN_BACKEND_ENGINE_DESCRIPTOR;
}

static cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name)
{
    return name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? CUDNN_TYPE_NUMERICAL_NOTE
           : name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX ||
                   name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE
               ? CUDNN_TYPE_INT64
               : CUDNN_TYPE_BACKEND_DESCRIPTOR;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most,
                                       int64_t *count, void *values)
{
    call here("cudnnBackendGetAttribute");
    const descriptor *one = check("cudnnBackendGetAttribute", of);
    if (here.fails)
        return say(CUDNN_STATUS_INTERNAL_ERROR, "a failure of the fake");
    if (!one->finalized)
        stop("cudnnBackendGetAttribute: descriptor type %d is not finalized", one->type);
    if (type != type_of(name) || one->type != owner_of(name))
        stop("cudnnBackendGetAttribute: attribute %d of descriptor type %d, as type %d", name,
             one->type, type);
    if (most > 0 && values == nullptr)
        stop("cudnnBackendGetAttribute: no room for attribute %d", name);
    *count = read(one, name, most, values);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Plans ---- */

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* The addresses of all tensors that are not virtual, and of no others. */
static std::map<int64_t, void *> find_addresses(const problem &of, const descriptor *pack)
{
    const std::vector<int64_t> numbers = pack->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const std::vector<void *> addresses = pack->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    std::map<int64_t, void *> at;
    for (size_t i = 0; i < numbers.size(); i++)
        at[numbers[i]] = addresses[i];
    const std::vector<tensor> all = of.given();
    for (const tensor &one : all)
        if (at.count(one.number) == 0)
            stop("cudnnBackendExecute: tensor %lld has no address", (long long)one.number);
    if (at.size() != all.size())
        stop("cudnnBackendExecute: an address of a tensor that there is not");
    return at;
}

static void check_memory(const char *who, const problem &of, const engine &by,
                         const std::map<int64_t, void *> &at, void *workspace)
{
    const void *out = at.at(of.out.number);
    const size_t room = (size_t)by.workspace;
    for (const tensor &one : of.given()) {
        const void *address = at.at(one.number);
        check_on_card(who, address, one.bytes());
        if ((uintptr_t)address % (uintptr_t)one.alignment != 0)
            stop("%s: tensor %lld is not aligned to %lld bytes", who, (long long)one.number,
                 (long long)one.alignment);
        if (one.number != of.out.number && overlap(address, one.bytes(), out, of.out.bytes()))
            stop("%s: the result lies on tensor %lld", who, (long long)one.number);
        if (room > 0 && overlap(address, one.bytes(), workspace, room))
            stop("%s: the workspace lies on tensor %lld", who, (long long)one.number);
    }
    if (room > 0)
        check_on_card(who, workspace, room);
    if (room > 0 && (uintptr_t)workspace % 256 != 0)
        stop("%s: a workspace that is not aligned to 256 bytes", who);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    call here("cudnnBackendExecute");
    const cudnnContext *with = check_own_handle("cudnnBackendExecute", handle);
    const descriptor *what = check("cudnnBackendExecute", plan);
    const descriptor *given = check("cudnnBackendExecute", pack);
    if (what->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || !what->finalized ||
        given->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !given->finalized)
        stop("cudnnBackendExecute: no plan, or no addresses, that are finalized");
    if (here.fails)
        return say(CUDNN_STATUS_EXECUTION_FAILED, "a failure of the fake");
    const std::shared_ptr<problem> of = what->graph;
    const engine by = what->by;
    if (!is_handle(of->handle))
        stop("cudnnBackendExecute: the handle that the plan's graph was made with is gone");
    if (of->card != with->card)
        stop("cudnnBackendExecute: a plan of card %d, on card %d", of->card, with->card);
    if ((by.notes & UNSURE) != 0)
        stop("cudnnBackendExecute: engine %lld gives other bits each time", (long long)by.index);
    if (with->stream == nullptr)
        stop("cudnnBackendExecute: in the default stream, which waits for all others");
    const std::map<int64_t, void *> at = find_addresses(*of, given);
    void *workspace = given->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    check_memory("cudnnBackendExecute", *of, by, at, workspace);
    given_engine = (long)by.index;
    const cudaError_t status = give(with->stream, "a plan of cuDNN", [=]() {
        check_memory("a plan of cuDNN", *of, by, at, workspace);
        if (by.workspace > 0)
            std::memset(workspace, 0xff, (size_t)by.workspace);
        compute(*of, by, at);
        return cudaSuccess;
    });
    return status == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                 : say(CUDNN_STATUS_EXECUTION_FAILED, "the card has stopped");
}

#endif
