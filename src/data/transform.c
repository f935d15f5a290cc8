/* Transformations; see the header for their order.
 *
 * Rows are loaded without mirroring, worked on, and turned around at the end: the inner loops run
 * over contiguous memory and compilers make vector code of them. This code runs beside the workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/transform.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/annotation.h"

enum { DRAW_MIRROR, DRAW_TOP, DRAW_LEFT, DRAW_BRIGHTNESS, DRAW_CONTRAST };

/* ---- Loading rows ---- */

/* Where a sample lies in its record. Offsets are of the record without padding: they may be
 * negative. */
struct window {
    int64_t height, width; /* of the record */
    int64_t top, left;
    int64_t rows, columns; /* of the sample */
    bool reflect;
};

/* A plane of either type. */
struct plane {
    const uint8_t *bytes;
    const float *floats;
};

static void load_span(const struct plane *plane, int64_t offset, int64_t count, float *out)
{
    if (plane->bytes != NULL) {
        const uint8_t *in = plane->bytes + offset;
        for (int64_t i = 0; i < count; i++)
            out[i] = in[i];
    } else {
        LS_ASSERT(plane->floats != NULL);
        memcpy(out, plane->floats + offset, (size_t)count * sizeof *out);
    }
}

static void load_row(const struct plane *plane, const struct window *w, int64_t row, float *out)
{
    int64_t y = w->top + row;
    if (y < 0 || y >= w->height) {
        if (!w->reflect) {
            memset(out, 0, (size_t)w->columns * sizeof *out);
            return;
        }
        y = ls_sample_reflected(y, w->height);
    }
    int64_t from = w->left < 0 ? -w->left : 0; /* columns [from, to) lie in the record */
    int64_t to = w->width - w->left < w->columns ? w->width - w->left : w->columns;
    from = from < w->columns ? from : w->columns;
    to = to > from ? to : from;
    if (from < to)
        load_span(plane, y * w->width + w->left + from, to - from, out + from);
    for (int64_t x = 0; x < from; x++)
        out[x] = 0;
    for (int64_t x = to; x < w->columns; x++)
        out[x] = 0;
    if (!w->reflect)
        return;
    for (int64_t x = 0; x < from; x++)
        load_span(plane, y * w->width + ls_sample_reflected(w->left + x, w->width), 1, out + x);
    for (int64_t x = to; x < w->columns; x++)
        load_span(plane, y * w->width + ls_sample_reflected(w->left + x, w->width), 1, out + x);
}

/* ---- Numbers ---- */

