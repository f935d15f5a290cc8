/* Source SYNTHETIC: digits that are drawn when they are read, each by its index alone.
 *
 * A digit's strokes (glyphs.c) go through a random quadratic warp, which bends them a little, and a
 * random affine map: size, aspect, slant, rotation, place. They are drawn with a pen of random
 * width; random noise is added. White on black, 28 x 28 unless asked otherwise, much as MNIST. With
 * several channels, ink and paper have random levels in each.
 *
 * All numbers come from Philox with (key of the seed, index of the sample); the arithmetic is +, -,
 * *, / and square roots in double, which have the same bits on every machine.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/glyphs.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

enum {
    PIECES = 5,       /* straight pieces between two points of a curve */
    NOISE_DRAWS = 256 /* number of the first draw for noise; those before are for shapes */
};

struct synthetic_options {
    int64_t count, channels, height, width;
    uint64_t first, seed;
    double noise;
};

static const struct ls_option options_table[] = {
    {.name = "synthetic_param.count",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct synthetic_options, count),
     .fallback = 60000,
     .least = 1,
     .most = UINT32_MAX,
     .help = "records in the set"},
    {.name = "synthetic_param.height",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct synthetic_options, height),
     .fallback = 28,
     .least = 8,
     .most = 65536,
     .help = "of a picture, in pixels"},
    {.name = "synthetic_param.width",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct synthetic_options, width),
     .fallback = 28,
     .least = 8,
     .most = 65536,
     .help = "of a picture, in pixels"},
    {.name = "synthetic_param.channels",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct synthetic_options, channels),
     .fallback = 1,
     .least = 1,
     .most = 64,
     .help = "of a picture; with several, ink and paper have random levels in each"},
    {.name = "synthetic_param.noise",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct synthetic_options, noise),
     .fallback = 16,
     .least = 0,
     .most = 1000,
     .help = "standard deviation, in units of pixels 0..255"},
    {.name = "synthetic_param.first",
     .kind = LS_OPTION_UNSIGNED,
     .offset = offsetof(struct synthetic_options, first),
     .help = "number of the first drawing, so that sets can have none in common"},
    {.name = "synthetic_param.seed",
     .kind = LS_OPTION_UNSIGNED,
     .offset = offsetof(struct synthetic_options, seed),
     .fallback = 1,
     .help = "another seed gives other drawings"},
    {.name = NULL}};

/* Records of the test phase begin this far behind those of the train phase. */
static const uint64_t TEST_OFFSET = UINT64_C(1) << 40;

struct synthetic {
    uint64_t key;
    uint64_t first;
    double noise; /* standard deviation, pixels 0..255 */
};

/* The random numbers of one sample, one after the other. */
struct draws {
    uint64_t key, sample, next;
};

static double uniform(struct draws *draws, double low, double high)
{
    double u = (double)ls_random_u32(draws->key, draws->sample, draws->next++) * 0x1p-32;
    return low + (high - low) * u;
}

/* From the box of the glyph to pixels. */
struct warp {
    double bend[2][3];   /* of u^2, u v, v^2 in u and v, around the middle */
    double affine[2][3]; /* x and y in pixels from u, v, 1 */
};

static struct warp draw_warp(struct draws *draws, const int64_t shape[3])
{
    struct warp w;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            w.bend[i][j] = uniform(draws, -0.22, 0.22);
    double side = (double)(shape[1] < shape[2] ? shape[1] : shape[2]);
    double size = side * uniform(draws, 0.56, 0.76);
    double aspect = uniform(draws, 0.68, 1.02);
    double slant = uniform(draws, -0.32, 0.22); /* most people lean to the right */
    /* With t = tan(angle / 2): cos = (1 - t^2) / (1 + t^2), sin = 2 t / (1 + t^2). */
    double t = uniform(draws, -0.12, 0.12);
    double cosine = (1 - t * t) / (1 + t * t);
    double sine = 2 * t / (1 + t * t);
    double a = size * aspect, b = size * slant, d = size; /* upper triangle: aspect and slant */
    w.affine[0][0] = cosine * a;
    w.affine[0][1] = cosine * b - sine * d;
    w.affine[1][0] = sine * a;
    w.affine[1][1] = sine * b + cosine * d;
    w.affine[0][2] = (double)shape[2] * 0.5 + side * uniform(draws, -0.06, 0.06);
    w.affine[1][2] = (double)shape[1] * 0.5 + side * uniform(draws, -0.06, 0.06);
    return w;
}

static void apply_warp(const struct warp *w, const double at[2], double out[2])
{
    double u = at[0] - 0.5, v = at[1] - 0.5;
    const double *bu = w->bend[0], *bv = w->bend[1];
    double p = u + bu[0] * u * u + bu[1] * u * v + bu[2] * v * v;
    double q = v + bv[0] * u * u + bv[1] * u * v + bv[2] * v * v;
    for (int i = 0; i < 2; i++)
        out[i] = w->affine[i][0] * p + w->affine[i][1] * q + w->affine[i][2];
}

