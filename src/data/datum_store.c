/* Databases of Datum records; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/datum_store.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/datum.h"
#include "data/label_map.h"
#include "data/numbers.h"
#include "data/orientation.h"
#include "data/picture.h"
#include "data/resize.h"
#include "ir/dtype.h"

/* A database of at most this many bytes is looked through when it is opened, so that a bad record
 * is found before training; a larger one would take minutes on a disk. */
static const uint64_t CHECK_LIMIT = (uint64_t)1 << 30;
enum { SAMPLE = 1024 /* records of a larger one that are looked at */ };

int ls_datum_store_bad(const struct ls_source *source, int64_t index,
                       const struct ls_problem *problem, struct ls_error *error)
{
    const struct ls_datum_store *store = source->state;
    struct ls_text key = {0};
    size_t size;
    const char *bytes = store->key(source, index, &size);
    ls_text_add_bytes(&key, bytes, size);
    for (size_t i = 0; i < key.length; i++)
        if ((unsigned char)key.data[i] < ' ' || key.data[i] == 0x7f)
            key.data[i] = '?';
    int status = ls_fail(error, problem->status, store->file, problem->hint,
                         "record %lld (key \"%.100s\"): %s", (long long)index,
                         key.data != NULL ? key.data : "", problem->message);
    ls_text_free(&key);
    return ls_source_bad_record(status);
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static int check_annotation(const struct ls_source *source, const struct ls_annotation *annotation,
                            struct ls_problem *problem)
{
    const struct ls_datum_store *store = source->state;
    const int64_t rows = store->measured ? source->tensor[1].shape.dim[1] : store->boxes;
    if (!annotation->says_type && !store->typed)
        return ls_problem_set(problem, LOCKSTEP_DATA, "annotated_data_param { anno_type: BBOX }",
                              "it does not say that its annotations are boxes");
    if (rows > 0 && annotation->boxes > rows)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "it has %lld boxes, and there are %lld rows for them",
                              (long long)annotation->boxes, (long long)rows);
    return 0;
}

/* The Datum of a record, which may be all of it; *boxes: how many it has. */
static int unwrap(const struct ls_source *source, const uint8_t **bytes, size_t *size,
                  int64_t *boxes, struct ls_problem *problem)
{
    const struct ls_datum_store *store = source->state;
    struct ls_annotation annotation;
    *boxes = 0;
    if (!store->annotated)
        return 0;
    LS_TRY(ls_annotation_read(*bytes, *size, &annotation, problem));
    LS_TRY(check_annotation(source, &annotation, problem));
    *bytes = annotation.datum;
    *size = annotation.datum_size;
    *boxes = annotation.boxes;
    return 0;
}

/* The `boxes` boxes of a record. */
static int set_boxes(struct ls_source_reader *reader, struct ls_record *record,
                     const uint8_t *bytes, size_t size, int64_t boxes, struct ls_error *error)
{
    struct ls_record_tensor *tensor = &record->tensor[1];
    const int64_t rows = reader->source->tensor[1].shape.dim[1];
    const int64_t room = boxes > rows ? boxes : rows; /* more only before they are measured */
    float *row = ls_buffer_reserve(&reader->boxes, (size_t)room * LS_BOX_NUMBERS, sizeof *row);
    if (row == NULL)
        return ls_fail_memory(error, "boxes");
    if (boxes > 0)
        ls_annotation_rows(bytes, size, room, row);
    else
        ls_annotation_clear(room, row);
    tensor->data = row;
    tensor->hash =
        ls_hash_wide((const uint8_t *)row, (size_t)room * LS_BOX_NUMBERS * sizeof *row, 0);
    return 0;
}

/* Reads a Datum, and says what stands there instead. */
static int read_plain(const struct ls_source *source, const uint8_t *bytes, size_t size,
                      struct ls_datum *datum, struct ls_problem *problem)
{
    const struct ls_datum_store *store = source->state;
    int status = ls_datum_read(bytes, size, datum, problem);
    if (status != 0 && !store->annotated && ls_annotation_looks(bytes, size))
        status = ls_problem_set(problem, LOCKSTEP_DATA, "type: \"AnnotatedData\"",
                                "it is an AnnotatedDatum, which a layer of that type reads");
    return status;
}

