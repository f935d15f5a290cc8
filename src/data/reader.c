/* Readers: samples by ordinal.
 *
 *   ordinal -> epoch, position -> (shuffle) place in the epoch's order -> (split) record
 *           -> cache or source -> transformation
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/dataset_inner.h"
#include "data/digest.h"
#include "data/picture.h"

static const size_t PICTURE_LIMIT = (size_t)1 << 29; /* bytes of a file */

struct ls_reader {
    struct ls_dataset *dataset;
    struct ls_source_reader *source;
    struct ls_order order; /* of the epoch that was read last; count 0: none yet */
    struct ls_buffer scratch;
    int64_t last; /* record that was fetched last */
    uint64_t hash;
};

int ls_reader_open(struct ls_dataset *dataset, struct ls_reader **reader, struct ls_error *error)
{
    *reader = NULL;
    struct ls_reader *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, "a reader of data");
    made->dataset = dataset;
    int status = ls_source_reader_open(dataset->source, &made->source, error);
    if (status != 0) {
        ls_free(made);
        return status;
    }
    *reader = made;
    return 0;
}

void ls_reader_close(struct ls_reader *reader)
{
    if (reader == NULL)
        return;
    ls_source_reader_close(reader->source);
    ls_buffer_free(&reader->scratch);
    ls_free(reader);
}

static int64_t record_index(struct ls_reader *reader, int64_t ordinal)
{
    return ls_dataset_record(reader->dataset, ordinal, &reader->order);
}

/* Notes what was read of a record. */
static uint64_t note_hash(struct ls_reader *reader, int64_t index, const struct ls_record *record,
                          bool data, bool label)
{
    reader->last = index;
    reader->hash =
        ls_digest_hash(index, data ? record->data_hash : 0, label ? record->label_hash : 0);
    return reader->hash;
}

/* Record `index`, from the cache or the source; valid until the reader's next call. What is kept is
 * kept whole, with its map. */
static int read_index(struct ls_reader *reader, int64_t index, bool want_pixels, bool want_label,
                      struct ls_record *record, struct ls_error *error)
{
    struct ls_dataset *dataset = reader->dataset;
    if (dataset->cache != NULL && ls_cache_find(dataset->cache, dataset->source, index, record))
        return 0;
    bool keeps = dataset->cache != NULL && want_pixels && !reader->source->hash_only;
    reader->source->without_maps = !want_label && !keeps;
    LS_TRY(ls_source_read(reader->source, index, want_pixels, record, error));
    if (keeps)
        ls_cache_keep(dataset->cache, dataset->source, index, record);
    return 0;
}

static int read_record(struct ls_reader *reader, int64_t ordinal, bool want_pixels, bool want_label,
                       struct ls_record *record, struct ls_error *error)
{
    if (ordinal < 0)
        return ls_fail(error, LOCKSTEP_INTERNAL, reader->dataset->name, NULL,
                       "sample %" PRId64 " was asked for", ordinal);
    int64_t index = record_index(reader, ordinal);
    LS_TRY(read_index(reader, index, want_pixels, want_label, record, error));
    note_hash(reader, index, record, want_pixels, want_label);
    return 0;
}

static int hash_index(struct ls_reader *reader, int64_t index, bool data, bool label,
                      uint64_t *hash, struct ls_error *error)
{
    struct ls_record record;
    reader->source->hash_only = true;
    int status = read_index(reader, index, data, label, &record, error);
    reader->source->hash_only = false;
    if (status == 0)
        *hash = note_hash(reader, index, &record, data, label);
    return status;
}

int ls_reader_hash(struct ls_reader *reader, int64_t ordinal, bool want_data, bool want_label,
                   int64_t *record, uint64_t *hash, struct ls_error *error)
{
    *record = record_index(reader, ordinal);
    return hash_index(reader, *record, want_data, want_label, hash, error);
}

int ls_reader_hash_record(struct ls_reader *reader, int64_t record, uint64_t *hash,
                          struct ls_error *error)
{
    return hash_index(reader, record, true, true, hash, error);
}

void ls_reader_last(const struct ls_reader *reader, int64_t *record, uint64_t *hash)
{
    *record = reader->last;
    *hash = reader->hash;
}

int ls_reader_fail(struct ls_reader *reader, int64_t ordinal, const char *hint, const char *problem,
                   struct ls_error *error)
{
    struct ls_text name = {0};
    ls_dataset_name_record(reader->dataset, record_index(reader, ordinal), &name);
    int status = ls_fail(error, ls_record_status(problem), reader->dataset->name, hint, "%s: %s",
                         name.data != NULL ? name.data : "a record", problem);
    ls_text_free(&name);
    return status;
}

/* That a record still has the size that it had when its source was opened: memory was made for
 * that. */
