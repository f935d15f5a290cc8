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
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/mean_file.h"
#include "data/picture_file.h"
#include "data/windows.h"
#include "lockstep.pb-c.h"

static const size_t PICTURE_LIMIT = (size_t)1 << 29;

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct ls_windows_options, files),
     .least = 1,
     .most = 1,
     .help = "the file of windows"},
    {.name = "root_folder",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct ls_windows_options, root_folder),
     .help = "put before each path"},
    {.name = "window_data_param.crop_size",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct ls_windows_options, side),
     .most = LS_WINDOWS_SIDE_MAX,
     .help = "height and width that windows are resized to"},
    {.name = "window_data_param.context_pad",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct ls_windows_options, pad),
     .most = LS_WINDOWS_SIDE_MAX,
     .help = "of these, pixels on each side that show what is around the window"},
    {.name = "window_data_param.fg_threshold",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct ls_windows_options, foreground),
     .fallback = 0.5,
     .help = "windows that overlap an object by this are foreground"},
    {.name = "window_data_param.bg_threshold",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct ls_windows_options, background),
     .fallback = 0.5,
     .help = "windows that overlap objects by less are background, of class 0"},
    {.name = "window_data_param.fg_fraction",
     .kind = LS_OPTION_NUMBER,
     .offset = offsetof(struct ls_windows_options, fraction),
     .fallback = 0.25,
     .help = "share of foreground in each batch"},
    {.name = "window_data_param.mean_file",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct ls_windows_options, mean_file),
     .help = "a mean picture, whose centre is subtracted"},
    {.name = NULL}};

/* ---- Opening --------------------------------------------------------------------------------- */

/* What the table of options has no kinds for. */
static int read_others(const struct ls_source_options *options, struct ls_labelled_windows *w,
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
    if (values > 1 && values != LS_WINDOWS_CHANNELS)
        return ls_option_fail(options, "window_data_param.mean_value", NULL, error,
                              "give one mean_value, or %d", LS_WINDOWS_CHANNELS);
    for (size_t c = 0; c < LS_WINDOWS_CHANNELS && values > 0; c++) {
        w->level[c] = param->mean_value[values == 1 ? 0 : c];
        if (!isfinite(w->level[c]))
            return ls_option_fail(options, "window_data_param.mean_value", NULL, error,
                                  "mean_value is not finite");
    }
    return 0;
}

static int read_mean(const struct ls_source_options *options, const char *file,
                     struct ls_labelled_windows *w, struct ls_error *error)
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
    if (shape[0] != LS_WINDOWS_CHANNELS || shape[1] < w->side || shape[2] < w->side)
        return ls_fail(error, LOCKSTEP_DATA, file, NULL,
                       "the mean picture has %" PRId64 " x %" PRId64 " x %" PRId64
                       " numbers; %d x %d x %d are needed",
                       shape[0], shape[1], shape[2], LS_WINDOWS_CHANNELS, w->side, w->side);
    memcpy(w->mean_side, shape + 1, sizeof w->mean_side);
    return ls_mean_read(file, shape, &w->mean, error);
}

/* How many batches bring all windows, and that each kind has some. */
static int count_records(const struct ls_source_options *options, struct ls_source *source,
                         double fraction, struct ls_error *error)
{
    static const char *const names[] = {"background", "foreground"};
    struct ls_labelled_windows *w = source->state;
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
    struct ls_labelled_windows *w = source->state;
    const struct ls_windows_options *own = options->own;
    uint64_t hash = ls_hash(w->level, sizeof w->level, (uint64_t)w->square);
    if (w->mean != NULL)
        hash = ls_hash(w->mean,
                       (size_t)(LS_WINDOWS_CHANNELS * w->mean_side[0] * w->mean_side[1]) *
                           sizeof *w->mean,
                       hash);
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
    const struct ls_labelled_windows *w = source->state;
    const size_t record =
        (size_t)LS_WINDOWS_CHANNELS * (size_t)w->side * (size_t)w->side * sizeof *w->mean;
    for (size_t i = 0; i < w->pictures && i < LS_PICTURE_LOOK_LIMIT; i++) {
        struct ls_picture_header header;
        size_t file;
        if (ls_picture_file_look(w->path[i], 0, &header, &file, NULL) != 0)
            continue;
        ls_source_note_picture(source, header.turned, w->path[i], 0);
        ls_source_note_bytes(
            source, file + 2 * ls_picture_bytes(&header, LS_WINDOWS_CHANNELS, 0, 0) + 2 * record);
    }
}

