/* Source WINDOWS: regions of pictures with the class of what they show, as R-CNN trains on: the
 * file of a WindowData layer.
 *
 * The file has for each picture a line "# NUMBER", its path, channels, height and width, how many
 * windows it has, and for each of them a line "class overlap x1 y1 x2 y2". Windows that overlap an
 * object by fg_threshold are foreground, those below bg_threshold are background, of class 0;
 * others are left out.
 *
 * Each batch begins with background and ends with its share of foreground (fg_fraction). Records
 * are laid out so: record r is window number r / batch x share + (r % batch) of its kind, around
 * its end, for as many batches as bring all windows of both kinds. Shuffling changes the order of
 * each kind by itself (data/samples.c).
 *
 * A window is cut out, with its surroundings (context_pad), and resized to crop_size x crop_size
 * without antialiasing, as OpenCV does for Caffe. Where it reaches beyond the picture there are
 * zeros, and the mean is subtracted from the rest: that is done here, before any mirroring and
 * scaling.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/mean_file.h"
#include "data/picture_file.h"
#include "data/resize.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

/* Coordinates, widened by context_pad up to SIDE_MAX / 2 times, fit into an int. */
enum { CHANNELS = 3, SIDE_MAX = 4096, COORDINATE_MAX = 1 << 17 };
static const size_t FILE_LIMIT = (size_t)1 << 31, PICTURE_LIMIT = (size_t)1 << 29;

struct windows_options {
    struct ls_option_files files;
    const char *root_folder, *mean_file;
    int64_t side, pad;
    double foreground, background, fraction;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct windows_options, files),
     .least = 1,
     .most = 1,
     .help = "the file of windows"},
    {.name = "root_folder",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct windows_options, root_folder),
     .help = "put before each path"},
    {.name = "window_data_param.crop_size",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct windows_options, side),
     .most = SIDE_MAX,
     .help = "height and width that windows are resized to"},
    {.name = "window_data_param.context_pad",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct windows_options, pad),
     .most = SIDE_MAX,
     .help = "of these, pixels on each side that show what is around the window"},
    {.name = "window_data_param.fg_threshold",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct windows_options, foreground),
     .fallback = 0.5,
     .help = "windows that overlap an object by this are foreground"},
    {.name = "window_data_param.bg_threshold",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct windows_options, background),
     .fallback = 0.5,
     .help = "windows that overlap objects by less are background, of class 0"},
    {.name = "window_data_param.fg_fraction",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct windows_options, fraction),
     .fallback = 0.25,
     .help = "share of foreground in each batch"},
    {.name = "window_data_param.mean_file",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct windows_options, mean_file),
     .help = "a mean picture, whose centre is subtracted"},
    {.name = NULL}};

struct window {
    uint32_t picture;
    int32_t label;
    int32_t x1, y1, x2, y2; /* of its first and last pixels */
};

/* Windows of one kind: background, then foreground. */
struct kind {
    struct window *window;
    size_t count, capacity;
    int64_t share; /* of each batch */
};

struct windows {
    struct kind kind[2];
    char **path; /* of the pictures */
    size_t pictures, capacity;
    int64_t batch;
    int side, pad;
    bool square;
    float *mean; /* CHANNELS x mean_side[0] x mean_side[1]; NULL: none */
    int64_t mean_side[2];
    float level[CHANNELS]; /* mean values */
    uint64_t stamp;
};

/* ---- The file -------------------------------------------------------------------------------- */

struct reading {
    const char *file, *root;
    char *at;    /* what is still to be read */
    size_t line; /* of the word that was read last */
    bool ended;  /* it was the last of its line */
    const struct windows_options *own;
    struct windows *windows;
    struct ls_error *error;
};

static int bad_line(const struct reading *r, const char *what)
{
    char place[320];
    snprintf(place, sizeof place, "%.280s:%zu", r->file, r->line);
    return ls_fail(
        r->error, LOCKSTEP_DATA, place,
        "for each picture: # number, path, channels, height, width, count of windows; then "
        "lines of class, overlap, x1, y1, x2, y2",
        "%s", what);
}