static int check_size(struct ls_reader *reader, int64_t ordinal, const struct ls_record *record,
                      struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    int64_t shape[3];
    if (!ls_dataset_varies(dataset))
        return 0;
    ls_source_shape_of(dataset->source, record_index(reader, ordinal), shape);
    if (record->shape[1] == shape[1] && record->shape[2] == shape[2])
        return 0;
    return ls_reader_fail(reader, ordinal, "files must not change while they are in use",
                          "it has another height or width than when the data were opened", error);
}

static int write_label(struct ls_reader *reader, int64_t ordinal, const struct ls_record *record,
                       float *label, struct ls_error *error)
{
    const struct ls_dataset *dataset = reader->dataset;
    if (!dataset->source->has_labels)
        return ls_reader_fail(reader, ordinal, NULL, "the source has no labels", error);
    if (dataset->source->has_maps) {
        const char *problem =
            ls_transform_map(&dataset->transform, record, (uint64_t)ordinal, true, label);
        return problem == NULL ? 0 : ls_reader_fail(reader, ordinal, NULL, problem, error);
    }
    if (record->label > 1 << 24 || record->label < -(1 << 24))
        return ls_reader_fail(reader, ordinal, NULL, "its label is beyond 2^24", error);
    *label = (float)record->label;
    return 0;
}

int ls_reader_fetch(struct ls_reader *reader, int64_t ordinal, float *sample, float *label,
                    struct ls_error *error)
{
    struct ls_dataset *dataset = reader->dataset;
    struct ls_record record;
    atomic_fetch_add_explicit(&dataset->reads, 1, memory_order_relaxed);
    LS_TRY(read_record(reader, ordinal, sample != NULL, label != NULL, &record, error));
    LS_TRY(check_size(reader, ordinal, &record, error));
    if (sample != NULL) {
        const char *problem = ls_transform_apply(&dataset->transform, &record, (uint64_t)ordinal,
                                                 true, &reader->scratch, sample);
        if (problem != NULL)
            return ls_reader_fail(reader, ordinal, NULL, problem, error);
    }
    return label != NULL ? write_label(reader, ordinal, &record, label, error) : 0;
}

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

int ls_reader_fetch_raw(struct ls_reader *reader, int64_t ordinal, int64_t shape[3], float *pixels,
                        int *label, struct ls_error *error)
{
    struct ls_record record;
    LS_TRY(read_record(reader, ordinal, pixels != NULL, false, &record, error));
    memcpy(shape, record.shape, sizeof record.shape);
    if (label != NULL)
        *label = record.label;
    if (pixels == NULL)
        return 0;
    int64_t size = ls_record_size(shape);
    for (int64_t i = 0; i < size; i++)
        pixels[i] = record.bytes != NULL ? (float)record.bytes[i] : record.floats[i];
    if (reader->dataset->source->bgr && shape[0] == 3)
        swap_planes(shape, pixels);
    return 0;
}

/* Pictures decode to blue, green, red; a source that has red first wants it the other way. */
static void swap_bytes(const struct ls_record *record, uint8_t *pixels)
{
    int64_t size = record->shape[1] * record->shape[2];
    for (int64_t i = 0; i < size; i++) {
        uint8_t first = pixels[i];
        pixels[i] = pixels[2 * size + i];
        pixels[2 * size + i] = first;
    }
}

/* The picture as a record of this data set. */
static const char *make_record(struct ls_reader *reader, const uint8_t *bytes, size_t size,
                               struct ls_record *record)
{
    const struct ls_source *source = reader->dataset->source;
    int channels = (int)source->shape[0];
    if (channels != 1 && channels != 3)
        return "the data have neither one channel nor three, so pictures cannot stand in for them";
    struct ls_picture picture;
    const char *problem =
        ls_picture_decode(bytes, size, channels, &reader->source->picture, &picture);
    if (problem == NULL && source->varies && reader->dataset->transform.crop > 0)
        problem = ls_picture_to_record(&picture, &reader->source->record, record);
    else if (problem == NULL)
        problem =
            ls_picture_resize_to_record(&picture, (int)source->shape[1], (int)source->shape[2],
                                        &reader->source->record, record);
    if (problem == NULL && channels == 3 && !source->bgr)
        swap_bytes(record, reader->source->record.data);
    return problem;
}

int ls_reader_picture(struct ls_reader *reader, const char *path, float *sample,
                      struct ls_error *error)
{
    char *bytes;
    size_t size;
    LS_TRY(ls_file_read(path, PICTURE_LIMIT, LOCKSTEP_DATA, &bytes, &size, error));
    struct ls_record record = {0};
    const char *problem = make_record(reader, (const uint8_t *)bytes, size, &record);
    ls_free(bytes);
    if (problem == NULL)
        problem = ls_transform_apply(&reader->dataset->transform, &record, 0, false,
                                     &reader->scratch, sample);
    return problem == NULL ? 0
                           : ls_fail(error, ls_record_status(problem), path, NULL, "%s", problem);
}
