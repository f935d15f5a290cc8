/* Pictures of a data set as they are shown, and pictures of others as its samples. See
 * data/reader.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/numbers.h"
#include "data/orientation.h"
#include "data/picture.h"
#include "data/reader_inner.h"
#include "data/resize.h"

static const size_t PICTURE_LIMIT = (size_t)1 << 29; /* bytes of a file */

/* Blue, green, red and red, green, blue into each other. */
static void swap_planes(const int64_t shape[3], float *pixels)
{
    int64_t size = shape[1] * shape[2];
    for (int64_t i = 0; i < size; i++) {
        float first = pixels[i];
        pixels[i] = pixels[2 * size + i];
        pixels[2 * size + i] = first;
    }
}

static int check_image(const struct ls_reader *reader, struct ls_error *error)
{
    if (ls_source_has_image(reader->dataset->source))
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, reader->dataset->name,
                   "'lockstep test' measures the net, and an HDF5Output layer in it writes the "
                   "blobs of every sample",
                   "its records have no images to show");
}

int ls_reader_fetch_raw(struct ls_reader *reader, int64_t ordinal, int64_t shape[3], float *pixels,
                        int *label, struct ls_error *error)
{
    const struct ls_source *source = reader->dataset->source;
    struct ls_record record = {0};
    LS_TRY(check_image(reader, error));
    bool one = source->tensors > 1 && source->tensor[1].role == LS_TENSOR_PLAIN;
    uint32_t wanted = (pixels != NULL ? LS_TENSOR(0) : 0) | (one ? LS_TENSOR(1) : 0);
    LS_TRY(ls_reader_record(reader, ordinal, wanted, &record, error));
    LS_ASSERT(!one || record.tensor[1].data != NULL);
    const struct ls_record_tensor *image = &record.tensor[0];
    memcpy(shape, image->shape.dim, 3 * sizeof *shape);
    if (label != NULL)
        *label = one ? *(const int32_t *)record.tensor[1].data : 0;
    if (pixels == NULL)
        return 0;
    ls_numbers_to_f32(image->type, image->data, ls_record_size(shape), false, pixels);
    if (source->bgr && shape[0] == 3)
        swap_planes(shape, pixels);
    return 0;
}

/* Puts numbers between 0 and 255 by the least and the largest of them. */
static void stretch(float *pixels, int64_t count)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        least = fminf(least, pixels[i]);
        most = fmaxf(most, pixels[i]);
    }
    const float range = most - least;
    for (int64_t i = 0; i < count; i++)
        pixels[i] = range > 0 && isfinite(range) && isfinite(pixels[i])
                        ? (pixels[i] - least) / range * 255
                        : 0;
}

/* Undoes mean (a mean picture: by its mean in each channel) and scale. */
static void undo(const struct ls_transform *t, const int64_t shape[3], float *pixels)
{
    const int64_t size = shape[1] * shape[2], of_mean = t->input[1] * t->input[2];
    for (int64_t c = 0; c < shape[0]; c++) {
        double mean = t->channel_mean != NULL ? (double)t->channel_mean[c] : 0;
        for (int64_t i = 0; t->mean != NULL && i < of_mean; i++)
            mean += (double)t->mean[c * of_mean + i] / (double)of_mean;
        for (int64_t i = 0; i < size; i++)
            pixels[c * size + i] = pixels[c * size + i] / t->scale + (float)mean;
    }
}

int ls_reader_fetch_shown(struct ls_reader *reader, int64_t ordinal, int64_t shape[3],
                          float *pixels, struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    const struct ls_transform *transform = &dataset->transform;
    void *out[LS_RECORD_TENSORS] = {pixels};
    LS_TRY(check_image(reader, error));
    LS_TRY(ls_dataset_sample_shape(dataset, ordinal, shape, error));
    if (pixels == NULL)
        return 0;
    LS_TRY(ls_reader_fetch(reader, ordinal, out, error));
    if (dataset->source->tensor[0].type != LS_U8 || transform->standardize || transform->scale == 0)
        stretch(pixels, ls_record_size(shape));
    else
        undo(transform, shape, pixels);
    if (dataset->source->bgr && shape[0] == 3)
        swap_planes(shape, pixels);
    return 0;
}

int ls_reader_check_pictures(const struct ls_reader *reader, struct ls_error *error)
{
    const struct ls_source *source = reader->dataset->source;
    if (!ls_source_has_image(source))
        return ls_fail(error, LOCKSTEP_DATA, reader->dataset->name, NULL,
                       "the data have no images, so pictures cannot stand in for them");
    const int64_t channels = ls_source_image(source)[0];
    if (channels != 1 && channels != 3)
        return ls_fail(error, LOCKSTEP_DATA, reader->dataset->name, NULL,
                       "the data have neither one channel nor three, so pictures cannot stand in "
                       "for them");
    return 0;
}

/* The picture as a record of this data set. */
static int make_record(struct ls_reader *reader, const uint8_t *bytes, size_t size,
                       struct ls_record *record, struct ls_problem *problem)
{
    const struct ls_source *source = reader->dataset->source;
    const int64_t *shape = ls_source_image(source);
    const int channels = (int)shape[0];
    struct ls_picture picture;
    struct ls_buffer *buffer = &reader->source->record;
    LS_TRY(ls_picture_decode(bytes, size, channels, &reader->source->picture, &picture, problem));
    if (source->type->stand_in != NULL)
        return source->type->stand_in(reader->source, &picture, record, problem);
    if (reader->dataset->transform.before.resizes ||
        (source->varies && reader->dataset->transform.crop > 0))
        LS_TRY(ls_picture_to_record(&picture, buffer, record, problem));
    else
        LS_TRY(ls_picture_resize_to_record(&picture, (int)shape[1], (int)shape[2],
                                           !source->interpolates, buffer, record, problem));
    if (channels == 3 && !source->bgr)
        ls_record_swap_channels(record, buffer->data);
    return 0;
}

int ls_reader_picture(struct ls_reader *reader, const char *path, float *sample, bool *turned,
                      struct ls_error *error)
{
    char *bytes;
    size_t size;
    LS_TRY(ls_reader_check_pictures(reader, error));
    LS_TRY(ls_file_read(path, PICTURE_LIMIT, LOCKSTEP_DATA, &bytes, &size, error));
    struct ls_record record;
    struct ls_problem problem;
    int status = make_record(reader, (const uint8_t *)bytes, size, &record, &problem);
    if (turned != NULL)
        *turned = ls_picture_is_turned((const uint8_t *)bytes, size);
    ls_free(bytes);
    if (status == 0)
        status = ls_transform_apply(&reader->dataset->transform, &record.tensor[0], NULL, 0, false,
                                    &reader->room, sample, &problem);
    return status == 0 ? 0 : ls_fail(error, status, path, NULL, "%s", problem.message);
}
