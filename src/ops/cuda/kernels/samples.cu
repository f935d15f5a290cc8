/* Samples of records that lie on the card. See kernels.h and data/transform.h: the bits are those
 * of the host's transformation. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "device/samples.h"
#include "ops/cuda/kernels/kernels.h"

enum { PARTS = 4 }; /* of a sum */

/* ---- Records that are the tensor ------------------------------------------------------------- */

__device__ static void put(const struct ls_sample_recipe *recipe, int64_t samples, int64_t s,
                           int64_t e, float x, void *out)
{
    const int64_t place = ls_sample_place_of(recipe, samples, s, e);
    if (recipe->rounded)
        ((uint16_t *)out)[place] = ls_sample_bf16(x);
    else
        ((float *)out)[place] = x;
}

/* Words may be integers: they are moved as they are. */
__global__ void copy_records(struct ls_sample_making making, const struct ls_sample_draw *draws,
                             int64_t samples, void *out)
{
    const struct ls_sample_recipe *recipe = &making.recipe;
    const int64_t numbers = ls_sample_numbers(recipe);
    for (LS_EACH(i, samples * numbers)) {
        const int64_t s = (int64_t)i / numbers, e = (int64_t)i % numbers;
        const int64_t from = draws[s].record * numbers + e;
        if (recipe->rounded)
            put(recipe, samples, s, e, ((const float *)making.records)[from], out);
        else
            ((uint32_t *)out)[ls_sample_place_of(recipe, samples, s, e)] =
                ((const uint32_t *)making.records)[from];
    }
}

/* ---- Images ---------------------------------------------------------------------------------- */

/* Where a pixel lies in its plane; negative: in the padding. */
__device__ static int64_t pixel_place(const struct ls_sample_recipe *recipe,
                                      const struct ls_sample_draw *draw, int64_t i)
{
    int64_t y = draw->top + i / recipe->columns, x = draw->left + i % recipe->columns;
    const bool inside = y >= 0 && y < recipe->height && x >= 0 && x < recipe->width;
    if (!inside && !recipe->reflect)
        return -1;
    if (!inside) {
        y = ls_sample_reflected(y, recipe->height);
        x = ls_sample_reflected(x, recipe->width);
    }
    return y * recipe->width + x;
}

/* Pixel `i` of a channel of the sample, before it is mirrored, with its brightness. */
__device__ static float lit_pixel(const struct ls_sample_making *making,
                                  const struct ls_sample_draw *draw, int channel, int64_t i)
{
    const struct ls_sample_recipe *recipe = &making->recipe;
    const int64_t place = pixel_place(recipe, draw, i);
    const int64_t plane = (int64_t)recipe->height * recipe->width;
    const int64_t from = (draw->record * recipe->channels + channel) * plane + place;
    float x = 0;
    if (place >= 0)
        x = recipe->floats ? ((const float *)making->records)[from]
                           : (float)((const uint8_t *)making->records)[from];
    return draw->brightness != 0 ? x + draw->brightness : x;
}

__device__ static float normalized(const struct ls_sample_making *making,
                                   const struct ls_sample_draw *draw, int channel, int64_t i,
                                   float x)
{
    const struct ls_sample_recipe *recipe = &making->recipe;
    if (recipe->has_mean) {
        const int64_t place = pixel_place(recipe, draw, i);
        const int64_t plane = (int64_t)recipe->height * recipe->width;
        const float mean = place < 0 ? 0 : making->mean[channel * plane + place];
        return ls_sample_centred(x, mean, recipe->scale);
    }
    if (recipe->has_channel_mean)
        return ls_sample_centred(x, making->mean[channel], recipe->scale);
    return recipe->scale != 1 ? x * recipe->scale : x;
}

/* The mean of a channel, for all threads of the block: a thread a part, in the host's order. */
__device__ static float lit_mean(const struct ls_sample_making *making,
                                 const struct ls_sample_draw *draw, int channel, double *part)
{
    const int64_t count = (int64_t)making->recipe.rows * making->recipe.columns;
    const int64_t whole = count / PARTS * PARTS;
    if (threadIdx.x < PARTS) {
        double sum = 0;
        for (int64_t i = threadIdx.x; i < whole; i += PARTS)
            sum += lit_pixel(making, draw, channel, i);
        for (int64_t i = whole; threadIdx.x == 0 && i < count; i++)
            sum += lit_pixel(making, draw, channel, i);
        part[threadIdx.x] = sum;
    }
    __syncthreads();
    return (float)(ls_sample_sum(part) / (double)count);
}

