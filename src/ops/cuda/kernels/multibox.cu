/* SSD's loss of boxes and their classes: a block has a sample, its threads the priors. See
 * detection.h, and device/multibox.h for what it is.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "device/multibox_loss.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/detection.h"
#include "ops/cuda/kernels/kernels.h"

/* What a sample leaves for the record. */
struct multibox_tally {
    int64_t terms, matches;
};

/* Scratch memory of all samples: tallies, terms of the loss in their order, rooms. */
struct multibox_scratch {
    struct multibox_tally *tally;
    double *term;
    char *room;
    int64_t terms; /* of a sample, at most */
    size_t bytes;  /* of a room */
};

/* Whether each class has its own places, which are matched with its true boxes alone. */
LS_HOST_DEVICE bool matches_by_class(const struct ls_multibox_attr *attr)
{
    return attr->by_class && attr->by_place;
}

LS_HOST_DEVICE int64_t most_terms(const struct ls_multibox_attr *attr)
{
    return matches_by_class(attr) ? 1 + attr->priors * attr->classes : 2 * attr->priors;
}

size_t ls_cuda_multibox_scratch(const struct ls_multibox_attr *attr, int64_t samples)
{
    return (size_t)samples *
           (sizeof(struct multibox_tally) + (size_t)most_terms(attr) * sizeof(double) +
            ls_multibox_room_bytes(attr));
}

static struct multibox_scratch divide(const struct ls_multibox_attr *attr, int64_t samples,
                                      void *scratch)
{
    struct multibox_scratch to;
    to.terms = most_terms(attr);
    to.bytes = ls_multibox_room_bytes(attr);
    to.tally = (struct multibox_tally *)scratch;
    to.term = (double *)(void *)(to.tally + samples);
    to.room = (char *)(void *)(to.term + samples * to.terms);
    return to;
}

/* ---- Matches --------------------------------------------------------------------------------- */

/* The better pair of two: the larger overlap, of equal ones that of the first prior. */
__device__ static struct ls_multibox_pair better_pair(const struct ls_multibox_pair a,
                                                      const struct ls_multibox_pair b)
{
    const bool second = b.overlap > a.overlap || (b.overlap == a.overlap && b.prior < a.prior);
    return second ? b : a;
}

/* The best pair of all threads, in all of them. */
__device__ static struct ls_multibox_pair best_of_block(struct ls_multibox_pair mine)
{
    __shared__ struct ls_multibox_pair bests[LS_BLOCK_WARPS];
    for (int apart = warpSize / 2; apart > 0; apart /= 2) {
        struct ls_multibox_pair other;
        other.overlap = __shfl_xor_sync(LS_ALL_LANES, mine.overlap, apart);
        other.prior = __shfl_xor_sync(LS_ALL_LANES, mine.prior, apart);
        other.row = __shfl_xor_sync(LS_ALL_LANES, mine.row, apart);
        mine = better_pair(mine, other);
    }
    if (threadIdx.x % warpSize == 0)
        bests[threadIdx.x / warpSize] = mine;
    __syncthreads();
    for (int w = 0; w < LS_BLOCK_WARPS; w++)
        mine = better_pair(mine, bests[w]);
    __syncthreads();
    return mine;
}

__device__ static void set_boxes(const struct ls_multibox_attr *attr,
                                 const struct ls_multibox_sample *sample, bool predicted,
                                 int64_t kind, struct ls_multibox_room *room)
{
    for (LS_EACH_OF_BLOCK(p, attr->priors))
        room->box[p] = ls_multibox_box(attr, sample, predicted, p, kind);
}