static int open_windows(const struct ls_source_options *options, struct ls_source *source,
                        struct ls_error *error)
{
    const struct ls_windows_options *own = options->own;
    struct ls_labelled_windows *w = source->state = ls_alloc(1, sizeof *w);
    if (w == NULL)
        return ls_fail_memory(error, "a data source");
    w->side = (int)own->side;
    w->pad = (int)own->pad;
    LS_TRY(read_others(options, w, error));
    LS_TRY(read_mean(options, own->mean_file, w, error));
    LS_TRY(ls_windows_read(own, w, error));
    LS_TRY(count_records(options, source, own->fraction, error));
    ls_source_add_image(source);
    source->tensor[0].type = LS_F32;
    source->tensor[0].shape = (struct ls_shape){3, {LS_WINDOWS_CHANNELS, w->side, w->side}};
    struct ls_tensor_info *label = ls_source_add_label(source);
    label->largest = 0;
    for (size_t i = 0; i < w->kind[1].count; i++) {
        const int32_t number = w->kind[1].window[i].label;
        label->largest = number > label->largest ? number : label->largest;
    }
    source->encoded = source->interpolates = true;
    source->mean = w->mean;
    memcpy(source->mean_side, w->mean_side, sizeof source->mean_side);
    note_identity(options, source);
    note_bytes(source);
    return 0;
}

static void close_windows(struct ls_source *source)
{
    struct ls_labelled_windows *w = source->state;
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

/* ---- Reading --------------------------------------------------------------------------------- */

static const struct ls_labelled_window *window_of(const struct ls_labelled_windows *w,
                                                  int64_t index)
{
    const int64_t batch = index / w->batch, place = index % w->batch;
    const bool foreground = place >= w->kind[0].share;
    const struct ls_windows_kind *kind = &w->kind[foreground];
    const int64_t number = batch * kind->share + place - (foreground ? w->kind[0].share : 0);
    return &kind->window[number % (int64_t)kind->count];
}

static int read_windows(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                        struct ls_record *record, struct ls_error *error)
{
    const struct ls_labelled_windows *w = reader->source->state;
    const struct ls_labelled_window *window = window_of(w, index);
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
        status = ls_picture_decode((const uint8_t *)bytes, size, LS_WINDOWS_CHANNELS,
                                   &reader->picture, &picture, &problem);
    ls_free(bytes);
    if (reader->hash_only)
        return 0;
    if (status == 0)
        status = ls_windows_cut_out(reader, window, &picture, record, &problem);
    return status == 0 ? 0 : ls_picture_file_bad(path, index, &problem, error);
}

/* A picture stands for a window that is all of it. */
static int stand_in(struct ls_source_reader *reader, const struct ls_picture *picture,
                    struct ls_record *record, struct ls_problem *problem)
{
    const struct ls_labelled_window whole = {.x2 = picture->width - 1, .y2 = picture->height - 1};
    return ls_windows_cut_out(reader, &whole, picture, record, problem);
}

static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct ls_labelled_windows *w = source->state;
    const struct ls_labelled_window *window = window_of(w, index);
    ls_text_format(text, "%s, window %d %d %d %d", w->path[window->picture], window->x1, window->y1,
                   window->x2, window->y2);
}

static uint64_t stamp(const struct ls_source *source)
{
    return ((const struct ls_labelled_windows *)source->state)->stamp;
}

const struct ls_source_type ls_source_windows = {
    .name = "WINDOWS",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__WINDOWS,
    .bgr = true,
    .summary = "regions of pictures with their classes: the file of a WindowData layer",
    .unconvertible = "its batches are made of foreground and background",
    .options = options_table,
    .options_size = sizeof(struct ls_windows_options),
    .open = open_windows,
    .close = close_windows,
    .read = read_windows,
    .stamp = stamp,
    .name_record = name_record,
    .stand_in = stand_in,
};
