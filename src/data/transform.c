/* Transformations; see the header for their order.
 *
 * Rows are loaded without mirroring, worked on, and turned around at the end: the inner loops run
 * over contiguous memory and compilers make vector code of them. This code runs beside the workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/transform.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/mean_file.h"
#include "schema/fields.h"

enum { DRAW_MIRROR, DRAW_TOP, DRAW_LEFT, DRAW_BRIGHTNESS, DRAW_CONTRAST };

/* ---- Checks ---- */

/* Fails at the place of a field. */
static int bad_field(const struct ls_transform_options *options, const char *field,
                     const char *hint, struct ls_error *error, const char *message)
{
    char place[LS_PLACE_MAX] = "";
    if (options->definition != NULL)
        ls_place(options->definition, options->param, field, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "layer '%.100s': %s", options->layer,
                   message);
}

static int check_geometry(const struct ls_transform_options *options, struct ls_transform *t,
                          struct ls_error *error)
{
    const Lockstep__TransformationParameter *p = options->param;
    if (p->crop_size > 65536)
        return bad_field(options, "crop_size", NULL, error, "crop_size is too large");
    if (p->pad > 4096)
        return bad_field(options, "pad", NULL, error, "pad is too large");
    t->crop = (int)p->crop_size;
    t->pad = (int)p->pad;
    t->reflect = p->pad_mode == LOCKSTEP__TRANSFORMATION_PARAMETER__PAD_MODE__REFLECT;
    int64_t height = options->record[1], width = options->record[2];
    if (t->pad > 0 && t->reflect && (t->pad >= height || t->pad >= width))
        return bad_field(options, "pad", NULL, error,
                         "a reflecting pad must be smaller than the records");
    t->varies = options->varies;
    t->label_pad = (float)options->label_pad;
    t->output[0] = options->record[0];
    t->output[1] = t->crop > 0 ? t->crop : height + 2 * t->pad;
    t->output[2] = t->crop > 0 ? t->crop : width + 2 * t->pad;
    if (!options->varies && (t->crop > height + 2 * t->pad || t->crop > width + 2 * t->pad)) {
        char message[160];
        snprintf(message, sizeof message,
                 "crop_size %d is larger than the records (%" PRId64 " x %" PRId64 "%s)", t->crop,
                 height + 2 * t->pad, width + 2 * t->pad, t->pad > 0 ? " with padding" : "");
        return bad_field(options, "crop_size", NULL, error, message);
    }
    if (!ls_record_shape_valid(t->output))
        return bad_field(options, "pad", NULL, error, "the padded records are too large");
    return 0;
}

static int check_numbers(const struct ls_transform_options *options, struct ls_transform *t,
                         struct ls_error *error)
{
    const Lockstep__TransformationParameter *p = options->param;
    int status = 0;
    if (!isfinite(p->scale))
        status = bad_field(options, "scale", NULL, error, "scale is not a finite number");
    if (!(p->brightness >= 0) || !isfinite(p->brightness))
        status = bad_field(options, "brightness", "it is the largest change, such as 63", error,
                           "brightness must be a finite number of at least 0");
    if (!(p->contrast_lower >= 0) || !(p->contrast_upper >= p->contrast_lower) ||
        !isfinite(p->contrast_upper))
        status = bad_field(options, p->has_contrast_lower ? "contrast_lower" : "contrast_upper",
                           "for example contrast_lower: 0.2 contrast_upper: 1.8", error,
                           "contrast_lower and contrast_upper must be 0 <= lower <= upper");
    t->scale = p->scale;
    t->mirror = p->mirror;
    t->standardize = p->standardize;
    t->brightness = p->brightness;
    t->contrast_lower = p->contrast_lower;
    t->contrast_upper = p->contrast_upper;
    return status;
}

static int open_mean(const struct ls_transform_options *options, struct ls_transform *t,
                     struct ls_error *error)
{
    const Lockstep__TransformationParameter *p = options->param;
    size_t channels = (size_t)options->record[0];
    if (p->mean_file != NULL && p->n_mean_value > 0)
        return bad_field(options, "mean_value", NULL, error,
                         "mean_file and mean_value cannot both be given");
    if (p->mean_file != NULL && options->varies)
        return bad_field(options, "mean_file", "give mean_value", error,
                         "mean_file needs records of one size, and these differ");
    if (p->mean_file != NULL) {
        char *path = ls_resolve_path(
            p->mean_file, options->definition != NULL ? options->definition->file : NULL);
        if (path == NULL)
            return ls_fail_memory(error, "a path");
        int status = ls_mean_read(path, options->record, &t->mean, error);
        ls_free(path);
        return status;
    }
    if (p->n_mean_value == 0)
        return 0;
    if (p->n_mean_value != 1 && p->n_mean_value != channels)
        return bad_field(options, "mean_value", NULL, error,
                         "give one mean_value, or as many as the records have channels");
    t->channel_mean = ls_alloc(channels, sizeof *t->channel_mean);
    if (t->channel_mean == NULL)
        return ls_fail_memory(error, "mean values");
    for (size_t c = 0; c < channels; c++) {
        t->channel_mean[c] = p->mean_value[p->n_mean_value == 1 ? 0 : c];
        if (!isfinite(t->channel_mean[c]))
            return bad_field(options, "mean_value", NULL, error, "mean_value is not finite");
    }
    return 0;
}