/* As ls_multibox_match. */
__device__ static void match_boxes(const struct ls_multibox_attr *attr, const float *rows,
                                   int64_t kind, struct ls_multibox_room *room)
{
    int64_t pairs = 0, others = 0;
    for (LS_EACH_OF_BLOCK(p, attr->priors))
        room->object[p] = ls_multibox_unmatched(attr, &room->box[p]);
    for (LS_EACH_OF_BLOCK(g, attr->objects))
        room->taken[g] = !ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, kind);
    for (;; pairs++) {
        struct ls_multibox_pair best = ls_multibox_no_pair();
        __syncthreads();
        for (LS_EACH_OF_BLOCK(p, attr->priors))
            ls_multibox_improve_pair(attr, rows, room, p, &best);
        best = best_of_block(best);
        if (best.prior < 0)
            break;
        if (threadIdx.x == 0) {
            room->object[best.prior] = (int32_t)best.row;
            room->taken[best.row] = true;
        }
    }
    for (LS_EACH_OF_BLOCK(p, attr->priors))
        others += ls_multibox_match_rest(attr, rows, kind, room, p);
    room->matches = pairs + ls_block_sum(others);
}

__device__ static void match_sample(const struct ls_multibox_attr *attr,
                                    const struct ls_multibox_sample *sample,
                                    struct ls_multibox_room *room)
{
    set_boxes(attr, sample, attr->by_place, 0, room);
    match_boxes(attr, sample->rows, -1, room);
}

/* ---- Mining ---------------------------------------------------------------------------------- */

/* Of the priors in order, keeps those whose boxes cover something and do not overlap one in front
 * of them, at most `most`; returns their number. */
__device__ static int64_t suppress(const struct ls_multibox_attr *attr,
                                   const struct ls_multibox_sample *sample,
                                   struct ls_multibox_room *room, int64_t count, int64_t most)
{
    set_boxes(attr, sample, !attr->suppresses_priors, 0, room);
    if (attr->top_k >= 0 && attr->top_k < count)
        count = attr->top_k;
    const struct ls_box *box = room->box;
    int32_t *ordered = room->ordered;
    __syncthreads();
    const int64_t large = ls_block_list(
        count, [=](int64_t i) { return ls_box_area(&box[ordered[i]], 0) >= 1e-5; },
        [=](int64_t i, int64_t at) { room->kind[at] = ordered[i]; });
    const int32_t *candidate = room->kind;
    const double threshold = (double)attr->nms_threshold;
    return ls_block_suppress(
        large, most,
        [=](int64_t k, int64_t i) {
            return ls_box_overlap(&box[ordered[k]], &box[candidate[i]], 0) > threshold;
        },
        [=](int64_t i, int64_t k, bool kept) {
            if (kept && threadIdx.x == 0)
                ordered[k] = candidate[i];
        });
}

/* Puts the `most` of `count` priors in room->ordered with the largest losses in front. */
__device__ static int64_t choose(const struct ls_multibox_attr *attr,
                                 const struct ls_multibox_sample *sample,
                                 struct ls_multibox_room *room, int64_t count, int64_t most)
{
    double *loss = room->loss;
    for (LS_EACH_OF_BLOCK(i, count)) /* so that the order is one */
        if (isnan(loss[room->ordered[i]]))
            loss[room->ordered[i]] = (double)INFINITY;
    ls_block_sort(room->ordered, count,
                  [=](int32_t a, int32_t b) { return ls_multibox_is_chosen_first(loss, a, b); });
    return attr->nms_threshold > 0 ? suppress(attr, sample, room, count, most) : most;
}

__device__ static int64_t mine_negatives(const struct ls_multibox_attr *attr,
                                         const struct ls_multibox_sample *sample,
                                         struct ls_multibox_room *room)
{
    const int64_t count = ls_block_list(
        attr->priors, [=](int64_t p) { return ls_multibox_is_negative(attr, room, p); },
        [=](int64_t p, int64_t at) { room->ordered[at] = (int32_t)p; });
    return choose(attr, sample, room, count,
                  ls_multibox_most_negatives(attr, room->matches, count));
}

