/* Pictures and boxes before they have the size of a sample; see the header.
 *
 * Places of pictures are whole pixels, and boxes follow those pixels. (SSD's fork takes boxes by
 * the numbers before they are cut to pixels: it differs by less than one.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/augment.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/annotation.h"
#include "data/part_sampler.h"

/* Numbers of draws; those below belong to data/transform.c. */
enum draw {
    DRAW_DISTORT = 8,
    DRAW_EXPAND = DRAW_DISTORT + LS_DISTORTION_DRAWS,
    DRAW_RATIO,
    DRAW_TOP,
    DRAW_LEFT,
    DRAW_FILTER,
    DRAW_PART = 32 /* and all behind it */
};

void ls_augment_free(struct ls_augment *augment)
{
    ls_part_sampler_free(augment->sampler);
    ls_free(augment->pad_value);
    ls_free(augment->fill_value);
    *augment = (struct ls_augment){0};
}

void ls_augment_room_free(struct ls_augment_room *room)
{
    ls_buffer_free(&room->row);
    ls_buffer_free(&room->boxes);
    ls_buffer_free(&room->colours);
    ls_buffer_free(&room->part);
    ls_buffer_free(&room->resized);
    ls_buffer_free(&room->scratch);
}

bool ls_augment_is_used(const struct ls_augment *a)
{
    return a->resizes || a->distorts || a->expands || a->sampler != NULL;
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static double kept(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* Whether emit_constraint lets a box stay. */
static bool stays(const struct ls_augment *a, const struct ls_rectangle *part,
                  const struct ls_rectangle *box)
{
    if (!a->constrained)
        return true;
    if (!a->overlaps) {
        const double x = (box->xmin + box->xmax) / 2, y = (box->ymin + box->ymax) / 2;
        return x >= part->xmin && x <= part->xmax && y >= part->ymin && y <= part->ymax;
    }
    const double left = box->xmin > part->xmin ? box->xmin : part->xmin;
    const double right = box->xmax < part->xmax ? box->xmax : part->xmax;
    const double top = box->ymin > part->ymin ? box->ymin : part->ymin;
    const double bottom = box->ymax < part->ymax ? box->ymax : part->ymax;
    const double size = (box->xmax - box->xmin) * (box->ymax - box->ymin);
    const double shared = right > left && bottom > top ? (right - left) * (bottom - top) : 0;
    return size > 0 && shared / size > (double)a->emit_overlap;
}

/* A box in sizes of the part; false: nothing of it is left. */
static bool take_box(const struct ls_rectangle *part, const struct ls_rectangle *box,
                     struct ls_rectangle *out)
{
    const double width = part->xmax - part->xmin, height = part->ymax - part->ymin;
    *out = (struct ls_rectangle){
        kept((box->xmin - part->xmin) / width), kept((box->ymin - part->ymin) / height),
        kept((box->xmax - part->xmin) / width), kept((box->ymax - part->ymin) / height)};
    return out->xmax > out->xmin && out->ymax > out->ymin;
}

static struct ls_rectangle box_of(const float *row)
{
    return (struct ls_rectangle){(double)row[3], (double)row[4], (double)row[5], (double)row[6]};
}

/* fp32 may not have the difference of two numbers that double has. */
static bool put_box(const struct ls_rectangle *box, float *row)
{
    row[3] = (float)box->xmin;
    row[4] = (float)box->ymin;
    row[5] = (float)box->xmax;
    row[6] = (float)box->ymax;
    return row[5] > row[3] && row[6] > row[4];
}

int64_t ls_augment_take_part(const struct ls_augment *a, const struct ls_rectangle *part,
                             float *boxes, int64_t count)
{
    int64_t left = 0;
    for (int64_t i = 0; i < count; i++) {
        const float *from = boxes + LS_BOX_NUMBERS * i;
        float *to = boxes + LS_BOX_NUMBERS * left;
        const struct ls_rectangle box = box_of(from);
        struct ls_rectangle taken;
        if (!stays(a, part, &box) || !take_box(part, &box, &taken))
            continue;
        memmove(to, from, LS_BOX_NUMBERS * sizeof *to);
        left += put_box(&taken, to);
    }
    return left;
}

/* Where boxes are when the picture is resized and padded. */
static void pad_boxes(const struct ls_sample_view *v, float *boxes, int64_t count)
{
    const double height = (double)v->out_height, width = (double)v->out_width;
    for (int64_t i = 0; i < count; i++) {
        float *row = boxes + LS_BOX_NUMBERS * i;
        struct ls_rectangle box = box_of(row);
        box.xmin = ((double)v->out_left + box.xmin * (double)v->scaled_width) / width;
        box.xmax = ((double)v->out_left + box.xmax * (double)v->scaled_width) / width;
        box.ymin = ((double)v->out_top + box.ymin * (double)v->scaled_height) / height;
        box.ymax = ((double)v->out_top + box.ymax * (double)v->scaled_height) / height;
        (void)put_box(&box, row);
    }
}

/* ---- What becomes of a picture --------------------------------------------------------------- */

/* n x numerator / denominator, cut to a whole number of at least 1. */
static int64_t cut(int64_t n, int64_t numerator, int64_t denominator)
{
    const int64_t x = n * numerator / denominator;
    return x < 1 ? 1 : x;
}

/* What a picture of these sides is resized to. */
static void place_resized(const struct ls_augment *a, int64_t height, int64_t width,
                          struct ls_sample_view *v)
{
    v->out_top = v->out_left = 0;
    v->scaled_height = a->resizes ? a->height : height;
    v->scaled_width = a->resizes ? a->width : width;
    const int64_t across = width * a->height, asked = a->width * height;
    if (a->pads ? across > asked : a->shortest && across < asked)
        v->scaled_height = cut(a->width, height, width); /* the width is as asked */
    else if (a->pads || a->shortest)
        v->scaled_width = cut(a->height, width, height);
    v->out_height = a->pads ? a->height : v->scaled_height;
    v->out_width = a->pads ? a->width : v->scaled_width;
    v->out_top = (v->out_height - v->scaled_height) / 2;
    v->out_left = (v->out_width - v->scaled_width) / 2;
}

void ls_augment_shape(const struct ls_augment *a, const int64_t record[3], int64_t shape[3])
{
    struct ls_sample_view v;
    place_resized(a, record[1], record[2], &v);
    shape[0] = record[0];
    shape[1] = v.out_height;
    shape[2] = v.out_width;
}

/* Puts the picture on a larger canvas. One that would be too large for a record stays away. */
static bool expand(const struct ls_augment *a, uint64_t key, uint64_t ordinal, int64_t channels,
                   struct ls_sample_view *v)
{
    if (!a->expands || !(ls_random_uniform(key, ordinal, DRAW_EXPAND) < a->expand_probability))
        return false;
    const double ratio =
        1 + (double)ls_random_uniform(key, ordinal, DRAW_RATIO) * ((double)a->expand_most - 1);
    const int64_t height = (int64_t)((double)v->height * ratio);
    const int64_t width = (int64_t)((double)v->width * ratio);
    if (!ls_record_shape_valid((const int64_t[]){channels, height, width}))
        return false;
    v->canvas_height = v->rows = height;
    v->canvas_width = v->columns = width;
    v->top = ls_random_below(key, ordinal, DRAW_TOP, (uint32_t)(height - v->height) + 1);
    v->left = ls_random_below(key, ordinal, DRAW_LEFT, (uint32_t)(width - v->width) + 1);
    return true;
}

/* The canvas in sizes of the picture. */
static struct ls_rectangle canvas_of(const struct ls_sample_view *v)
{
    const double height = (double)v->height, width = (double)v->width;
    return (struct ls_rectangle){-(double)v->left / width, -(double)v->top / height,
                                 (double)(v->canvas_width - v->left) / width,
                                 (double)(v->canvas_height - v->top) / height};
}

/* A part of the canvas as whole pixels, and as a box again. */
static struct ls_rectangle take_pixels(const struct ls_rectangle *part, struct ls_sample_view *v)
{
    const double height = (double)v->canvas_height, width = (double)v->canvas_width;
    v->y = (int64_t)(part->ymin * height);
    v->x = (int64_t)(part->xmin * width);
    v->rows = (int64_t)((part->ymax - part->ymin) * height);
    v->columns = (int64_t)((part->xmax - part->xmin) * width);
    v->y = v->y < v->canvas_height ? v->y : v->canvas_height - 1;
    v->x = v->x < v->canvas_width ? v->x : v->canvas_width - 1;
    v->rows = v->rows < 1 ? 1 : v->rows;
    v->columns = v->columns < 1 ? 1 : v->columns;
    if (v->rows > v->canvas_height - v->y)
        v->rows = v->canvas_height - v->y;
    if (v->columns > v->canvas_width - v->x)
        v->columns = v->canvas_width - v->x;
    return (struct ls_rectangle){(double)v->x / width, (double)v->y / height,
                                 (double)(v->x + v->columns) / width,
                                 (double)(v->y + v->rows) / height};
}

void ls_augment_draw(const struct ls_augment *a, uint64_t key, uint64_t ordinal, bool random,
                     const int64_t record[3], const float *row, int64_t rows,
                     struct ls_sample_view *v, float *boxes, int64_t *count)
{
    *v = (struct ls_sample_view){.height = record[1],
                                 .width = record[2],
                                 .canvas_height = record[1],
                                 .canvas_width = record[2],
                                 .rows = record[1],
                                 .columns = record[2],
                                 .filter = a->filters > 0 ? a->filter[0] : LS_FILTER_LINEAR};
    *count = rows > 0 ? ls_annotation_count(row, rows) : 0;
    if (*count > 0)
        memcpy(boxes, row, (size_t)*count * LS_BOX_NUMBERS * sizeof *boxes);
    if (random && expand(a, key, ordinal, record[0], v)) {
        const struct ls_rectangle canvas = canvas_of(v);
        *count = ls_augment_take_part(a, &canvas, boxes, *count);
    }
    struct ls_rectangle part;
    if (random && a->sampler != NULL &&
        ls_part_sampler_draw(a->sampler, key, ordinal, DRAW_PART, boxes, *count, &part)) {
        part = take_pixels(&part, v);
        *count = ls_augment_take_part(a, &part, boxes, *count);
    }
    if (random && a->filters > 1)
        v->filter = a->filter[ls_random_below(key, ordinal, DRAW_FILTER, (uint32_t)a->filters)];
    place_resized(a, v->rows, v->columns, v);
    if (a->pads)
        pad_boxes(v, boxes, *count);
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

static int no_memory(struct ls_problem *problem)
{
    return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
}

/* Columns [from, to) of a row of the canvas are the picture's. */
static void copy_row(const struct ls_sample_view *v, const uint8_t *plane, int64_t y, uint8_t fill,
                     uint8_t *out)
{
    const int64_t at = v->y + y - v->top, shift = v->left - v->x;
    int64_t from = shift < 0 ? 0 : shift, to = shift + v->width;
    to = to < v->columns ? to : v->columns;
    if (at < 0 || at >= v->height || from >= to) {
        memset(out, fill, (size_t)v->columns);
        return;
    }
    memset(out, fill, (size_t)from);
    memcpy(out + from, plane + at * v->width + from - shift, (size_t)(to - from));
    memset(out + to, fill, (size_t)(v->columns - to));
}

/* Takes the part of the canvas. */
static int take_part(const struct ls_augment *a, const struct ls_sample_view *v,
                     struct ls_buffer *buffer, struct ls_pixel_planes *p,
                     struct ls_problem *problem)
{
    if (v->rows == v->height && v->columns == v->width && v->y == v->top && v->x == v->left)
        return 0;
    uint8_t *out = ls_buffer_reserve(buffer, (size_t)(p->count * v->rows * v->columns), 1);
    if (out == NULL)
        return no_memory(problem);
    const uint8_t *pixels = out;
    for (int64_t c = 0; c < p->count; c++)
        for (int64_t y = 0; y < v->rows; y++, out += v->columns)
            copy_row(v, p->pixels + c * v->height * v->width, y,
                     a->fill_value != NULL ? a->fill_value[c] : 0, out);
    *p = (struct ls_pixel_planes){p->count, v->rows, v->columns, pixels};
    return 0;
}

/* The pixel of a side of `size` that stands at `i`, which may lie outside. */
static int64_t neighbour(const struct ls_augment *a, int64_t i, int64_t size)
{
    if (a->pad_mode == LOCKSTEP__RESIZE_PARAMETER__PAD_MODE__REPEAT_NEAREST || size == 1)
        return i < 0 ? 0 : i >= size ? size - 1 : i;
    while (i < 0 || i >= size) /* mirrored again and again at the border pixels */
        i = i < 0 ? -i : 2 * (size - 1) - i;
    return i;
}

/* Puts the resized planes of `scaled` into those of `out`. */
static void pad_planes(const struct ls_augment *a, const struct ls_sample_view *v, int64_t count,
                       const uint8_t *scaled, uint8_t *out)
{
    const bool constant = a->pad_mode == LOCKSTEP__RESIZE_PARAMETER__PAD_MODE__CONSTANT;
    for (int64_t c = 0; c < count; c++, scaled += v->scaled_height * v->scaled_width)
        for (int64_t y = 0; y < v->out_height; y++)
            for (int64_t x = 0; x < v->out_width; x++, out++) {
                int64_t i = y - v->out_top, k = x - v->out_left;
                const bool outside =
                    i < 0 || i >= v->scaled_height || k < 0 || k >= v->scaled_width;
                if (outside && constant) {
                    *out = a->pad_value != NULL ? a->pad_value[c] : 0;
                    continue;
                }
                i = neighbour(a, i, v->scaled_height);
                k = neighbour(a, k, v->scaled_width);
                *out = scaled[i * v->scaled_width + k];
            }
}

static int resize(const struct ls_augment *a, const struct ls_sample_view *v,
                  struct ls_augment_room *room, struct ls_pixel_planes *p,
                  struct ls_problem *problem)
{
    if (v->scaled_height != p->height || v->scaled_width != p->width) {
        const size_t size = (size_t)(p->count * v->scaled_height * v->scaled_width);
        uint8_t *out = ls_buffer_reserve(&room->resized, size, 1);
        if (out == NULL)
            return no_memory(problem);
        LS_TRY(ls_resample(p, v->filter, v->scaled_height, v->scaled_width, &room->scratch, out,
                           problem));
        *p = (struct ls_pixel_planes){p->count, v->scaled_height, v->scaled_width, out};
    }
    if (v->out_height == p->height && v->out_width == p->width)
        return 0;
    /* The part that was resized is not needed any more. */
    struct ls_buffer *buffer = p->pixels == room->part.data ? &room->resized : &room->part;
    uint8_t *out = ls_buffer_reserve(buffer, (size_t)(p->count * v->out_height * v->out_width), 1);
    if (out == NULL)
        return no_memory(problem);
    pad_planes(a, v, p->count, p->pixels, out);
    *p = (struct ls_pixel_planes){p->count, v->out_height, v->out_width, out};
    return 0;
}

static int distort(const struct ls_augment *a, uint64_t key, uint64_t ordinal,
                   struct ls_buffer *buffer, struct ls_pixel_planes *p, struct ls_problem *problem)
{
    const struct ls_distortion drawn =
        ls_distortion_draw(&a->distortion, key, ordinal, DRAW_DISTORT);
    const int64_t size = p->height * p->width;
    if (!ls_distortion_changes(&drawn))
        return 0;
    uint8_t *copy = ls_buffer_reserve(buffer, (size_t)(p->count * size), 1);
    if (copy == NULL)
        return no_memory(problem);
    memcpy(copy, p->pixels, (size_t)(p->count * size));
    ls_distortion_apply(&drawn, p->count, size, copy);
    p->pixels = copy;
    return 0;
}

int ls_augment_picture(const struct ls_augment *a, uint64_t key, uint64_t ordinal, bool random,
                       const struct ls_record_tensor *image, const struct ls_sample_view *view,
                       struct ls_augment_room *room, struct ls_record_tensor *out,
                       struct ls_problem *problem)
{
    *out = *image;
    if (!ls_augment_is_used(a))
        return 0;
    if (image->type != LS_U8)
        return ls_problem_set(problem, LOCKSTEP_DATA,
                              "leave resize_param, distort_param and expand_param out",
                              "its numbers are not of 8 bits, and cannot be resized");
    const int64_t *shape = image->shape.dim;
    if (!ls_record_shape_valid((const int64_t[]){shape[0], view->out_height, view->out_width}) ||
        !ls_record_shape_valid(
            (const int64_t[]){shape[0], view->scaled_height, view->scaled_width}))
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL, "it is too large when it is resized");
    struct ls_pixel_planes p = {shape[0], shape[1], shape[2], image->data};
    if (random && a->distorts)
        LS_TRY(distort(a, key, ordinal, &room->colours, &p, problem));
    LS_TRY(take_part(a, view, &room->part, &p, problem));
    LS_TRY(resize(a, view, room, &p, problem));
    out->shape.dim[1] = p.height;
    out->shape.dim[2] = p.width;
    out->data = p.pixels;
    return 0;
}