/* In four parts, so that additions overlap; the order is fixed. */
static double sum_of(const float *x, int64_t count)
{
    double part[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            part[k] += x[i + k];
    for (; i < count; i++)
        part[0] += x[i];
    return ls_sample_sum(part);
}

static double squares_around(const float *x, int64_t count, double mean)
{
    double part[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            part[k] += ls_sample_square(x[i + k], mean);
    for (; i < count; i++)
        part[0] += ls_sample_square(x[i], mean);
    return ls_sample_sum(part);
}

static void standardize(float *x, int64_t count)
{
    double mean = sum_of(x, count) / (double)count;
    double deviation = sqrt(squares_around(x, count, mean) / (double)count);
    double least = 1 / sqrt((double)count);
    float shift = (float)mean;
    float factor = ls_sample_factor(deviation, least);
    for (int64_t i = 0; i < count; i++)
        x[i] = ls_sample_centred(x[i], shift, factor);
}

/* What the random draws of a sample came to. */
struct jitter {
    bool mirror;
    float brightness, contrast; /* 0 and 1: none */
};

static void change_light(const struct jitter *jitter, float *x, int64_t count)
{
    if (jitter->brightness != 0)
        for (int64_t i = 0; i < count; i++)
            x[i] += jitter->brightness;
    if (jitter->contrast != 1) {
        float mean = (float)(sum_of(x, count) / (double)count);
        for (int64_t i = 0; i < count; i++)
            x[i] = ls_sample_contrast(x[i], mean, jitter->contrast);
    }
}

static void turn_row(float *row, int64_t columns)
{
    for (int64_t a = 0, b = columns - 1; a < b; a++, b--) {
        float other = row[a];
        row[a] = row[b];
        row[b] = other;
    }
}

/* ---- A sample ---- */

static void subtract_mean(const struct ls_transform *t, const struct window *w, int64_t channel,
                          int64_t row, float *scratch, float *out)
{
    float scale = t->scale;
    if (t->mean != NULL) {
        const float *picture = t->mean + channel * w->height * w->width;
        const float *mean = scratch;
        if (t->pad == 0)
            mean = picture + (w->top + row) * w->width + w->left;
        else
            load_row(&(struct plane){.floats = picture}, w, row, scratch);
        for (int64_t x = 0; x < w->columns; x++)
            out[x] = ls_sample_centred(out[x], mean[x], scale);
    } else if (t->channel_mean != NULL) {
        float mean = t->channel_mean[channel];
        for (int64_t x = 0; x < w->columns; x++)
            out[x] = ls_sample_centred(out[x], mean, scale);
    } else if (scale != 1) {
        for (int64_t x = 0; x < w->columns; x++)
            out[x] *= scale;
    }
}

static void make_channel(const struct ls_transform *t, const struct ls_record_tensor *image,
                         const struct window *w, const struct jitter *jitter, int64_t channel,
                         float *scratch, float *out)
{
    int64_t plane_size = w->height * w->width;
    struct plane plane = {0};
    if (image->type == LS_U8)
        plane.bytes = (const uint8_t *)image->data + channel * plane_size;
    else
        plane.floats = (const float *)image->data + channel * plane_size;
    for (int64_t row = 0; row < w->rows; row++)
        load_row(&plane, w, row, out + row * w->columns);
    change_light(jitter, out, w->rows * w->columns);
    for (int64_t row = 0; row < w->rows; row++) {
        subtract_mean(t, w, channel, row, scratch, out + row * w->columns);
        if (jitter->mirror)
            turn_row(out + row * w->columns, w->columns);
    }
}

static struct window place_window(const struct ls_transform *t, const int64_t record[3],
                                  const int64_t shape[3], uint64_t ordinal, bool augment)
{
    struct window w = {.height = record[1],
                       .width = record[2],
                       .rows = shape[1],
                       .columns = shape[2],
                       .reflect = t->reflect};
    int64_t room_y = w.height + 2 * t->pad - w.rows;
    int64_t room_x = w.width + 2 * t->pad - w.columns;
    w.top = room_y / 2;
    w.left = room_x / 2;
    const int corner = (t->view - 1) % (LS_VIEWS / 2);
    if (t->view > 0 && corner < LS_VIEWS / 2 - 1) {
        w.top = corner < 2 ? 0 : room_y;
        w.left = corner % 2 == 0 ? 0 : room_x;
    }
    if (augment && t->crop > 0) {
        w.top = ls_random_below(t->key, ordinal, DRAW_TOP, (uint32_t)room_y + 1);
        w.left = ls_random_below(t->key, ordinal, DRAW_LEFT, (uint32_t)room_x + 1);
    }
    w.top -= t->pad;
    w.left -= t->pad;
    return w;
}

static struct jitter draw_jitter(const struct ls_transform *t, uint64_t ordinal, bool augment)
{
    struct jitter jitter = {.contrast = 1, .mirror = t->view > LS_VIEWS / 2};
    if (!augment)
        return jitter;
    jitter.mirror = t->mirror && ls_random_below(t->key, ordinal, DRAW_MIRROR, 2) == 1;
    if (t->brightness > 0)
        jitter.brightness =
            (2 * ls_random_uniform(t->key, ordinal, DRAW_BRIGHTNESS) - 1) * t->brightness;
    if (t->contrast_lower != 1 || t->contrast_upper != 1)
        jitter.contrast = t->contrast_lower + ls_random_uniform(t->key, ordinal, DRAW_CONTRAST) *
                                                  (t->contrast_upper - t->contrast_lower);
    return jitter;
}

bool ls_transform_has_recipe(const struct ls_transform *t)
{
    return !ls_augment_is_used(&t->before) && !t->varies;
}

void ls_transform_recipe(const struct ls_transform *t, bool floats, struct ls_sample_recipe *recipe)
{
    const size_t numbers = (size_t)(t->input[0] * t->input[1] * t->input[2]);
    *recipe =
        (struct ls_sample_recipe){.record_bytes = numbers * ls_dtype_size(floats ? LS_F32 : LS_U8),
                                  .image = true,
                                  .floats = floats,
                                  .channels = (int32_t)t->input[0],
                                  .height = (int32_t)t->input[1],
                                  .width = (int32_t)t->input[2],
                                  .rows = (int32_t)t->output[1],
                                  .columns = (int32_t)t->output[2],
                                  .padded = t->pad > 0,
                                  .reflect = t->reflect,
                                  .standardize = t->standardize,
                                  .has_mean = t->mean != NULL,
                                  .has_channel_mean = t->channel_mean != NULL,
                                  .scale = t->scale};
}

void ls_transform_draw(const struct ls_transform *t, uint64_t ordinal, struct ls_sample_draw *draw)
{
    const struct window window = place_window(t, t->input, t->output, ordinal, t->augment);
    const struct jitter jitter = draw_jitter(t, ordinal, t->augment);
    draw->top = (int32_t)window.top;
    draw->left = (int32_t)window.left;
    draw->mirror = jitter.mirror;
    draw->brightness = jitter.brightness;
    draw->contrast = jitter.contrast;
}

/* Whether a record has a shape that this transformation can work on. */
static int check_record(const struct ls_transform *t, const int64_t record[3],
                        struct ls_problem *problem)
{
    const char *what = NULL;
    bool same = record[1] == t->input[1] && record[2] == t->input[2];
    if (record[0] != t->input[0])
        what = "it has another number of channels than the first record";
    else if (!same && t->crop == 0 && !t->varies)
        what = "it has another height or width than the first record, and there is no crop";
    else if (!same && t->mean != NULL)
        what = "it has another height or width than the mean file";
    else if (record[1] + 2 * t->pad < t->crop || record[2] + 2 * t->pad < t->crop)
        what = "it is smaller than the crop";
    else if (t->reflect && (t->pad >= record[1] || t->pad >= record[2]))
        what = "it is smaller than the reflecting pad";
    return what == NULL ? 0 : ls_problem_set(problem, LOCKSTEP_DATA, NULL, "%s", what);
}

/* The shape that a picture becomes of this shape, after what comes first. */
static int shape_behind(const struct ls_transform *t, const int64_t record[3], int64_t shape[3],
                        struct ls_problem *problem)
{
    LS_TRY(check_record(t, record, problem));
    memcpy(shape, t->output, sizeof t->output);
    if (t->crop > 0 || !t->varies)
        return 0;
    shape[1] = record[1] + 2 * t->pad;
    shape[2] = record[2] + 2 * t->pad;
    return ls_record_shape_valid(shape)
               ? 0
               : ls_problem_set(problem, LOCKSTEP_DATA, NULL, "it is too large with its padding");
}

int ls_transform_shape(const struct ls_transform *t, const int64_t record[3], int64_t shape[3],
                       struct ls_problem *problem)
{
    int64_t resized[3];
    ls_augment_shape(&t->before, record, resized);
    return shape_behind(t, resized, shape, problem);
}

/* What becomes of a picture first, and of its boxes; room->boxes has the latter. */
static int draw_view(const struct ls_transform *t, const struct ls_record_tensor *image,
                     const struct ls_record_tensor *boxes, uint64_t ordinal, bool augment,
                     struct ls_buffer *buffer, struct ls_sample_view *view,
                     struct ls_problem *problem)
{
    const int64_t rows = boxes != NULL ? ls_tensor_numbers(boxes) / LS_BOX_NUMBERS : 0;
    float *left = ls_buffer_reserve(buffer, (size_t)rows * LS_BOX_NUMBERS, sizeof *left);
    int64_t count;
    if (left == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    ls_augment_draw(&t->before, t->key, ordinal, augment, image->shape.dim,
                    boxes != NULL ? boxes->data : NULL, rows, view, left, &count);
    return 0;
}

int ls_transform_apply(const struct ls_transform *t, const struct ls_record_tensor *record,
                       const struct ls_record_tensor *boxes, uint64_t ordinal, bool augment,
                       struct ls_augment_room *room, float *sample, struct ls_problem *problem)
{
    struct ls_record_tensor made = *record;
    const struct ls_record_tensor *image = record;
    int64_t shape[3];
    augment = augment && t->augment;
    if (ls_augment_is_used(&t->before)) {
        struct ls_sample_view view;
        LS_TRY(draw_view(t, record, boxes, ordinal, augment, &room->boxes, &view, problem));
        LS_TRY(ls_augment_picture(&t->before, t->key, ordinal, augment, record, &view, room, &made,
                                  problem));
        image = &made;
    }
    LS_TRY(shape_behind(t, image->shape.dim, shape, problem));
    float *row = NULL;
    if (t->mean != NULL && t->pad > 0) {
        row = ls_buffer_reserve(&room->row, (size_t)shape[2], sizeof *row);
        if (row == NULL)
            return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    }
    struct window window = place_window(t, image->shape.dim, shape, ordinal, augment);
    struct jitter jitter = draw_jitter(t, ordinal, augment);
    int64_t size = shape[1] * shape[2];
    for (int64_t c = 0; c < shape[0]; c++)
        make_channel(t, image, &window, &jitter, c, row, sample + c * size);
    if (t->standardize)
        standardize(sample, shape[0] * size);
    return 0;
}

/* ---- A label map ---- */

static void load_labels(const uint16_t *map, const struct window *w, int64_t row, float pad,
                        float *out)
{
    int64_t y = w->top + row;
    bool outside = y < 0 || y >= w->height;
    const uint16_t *in = map + (w->reflect ? ls_sample_reflected(y, w->height)
                                : outside  ? 0
                                           : y) *
                                   w->width;
    for (int64_t i = 0; i < w->columns; i++) {
        int64_t x = w->left + i;
        if (w->reflect)
            out[i] = in[ls_sample_reflected(x, w->width)];
        else
            out[i] = outside || x < 0 || x >= w->width ? pad : (float)in[x];
    }
}

int ls_transform_map(const struct ls_transform *t, const struct ls_record_tensor *map,
                     uint64_t ordinal, bool augment, float *out, struct ls_problem *problem)
{
    const int64_t image[3] = {t->input[0], map->shape.dim[1], map->shape.dim[2]};
    int64_t shape[3];
    LS_TRY(ls_transform_shape(t, image, shape, problem));
    augment = augment && t->augment;
    struct window w = place_window(t, image, shape, ordinal, augment);
    struct jitter jitter = draw_jitter(t, ordinal, augment);
    for (int64_t row = 0; row < w.rows; row++) {
        load_labels(map->data, &w, row, t->label_pad, out + row * w.columns);
        if (jitter.mirror)
            turn_row(out + row * w.columns, w.columns);
    }
    return 0;
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static void turn_boxes(float *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++, row += LS_BOX_NUMBERS) {
        const float xmin = row[3];
        row[3] = 1 - row[5];
        row[5] = 1 - xmin;
    }
}

int ls_transform_boxes(const struct ls_transform *t, const struct ls_record_tensor *image,
                       const struct ls_record_tensor *boxes, uint64_t ordinal, bool augment,
                       float item, float *out, struct ls_problem *problem)
{
    const int64_t rows = ls_tensor_numbers(boxes) / LS_BOX_NUMBERS;
    struct ls_sample_view view;
    int64_t count, shape[3];
    augment = augment && t->augment;
    ls_augment_draw(&t->before, t->key, ordinal, augment, image->shape.dim, boxes->data, rows,
                    &view, out, &count);
    const int64_t resized[3] = {image->shape.dim[0], view.out_height, view.out_width};
    LS_TRY(shape_behind(t, resized, shape, problem));
    const struct window w = place_window(t, resized, shape, ordinal, augment);
    const double height = (double)w.height, width = (double)w.width;
    const struct ls_rectangle part = {(double)w.left / width, (double)w.top / height,
                                      (double)(w.left + w.columns) / width,
                                      (double)(w.top + w.rows) / height};
    count = ls_augment_take_part(&t->before, &part, out, count);
    if (draw_jitter(t, ordinal, augment).mirror)
        turn_boxes(out, count);
    for (int64_t i = 0; i < count; i++)
        out[LS_BOX_NUMBERS * i] = item;
    ls_annotation_clear(rows - count, out + LS_BOX_NUMBERS * count);
    return 0;
}