/* Reads a record from its bytes. */
static int read_datum(const struct ls_source *source, int64_t index, const uint8_t *bytes,
                      size_t size, struct ls_datum *datum, int64_t *boxes, struct ls_error *error)
{
    struct ls_problem problem;
    int status = unwrap(source, &bytes, &size, boxes, &problem);
    if (status == 0)
        status = read_plain(source, bytes, size, datum, &problem);
    if (status == 0)
        status = ls_datum_check(datum, &problem);
    return status == 0 ? 0 : ls_datum_store_bad(source, index, &problem, error);
}

/* The shape of a record after decoding, from its header; *bytes: what decoding it takes. */
static int datum_shape(const struct ls_source *source, int64_t index, const struct ls_datum *datum,
                       int64_t shape[3], size_t *bytes, struct ls_error *error)
{
    const struct ls_datum_store *store = source->state;
    if (!datum->encoded) {
        *bytes = datum->data_size > 0 ? 0 : datum->float_count * ls_dtype_size(LS_F32);
        memcpy(shape, datum->shape, sizeof datum->shape);
        return 0;
    }
    struct ls_picture_header header;
    struct ls_problem problem;
    if (ls_picture_look(datum->data, datum->data_size, &header, &problem) != 0)
        return ls_datum_store_bad(source, index, &problem, error);
    shape[0] = store->channels != 0 ? store->channels : header.channels;
    shape[1] = header.height;
    shape[2] = header.width;
    *bytes = ls_picture_bytes(&header, store->channels, 0, 0);
    return 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Looks at a record's head: its shape, its label. */
static int check_record(struct ls_source *source, int64_t index, int64_t *label,
                        int64_t *most_boxes, struct ls_error *error)
{
    const struct ls_datum_store *store = source->state;
    struct ls_datum datum = {0};
    int64_t shape[3] = {0}, boxes;
    const uint8_t *value;
    size_t bytes = 0, size;
    LS_TRY(store->value(source, NULL, index, &value, &size, error));
    LS_TRY(read_datum(source, index, value, size, &datum, &boxes, error));
    LS_TRY(datum_shape(source, index, &datum, shape, &bytes, error));
    ls_source_note_bytes(source, bytes + size);
    if (datum.encoded)
        ls_source_note_picture(source, ls_picture_is_turned(datum.data, datum.data_size), NULL,
                               index);
    if (datum.label > *label)
        *label = datum.label;
    if (boxes > *most_boxes)
        *most_boxes = boxes;
    if (shape[0] != ls_source_image(source)[0]) {
        struct ls_problem problem;
        ls_problem_set(&problem, LOCKSTEP_DATA, NULL,
                       "it has another number of channels than the first");
        return ls_datum_store_bad(source, index, &problem, error);
    }
    return ls_source_note_shape(source, index, shape, error);
}

static int check_records(struct ls_source *source, struct ls_error *error)
{
    const struct ls_datum_store *store = source->state;
    int64_t largest = INT32_MIN, boxes = 0;
    for (int64_t i = 0; i < source->count; i++)
        LS_TRY(ls_source_forgive(
            source, check_record(source, i, &largest, &boxes, ls_source_aside(source, error)),
            error));
    if (!store->annotated)
        source->tensor[1].largest = largest;
    else if (store->boxes == 0)
        source->tensor[1].shape.dim[1] = boxes > 0 ? boxes : 1;
    return 0;
}

/* A large database whose records are used as they are: where the sizes of some differ, all must be
 * known. */
static int check_sample(struct ls_source *source, struct ls_error *error)
{
    int64_t label = INT32_MIN, boxes = 0;
    int64_t step = source->count / SAMPLE + 1;
    for (int64_t i = 0; i < source->count && !source->varies; i += step)
        LS_TRY(ls_source_forgive(
            source, check_record(source, i, &label, &boxes, ls_source_aside(source, error)),
            error));
    return source->varies ? check_records(source, error) : 0;
}

/* The field that asks for colours or grey. */
static const char *forced_by(const struct ls_datum_options *own)
{
    return own->gray    ? "transform_param.force_gray"
           : own->color ? "transform_param.force_color"
                        : "force_encoded_color";
}

/* Boxes in the place of the label, where the layer is one that reads them. */
static int begin_boxes(const struct ls_source_options *options, struct ls_source *source,
                       struct ls_error *error)
{
    const struct ls_datum_options *own = options->own;
    const Lockstep__AnnotatedDataParameter *param =
        options->layer != NULL ? options->layer->annotated_data_param : NULL;
    struct ls_datum_store *store = source->state;
    store->annotated = true;
    store->typed = param != NULL && param->has_anno_type;
    store->boxes = own->max_boxes;
    ls_source_add_tensor(source, "label", LS_TENSOR_BOXES, LS_F32)->shape =
        (struct ls_shape){3, {1, store->boxes > 0 ? store->boxes : 1, LS_BOX_NUMBERS}};
    return own->label_map != NULL ? ls_label_map_names(own->label_map, source, error) : 0;
}

int ls_datum_store_begin(const struct ls_source_options *options, struct ls_source *source,
                         struct ls_error *error)
{
    const struct ls_datum_options *own = options->own;
    struct ls_datum_store *store = source->state;
    ls_source_add_image(source);
    if (options->layer == NULL
            ? options->annotated
            : options->layer->type != NULL && strcmp(options->layer->type, "AnnotatedData") == 0)
        LS_TRY(begin_boxes(options, source, error));
    else
        ls_source_add_label(source); /* a record without one has 0, as in Caffe */
    if ((own->color || own->encoded_color) && own->gray)
        return ls_option_fail(options, "transform_param.force_gray", NULL, error,
                              "force_color and force_gray cannot both hold");
    store->channels = own->color || own->encoded_color ? 3 : own->gray ? 1 : 0;
    return 0;
}

static int find_file(const char *folder, const char *name, bool *found, struct ls_error *error)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s/%s", folder, name);
    *found = !path.failed && ls_file_exists(path.data);
    const int status = path.failed ? ls_fail_memory(error, "a path") : 0;
    ls_text_free(&path);
    return status;
}

