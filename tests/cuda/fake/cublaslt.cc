/* cuBLASLt on the fake's cards.
 *
 * Descriptors must have been initialized, and their attributes have the sizes that cublasLt.h says;
 * matrices must match, lie on the card of handle and stream, and not overlap: else the test program
 * ends. Pointers that are less aligned than the algorithm was promised make a product fail. The
 * heuristic names several algorithms, the fastest first, each of which adds in an order of its own;
 * one that splits sums adds them in the order in which parts arrive, which is another each time.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/fake/inner.h"

#if !LS_CUDA_HAS_CUBLASLT

namespace fake
{

void end_cublaslt()
{
}

} // namespace fake

#else

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include <cublasLt.h>

#include "cuda/fake/fake.h"

using namespace fake;

struct cublasLtContext {
    int card;
};

namespace
{

std::set<cublasLtHandle_t> handles;

cublasLtHandle_t check_handle(const char *who, cublasLtHandle_t handle)
{
    if (handles.count(handle) == 0)
        stop("%s: a handle that there is not", who);
    if (handle->card != current_card())
        stop("%s: the handle is of card %d, the thread's is %d", who, handle->card, current_card());
    return handle;
}

/* ---- What descriptors hold ---- */

enum : uint32_t {
    MATRIX = 0x6d617472,
    PRODUCT = 0x70726f64,
    LIMITS = 0x6c696d69,
    ALGO = 0x616c676f
};

struct matrix {
    uint32_t kind;
    int32_t type;
    uint64_t rows, columns;
    int64_t ld, step;
    int32_t count;
};

struct product {
    uint32_t kind;
    int32_t compute, scale, left, right, bias_type;
    uint32_t epilogue;
    const void *bias;
};

struct limits {
    uint32_t kind, reduction;
    uint64_t workspace;
    uint32_t alignment[4]; /* of A, B, C, D */
};

struct algorithm {
    uint32_t kind, id, tile, stages, parts, scheme;
    uint32_t alignment, bias_alignment; /* bytes that it needs */
    uint64_t workspace, problem;
};

static_assert(sizeof(matrix) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
                  sizeof(product) <= sizeof(cublasLtMatmulDescOpaque_t) &&
                  sizeof(limits) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
                  sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t),
              "there is room");

template <typename T, typename Opaque> T take(const char *who, const Opaque *from, uint32_t kind)
{
    T object;
    if (from == nullptr)
        stop("%s: a descriptor is missing", who);
    std::memcpy(&object, from->data, sizeof object);
    if (object.kind != kind)
        stop("%s: a descriptor that is not initialized, or another one's", who);
    return object;
}

template <typename T, typename Opaque> void put(Opaque *to, const T &object)
{
    std::memset(to->data, 0, sizeof to->data);
    std::memcpy(to->data, &object, sizeof object);
}

/* A value of an attribute, whose size must be its own. */
template <typename T>
void read(const char *who, int attribute, const void *buffer, size_t size, T *to)
{
    if (buffer == nullptr || size != sizeof *to)
        stop("%s: attribute %d has %zu bytes, not %zu", who, attribute, sizeof *to, size);
    std::memcpy(to, buffer, size);
}

/* ---- Problems ---- */

struct problem {
    product what;
    matrix a, b, d;
    int64_t m, n, k;
};

uint64_t mix(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(0x100000001b3) + (hash >> 29);
}

/* What an algorithm is for, addresses aside. */
uint64_t hash_of(const problem &p)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const matrix *each : {&p.a, &p.b, &p.d})
        for (uint64_t number : {(uint64_t)each->type, each->rows, each->columns, (uint64_t)each->ld,
                                (uint64_t)each->step, (uint64_t)each->count})
            hash = mix(hash, number);
    for (int32_t number : {p.what.compute, p.what.left, p.what.right, (int32_t)p.what.epilogue})
        hash = mix(hash, (uint64_t)number);
    return hash;
}