/* A block for each channel of a sample. What is rounded is rounded here, unless it is standardized.
 */
__global__ void cut_images(struct ls_sample_making making, const struct ls_sample_draw *draws,
                           int64_t samples, void *out)
{
    __shared__ double part[PARTS];
    const struct ls_sample_recipe *recipe = &making.recipe;
    const int64_t s = blockIdx.x / (unsigned)recipe->channels;
    const int channel = (int)(blockIdx.x % (unsigned)recipe->channels);
    const struct ls_sample_draw draw = draws[s];
    const int64_t count = (int64_t)recipe->rows * recipe->columns;
    const bool contrast = draw.contrast != 1;
    const float mean = contrast ? lit_mean(&making, &draw, channel, part) : 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        float x = lit_pixel(&making, &draw, channel, i);
        if (contrast)
            x = ls_sample_contrast(x, mean, draw.contrast);
        x = normalized(&making, &draw, channel, i, x);
        const int64_t column = i % recipe->columns;
        const int64_t at = draw.mirror ? i - column + recipe->columns - 1 - column : i;
        put(recipe, samples, s, channel * count + at, x, out);
    }
}

/* The sum of numbers in the order of the sample, or of their squares around a mean, for all threads
 * of the block. */
__device__ static double sum_sample(const struct ls_sample_recipe *recipe, int64_t samples,
                                    int64_t s, const float *out, const double *mean, double *part)
{
    const int64_t count = ls_sample_numbers(recipe), whole = count / PARTS * PARTS;
    if (threadIdx.x < PARTS) {
        double sum = 0;
        for (int64_t e = threadIdx.x; e < count; e += e < whole ? PARTS : 1) {
            if (e >= whole && threadIdx.x != 0)
                break;
            const float x = out[ls_sample_place_of(recipe, samples, s, e)];
            sum += mean != nullptr ? ls_sample_square(x, *mean) : (double)x;
        }
        part[threadIdx.x] = sum;
    }
    __syncthreads();
    const double sum = ls_sample_sum(part);
    __syncthreads();
    return sum;
}

/* A block for each sample. */
__global__ void standardize_samples(struct ls_sample_recipe recipe, int64_t samples, float *out)
{
    __shared__ double part[PARTS];
    const int64_t s = blockIdx.x, count = ls_sample_numbers(&recipe);
    const double mean = sum_sample(&recipe, samples, s, out, nullptr, part) / (double)count;
    const double squares = sum_sample(&recipe, samples, s, out, &mean, part);
    const float factor = ls_sample_factor(sqrt(squares / (double)count), 1 / sqrt((double)count));
    for (int64_t e = threadIdx.x; e < count; e += blockDim.x) {
        float *x = &out[ls_sample_place_of(&recipe, samples, s, e)];
        *x = ls_sample_centred(*x, (float)mean, factor);
    }
}

int ls_cuda_make_samples(cudaStream_t stream, const struct ls_sample_making *making,
                         const struct ls_sample_draw *draws, int64_t samples, void *out)
{
    const struct ls_sample_recipe *recipe = &making->recipe;
    const uint64_t numbers = (uint64_t)(samples * ls_sample_numbers(recipe));
    if (numbers == 0)
        return 0;
    if (!recipe->image)
        return LS_LAUNCH(copy_records, ls_blocks(numbers), LS_THREADS, stream, *making, draws,
                         samples, out);
    const int code = LS_LAUNCH(cut_images, (unsigned)(samples * recipe->channels), LS_THREADS,
                               stream, *making, draws, samples, out);
    if (code != 0 || !recipe->standardize)
        return code;
    return LS_LAUNCH(standardize_samples, (unsigned)samples, LS_THREADS, stream, *recipe, samples,
                     (float *)out);
}