__device__ static bool has_objects(const struct ls_multibox_attr *attr, const float *rows)
{
    for (int64_t g = 0; g < attr->objects; g++)
        if (ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, -1))
            return true;
    return false;
}

__device__ static int64_t mine_examples(const struct ls_multibox_attr *attr,
                                        const struct ls_multibox_sample *sample,
                                        struct ls_multibox_room *room)
{
    for (LS_EACH_OF_BLOCK(p, attr->priors)) {
        room->ordered[p] = (int32_t)p;
        room->chosen[p] = false;
    }
    __syncthreads();
    const int64_t most = attr->sample_size < attr->priors ? attr->sample_size : attr->priors;
    const int64_t count =
        has_objects(attr, sample->rows) ? choose(attr, sample, room, attr->priors, most) : 0;
    for (LS_EACH_OF_BLOCK(i, count))
        room->chosen[room->ordered[i]] = true;
    __syncthreads();
    int64_t undone = 0;
    for (LS_EACH_OF_BLOCK(p, attr->priors))
        if (room->object[p] >= 0 && !room->chosen[p]) {
            room->object[p] = LS_NO_OBJECT;
            undone++;
        }
    room->matches -= ls_block_sum(undone);
    return ls_block_list(
        attr->priors, [=](int64_t p) { return room->object[p] == LS_NO_OBJECT && room->chosen[p]; },
        [=](int64_t p, int64_t at) { room->ordered[at] = (int32_t)p; });
}

/* As ls_multibox_mine. */
__device__ static int64_t mine(const struct ls_multibox_attr *attr,
                               const struct ls_multibox_sample *sample,
                               struct ls_multibox_room *room)
{
    if (attr->mining == LS_MINING_NEGATIVES)
        return mine_negatives(attr, sample, room);
    if (attr->mining == LS_MINING_EXAMPLES)
        return mine_examples(attr, sample, room);
    return ls_block_list(
        attr->priors, [=](int64_t p) { return room->object[p] < 0; },
        [=](int64_t p, int64_t at) { room->ordered[at] = (int32_t)p; });
}

/* ---- A sample -------------------------------------------------------------------------------- */

/* Sets the losses that priors are chosen by. */
__device__ static void set_losses(const struct ls_multibox_attr *attr,
                                  const struct ls_multibox_sample *sample,
                                  struct ls_multibox_room *room)
{
    for (LS_EACH_OF_BLOCK(p, attr->priors)) {
        const int64_t kind = ls_multibox_class_of(attr, sample, room, p);
        if (attr->mining == LS_MINING_NEGATIVES && room->object[p] >= 0)
            continue;
        room->loss[p] = ls_multibox_confidence_loss(attr, sample, p, kind, false);
        if (room->object[p] >= 0 && kind >= 0)
            room->loss[p] += ls_multibox_place_loss(attr, sample, room, p, kind, false);
    }
    __syncthreads();
}

/* Lists the priors that have matches. */
__device__ static int64_t list_matches(const struct ls_multibox_attr *attr,
                                       const struct ls_multibox_room *room, int32_t *list)
{
    return ls_block_list(
        attr->priors, [=](int64_t p) { return room->object[p] >= 0; },
        [=](int64_t p, int64_t at) { list[at] = (int32_t)p; });
}

/* Sets the terms of the loss of a sample, whose gradients hold zeros, and room->matches; returns
 * their number. */
