/* See attention_prepare.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/attention_prepare.h"

#include "device/trigonometry.h"
#include "ops/cuda/kernels/attention_tile.h"

static int64_t query_blocks(const struct ls_attention_attr *attr)
{
    return (attr->queries + LS_TILE - 1) / LS_TILE;
}

/* Rows that have angles of their own. */
static int64_t angle_rows(const struct ls_cuda_attention *of)
{
    return of->positions != NULL ? of->batch : 1;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* A piece of scratch memory of so many elements, behind `end`; NULL where there is no memory yet.
 */
template <typename T> static T *place(void *scratch, size_t *end, int64_t elements)
{
    T *const at = scratch == NULL ? NULL : (T *)((char *)scratch + *end);
    *end += aligned((size_t)elements * sizeof(T));
    return at;
}

/* Places that a key can have. */
static int64_t most_keys(const struct ls_attention_attr *attr)
{
    return attr->cache > attr->keys ? attr->cache : attr->keys;
}

/* Places all of it; returns where it ends. */
static size_t place_all(const struct ls_cuda_attention *of, struct ls_cuda_prepared *prepared)
{
    const struct ls_attention_attr *attr = &of->attr;
    const int64_t turned = attr->rotary.dims > 0 ? of->batch * attr->depth : 0;
    const int64_t keys = most_keys(attr);
    size_t end = 0;
    prepared->blocks = place<struct ls_attention_range>(of->scratch, &end, query_blocks(attr));
    prepared->angles = place<float>(of->scratch, &end, angle_rows(of) * keys * attr->rotary.dims);
    prepared->turned[0] = place<float>(of->scratch, &end, turned * attr->queries * attr->heads);
    prepared->turned[1] = place<float>(of->scratch, &end, turned * keys * attr->kv_heads);
    prepared->slope = place<float>(of->scratch, &end,
                                   !of->back ? 0
                                   : attr->queries * attr->heads > keys * attr->kv_heads
                                       ? turned * attr->queries * attr->heads
                                       : turned * keys * attr->kv_heads);
    prepared->dot = place<float>(of->scratch, &end, of->batch * attr->heads * attr->queries);
    return end;
}

size_t ls_cuda_attention_scratch(const struct ls_cuda_attention *of)
{
    struct ls_cuda_prepared prepared;
    return place_all(of, &prepared);
}

__global__ void find_blocks(struct ls_cuda_attention of, int64_t count,
                            struct ls_attention_range *blocks)
{
    const struct ls_attention_attr attr = attributes_now(of);
    for (LS_EACH(b, count)) {
        const int64_t first = (int64_t)b * LS_TILE, left = attr.queries - first;
        blocks[b] = ls_attention_blocks_of(&attr, first, left < LS_TILE ? left : LS_TILE);
    }
}

/* Cosines, then as many sines, by place of a key. */
__global__ void find_angles(struct ls_cuda_attention of, int64_t rows, float *angles)
{
    const struct ls_attention_attr attr = attributes_now(of);
    const int64_t pairs = attr.rotary.dims / 2;
    for (LS_EACH(e, rows * attr.keys * pairs)) {
        const int64_t i = (int64_t)e % pairs, place = (int64_t)e / pairs;
        const double position =
            of.positions != NULL ? (double)of.positions[place] : (double)(place % attr.keys);
        const double angle = position * of.powers[i];
        float *const to = angles + place * attr.rotary.dims;
        to[i] = (float)ls_double_cos(angle);
        to[pairs + i] = (float)ls_double_sin(angle);
    }
}

/* Rows of q or k that are turned: from, [batch, count, heads, depth], to the same. */
struct turning {
    struct ls_cuda_rows from, to;
    bool query, back, round;
    int64_t heads;
};

__global__ void turn_rows(struct ls_cuda_attention of, struct turning by, const float *angles)
{
    const struct ls_attention_attr attr = attributes_now(of);
    const struct ls_rotary_attr rotary = attr.rotary;
    const int64_t pairs = rotary.dims / 2, step = rotary.neighbours ? 2 : 1;
    const int64_t other = rotary.neighbours ? 1 : pairs, rest = attr.depth - rotary.dims;
    const int64_t count = by.query ? attr.queries : attr.keys;
    const int64_t shift = by.query ? attr.keys - attr.queries : 0;
    for (LS_EACH(e, of.batch * count * by.heads * (pairs + rest))) {
        const int64_t p = (int64_t)e % (pairs + rest), row = (int64_t)e / (pairs + rest);
        const int64_t head = row % by.heads, i = row / by.heads % count, n = row / by.heads / count;
        const int64_t from = n * by.from.batch + i * by.from.pitch + head * by.from.head;
        const int64_t to = n * by.to.batch + i * by.to.pitch + head * by.to.head;
        if (p >= pairs) { /* what is not turned */
            const int64_t d = rotary.dims + p - pairs;
            put_at(by.to, to + d, number_at(by.from, from + d, by.round));
            continue;
        }
        const int64_t place = (of.positions != NULL ? n * attr.keys : 0) + i + shift;
        const float *const angle = angles + place * rotary.dims;
        const float cosine = angle[p], sine = by.back ? -angle[pairs + p] : angle[pairs + p];
        const float a = number_at(by.from, from + p * step, by.round);
        const float b = number_at(by.from, from + p * step + other, by.round);
        const float up = a * cosine, left = b * sine, down = b * cosine, right = a * sine;
        put_at(by.to, to + p * step, up - left);
        put_at(by.to, to + p * step + other, down + right);
    }
}

static int turn(cudaStream_t stream, const struct ls_cuda_attention *of, const struct turning *by,
                const float *angles)
{
    const struct ls_cuda_attention all = *of;
    const struct turning turning = *by;
    const int64_t count = by->query ? of->attr.queries : of->attr.keys;
    return LS_LAUNCH(turn_rows,
                     ls_blocks((uint64_t)(of->batch * count * by->heads * of->attr.depth)),
                     LS_THREADS, stream, all, turning, angles);
}

/* Turned rows as they lie in scratch memory. */
static struct ls_cuda_rows turned_rows(const struct ls_attention_attr *attr, int64_t rows,
                                       int64_t heads, float *data)
{
    struct ls_cuda_rows to = {data, false, rows * heads * attr->depth, heads * attr->depth,
                              attr->depth};
    return to;
}

int ls_cuda_prepare_attention(cudaStream_t stream, struct ls_cuda_attention *of,
                              struct ls_cuda_prepared *prepared)
{
    const struct ls_cuda_attention by = *of;
    const struct ls_attention_attr *attr = &by.attr;
    const int64_t count = query_blocks(attr), rows = angle_rows(&by);
    place_all(of, prepared);
    struct ls_attention_range *const blocks = prepared->blocks;
    float *const angles = prepared->angles;
    int code =
        LS_LAUNCH(find_blocks, ls_blocks((uint64_t)count), LS_THREADS, stream, by, count, blocks);
    if (code != 0 || attr->rotary.dims == 0)
        return code;
    code = LS_LAUNCH(find_angles, ls_blocks((uint64_t)(rows * attr->keys * attr->rotary.dims / 2)),
                     LS_THREADS, stream, by, rows, angles);
    for (int which = LS_CUDA_Q; which <= LS_CUDA_K && code == 0; which++) {
        const bool query = which == LS_CUDA_Q;
        const int64_t heads = query ? attr->heads : attr->kv_heads;
        const struct turning turning = {by.in[which],
                                        turned_rows(attr, query ? attr->queries : most_keys(attr),
                                                    heads, prepared->turned[which]),
                                        query,
                                        false,
                                        attr->bf16,
                                        heads};
        code = turn(stream, &by, &turning, angles);
        of->in[which] = turning.to;
    }
    return code;
}

struct ls_cuda_rows ls_cuda_slope_rows(const struct ls_cuda_attention *of, int which,
                                       const struct ls_cuda_prepared *prepared)
{
    const struct ls_attention_attr *attr = &of->attr;
    return which == LS_CUDA_Q ? turned_rows(attr, attr->queries, attr->heads, prepared->slope)
                              : turned_rows(attr, most_keys(attr), attr->kv_heads, prepared->slope);
}

int ls_cuda_turn_back(cudaStream_t stream, const struct ls_cuda_attention *of, int which,
                      const struct ls_cuda_prepared *prepared, const struct ls_cuda_rows *to)
{
    const bool query = which == LS_CUDA_Q;
    const struct turning turning = {
        ls_cuda_slope_rows(of, which, prepared),   *to, query, true, false,
        query ? of->attr.heads : of->attr.kv_heads};
    return turn(stream, of, &turning, prepared->angles);
}
