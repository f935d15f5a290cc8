/* See ops/cuda/contract.h. Each of these functions gives its work to the calling thread's stream
 * and waits for it. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/contract.h"

#include <string.h>

#include "base/memory.h"
#include "device/exact.h"
#include "ops/cuda/card.h"
#include "ops/cuda/kernels/kernels.h"

/* A few bytes of the card's memory, zeroed, for results that the host reads: `bytes` of them. */
static void *make_result(size_t bytes, struct ls_error *error)
{
    void *result = ls_card_memory.create(bytes);
    if (result == NULL)
        ls_fail_memory(error, "what a card computes");
    return result;
}

/* Waits for the launch whose code is given, and brings the result to the host. Frees it. */
static int take_result(int code, const char *what, void *result, void *host, size_t bytes,
                       struct ls_error *error)
{
    int status = ls_card_finish(code, what, error);
    if (status == 0)
        status = ls_card_memory.read(NULL, host, result, bytes, error);
    ls_card_memory.free(result);
    return status;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static int largest(const float *x, size_t n, uint32_t *bits, struct ls_error *error)
{
    static const char what[] = "find the largest number";
    uint32_t *result = make_result(sizeof *result, error);
    if (result == NULL)
        return LOCKSTEP_RESOURCE;
    return take_result(ls_cuda_largest(ls_card_own_stream(NULL), x, n, result), what, result, bits,
                       sizeof *bits, error);
}

static int norm(const float *x, size_t n, bool squared, double *sum, struct ls_error *error)
{
    const size_t chunks = (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    *sum = 0;
    if (n == 0)
        return 0;
    double *host = ls_alloc(chunks, sizeof *host);
    double *result = host != NULL ? make_result(chunks * sizeof *result, error) : NULL;
    if (result == NULL) {
        ls_free(host);
        return host != NULL ? LOCKSTEP_RESOURCE : ls_fail_memory(error, "a norm");
    }
    int status = take_result(ls_cuda_norms(ls_card_own_stream(NULL), x, n, squared, result),
                             "compute a norm", result, host, chunks * sizeof *host, error);
    if (status == 0)
        *sum = ls_sum_doubles(host, chunks);
    ls_free(host);
    return status;
}

static int squares(const float *x, size_t n, double *sum, struct ls_error *error)
{
    return norm(x, n, true, sum, error);
}

static int magnitudes(const float *x, size_t n, double *sum, struct ls_error *error)
{
    return norm(x, n, false, sum, error);
}

const struct ls_device_sums ls_card_sums = {
    .largest = largest,
    .squares = squares,
    .magnitudes = magnitudes,
};

/* ---- Merging --------------------------------------------------------------------------------- */

static struct ls_cuda_merging merge_of(const struct ls_sync *sync, int count, int64_t begin,
                                       int64_t end)
{
    return (struct ls_cuda_merging){.moments = sync->kind == LS_SYNC_MOMENTS,
                                    .channels = sync->channels,
                                    .eps = sync->eps,
                                    .count = count,
                                    .begin = begin,
                                    .end = end};
}

/* Of more rows than a launch takes addresses of: what is in the stream is waited for. */
static int merge_many(struct ls_stream *stream, const struct ls_sync *sync,
                      const double *const *rows, int count, int64_t begin, int64_t end,
                      float *merged, struct ls_error *error)
{
    struct ls_cuda_merging of = merge_of(sync, count, begin, end);
    const size_t bytes = (size_t)count * sizeof *rows;
    const double **addresses = make_result(bytes, error);
    if (addresses == NULL)
        return LOCKSTEP_RESOURCE;
    of.many = addresses;
    int status = stream != NULL ? ls_card_streams.wait(stream, error) : 0;
    if (status == 0)
        status = ls_card_memory.write(NULL, addresses, rows, bytes, error);
    if (status == 0)
        status = ls_card_finish(ls_cuda_merge(ls_card_own_stream(NULL), &of, merged),
                                "merge statistics", error);
    ls_card_memory.free(addresses);
    return status;
}

int ls_card_merge(struct ls_stream *stream, const struct ls_sync *sync, const double *const *rows,
                  int count, int64_t begin, int64_t end, float *merged, struct ls_error *error)
{
    static const char what[] = "merge statistics";
    if (sync->kind == LS_SYNC_COUNT || count < 1)
        return 0;
    if (count > LS_CUDA_ROWS)
        return merge_many(stream, sync, rows, count, begin, end, merged, error);
    struct ls_cuda_merging of = merge_of(sync, count, begin, end);
    cudaStream_t in = ls_card_stream(stream, error);
    if (in == NULL)
        return LOCKSTEP_RESOURCE;
    memcpy(of.few, rows, (size_t)count * sizeof *rows);
    const int code = ls_cuda_merge(in, &of, merged);
    return stream != NULL ? ls_card_check(code, what, error) : ls_card_finish(code, what, error);
}

/* ---- Weights --------------------------------------------------------------------------------- */

int ls_card_update(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                   struct ls_update_seen *seen, struct ls_error *error)
{
    uint32_t host[2] = {0, 0}, *result = make_result(sizeof host, error);
    if (result == NULL)
        return LOCKSTEP_RESOURCE;
    int status = take_result(ls_cuda_update(ls_card_own_stream(NULL), rule, slice, result),
                             "update weights", result, host, sizeof host, error);
    *seen = (struct ls_update_seen){host[0], host[1]};
    return status;
}

int ls_card_clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                         struct ls_error *error)
{
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    return ls_card_finish(ls_cuda_clear_masked(stream, mask, first, numbers, n),
                          "clear masked weights", error);
}

/* ---- Gradients from factors ------------------------------------------------------------------ */

static int gradient_of(const struct ls_factoring *factoring, const struct ls_factor_rows *factors,
                       const struct ls_gradient_piece *piece, bool bias, float *gradient,
                       struct ls_error *error)
{
    cudaStream_t stream = ls_card_own_stream(error);
    if (stream == NULL)
        return LOCKSTEP_RESOURCE;
    const struct ls_cuda_factors of = {.input = factors->side[LS_FACTOR_INPUT],
                                       .output = factors->side[LS_FACTOR_OUTPUT],
                                       .inputs = (size_t)factoring->size[LS_FACTOR_INPUT],
                                       .outputs = (size_t)factoring->size[LS_FACTOR_OUTPUT],
                                       .rows = factors->rows,
                                       .transpose = factoring->transpose,
                                       .portable = factoring->portable};
    return ls_card_finish(ls_cuda_factor_gradient(stream, &of, bias, piece->begin, piece->rows,
                                                  piece->columns, piece->row, gradient),
                          "compute gradients", error);
}

int ls_card_weight_gradient(const struct ls_factoring *factoring,
                            const struct ls_factor_rows *factors,
                            const struct ls_gradient_piece *piece, float *gradient,
                            struct ls_error *error)
{
    return gradient_of(factoring, factors, piece, false, gradient, error);
}

int ls_card_bias_gradient(const struct ls_factoring *factoring,
                          const struct ls_factor_rows *factors,
                          const struct ls_gradient_piece *piece, float *gradient,
                          struct ls_error *error)
{
    return gradient_of(factoring, factors, piece, true, gradient, error);
}