__device__ static int64_t learn(const struct ls_multibox_attr *attr,
                                const struct ls_multibox_sample *sample,
                                struct ls_multibox_room *room, double *term)
{
    match_sample(attr, sample, room);
    if (attr->mining != LS_MINING_NONE)
        set_losses(attr, sample, room);
    const int64_t negatives = mine(attr, sample, room);
    int32_t *matched = room->kind;
    const int64_t matches = list_matches(attr, room, matched);
    for (LS_EACH_OF_BLOCK(i, matches)) {
        const int64_t p = matched[i], kind = ls_multibox_class_of(attr, sample, room, p);
        term[2 * i] = kind >= 0 ? (double)attr->loc_weight *
                                      ls_multibox_place_loss(attr, sample, room, p, kind, true)
                                : 0;
        term[2 * i + 1] = ls_multibox_confidence_loss(attr, sample, p, kind, true);
    }
    for (LS_EACH_OF_BLOCK(i, negatives))
        term[2 * matches + i] =
            ls_multibox_confidence_loss(attr, sample, room->ordered[i], attr->background, true);
    return 2 * matches + negatives;
}

/* Whether a true box that counts has no class. */
__device__ static bool has_bad_object(const struct ls_multibox_attr *attr, const float *rows)
{
    for (int64_t g = 0; g < attr->objects; g++)
        if (ls_multibox_is_object(attr, rows + g * LS_TRUE_BOX, -1) &&
            ls_multibox_class(attr, rows + g * LS_TRUE_BOX) < 0)
            return true;
    return false;
}

/* The same where each class has its own predicted places, which are matched with the true boxes of
 * that class alone. A prior that several classes match learns the last of them. */
__device__ static int64_t learn_by_class(const struct ls_multibox_attr *attr,
                                         const struct ls_multibox_sample *sample,
                                         struct ls_multibox_room *room, double *term)
{
    int64_t matches = 0, terms = 1;
    for (LS_EACH_OF_BLOCK(p, attr->priors))
        room->kind[p] = attr->background;
    if (threadIdx.x == 0)
        term[0] = has_bad_object(attr, sample->rows) ? (double)NAN : 0;
    for (int64_t c = 0; c < attr->classes; c++) {
        if (c == attr->background)
            continue;
        set_boxes(attr, sample, true, c, room);
        match_boxes(attr, sample->rows, c, room);
        matches += room->matches;
        const int64_t found = list_matches(attr, room, room->ordered);
        for (LS_EACH_OF_BLOCK(i, found)) {
            const int64_t p = room->ordered[i];
            term[terms + i] =
                (double)attr->loc_weight * ls_multibox_place_loss(attr, sample, room, p, c, true);
            room->kind[p] = (int32_t)c;
        }
        terms += found;
        __syncthreads();
    }
    for (LS_EACH_OF_BLOCK(p, attr->priors))
        term[terms + p] = ls_multibox_confidence_loss(attr, sample, p, room->kind[p], true);
    room->matches = matches;
    return terms + attr->priors;
}

__global__ void __launch_bounds__(LS_BLOCK)
    learn_samples(struct ls_multibox_attr attr, struct ls_cuda_multibox_values values,
                  struct multibox_scratch to)
{
    const int64_t n = blockIdx.x, places = attr.priors * ls_multibox_places(&attr);
    const int64_t scores = attr.priors * attr.classes;
    struct ls_multibox_room room = ls_multibox_divide_room(&attr, to.room + (size_t)n * to.bytes);
    struct ls_multibox_sample sample;
    sample.loc = values.loc + n * places;
    sample.conf = values.conf + n * scores;
    sample.prior = values.prior;
    sample.rows = values.rows + n * attr.objects * LS_TRUE_BOX;
    sample.dloc = values.dloc + n * places;
    sample.dconf = values.dconf + n * scores;
    double *term = to.term + n * to.terms;
    const int64_t terms = matches_by_class(&attr) ? learn_by_class(&attr, &sample, &room, term)
                                                  : learn(&attr, &sample, &room, term);
    if (threadIdx.x == 0) {
        to.tally[n].terms = terms;
        to.tally[n].matches = room.matches;
    }
}