/* The next word; NULL at the end. */
static char *next_word(struct reading *r)
{
    r->line += r->ended;
    r->ended = false;
    while (*r->at != '\0' && strchr(" \t\r\n", *r->at) != NULL)
        r->line += *r->at++ == '\n';
    if (*r->at == '\0')
        return NULL;
    char *word = r->at;
    r->at += strcspn(r->at, " \t\r\n");
    if (*r->at != '\0') {
        r->ended = *r->at == '\n';
        *r->at++ = '\0';
    }
    return word;
}

static int next_number(struct reading *r, double least, double most, double *number)
{
    char *word = next_word(r), *end;
    if (word == NULL)
        return bad_line(r, "the file is cut off");
    *number = strtod(word, &end);
    return end == word || *end != '\0' || !(*number >= least && *number <= most)
               ? bad_line(r, "a number is missing, or is not possible")
               : 0;
}

static int next_integer(struct reading *r, int64_t least, int64_t most, int64_t *number)
{
    double wide = 0;
    LS_TRY(next_number(r, (double)least, (double)most, &wide));
    *number = (int64_t)wide;
    return (double)*number == wide ? 0 : bad_line(r, "a number is not whole");
}

static int read_window(struct reading *r)
{
    struct windows *w = r->windows;
    int64_t label, corner[4];
    double overlap = 0;
    LS_TRY(next_integer(r, 0, 1 << 24, &label));
    LS_TRY(next_number(r, -HUGE_VAL, HUGE_VAL, &overlap));
    for (int i = 0; i < 4; i++)
        LS_TRY(next_integer(r, -COORDINATE_MAX, COORDINATE_MAX, &corner[i]));
    const bool foreground = overlap >= r->own->foreground;
    if (!foreground && overlap >= r->own->background)
        return 0;
    if (foreground && label == 0)
        return bad_line(r, "a window that overlaps an object has class 0");
    struct kind *kind = &w->kind[foreground];
    if (!LS_GROW(kind->window, kind->count, kind->capacity))
        return ls_fail_memory(r->error, "windows");
    kind->window[kind->count++] =
        (struct window){(uint32_t)(w->pictures - 1), foreground ? (int32_t)label : 0,
                        (int32_t)corner[0],          (int32_t)corner[1],
                        (int32_t)corner[2],          (int32_t)corner[3]};
    return 0;
}

/* The path of a picture, put together as Caffe does. */
static int add_picture(struct reading *r, const char *name)
{
    struct windows *w = r->windows;
    struct ls_text whole = {0};
    if (r->root != NULL)
        ls_text_add(&whole, r->root);
    if (r->root != NULL && r->root[strlen(r->root) - 1] != '/' && name[0] != '/' &&
        ls_is_directory(r->root))
        ls_text_add(&whole, "/");
    ls_text_add(&whole, name);
    char *path = whole.failed ? NULL : ls_resolve_path(whole.data, r->file);
    ls_text_free(&whole);
    if (path == NULL || !LS_GROW(w->path, w->pictures, w->capacity)) {
        ls_free(path);
        return ls_fail_memory(r->error, "the list of pictures");
    }
    w->path[w->pictures++] = path;
    w->stamp = ls_mix(w->stamp) + ls_file_stamp(path);
    return ls_file_exists(path) ? 0 : bad_line(r, "there is no such picture");
}

static int read_picture(struct reading *r)
{
    int64_t number, count;
    LS_TRY(next_integer(r, 0, INT64_C(1) << 40, &number));
    const char *name = next_word(r);
    if (name == NULL)
        return bad_line(r, "the file is cut off");
    LS_TRY(add_picture(r, name));
    for (int i = 0; i < 3; i++) /* channels, height, width, which the picture itself says */
        LS_TRY(next_integer(r, 1, COORDINATE_MAX, &number));
    LS_TRY(next_integer(r, 0, INT32_MAX, &count));
    for (int64_t i = 0; i < count; i++)
        LS_TRY(read_window(r));
    return 0;
}