/* Transformations of forks, which would change pictures. */
static int check_forks(const struct ls_transform_options *options, struct ls_error *error)
{
    static const struct {
        const char *field, *hint;
    } forks[] = {
        {"resize_param", "new_height and new_width of data_param resize pictures of IMAGES; or "
                         "convert them with lockstep convert to one size"},
        {"noise_param", "leave it out"},
        {"crop_h", "crop_size is the side of a square; resize the pictures to the size of the net"},
        {"crop_w", "crop_size is the side of a square; resize the pictures to the size of the net"},
        {"distort_param", "brightness, contrast_lower and contrast_upper of transform_param"},
        {"expand_param", "pad of transform_param, with crop_size"},
        {"random_resize_param", "new_height and new_width of data_param, with crop_size"},
        {"random_aspect_ratio_param", "new_height and new_width of data_param, with crop_size"},
    };
    const ProtobufCMessage *message = &options->param->base;
    int status = 0;
    for (size_t i = 0; i < sizeof forks / sizeof forks[0]; i++) {
        char text[100];
        if (ls_field_count(message, ls_field_named(message->descriptor, forks[i].field)) == 0)
            continue;
        snprintf(text, sizeof text, "%s of forks of Caffe is not supported", forks[i].field);
        status = bad_field(options, forks[i].field, forks[i].hint, error, text);
    }
    return status;
}

int ls_transform_open(const struct ls_transform_options *options, struct ls_transform *transform,
                      struct ls_error *error)
{
    static const Lockstep__TransformationParameter plain = LOCKSTEP__TRANSFORMATION_PARAMETER__INIT;
    struct ls_transform_options o = *options;
    if (o.param == NULL)
        o.param = &plain;
    *transform = (struct ls_transform){.augment = o.augment};
    memcpy(transform->input, o.record, sizeof o.record);
    transform->key = ls_random_key(o.seed, LS_RANDOM_AUGMENT, o.layer);
    int status = check_geometry(&o, transform, error);
    int next = check_numbers(&o, transform, error);
    status = status != 0 ? status : next;
    next = check_forks(&o, error);
    status = status != 0 ? status : next;
    next = open_mean(&o, transform, error);
    return status != 0 ? status : next;
}

void ls_transform_free(struct ls_transform *transform)
{
    ls_free(transform->mean);
    ls_free(transform->channel_mean);
    transform->mean = NULL;
    transform->channel_mean = NULL;
}

/* ---- Loading rows ---- */

/* Where a sample lies in its record. Offsets are of the record without padding: they may be
 * negative. */
struct window {
    int64_t height, width; /* of the record */
    int64_t top, left;
    int64_t rows, columns; /* of the sample */
    bool reflect;
};

/* The picture goes on as a mirror image behind its border pixels: -1 is 1, size is size - 2. */
static int64_t reflected(int64_t i, int64_t size)
{
    return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

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
        y = reflected(y, w->height);
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
        load_span(plane, y * w->width + reflected(w->left + x, w->width), 1, out + x);
    for (int64_t x = to; x < w->columns; x++)
        load_span(plane, y * w->width + reflected(w->left + x, w->width), 1, out + x);
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
    return (part[0] + part[1]) + (part[2] + part[3]);
}

static double squares_around(const float *x, int64_t count, double mean)
{
    double part[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            part[k] += (x[i + k] - mean) * (x[i + k] - mean);
    for (; i < count; i++)
        part[0] += (x[i] - mean) * (x[i] - mean);
    return (part[0] + part[1]) + (part[2] + part[3]);
}

static void standardize(float *x, int64_t count)
{
    double mean = sum_of(x, count) / (double)count;
    double deviation = sqrt(squares_around(x, count, mean) / (double)count);
    double least = 1 / sqrt((double)count);
    float shift = (float)mean;
    float factor = (float)(1 / (deviation > least ? deviation : least));
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - shift) * factor;
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
            x[i] = (x[i] - mean) * jitter->contrast + mean;
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
            out[x] = (out[x] - mean[x]) * scale;
    } else if (t->channel_mean != NULL) {
        float mean = t->channel_mean[channel];
        for (int64_t x = 0; x < w->columns; x++)
            out[x] = (out[x] - mean) * scale;
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

/* Whether a record has a shape that this transformation can work on. */
static int check_record(const struct ls_transform *t, const int64_t record[3],
                        struct ls_problem *problem)
{
    const char *what = NULL;
    bool same = record[1] == t->input[1] && record[2] == t->input[2];
    if (record[0] != t->input[0])
        what = "it has another number of channels than the first record";
    else if (same)
        return 0;
    else if (t->crop == 0 && !t->varies)
        what = "it has another height or width than the first record, and there is no crop";
    else if (t->mean != NULL)
        what = "it has another height or width than the mean file";
    else if (record[1] + 2 * t->pad < t->crop || record[2] + 2 * t->pad < t->crop)
        what = "it is smaller than the crop";
    else if (t->reflect && (t->pad >= record[1] || t->pad >= record[2]))
        what = "it is smaller than the reflecting pad";
    return what == NULL ? 0 : ls_problem_set(problem, LOCKSTEP_DATA, NULL, "%s", what);
}

int ls_transform_shape(const struct ls_transform *t, const int64_t record[3], int64_t shape[3],
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

int ls_transform_apply(const struct ls_transform *t, const struct ls_record_tensor *image,
                       uint64_t ordinal, bool augment, struct ls_buffer *scratch, float *sample,
                       struct ls_problem *problem)
{
    int64_t shape[3];
    LS_TRY(ls_transform_shape(t, image->shape.dim, shape, problem));
    float *row = NULL;
    if (t->mean != NULL && t->pad > 0) {
        row = ls_buffer_reserve(scratch, (size_t)shape[2], sizeof *row);
        if (row == NULL)
            return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    }
    augment = augment && t->augment;
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
    const uint16_t *in = map + (w->reflect ? reflected(y, w->height) : outside ? 0 : y) * w->width;
    for (int64_t i = 0; i < w->columns; i++) {
        int64_t x = w->left + i;
        if (w->reflect)
            out[i] = in[reflected(x, w->width)];
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