int ls_datum_store_check_kind(const char *folder, const char *own, const char *other,
                              const char *backend, struct ls_error *error)
{
    bool is_own, is_other;
    LS_TRY(find_file(folder, own, &is_own, error));
    LS_TRY(find_file(folder, other, &is_other, error));
    if (is_own || !is_other)
        return 0;
    char hint[64];
    snprintf(hint, sizeof hint, "write backend: %s (--backend %s)", backend, backend);
    return ls_fail(error, LOCKSTEP_DATA, folder, hint, "is a database of another kind: %s",
                   backend);
}

int ls_datum_store_inspect(struct ls_source *source, const struct ls_source_options *options,
                           struct ls_error *error)
{
    struct ls_datum_store *store = source->state;
    struct ls_datum datum = {0};
    int64_t first, boxes;
    const uint8_t *value;
    size_t bytes = 0, size;
    LS_TRY(ls_source_first_good(source, &first, error));
    first = first < 0 ? 0 : first; /* what is wrong with it is reported */
    LS_TRY(store->value(source, NULL, first, &value, &size, error));
    LS_TRY(read_datum(source, first, value, size, &datum, &boxes, error));
    if (!datum.encoded && store->channels != 0)
        return ls_option_fail(options, forced_by(options->own),
                              "records of this database are stored as pixels: leave it out", error,
                              "force_color and force_gray are for encoded records only");
    LS_TRY(datum_shape(source, first, &datum, source->tensor[0].shape.dim, &bytes, error));
    ls_source_note_bytes(source, bytes + size);
    source->encoded = datum.encoded;
    source->tensor[0].type = datum.encoded || datum.data_size > 0 ? LS_U8 : LS_F32;
    int status = 0;
    if (store->size <= CHECK_LIMIT || (store->annotated && store->boxes == 0))
        status = check_records(source, error);
    else if (options->crop == 0)
        status = check_sample(source, error);
    store->measured = store->annotated;
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int decode(struct ls_source_reader *reader, int64_t index, const struct ls_datum *datum,
                  struct ls_record *record, struct ls_error *error)
{
    const struct ls_datum_store *store = reader->source->state;
    struct ls_picture picture;
    struct ls_problem problem;
    int status = ls_picture_decode(datum->data, datum->data_size, store->channels, &reader->picture,
                                   &picture, &problem);
    if (status == 0)
        status = ls_picture_to_record(&picture, &reader->record, record, &problem);
    return status == 0 ? 0 : ls_datum_store_bad(reader->source, index, &problem, error);
}

/* What is known of a record without decoding its picture. *value and *size become its Datum. To be
 * hashed it need not be a record. */
static int read_head(struct ls_source_reader *reader, int64_t index, const uint8_t **value,
                     size_t *size, struct ls_record *record, struct ls_datum *datum,
                     struct ls_error *error)
{
    const struct ls_datum_store *store = reader->source->state;
    const uint8_t *all = *value;
    const size_t bytes = *size;
    struct ls_problem problem;
    int64_t boxes;
    int status = unwrap(reader->source, value, size, &boxes, &problem);
    if (status == 0)
        status = ls_datum_read(*value, *size, datum, &problem);
    const bool read = status == 0;
    if (read)
        status = ls_datum_check(datum, &problem);
    if (status != 0 && (read || !reader->hash_only))
        return ls_datum_store_bad(reader->source, index, &problem, error);
    if (store->annotated)
        return set_boxes(reader, record, all, bytes, read ? boxes : 0, error);
    ls_record_set_label(reader, record, read ? datum->label : 0);
    return 0;
}

/* Of the floats of an image, that have no type which could lack one. */
static int bad_number(const struct ls_source *source, int64_t index, const float *floats,
                      int64_t which, struct ls_error *error)
{
    char number[LS_NUMBER_TEXT];
    struct ls_problem problem;
    ls_problem_set(&problem, LOCKSTEP_DATA, NULL, "its image has the number %s, which %s",
                   ls_number_text(LS_F32, floats, which, number),
                   ls_number_fault(LS_F32, floats, which, false));
    return ls_datum_store_bad(source, index, &problem, error);
}

int ls_datum_store_read(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                        struct ls_record *record, struct ls_error *error)
{
    const struct ls_datum_store *store = reader->source->state;
    struct ls_record_tensor *image = &record->tensor[0];
    bool pixels = (wanted & LS_TENSOR(0)) != 0;
    struct ls_datum datum = {0};
    const uint8_t *value;
    size_t bytes = 0, size;
    LS_TRY(store->value(reader->source, reader, index, &value, &size, error));
    if (pixels)
        image->hash = ls_hash_wide(value, size, 0);
    LS_TRY(read_head(reader, index, &value, &size, record, &datum, error));
    if (reader->hash_only)
        return 0;
    if (!pixels)
        return datum_shape(reader->source, index, &datum, image->shape.dim, &bytes, error);
    if (datum.encoded)
        return decode(reader, index, &datum, record, error);
    if (datum.data_size > 0) {
        ls_record_set_image(record, LS_U8, datum.shape, datum.data);
        return 0;
    }
    float *floats = ls_buffer_reserve(&reader->record, datum.float_count, sizeof *floats);
    if (floats == NULL)
        return ls_fail_memory(error, "a record");
    ls_datum_floats(value, size, floats);
    const int64_t count = (int64_t)datum.float_count;
    const int64_t finite = ls_numbers_to_f32(LS_F32, floats, count, true, NULL);
    if (finite < count)
        return bad_number(reader->source, index, floats, finite, error);
    ls_record_set_image(record, LS_F32, datum.shape, floats);
    return 0;
}

/* The key without the number that Caffe's tools put before it ("00000012_dog/a.jpg"). */
void ls_datum_store_name(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct ls_datum_store *store = source->state;
    size_t size, digits = 0;
    const char *key = store->key(source, index, &size);
    while (digits < size && key[digits] >= '0' && key[digits] <= '9')
        digits++;
    size_t skip = digits < size && key[digits] == '_' ? digits + 1 : digits == size ? digits : 0;
    ls_text_add_bytes(text, key + skip, size - skip);
}

uint64_t ls_datum_store_stamp(const struct ls_source *source)
{
    return ((const struct ls_datum_store *)source->state)->stamp;
}