static int read_pictures(struct reading *r)
{
    char *text;
    size_t size;
    LS_TRY(ls_file_read(r->file, FILE_LIMIT, LOCKSTEP_DATA, &text, &size, r->error));
    int status = 0;
    if (memchr(text, '\0', size) != NULL)
        status = ls_fail(r->error, LOCKSTEP_DATA, r->file, NULL, "is not a text file");
    r->at = text;
    r->line = 1;
    for (const char *word; status == 0 && (word = next_word(r)) != NULL;)
        status = strcmp(word, "#") == 0 ? read_picture(r) : bad_line(r, "'#' is missing");
    ls_free(text);
    return status;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* What the table of options has no kinds for. */
static int read_others(const struct ls_source_options *options, struct windows *w,
                       struct ls_error *error)
{
    const Lockstep__WindowDataParameter *param =
        options->layer != NULL ? options->layer->window_data_param : NULL;
    const Lockstep__DataParameter *data =
        options->layer != NULL ? options->layer->data_param : NULL;
    const char *mode = param != NULL && param->crop_mode != NULL ? param->crop_mode : "warp";
    if (data == NULL || data->batch_size < 1 || data->batch_size > INT32_MAX)
        return ls_option_fail(options, "batch_size", NULL, error, "batch_size is missing");
    w->batch = data->batch_size;
    w->square = strcmp(mode, "square") == 0;
    if (!w->square && strcmp(mode, "warp") != 0)
        return ls_option_fail(options, "window_data_param.crop_mode", "warp or square", error,
                              "there is no crop_mode '%.100s'", mode);
    if (w->side < 1 || 2 * w->pad >= w->side)
        return ls_option_fail(options, "window_data_param.context_pad", NULL, error,
                              "crop_size %d must be more than twice context_pad, which is %d",
                              w->side, w->pad);
    const size_t values = param != NULL ? param->n_mean_value : 0;
    if (values > 1 && values != CHANNELS)
        return ls_option_fail(options, "window_data_param.mean_value", NULL, error,
                              "give one mean_value, or %d", CHANNELS);
    for (size_t c = 0; c < CHANNELS && values > 0; c++) {
        w->level[c] = param->mean_value[values == 1 ? 0 : c];
        if (!isfinite(w->level[c]))
            return ls_option_fail(options, "window_data_param.mean_value", NULL, error,
                                  "mean_value is not finite");
    }
    return 0;
}

static int read_mean(const struct ls_source_options *options, const char *file, struct windows *w,
                     struct ls_error *error)
{
    int64_t shape[3];
    const Lockstep__WindowDataParameter *param =
        options->layer != NULL ? options->layer->window_data_param : NULL;
    if (file == NULL)
        return 0;
    if (param != NULL && param->n_mean_value > 0)
        return ls_option_fail(options, "window_data_param.mean_value", NULL, error,
                              "mean_file and mean_value cannot both be given");
    LS_TRY(ls_mean_shape(file, shape, error));
    if (shape[0] != CHANNELS || shape[1] < w->side || shape[2] < w->side)
        return ls_fail(error, LOCKSTEP_DATA, file, NULL,
                       "the mean picture has %" PRId64 " x %" PRId64 " x %" PRId64
                       " numbers; %d x %d x %d are needed at least",
                       shape[0], shape[1], shape[2], CHANNELS, w->side, w->side);
    memcpy(w->mean_side, shape + 1, sizeof w->mean_side);
    return ls_mean_read(file, shape, &w->mean, error);
}

/* How many batches bring all windows, and that each kind has some. */
static int count_records(const struct ls_source_options *options, struct ls_source *source,
                         double fraction, struct ls_error *error)
{
    static const char *const names[] = {"background", "foreground"};
    struct windows *w = source->state;
    int64_t batches = 0;
    if (!(fraction >= 0 && fraction <= 1))
        return ls_option_fail(options, "window_data_param.fg_fraction", NULL, error,
                              "fg_fraction is %.10g; it must lie in 0 .. 1", fraction);
    w->kind[1].share = (int64_t)((float)w->batch * (float)fraction);
    w->kind[0].share = w->batch - w->kind[1].share;
    for (int k = 0; k < 2; k++) {
        const int64_t share = w->kind[k].share, count = (int64_t)w->kind[k].count;
        if (share > 0 && count == 0)
            return ls_fail(error, LOCKSTEP_DATA, ls_source_options_name(options),
                           "fg_threshold, bg_threshold and fg_fraction say which are wanted",
                           "has no windows of %s, and each batch needs %" PRId64, names[k], share);
        if (share > 0 && (count + share - 1) / share > batches)
            batches = (count + share - 1) / share;
    }
    source->count = batches * w->batch;
    source->period = w->batch;
    source->period_first = w->kind[0].share;
    return 0;
}

/* What decides records besides the options of the table and the pictures themselves. */
static void note_identity(const struct ls_source_options *options, struct ls_source *source)
{
    struct windows *w = source->state;
    const struct windows_options *own = options->own;
    uint64_t hash = ls_hash(w->level, sizeof w->level, (uint64_t)w->square);
    if (w->mean != NULL)
        hash =
            ls_hash(w->mean,
                    (size_t)(CHANNELS * w->mean_side[0] * w->mean_side[1]) * sizeof *w->mean, hash);
    hash = ls_mix(hash + (uint64_t)w->batch);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < w->kind[k].count; i++)
            hash = ls_mix(hash + (uint32_t)w->kind[k].window[i].label + 1);
    source->labels_hash = hash;
    w->stamp = ls_mix(w->stamp + hash) + ls_file_stamp(own->files.item[0]);
}