/* A picture of squared distances to the strokes. */
struct canvas {
    double *distance; /* H x W, in pixels, squared; `far` where no stroke is near */
    int height, width;
    double reach; /* pixels around a stroke that it touches */
};

/* The pixels whose centres lie in [low - reach, high + reach], cut to the picture. */
static void pixel_range(double low, double high, double reach, int size, int *from, int *to)
{
    double first = low - reach - 0.5, last = high + reach - 0.5;
    *from = first <= 0 ? 0 : first >= size ? size : (int)first;
    *to = last < 0 ? 0 : last >= size - 1 ? size : (int)last + 1;
}

/* Lowers the distances around the straight line from a to b. */
static void draw_line(struct canvas *canvas, const double a[2], const double b[2])
{
    double dx = b[0] - a[0], dy = b[1] - a[1];
    double length2 = dx * dx + dy * dy;
    double scale = length2 > 1e-12 ? 1 / length2 : 0;
    int x0, x1, y0, y1;
    pixel_range(a[0] < b[0] ? a[0] : b[0], a[0] < b[0] ? b[0] : a[0], canvas->reach, canvas->width,
                &x0, &x1);
    pixel_range(a[1] < b[1] ? a[1] : b[1], a[1] < b[1] ? b[1] : a[1], canvas->reach, canvas->height,
                &y0, &y1);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            double px = x + 0.5 - a[0], py = y + 0.5 - a[1];
            double t = (px * dx + py * dy) * scale; /* the nearest point is a + t (b - a) */
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            double ex = px - t * dx, ey = py - t * dy;
            double distance = ex * ex + ey * ey;
            double *best = &canvas->distance[(size_t)y * (size_t)canvas->width + (size_t)x];
            if (distance < *best)
                *best = distance;
        }
}

/* A point of the Catmull-Rom curve between p1 and p2, t in [0, 1]. */
static double curve(double p0, double p1, double p2, double p3, double t)
{
    double a = 2 * p1, b = p2 - p0;
    double c = 2 * p0 - 5 * p1 + 4 * p2 - p3, d = 3 * p1 - p0 - 3 * p2 + p3;
    return 0.5 * (a + t * (b + t * (c + t * d)));
}

static void draw_stroke(struct canvas *canvas, const struct ls_stroke *stroke,
                        const struct warp *warp)
{
    double point[LS_GLYPH_POINTS][2];
    int n = stroke->points;
    for (int i = 0; i < n; i++)
        apply_warp(warp, stroke->at[i], point[i]);
    for (int i = 0; i + 1 < n; i++) {
        if (!stroke->smooth) {
            draw_line(canvas, point[i], point[i + 1]);
            continue;
        }
        const double *p0 = point[i > 0 ? i - 1 : i], *p1 = point[i];
        const double *p2 = point[i + 1], *p3 = point[i + 2 < n ? i + 2 : i + 1];
        double from[2] = {p1[0], p1[1]};
        for (int k = 1; k <= PIECES; k++) {
            double t = (double)k / PIECES;
            double to[2] = {curve(p0[0], p1[0], p2[0], p3[0], t),
                            curve(p0[1], p1[1], p2[1], p3[1], t)};
            draw_line(canvas, from, to);
            from[0] = to[0];
            from[1] = to[1];
        }
    }
}

/* Noise of four pixels from four numbers: the sum of a number's bytes is nearly normal, with mean
 * 510 and variance 4 (256^2 - 1) / 12. */
static void noise_block(const struct draws *draws, uint64_t block, double noise, double out[4])
{
    uint32_t word[4];
    ls_philox(draws->key, draws->sample, NOISE_DRAWS / 4 + block, word);
    for (int i = 0; i < 4; i++) {
        int sum =
            (int)((word[i] & 255) + (word[i] >> 8 & 255) + (word[i] >> 16 & 255) + (word[i] >> 24));
        out[i] = (sum - 510) * (noise / 147.79941);
    }
}

/* Distances to pixels of one channel: paper, ink, an edge of one and a half pixels, noise. */
static void ink_channel(const struct canvas *canvas, const struct draws *draws, double pen,
                        const double levels[2], double noise, int channel, uint8_t *out)
{
    size_t pixels = (size_t)canvas->height * (size_t)canvas->width;
    uint64_t blocks = (pixels + 3) / 4;
    for (uint64_t block = 0; block < blocks; block++) {
        double grain[4];
        noise_block(draws, (uint64_t)channel * blocks + block, noise, grain);
        for (size_t i = 4 * block; i < pixels && i < 4 * block + 4; i++) {
            double ink = (pen + 0.75 - sqrt(canvas->distance[i])) / 1.5;
            ink = ink < 0 ? 0 : ink > 1 ? 1 : ink;
            double value = levels[0] + (levels[1] - levels[0]) * ink + grain[i % 4] + 0.5;
            out[i] = value < 0 ? 0 : value >= 255 ? 255 : (uint8_t)value;
        }
    }
}