/* Adds what the samples have left to the record: [sum, count], and the matches if they count. */
__global__ void __launch_bounds__(LS_BLOCK)
    add_samples(struct ls_multibox_attr attr, int64_t samples, struct multibox_scratch to,
                double *record, double *count)
{
    double sum = record[0];
    for (int64_t n = 0; n < samples; n++) {
        const double *term = to.term + n * to.terms;
        sum = ls_block_add(to.tally[n].terms, sum, [=](int64_t i) { return term[i]; });
        if (threadIdx.x != 0)
            continue;
        record[1] += ls_multibox_count_of(&attr, to.tally[n].matches);
        if (count != NULL)
            *count += (double)to.tally[n].matches;
    }
    if (threadIdx.x == 0)
        record[0] = sum;
}

int ls_cuda_multibox(cudaStream_t stream, const struct ls_multibox_attr *attr, int64_t samples,
                     const struct ls_cuda_multibox_values *of, void *scratch, double *record,
                     double *count)
{
    const struct ls_multibox_attr by = *attr;
    const struct multibox_scratch to = divide(attr, samples, scratch);
    const struct ls_cuda_multibox_values values = *of;
    const size_t places = (size_t)(samples * by.priors * ls_multibox_places(&by));
    const size_t scores = (size_t)(samples * by.priors * by.classes);
    int code = ls_cuda_fill_words(stream, (uint32_t *)(void *)of->dloc, 0, places);
    if (code == 0)
        code = ls_cuda_fill_words(stream, (uint32_t *)(void *)of->dconf, 0, scores);
    if (code == 0)
        code = LS_LAUNCH(learn_samples, (unsigned)samples, LS_BLOCK, stream, by, values, to);
    if (code == 0)
        code = LS_LAUNCH(add_samples, 1u, LS_BLOCK, stream, by, samples, to, record, count);
    return code;
}

/* ---- Counts, gradients ----------------------------------------------------------------------- */

__global__ void __launch_bounds__(LS_BLOCK)
    match_samples(struct ls_multibox_attr attr, const float *prior, const float *rows,
                  struct multibox_scratch to)
{
    const int64_t n = blockIdx.x;
    struct ls_multibox_room room = ls_multibox_divide_room(&attr, to.room + (size_t)n * to.bytes);
    struct ls_multibox_sample sample;
    sample.loc = sample.conf = NULL;
    sample.prior = prior;
    sample.rows = rows + n * attr.objects * LS_TRUE_BOX;
    sample.dloc = sample.dconf = NULL;
    match_sample(&attr, &sample, &room);
    if (threadIdx.x == 0)
        to.tally[n].matches = room.matches;
}

__global__ void add_matches(int64_t samples, struct multibox_scratch to, double *record)
{
    for (int64_t n = 0; n < samples; n++)
        *record += (double)to.tally[n].matches;
}

int ls_cuda_count_matches(cudaStream_t stream, const struct ls_multibox_attr *attr, int64_t samples,
                          const float *prior, const float *rows, void *scratch, double *record)
{
    const struct ls_multibox_attr by = *attr;
    const struct multibox_scratch to = divide(attr, samples, scratch);
    int code = LS_LAUNCH(match_samples, (unsigned)samples, LS_BLOCK, stream, by, prior, rows, to);
    if (code == 0)
        code = LS_LAUNCH(add_matches, 1u, 1u, stream, samples, to, record);
    return code;
}

__global__ void scale_slopes(float weight, const struct ls_batch_numbers *numbers, int normalizer,
                             const float *slope, float *dx, int64_t n)
{
    const double factor =
        (double)weight / (normalizer < 0 ? 1.0 : numbers->normalizers[normalizer]);
    for (LS_EACH(i, n))
        dx[i] = (float)(factor * (double)slope[i]);
}

int ls_cuda_scale_slopes(cudaStream_t stream, float weight, const struct ls_batch_numbers *numbers,
                         int normalizer, const float *slope, float *dx, int64_t n)
{
    return LS_LAUNCH(scale_slopes, ls_blocks((uint64_t)n), LS_THREADS, stream, weight, numbers,
                     normalizer, slope, dx, n);
}