/* What reading a window takes; pictures that cannot be read are found when they are. */
static void note_bytes(struct ls_source *source)
{
    const struct windows *w = source->state;
    const size_t record = (size_t)CHANNELS * (size_t)w->side * (size_t)w->side * sizeof *w->mean;
    for (size_t i = 0; i < w->pictures && i < LS_PICTURE_LOOK_LIMIT; i++) {
        struct ls_picture_header header;
        size_t file;
        if (ls_picture_file_look(w->path[i], 0, &header, &file, NULL) == 0)
            ls_source_note_bytes(source,
                                 file + 2 * ls_picture_bytes(&header, CHANNELS, 0, 0) + 2 * record);
    }
}

static int open_windows(const struct ls_source_options *options, struct ls_source *source,
                        struct ls_error *error)
{
    const struct windows_options *own = options->own;
    struct windows *w = source->state = ls_alloc(1, sizeof *w);
    if (w == NULL)
        return ls_fail_memory(error, "a data source");
    struct reading r = {.file = own->files.item[0],
                        .root = own->root_folder,
                        .own = own,
                        .windows = w,
                        .error = error};
    w->side = (int)own->side;
    w->pad = (int)own->pad;
    LS_TRY(read_others(options, w, error));
    LS_TRY(read_mean(options, own->mean_file, w, error));
    LS_TRY(read_pictures(&r));
    LS_TRY(count_records(options, source, own->fraction, error));
    ls_source_add_image(source);
    source->tensor[0].type = LS_F32;
    source->tensor[0].shape = (struct ls_shape){3, {CHANNELS, w->side, w->side}};
    struct ls_tensor_info *label = ls_source_add_label(source);
    label->largest = 0;
    for (size_t i = 0; i < w->kind[1].count; i++) {
        const int32_t number = w->kind[1].window[i].label;
        label->largest = number > label->largest ? number : label->largest;
    }
    source->encoded = source->bgr = true;
    note_identity(options, source);
    note_bytes(source);
    return 0;
}

static void close_windows(struct ls_source *source)
{
    struct windows *w = source->state;
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->pictures; i++)
        ls_free(w->path[i]);
    ls_free(w->path);
    ls_free(w->kind[0].window);
    ls_free(w->kind[1].window);
    ls_free(w->mean);
    ls_free(w);
}

/* ---- Cutting windows out --------------------------------------------------------------------- */

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
static void widen(const struct windows *w, int height, int width, struct cut *cut)
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
    const size_t row = (size_t)(cut->x2 - cut->x1 + 1) * CHANNELS;
    const size_t rows = (size_t)(cut->y2 - cut->y1 + 1);
    uint8_t *out = ls_buffer_reserve(buffer, rows, row);
    for (size_t i = 0; out != NULL && i < rows; i++)
        memcpy(out + i * row,
               picture->pixels +
                   ((size_t)(cut->y1 + (int)i) * (size_t)picture->width + (size_t)cut->x1) *
                       CHANNELS,
               row);
    return out;
}

