/* Pictures to records: resizing, and from H x W x C to channel by channel, BGR.
 *
 * Output pixel i of n looks at the input around centre (i + 1/2) m / n - 1/2 (m input pixels)
 * through a triangle of half width max(1, m / n): bilinear interpolation when growing, a weighted
 * mean over all pixels in reach when shrinking. Without antialiasing the half width is always 1, as
 * in OpenCV's INTER_LINEAR, whose weights have 11 bits: pixels differ from its by at most 1.
 * Weights are rounded to 16 bits and add up to 2^16 exactly; sums are integers. Rows and columns
 * are resized one after the other, with 8 further bits in between.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/resize.h"

#include <string.h>

#include "base/memory.h"
#include "data/picture_inner.h"

/* The filter of one direction: for each output pixel, where its input begins and `taps` weights. */
struct filter {
    int taps;
    int32_t *first;
    uint32_t *weight; /* outputs x taps */
};

static void filter_free(struct filter *filter)
{
    ls_free(filter->first);
    ls_free(filter->weight);
}

/* Rounds weights (>= 0, not all zero) to integers that add up to 2^16: the largest takes what
 * rounding left over. */
static void round_weights(const double *weight, int taps, uint32_t *out)
{
    double sum = 0;
    for (int k = 0; k < taps; k++)
        sum += weight[k];
    uint32_t total = 0;
    int largest = 0;
    for (int k = 0; k < taps; k++) {
        out[k] = (uint32_t)(weight[k] / sum * 65536.0 + 0.5);
        total += out[k];
        if (out[k] > out[largest])
            largest = k;
    }
    out[largest] += 65536U - total; /* modulo 2^32, so downwards too */
}

static bool filter_init(struct filter *filter, int inputs, int outputs, bool antialias)
{
    double step = (double)inputs / outputs;
    double reach = antialias && step > 1 ? step : 1;
    int taps = (int)(2 * reach) + 2;
    if (taps > inputs)
        taps = inputs;
    filter->taps = taps;
    filter->first = ls_alloc((size_t)outputs, sizeof *filter->first);
    filter->weight = ls_alloc((size_t)outputs * (size_t)taps, sizeof *filter->weight);
    double *exact = ls_alloc((size_t)taps, sizeof *exact);
    bool ok = filter->first != NULL && filter->weight != NULL && exact != NULL;
    for (int i = 0; ok && i < outputs; i++) {
        double centre = (i + 0.5) * step - 0.5;
        double low = centre - reach;
        int first = low < 0 ? 0 : (int)low; /* the pixel at `low` itself weighs nothing */
        if (first > inputs - taps)
            first = inputs - taps;
        for (int k = 0; k < taps; k++) {
            double distance = first + k - centre;
            double weight = 1 - (distance < 0 ? -distance : distance) / reach;
            exact[k] = weight > 0 ? weight : 0;
        }
        filter->first[i] = first;
        round_weights(exact, taps, filter->weight + (size_t)i * (size_t)taps);
    }
    ls_free(exact);
    return ok;
}

/* One row of the picture, channel `c`, to `outputs` pixels times 256. */
static void resize_row(const struct filter *filter, const uint8_t *row, int channels, int outputs,
                       uint16_t *out)
{
    for (int i = 0; i < outputs; i++) {
        const uint32_t *weight = filter->weight + (size_t)i * (size_t)filter->taps;
        const uint8_t *pixel = row + (size_t)filter->first[i] * (size_t)channels;
        uint32_t sum = 0;
        for (int k = 0; k < filter->taps; k++, pixel += channels)
            sum += *pixel * weight[k];
        out[i] = (uint16_t)((sum + 128) >> 8); /* at most 255 x 2^16 >> 8 */
    }
}

/* One output row from the rows of `plane` (width pixels each) that row `i` of the filter names. */
static void resize_column(const struct filter *filter, const uint16_t *plane, int width, int i,
                          uint32_t *sum, uint8_t *out)
{
    const uint32_t *weight = filter->weight + (size_t)i * (size_t)filter->taps;
    const uint16_t *row = plane + (size_t)filter->first[i] * (size_t)width;
    for (int x = 0; x < width; x++)
        sum[x] = 1U << 23; /* for rounding; 65280 x 2^16 + 2^23 < 2^32 */
    for (int k = 0; k < filter->taps; k++, row += width)
        if (weight[k] != 0)
            for (int x = 0; x < width; x++)
                sum[x] += row[x] * weight[k];
    for (int x = 0; x < width; x++)
        out[x] = (uint8_t)(sum[x] >> 24);
}

