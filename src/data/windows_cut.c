/* Windows, cut out of their pictures. See data/windows.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/resize.h"
#include "data/windows.h"

/* A window in its picture, and where it lies in the record. */
struct cut {
    int x1, y1, x2, y2;
    int height, width; /* that it is resized to */
    int top, left;
};

static int half_up(double x)
{
    return (int)round(x);
}

static int at_least_0(int x)
{
    return x > 0 ? x : 0;
}

/* Widens a window by its surroundings, so that after resizing they are `pad` pixels on each side;
 * what would lie outside the picture is left out, and leaves room in the record. */
static void widen(const struct ls_labelled_windows *w, int height, int width, struct cut *cut)
{
    const double factor = (double)w->side / (w->side - 2 * w->pad);
    double half_height = (cut->y2 - cut->y1 + 1) / 2.0, half_width = (cut->x2 - cut->x1 + 1) / 2.0;
    const double x = cut->x1 + half_width, y = cut->y1 + half_height;
    if (w->square)
        half_height = half_width = half_height > half_width ? half_height : half_width;
    const int x1 = half_up(x - half_width * factor), x2 = half_up(x + half_width * factor);
    const int y1 = half_up(y - half_height * factor), y2 = half_up(y + half_height * factor);
    const double scale_x = (double)w->side / (x2 - x1 + 1);
    const double scale_y = (double)w->side / (y2 - y1 + 1);
    const int left = at_least_0(-x1), right = at_least_0(x2 - width + 1);
    const int top = at_least_0(-y1), bottom = at_least_0(y2 - height + 1);
    *cut = (struct cut){.x1 = x1 + left, .y1 = y1 + top, .x2 = x2 - right, .y2 = y2 - bottom};
    cut->width = half_up((cut->x2 - cut->x1 + 1) * scale_x);
    cut->height = half_up((cut->y2 - cut->y1 + 1) * scale_y);
    cut->left = half_up(left * scale_x);
    cut->top = half_up(top * scale_y);
    if (cut->left + cut->width > w->side) /* by rounding */
        cut->width = w->side - cut->left;
    if (cut->top + cut->height > w->side)
        cut->height = w->side - cut->top;
}

/* The pixels of a picture within a cut, in `buffer`. */
static const uint8_t *copy_pixels(const struct ls_picture *picture, const struct cut *cut,
                                  struct ls_buffer *buffer)
{
    const size_t row = (size_t)(cut->x2 - cut->x1 + 1) * LS_WINDOWS_CHANNELS;
    const size_t rows = (size_t)(cut->y2 - cut->y1 + 1);
    uint8_t *out = ls_buffer_reserve(buffer, rows, row);
    for (size_t i = 0; out != NULL && i < rows; i++)
        memcpy(out + i * row,
               picture->pixels +
                   ((size_t)(cut->y1 + (int)i) * (size_t)picture->width + (size_t)cut->x1) *
                       LS_WINDOWS_CHANNELS,
               row);
    return out;
}

/* Puts the resized pixels to their place, without the mean. */
static void place_pixels(const struct ls_labelled_windows *w, const struct cut *cut,
                         const uint8_t *pixels, float *out)
{
    const int64_t down = (w->mean_side[0] - w->side) / 2, across = (w->mean_side[1] - w->side) / 2;
    memset(out, 0, (size_t)LS_WINDOWS_CHANNELS * (size_t)w->side * (size_t)w->side * sizeof *out);
    for (int c = 0; c < LS_WINDOWS_CHANNELS; c++)
        for (int y = 0; y < cut->height; y++) {
            float *row = out + ((int64_t)c * w->side + cut->top + y) * w->side + cut->left;
            const float *mean =
                w->mean == NULL
                    ? NULL
                    : w->mean + (c * w->mean_side[0] + down + cut->top + y) * w->mean_side[1] +
                          across + cut->left;
            for (int x = 0; x < cut->width; x++)
                row[x] = (float)*pixels++ - (mean != NULL ? mean[x] : w->level[c]);
        }
}

int ls_windows_cut_out(struct ls_source_reader *reader, const struct ls_labelled_window *window,
                       const struct ls_picture *picture, struct ls_record *record,
                       struct ls_problem *problem)
{
    const struct ls_labelled_windows *w = reader->source->state;
    struct cut cut = {.x1 = window->x1,
                      .y1 = window->y1,
                      .x2 = window->x2,
                      .y2 = window->y2,
                      .height = w->side,
                      .width = w->side};
    if (w->pad > 0 || w->square)
        widen(w, picture->height, picture->width, &cut);
    if (cut.x1 < 0 || cut.y1 < 0 || cut.x2 >= picture->width || cut.y2 >= picture->height ||
        cut.x1 > cut.x2 || cut.y1 > cut.y2)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "its window (%d, %d) to (%d, %d) does not lie in the picture",
                              window->x1, window->y1, window->x2, window->y2);
    if (cut.height < 1 || cut.width < 1)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "nearly all of its window lies beyond the picture");
    const struct ls_picture part = {cut.y2 - cut.y1 + 1, cut.x2 - cut.x1 + 1, LS_WINDOWS_CHANNELS,
                                    copy_pixels(picture, &cut, &reader->map)};
    if (part.pixels == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    LS_TRY(ls_picture_resize_to_record(&part, cut.height, cut.width, false, &reader->record, record,
                                       problem));
    const int64_t shape[3] = {LS_WINDOWS_CHANNELS, w->side, w->side};
    float *out =
        ls_buffer_reserve(&reader->file, (size_t)(shape[0] * shape[1] * shape[2]), sizeof *out);
    if (out == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    place_pixels(w, &cut, record->tensor[0].data, out);
    ls_record_set_image(record, LS_F32, shape, out);
    return 0;
}