/* Puts the resized pixels to their place, without the mean. */
static void place_pixels(const struct windows *w, const struct cut *cut, const uint8_t *pixels,
                         float *out)
{
    const int64_t down = (w->mean_side[0] - w->side) / 2, across = (w->mean_side[1] - w->side) / 2;
    memset(out, 0, (size_t)CHANNELS * (size_t)w->side * (size_t)w->side * sizeof *out);
    for (int c = 0; c < CHANNELS; c++)
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

static int cut_out(struct ls_source_reader *reader, const struct window *window,
                   const struct ls_picture *picture, struct ls_record *record,
                   struct ls_problem *problem)
{
    const struct windows *w = reader->source->state;
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
    const struct ls_picture part = {cut.y2 - cut.y1 + 1, cut.x2 - cut.x1 + 1, CHANNELS,
                                    copy_pixels(picture, &cut, &reader->map)};
    if (part.pixels == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    LS_TRY(ls_picture_resize_to_record(&part, cut.height, cut.width, false, &reader->record, record,
                                       problem));
    const int64_t shape[3] = {CHANNELS, w->side, w->side};
    float *out =
        ls_buffer_reserve(&reader->file, (size_t)(shape[0] * shape[1] * shape[2]), sizeof *out);
    if (out == NULL)
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    place_pixels(w, &cut, record->tensor[0].data, out);
    ls_record_set_image(record, LS_F32, shape, out);
    return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static const struct window *window_of(const struct windows *w, int64_t index)
{
    const int64_t batch = index / w->batch, place = index % w->batch;
    const bool foreground = place >= w->kind[0].share;
    const struct kind *kind = &w->kind[foreground];
    const int64_t number = batch * kind->share + place - (foreground ? w->kind[0].share : 0);
    return &kind->window[number % (int64_t)kind->count];
}

static int read_windows(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                        struct ls_record *record, struct ls_error *error)
{
    const struct windows *w = reader->source->state;
    const struct window *window = window_of(w, index);
    const char *path = w->path[window->picture];
    struct ls_picture picture;
    struct ls_problem problem;
    char *bytes;
    size_t size;
    ls_record_set_label(reader, record, window->label);
    if ((wanted & LS_TENSOR(0)) == 0)
        return 0;
    LS_TRY(ls_file_read(path, PICTURE_LIMIT, LOCKSTEP_DATA, &bytes, &size, error));
    const int32_t corners[4] = {window->x1, window->y1, window->x2, window->y2};
    record->tensor[0].hash = ls_hash_wide(bytes, size, ls_hash(corners, sizeof corners, 0));
    int status = 0;
    if (!reader->hash_only)
        status = ls_picture_decode((const uint8_t *)bytes, size, CHANNELS, &reader->picture,
                                   &picture, &problem);
    ls_free(bytes);
    if (reader->hash_only)
        return 0;
    if (status == 0)
        status = cut_out(reader, window, &picture, record, &problem);
    return status == 0 ? 0 : ls_picture_file_bad(path, index, &problem, error);
}

static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct windows *w = source->state;
    const struct window *window = window_of(w, index);
    ls_text_format(text, "%s, window %d %d %d %d", w->path[window->picture], window->x1, window->y1,
                   window->x2, window->y2);
}

static uint64_t stamp(const struct ls_source *source)
{
    return ((const struct windows *)source->state)->stamp;
}

const struct ls_source_type ls_source_windows = {
    .name = "WINDOWS",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__WINDOWS,
    .summary = "regions of pictures with their classes: the file of a WindowData layer",
    .unconvertible = "its batches are made of foreground and background",
    .options = options_table,
    .options_size = sizeof(struct windows_options),
    .open = open_windows,
    .close = close_windows,
    .read = read_windows,
    .stamp = stamp,
    .name_record = name_record,
};