static int label_of(const struct synthetic *synthetic, uint64_t sample)
{
    return (int)ls_random_below(synthetic->key, sample, 0, 10);
}

static bool draw_digit(const struct ls_source *source, uint64_t sample,
                       struct ls_source_reader *reader, uint8_t *out)
{
    const struct synthetic *synthetic = source->state;
    struct draws draws = {synthetic->key, sample, 1}; /* draw 0 is the label */
    int digit = label_of(synthetic, sample);
    int way = uniform(&draws, 0, 1) < 0.35 && ls_glyphs[digit][1][0].points > 0;
    const int64_t *shape = ls_source_image(source);
    struct canvas canvas = {.height = (int)shape[1], .width = (int)shape[2]};
    size_t pixels = (size_t)canvas.height * (size_t)canvas.width;
    canvas.distance = ls_buffer_reserve(&reader->picture, pixels, sizeof *canvas.distance);
    if (canvas.distance == NULL)
        return false;
    for (size_t i = 0; i < pixels; i++)
        canvas.distance[i] = 1e12;
    int side = canvas.height < canvas.width ? canvas.height : canvas.width;
    struct warp warp = draw_warp(&draws, shape);
    double pen = side * uniform(&draws, 0.022, 0.056);
    canvas.reach = pen + 0.75;
    for (int i = 0; i < LS_GLYPH_STROKES && ls_glyphs[digit][way][i].points > 0; i++)
        draw_stroke(&canvas, &ls_glyphs[digit][way][i], &warp);
    for (int c = 0; c < shape[0]; c++) {
        double levels[2] = {0, uniform(&draws, 215, 255)};
        if (shape[0] > 1) {
            levels[0] = uniform(&draws, 0, 90);
            levels[1] = uniform(&draws, 150, 255);
        }
        ink_channel(&canvas, &draws, pen, levels, synthetic->noise, c, out + (size_t)c * pixels);
    }
    return true;
}

static int name_classes(struct ls_source *source, struct ls_error *error)
{
    source->class_name = ls_alloc(10, sizeof *source->class_name);
    for (int i = 0; source->class_name != NULL && i < 10; i++) {
        char name[2] = {(char)('0' + i), '\0'};
        source->class_name[i] = ls_copy_string(name);
        if (source->class_name[i] == NULL)
            return ls_fail_memory(error, "a data source");
        source->class_count++;
    }
    return source->class_name != NULL ? 0 : ls_fail_memory(error, "a data source");
}

static int open_synthetic(const struct ls_source_options *options, struct ls_source *source,
                          struct ls_error *error)
{
    const struct synthetic_options *own = options->own;
    ls_source_add_image(source);
    source->tensor[0].shape =
        (struct ls_shape){.rank = 3, .dim = {own->channels, own->height, own->width}};
    if (!ls_record_shape_valid(ls_source_image(source)))
        return ls_option_fail(options, "synthetic_param.height", NULL, error,
                              "synthetic digits of %" PRId64 " x %" PRId64 " x %" PRId64
                              " numbers are too large",
                              own->channels, own->height, own->width);
    struct synthetic *synthetic = source->state = ls_alloc(1, sizeof *synthetic);
    if (synthetic == NULL)
        return ls_fail_memory(error, "a data source");
    synthetic->key = ls_random_key(own->seed, LS_RANDOM_DATA, "digits");
    synthetic->first = own->first + (options->test ? TEST_OFFSET : 0);
    synthetic->noise = own->noise;
    source->count = own->count;
    ls_source_add_label(source)->largest = 9;
    return name_classes(source, error);
}

static void close_synthetic(struct ls_source *source)
{
    ls_free(source->state);
}

static int read_synthetic(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                          struct ls_record *record, struct ls_error *error)
{
    const struct ls_source *source = reader->source;
    const struct synthetic *synthetic = source->state;
    uint64_t sample = synthetic->first + (uint64_t)index;
    ls_record_set_label(reader, record, label_of(synthetic, sample));
    if ((wanted & LS_TENSOR(0)) == 0 || reader->hash_only)
        return 0;
    size_t size = (size_t)ls_record_size(ls_source_image(source));
    uint8_t *out = ls_buffer_reserve(&reader->record, size, 1);
    if (out == NULL || !draw_digit(source, sample, reader, out))
        return ls_fail_memory(error, "a synthetic digit");
    record->tensor[0].data = out;
    return 0;
}

/* The drawings of the two phases differ though their options are the same. */
static uint64_t stamp_synthetic(const struct ls_source *source)
{
    return ((const struct synthetic *)source->state)->first;
}

const struct ls_source_type ls_source_synthetic = {
    .name = "SYNTHETIC",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__SYNTHETIC,
    .summary = "digits that Lockstep draws, each by its number alone; see synthetic_param",
    .options = options_table,
    .options_size = sizeof(struct synthetic_options),
    .open = open_synthetic,
    .close = close_synthetic,
    .read = read_synthetic,
    .stamp = stamp_synthetic,
};
