/* Filters as a picture. See observe/filters.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "observe/filters.h"

#include "base/memory.h"
#include "data/picture_write.h"

enum { SIDE = 24 /* pixels that a filter has at least */ };

struct canvas {
    int64_t columns, height, width;
    int64_t zoom; /* pixels a weight */
    uint8_t *planes;
};

static float least_weight(const struct lockstep_filters *filters, float *range)
{
    int64_t size = filters->count * filters->channels * filters->height * filters->width;
    float least = filters->weights[0], most = least;
    for (int64_t i = 1; i < size; i++) {
        least = filters->weights[i] < least ? filters->weights[i] : least;
        most = filters->weights[i] > most ? filters->weights[i] : most;
    }
    *range = most - least;
    return least;
}

static void draw_filter(const struct lockstep_filters *filters, int64_t index,
                        const struct canvas *canvas, float least, float range)
{
    const int64_t zoom = canvas->zoom;
    const int64_t top = index / canvas->columns * (filters->height * zoom + 1);
    const int64_t left = index % canvas->columns * (filters->width * zoom + 1);
    const float *weights =
        filters->weights + index * filters->channels * filters->height * filters->width;
    for (int64_t c = 0; c < filters->channels; c++) {
        uint8_t *plane = canvas->planes + c * canvas->height * canvas->width;
        for (int64_t y = 0; y < filters->height * zoom; y++)
            for (int64_t x = 0; x < filters->width * zoom; x++) {
                float weight =
                    weights[(c * filters->height + y / zoom) * filters->width + x / zoom];
                float level = range > 0 ? (weight - least) / range * 255 : 127;
                plane[(top + y) * canvas->width + left + x] = (uint8_t)(level + 0.5F);
            }
    }
}

int ls_filters_draw(const struct lockstep_filters *filters, int64_t shape[3], uint8_t **bytes,
                    size_t *size, struct ls_error *error)
{
    struct canvas canvas = {.columns = 1, .zoom = 1};
    float range, least = least_weight(filters, &range);
    while (canvas.columns * canvas.columns < filters->count)
        canvas.columns++;
    while (filters->width * canvas.zoom < SIDE)
        canvas.zoom++;
    int64_t rows = (filters->count + canvas.columns - 1) / canvas.columns;
    canvas.height = shape[1] = rows * (filters->height * canvas.zoom + 1) - 1;
    canvas.width = shape[2] = canvas.columns * (filters->width * canvas.zoom + 1) - 1;
    shape[0] = filters->channels;
    *bytes = NULL;
    canvas.planes = ls_alloc((size_t)(canvas.height * canvas.width), (size_t)filters->channels);
    if (canvas.planes == NULL)
        return ls_fail_memory(error, "a picture of filters");
    for (int64_t i = 0; i < filters->count; i++)
        draw_filter(filters, i, &canvas, least, range);
    int status = ls_picture_encode(canvas.planes, shape, "png", bytes, size, error);
    ls_free(canvas.planes);
    return status;
}