/* In a record blue comes first; a picture has red first. */
static int picture_channel(const struct ls_picture *picture, int record_channel)
{
    return picture->channels == 3 ? 2 - record_channel : record_channel;
}

static uint8_t *begin_record(const struct ls_picture *picture, int height, int width,
                             struct ls_buffer *buffer, struct ls_record *record)
{
    const int64_t shape[3] = {picture->channels, height, width};
    size_t size = (size_t)picture->channels * (size_t)height * (size_t)width;
    uint8_t *pixels = ls_buffer_reserve(buffer, size, 1);
    ls_record_set_image(record, LS_U8, shape, pixels);
    return pixels;
}

int ls_picture_to_record(const struct ls_picture *picture, struct ls_buffer *buffer,
                         struct ls_record *record, struct ls_problem *problem)
{
    uint8_t *out = begin_record(picture, picture->height, picture->width, buffer, record);
    if (out == NULL)
        return ls_picture_no_memory(problem);
    size_t pixels = (size_t)picture->height * (size_t)picture->width;
    if (picture->channels == 1) {
        memcpy(out, picture->pixels, pixels);
        return 0;
    }
    const uint8_t *in = picture->pixels;
    for (size_t i = 0; i < pixels; i++, in += 3) {
        out[i] = in[2];
        out[pixels + i] = in[1];
        out[2 * pixels + i] = in[0];
    }
    return 0;
}

static void resize_planes(const struct ls_picture *picture, const struct filter *rows,
                          const struct filter *columns, int height, int width, uint16_t *plane,
                          uint32_t *sum, uint8_t *out)
{
    size_t stride = (size_t)picture->width * (size_t)picture->channels;
    for (int c = 0; c < picture->channels; c++) {
        const uint8_t *in = picture->pixels + picture_channel(picture, c);
        for (int y = 0; y < picture->height; y++)
            resize_row(columns, in + (size_t)y * stride, picture->channels, width,
                       plane + (size_t)y * (size_t)width);
        for (int y = 0; y < height; y++, out += width)
            resize_column(rows, plane, width, y, sum, out);
    }
}

int ls_picture_resize_to_record(const struct ls_picture *picture, int height, int width,
                                bool antialias, struct ls_buffer *buffer, struct ls_record *record,
                                struct ls_problem *problem)
{
    if (height == picture->height && width == picture->width)
        return ls_picture_to_record(picture, buffer, record, problem);
    uint8_t *out = begin_record(picture, height, width, buffer, record);
    struct filter rows = {0}, columns = {0};
    uint16_t *plane = ls_alloc((size_t)picture->height * (size_t)width, sizeof *plane);
    uint32_t *sum = ls_alloc((size_t)width, sizeof *sum);
    bool ok = out != NULL && plane != NULL && sum != NULL &&
              filter_init(&rows, picture->height, height, antialias) &&
              filter_init(&columns, picture->width, width, antialias);
    if (ok)
        resize_planes(picture, &rows, &columns, height, width, plane, sum, out);
    filter_free(&rows);
    filter_free(&columns);
    ls_free(plane);
    ls_free(sum);
    return ok ? 0 : ls_picture_no_memory(problem);
}

void ls_record_swap_channels(const struct ls_record *record, uint8_t *pixels)
{
    const int64_t *shape = record->tensor[0].shape.dim;
    int64_t size = shape[1] * shape[2];
    for (int64_t i = 0; i < size; i++) {
        uint8_t first = pixels[i];
        pixels[i] = pixels[2 * size + i];
        pixels[2 * size + i] = first;
    }
}

int ls_label_map_resize(struct ls_label_map *map, int height, int width, struct ls_buffer *buffer,
                        struct ls_problem *problem)
{
    if (height == map->height && width == map->width)
        return 0;
    uint16_t *out = ls_buffer_reserve(buffer, (size_t)height * (size_t)width, sizeof *out);
    if (out == NULL)
        return ls_picture_no_memory(problem);
    for (int y = 0; y < height; y++) {
        int64_t row = (2 * (int64_t)y + 1) * map->height / (2 * (int64_t)height);
        const uint16_t *in = map->labels + row * map->width;
        for (int x = 0; x < width; x++)
            out[(size_t)y * (size_t)width + (size_t)x] =
                in[(2 * (int64_t)x + 1) * map->width / (2 * (int64_t)width)];
    }
    *map = (struct ls_label_map){height, width, out};
    return 0;
}