void check_matrix(const char *who, const char *name, const matrix &of, bool written)
{
    if (of.rows < 1 || of.columns < 1 || of.rows > INT32_MAX || of.columns > INT32_MAX)
        stop("%s: matrix %s is %llu x %llu", who, name, (unsigned long long)of.rows,
             (unsigned long long)of.columns);
    if (of.ld < (int64_t)of.rows)
        stop("%s: columns of %s overlap: %lld apart, of %llu", who, name, (long long)of.ld,
             (unsigned long long)of.rows);
    if (of.count > 1 && (of.step != 0 || written) && of.step < of.ld * (int64_t)of.columns)
        stop("%s: matrices %s of a batch overlap", who, name);
}

bool has_bias(const product &what)
{
    return what.epilogue == CUBLASLT_EPILOGUE_BIAS || what.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

bool has_relu(const product &what)
{
    return what.epilogue == CUBLASLT_EPILOGUE_RELU || what.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

void check_types(const char *who, const problem &p)
{
    const bool fp32 = p.a.type == CUDA_R_32F, bf16 = p.a.type == CUDA_R_16BF;
    if (p.a.type != p.b.type || !(fp32 || bf16) || p.what.scale != CUDA_R_32F ||
        (fp32 && p.d.type != CUDA_R_32F) ||
        (bf16 && p.d.type != CUDA_R_32F && p.d.type != CUDA_R_16BF))
        stop("%s: types that are not supported together", who);
    if (p.what.compute != CUBLAS_COMPUTE_32F &&
        !(p.what.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && fp32))
        stop("%s: compute type %d for these types", who, p.what.compute);
    if (has_bias(p.what) && p.what.bias == nullptr)
        stop("%s: an epilogue with a bias, and no bias", who);
    if (!has_bias(p.what) && p.what.bias != nullptr)
        stop("%s: a bias, and an epilogue without", who);
    /* Biases have the type of D; ours are fp32. */
    if (has_bias(p.what) && p.d.type != CUDA_R_32F)
        stop("%s: a bias of fp32 beside an output of another type", who);
    if (!has_bias(p.what) && !has_relu(p.what) && p.what.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        stop("%s: an epilogue that nothing here asks for", who);
}

problem take_problem(const char *who, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
    problem p;
    p.what = take<product>(who, what, PRODUCT);
    p.a = take<matrix>(who, a, MATRIX);
    p.b = take<matrix>(who, b, MATRIX);
    p.d = take<matrix>(who, d, MATRIX);
    const matrix other = take<matrix>(who, c, MATRIX);
    if (std::memcmp(&other, &p.d, sizeof other) != 0)
        stop("%s: C and D are one array, and not described alike", who);
    check_matrix(who, "A", p.a, false);
    check_matrix(who, "B", p.b, false);
    check_matrix(who, "D", p.d, true);
    if (p.a.count != p.d.count || p.b.count != p.d.count)
        stop("%s: batches of %d, %d and %d", who, p.a.count, p.b.count, p.d.count);
    const bool left = p.what.left == CUBLAS_OP_T, right = p.what.right == CUBLAS_OP_T;
    p.m = (int64_t)(left ? p.a.columns : p.a.rows);
    p.k = (int64_t)(left ? p.a.rows : p.a.columns);
    p.n = (int64_t)(right ? p.b.rows : p.b.columns);
    if ((int64_t)(right ? p.b.columns : p.b.rows) != p.k || (int64_t)p.d.rows != p.m ||
        (int64_t)p.d.columns != p.n)
        stop("%s: %lld x %lld by %lld x %lld is not %lld x %lld", who, (long long)p.m,
             (long long)p.k, (long long)(right ? p.b.columns : p.b.rows), (long long)p.n,
             (long long)p.d.rows, (long long)p.d.columns);
    check_types(who, p);
    return p;
}

size_t bytes_of(int32_t type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

size_t span_of(const matrix &of)
{
    const size_t one = (size_t)of.ld * (of.columns - 1) + of.rows;
    return (one + (size_t)of.step * (size_t)(of.count - 1)) * bytes_of(of.type);
}

/* ---- Sums ---- */

float widen(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float number;
    std::memcpy(&number, &wide, sizeof number);
    return number;
}

uint16_t narrow(float number)
{
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    if (number != number)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 10 bits of fraction, the nearest. */
float to_tf32(float number)
{
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    if ((bits >> 23 & 0xff) != 0xff)
        bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

float load(const problem &p, const matrix &of, const void *data, int64_t batch, int64_t row,
           int64_t column)
{
    const int64_t at = batch * of.step + column * of.ld + row;
    if (of.type == CUDA_R_16BF)
        return widen(((const uint16_t *)data)[at]);
    const float number = ((const float *)data)[at];
    return p.what.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? to_tf32(number) : number;
}

/* The terms in chains of `tile`, which are added up one after the other: those of each part by
 * themselves. */
float sum_of(const problem &p, const algorithm &how, const void *a, const void *b, int64_t batch,
             int64_t i, int64_t j)
{
    const bool left = p.what.left == CUBLAS_OP_T, right = p.what.right == CUBLAS_OP_T;
    std::vector<float> part(how.parts, 0);
    for (uint32_t s = 0; s < how.parts; s++) {
        const int64_t begin = p.k * s / how.parts, end = p.k * (s + 1) / how.parts;
        for (int64_t first = begin; first < end; first += how.tile) {
            float chain = 0;
            for (int64_t t = first; t < end && t < first + how.tile; t++)
                chain = std::fmaf(load(p, p.a, a, batch, left ? t : i, left ? i : t),
                                  load(p, p.b, b, batch, right ? j : t, right ? t : j), chain);
            part[s] = part[s] + chain;
        }
    }
    float sum = 0;
    if (how.scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE)
        for (size_t left_over = part.size(); left_over > 1; left_over--)
            std::swap(part[left_over - 1], part[draw() % left_over]);
    for (float each : part)
        sum = sum + each;
    return sum;
}

void multiply(const problem &p, const algorithm &how, float scale, const void *a, const void *b,
              void *d)
{
    for (int64_t batch = 0; batch < p.d.count; batch++)
        for (int64_t j = 0; j < p.n; j++)
            for (int64_t i = 0; i < p.m; i++) {
                float sum = scale * sum_of(p, how, a, b, batch, i, j);
                if (has_bias(p.what))
                    sum = sum + ((const float *)p.what.bias)[i];
                if (has_relu(p.what) && sum < 0)
                    sum = 0;
                const int64_t at = batch * p.d.step + j * p.d.ld + i;
                if (p.d.type == CUDA_R_16BF)
                    ((uint16_t *)d)[at] = narrow(sum);
                else
                    ((float *)d)[at] = sum;
            }
}

uint32_t alignment_of(const void *pointer)
{
    const uintptr_t at = (uintptr_t)pointer;
    const uintptr_t lowest = at & (~at + 1);
    return lowest > 256 || lowest == 0 ? 256 : (uint32_t)lowest;
}

/* What lies otherwise than its algorithm was promised makes the call fail. */
bool lies_well(const char *who, const void *at, size_t bytes, uint32_t alignment)
{
    check_on_card(who, at, bytes);
    return (uintptr_t)at % alignment == 0;
}

void check_apart(const char *who, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    if ((uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes)
        stop("%s: what is written overlaps what is read", who);
}

} // namespace

namespace fake
{

void end_cublaslt()
{
    if (!handles.empty())
        stop("%zu handles of cuBLASLt are left", handles.size());
}

} // namespace fake

/* ---- Handles ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    call here("cublasLtCreate");
    if (here.fails)
        return CUBLAS_STATUS_ALLOC_FAILED; /* *handle is what it was */
    *handle = new cublasLtContext{current_card()};
    handles.insert(*handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    call here("cublasLtDestroy");
    check_handle("cublasLtDestroy", handle);
    wait_for_card("cublasLtDestroy");
    handles.erase(handle);
    delete handle;
    return here.fails ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the GPU program failed to execute";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    default:
        return "an internal operation failed";
    }
}

/* ---- Descriptors ---- */

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t out, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld)
{
    call here("cublasLtMatrixLayoutInit");
    if (size != sizeof *out)
        stop("cublasLtMatrixLayoutInit: another size");
    if (here.fails)
        return CUBLAS_STATUS_ALLOC_FAILED;
    put(out, matrix{MATRIX, (int32_t)type, rows, columns, ld, 0, 1});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t out,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *buffer, size_t size)
{
    static const char who[] = "cublasLtMatrixLayoutSetAttribute";
    call here(who);
    matrix of = take<matrix>(who, out, MATRIX);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        read(who, attribute, buffer, size, &of.count);
    else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        read(who, attribute, buffer, size, &of.step);
    else
        stop("%s: attribute %d, which nothing here sets", who, attribute);
    if (here.fails)
        return CUBLAS_STATUS_INVALID_VALUE;
    put(out, of);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t out, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    call here("cublasLtMatmulDescInit");
    if (size != sizeof *out)
        stop("cublasLtMatmulDescInit: another size");
    if (here.fails)
        return CUBLAS_STATUS_ALLOC_FAILED;
    put(out, product{PRODUCT, (int32_t)compute, (int32_t)scale, CUBLAS_OP_N, CUBLAS_OP_N, -1,
                     CUBLASLT_EPILOGUE_DEFAULT, nullptr});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t out,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *buffer, size_t size)
{
    static const char who[] = "cublasLtMatmulDescSetAttribute";
    call here(who);
    product of = take<product>(who, out, PRODUCT);
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        read(who, attribute, buffer, size, &of.left);
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        read(who, attribute, buffer, size, &of.right);
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        read(who, attribute, buffer, size, &of.epilogue);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        read(who, attribute, buffer, size, &of.bias);
        break;
    default:
        stop("%s: attribute %d, which nothing here sets", who, attribute);
    }
    if (here.fails)
        return CUBLAS_STATUS_INVALID_VALUE;
    put(out, of);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t out, size_t size)
{
    call here("cublasLtMatmulPreferenceInit");
    if (size != sizeof *out)
        stop("cublasLtMatmulPreferenceInit: another size");
    if (here.fails)
        return CUBLAS_STATUS_ALLOC_FAILED;
    put(out, limits{LIMITS, CUBLASLT_REDUCTION_SCHEME_MASK, 0, {256, 256, 256, 256}});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t out,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *buffer, size_t size)
{
    static const char who[] = "cublasLtMatmulPreferenceSetAttribute";
    call here(who);
    limits of = take<limits>(who, out, LIMITS);
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        read(who, attribute, buffer, size, &of.workspace);
        break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        read(who, attribute, buffer, size, &of.reduction);
        break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        read(who, attribute, buffer, size,
             &of.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES]);
        break;
    default:
        stop("%s: attribute %d, which nothing here sets", who, attribute);
    }
    if (here.fails)
        return CUBLAS_STATUS_INVALID_VALUE;
    put(out, of);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- Algorithms ---- */

/* All that there are for a problem, fastest first. */
static std::vector<algorithm> algorithms_for(const problem &p)
{
    const uint32_t least = (uint32_t)bytes_of(p.a.type);
    const uint64_t out = (uint64_t)p.m * (uint64_t)p.n * (uint64_t)p.d.count * 4;
    const uint64_t name = hash_of(p);
    std::vector<algorithm> all = {
        {ALGO, 66, 8, 3, 4, CUBLASLT_REDUCTION_SCHEME_INPLACE, 16, 16, 4096, name},
        {ALGO, 23, 8, 3, 3, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 16, 16, 3 * out, name},
        {ALGO, 71, 4, 6, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 16, 16, UINT64_C(64) << 20, name},
        {ALGO, 31, 32, 5, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 256, 16, 0, name},
        {ALGO, 21, 16, 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 64, 16, 1000, name},
        {ALGO, 20, 1, 0, 1, CUBLASLT_REDUCTION_SCHEME_NONE, least, 4, 0, name}};
    /* The fast ones are not for every shape. */
    const bool odd = p.m % 4 != 0 || p.k % 4 != 0;
    if (odd)
        all.erase(all.begin() + 3, all.begin() + 5);
    return all;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    static const char who[] = "cublasLtMatmulAlgoGetHeuristic";
    call here(who);
    check_handle(who, handle);
    const problem p = take_problem(who, what, a, b, c, d);
    const limits within = take<limits>(who, preference, LIMITS);
    *count = 0;
    if (wanted < 1)
        stop("%s: no algorithm is wanted", who);
    if (here.fails)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    uint32_t alignment = 256;
    for (uint32_t each : within.alignment)
        alignment = each < alignment ? each : alignment;
    for (const algorithm &one : algorithms_for(p)) {
        const bool allowed =
            one.scheme == CUBLASLT_REDUCTION_SCHEME_NONE || (one.scheme & within.reduction) != 0;
        if (!allowed || one.workspace > within.workspace || one.alignment > alignment ||
            (has_bias(p.what) && one.bias_alignment > alignment_of(p.what.bias)) ||
            *count == wanted)
            continue;
        cublasLtMatmulHeuristicResult_t &result = results[(*count)++];
        std::memset(&result, 0, sizeof result);
        put(&result.algo, one);
        result.workspaceSize = one.workspace;
        result.state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *from,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *buffer, size_t size, size_t *written)
{
    static const char who[] = "cublasLtMatmulAlgoConfigGetAttribute";
    call here(who);
    const algorithm of = take<algorithm>(who, from, ALGO);
    uint32_t number = 0;
    switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
        number = of.id;
        break;
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
        number = of.tile;
        break;
    case CUBLASLT_ALGO_CONFIG_STAGES_ID:
        number = of.stages;
        break;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
        number = of.parts;
        break;
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
        number = of.scheme;
        break;
    default:
        stop("%s: attribute %d, which nothing here asks for", who, attribute);
    }
    if (size != sizeof number || written == nullptr)
        stop("%s: attribute %d has %zu bytes, not %zu", who, attribute, sizeof number, size);
    if (here.fails)
        return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(buffer, &number, sizeof number);
    *written = sizeof number;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- Products ---- */

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    static const char who[] = "cublasLtMatmul";
    call here(who);
    check_handle(who, handle);
    const problem p = take_problem(who, what, a_layout, b_layout, c_layout, d_layout);
    const algorithm how = take<algorithm>(who, algo, ALGO);
    if (card_of(who, stream) != handle->card)
        stop("%s: the stream is of another card than the handle", who);
    if (how.problem != hash_of(p))
        stop("%s: the algorithm was chosen for another problem", who);
    check_on_host(who, alpha, sizeof(float));
    check_on_host(who, beta, sizeof(float));
    float scale, add;
    std::memcpy(&scale, alpha, sizeof scale);
    std::memcpy(&add, beta, sizeof add);
    if (add != 0 || c != d)
        stop("%s: nothing here adds to an output", who);
    if (workspace_bytes < how.workspace || (workspace == nullptr && workspace_bytes > 0))
        stop("%s: a workspace of %zu bytes, where %llu are needed", who,
             workspace == nullptr ? 0 : workspace_bytes, (unsigned long long)how.workspace);
    bool well = lies_well(who, a, span_of(p.a), how.alignment) &&
                lies_well(who, b, span_of(p.b), how.alignment) &&
                lies_well(who, d, span_of(p.d), how.alignment);
    if (has_bias(p.what))
        well = lies_well(who, p.what.bias, (size_t)p.m * sizeof(float), how.bias_alignment) && well;
    check_apart(who, d, span_of(p.d), a, span_of(p.a));
    check_apart(who, d, span_of(p.d), b, span_of(p.b));
    if (workspace_bytes > 0) {
        well = lies_well(who, workspace, workspace_bytes, 256) && well;
        check_apart(who, workspace, workspace_bytes, d, span_of(p.d));
        check_apart(who, workspace, workspace_bytes, a, span_of(p.a));
        check_apart(who, workspace, workspace_bytes, b, span_of(p.b));
    }
    if (!well)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (here.fails)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const cudaError_t status = give(stream, who, [=]() {
        check_on_card(who, a, span_of(p.a));
        check_on_card(who, b, span_of(p.b));
        check_on_card(who, d, span_of(p.d));
        if (has_bias(p.what))
            check_on_card(who, p.what.bias, (size_t)p.m * sizeof(float));
        if (workspace_bytes > 0) {
            check_on_card(who, workspace, workspace_bytes);
            std::memset(workspace, 0xa5, workspace_bytes); /* whatever it keeps there */
        }
        multiply(p, how, scale, a, b, d);
        return cudaSuccess;
    });
    return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

#endif
