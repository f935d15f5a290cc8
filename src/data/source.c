/* The table of sources, and what they share.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"

#define SOURCE_ENTRY(name) &ls_source_##name,
const struct ls_source_type *const ls_source_types[] = {LOCKSTEP_DATA_BACKENDS(SOURCE_ENTRY) NULL};

const struct ls_source_type *ls_source_type_of(int backend)
{
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        if (ls_source_types[i]->backend == backend)
            return ls_source_types[i];
    return NULL;
}

const struct ls_source_type *ls_source_type_named(const char *name)
{
    for (size_t i = 0; ls_source_types[i] != NULL; i++)
        if (strcasecmp(ls_source_types[i]->name, name) == 0)
            return ls_source_types[i];
    return NULL;
}

/* The status that callers see of a bad record, with a hint where it has none. */
static int end_at_bad_record(struct ls_error *error)
{
    static const char hint[] = "'lockstep check' lists all bad records of a training; "
                               "data_param { on_bad_record: SKIP } puts others in their place";
    struct ls_problem *problem =
        error != NULL && error->count > 0 ? &error->problems[error->count - 1] : NULL;
    if (problem != NULL && problem->hint[0] == '\0')
        memcpy(problem->hint, hint, sizeof hint);
    return LOCKSTEP_DATA;
}

void ls_source_note_picture(struct ls_source *source, bool turned, const char *name, int64_t index)
{
    source->looked_at++;
    if (!turned || source->turned++ > 0)
        return;
    if (name != NULL)
        snprintf(source->first_turned, sizeof source->first_turned, "%s", name);
    else
        snprintf(source->first_turned, sizeof source->first_turned, "record %" PRId64, index);
}

/* Adds to the source's warning that pictures lie otherwise than they are seen. */
static int warn_of_turned(struct ls_source *source, const char *place, struct ls_error *error)
{
    struct ls_text text = {0};
    if (source->turned == 0)
        return 0;
    if (source->warning != NULL)
        ls_text_format(&text, "%s; ", source->warning);
    ls_text_format(&text,
                   "%s: %" PRId64 " of %" PRId64
                   " pictures %s an orientation mark (EXIF), which is "
                   "not followed: they are taken as they are stored (%s%s)",
                   place, source->turned, source->looked_at, source->turned == 1 ? "has" : "have",
                   source->first_turned, source->turned > 1 ? ", ..." : "");
    if (text.failed) {
        ls_text_free(&text);
        return ls_fail_memory(error, "a data source");
    }
    ls_free(source->warning);
    source->warning = text.data;
    return 0;
}

int ls_source_open(const struct ls_source_options *options, struct ls_source **source,
                   struct ls_error *error)
{
    *source = NULL;
    struct ls_source *s = ls_alloc(1, sizeof *s);
    if (s == NULL)
        return ls_fail_memory(error, "a data source");
    s->type = options->type;
    s->forgiving = options->forgiving;
    s->skipping = options->skipping;
    const char *place = ls_source_options_name(options);
    int status = s->type->open(options, s, error);
    if (status == LS_BAD_RECORD)
        status = end_at_bad_record(error);
    s->bgr = s->type->bgr && s->tensor[0].role == LS_TENSOR_IMAGE && s->tensor[0].shape.dim[0] == 3;
    if (status == 0 && s->count < 1)
        status = ls_fail(error, LOCKSTEP_DATA, place, NULL, "has no records");
    if (status == 0)
        status = warn_of_turned(s, place, error);
    if (status == 0 && s->count > UINT32_MAX)
        status = ls_fail(error, LOCKSTEP_DATA, place, NULL, "has more than 2^32 - 1 records");
    if (status != 0) {
        ls_source_close(s);
        return status;
    }
    *source = s;
    return 0;
}

void ls_source_close(struct ls_source *source)
{
    if (source == NULL)
        return;
    if (source->type->close != NULL)
        source->type->close(source);
    for (int i = 0; i < source->class_count; i++)
        ls_free(source->class_name[i]);
    ls_free(source->class_name);
    ls_free(source->warning);
    ls_free(source->sizes);
    ls_free(source);
}

int ls_source_reader_open(const struct ls_source *source, struct ls_source_reader **reader,
                          struct ls_error *error)
{
    *reader = ls_alloc(1, sizeof **reader);
    if (*reader == NULL)
        return ls_fail_memory(error, "a reader of data");
    (*reader)->source = source;
    return 0;
}

void ls_source_reader_close(struct ls_source_reader *reader)
{
    if (reader == NULL)
        return;
    ls_buffer_free(&reader->file);
    ls_buffer_free(&reader->picture);
    ls_buffer_free(&reader->record);
    ls_buffer_free(&reader->map);
    ls_buffer_free(&reader->boxes);
    ls_free(reader);
}

/* All tensors, without data. */
static void start_record(const struct ls_source *source, int64_t index, struct ls_record *record)
{
    record->count = source->tensors;
    for (int k = 0; k < source->tensors; k++) {
        struct ls_record_tensor *tensor = &record->tensor[k];
        tensor->type = source->tensor[k].type;
        ls_source_tensor_shape(source, index, k, &tensor->shape);
        tensor->data = NULL;
        tensor->hash = 0;
    }
}

int ls_source_read(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                   struct ls_record *record, struct ls_error *error)
{
    const struct ls_source *source = reader->source;
    if (index < 0 || index >= source->count)
        return ls_fail(error, LOCKSTEP_INTERNAL, source->type->name, NULL,
                       "record %lld of %lld was asked for", (long long)index,
                       (long long)source->count);
    start_record(source, index, record);
    int status = source->type->read(reader, index, wanted, record, error);
    reader->bad = status == LS_BAD_RECORD;
    return reader->bad ? end_at_bad_record(error) : status;
}

void *ls_buffer_reserve(struct ls_buffer *buffer, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / 2 / size)
        return NULL;
    size_t bytes = count * size;
    if (buffer->data == NULL || bytes > buffer->capacity) {
        ls_free_aligned(buffer->data);
        buffer->capacity = 0;
        buffer->data = ls_alloc_aligned(bytes > 64 ? bytes : 64);
        if (buffer->data == NULL)
            return NULL;
        buffer->capacity = bytes > 64 ? bytes : 64;
    }
    return buffer->data;
}

void ls_buffer_free(struct ls_buffer *buffer)
{
    ls_free_aligned(buffer->data);
    *buffer = (struct ls_buffer){0};
}

int64_t ls_record_size(const int64_t shape[3])
{
    return shape[0] * shape[1] * shape[2];
}

bool ls_record_shape_valid(const int64_t shape[3])
{
    for (int i = 0; i < 3; i++)
        if (shape[i] < 1 || shape[i] > 65536)
            return false;
    return ls_record_size(shape) <= INT64_C(1) << 28;
}

bool ls_source_has_image(const struct ls_source *source)
{
    return source->tensor[0].role == LS_TENSOR_IMAGE;
}

bool ls_source_has_boxes(const struct ls_source *source)
{
    return source->tensors > 1 && source->tensor[1].role == LS_TENSOR_BOXES;
}

struct ls_tensor_info *ls_source_add_tensor(struct ls_source *source, const char *name,
                                            enum ls_tensor_role role, enum ls_dtype type)
{
    LS_ASSERT(source->tensors < LS_RECORD_TENSORS);
    struct ls_tensor_info *info = &source->tensor[source->tensors++];
    *info = (struct ls_tensor_info){.role = role, .type = type, .largest = -1};
    snprintf(info->name, sizeof info->name, "%s", name);
    return info;
}

void ls_source_add_image(struct ls_source *source)
{
    ls_source_add_tensor(source, "image", LS_TENSOR_IMAGE, LS_U8)->shape.rank = 3;
}

struct ls_tensor_info *ls_source_add_label(struct ls_source *source)
{
    return ls_source_add_tensor(source, "label", LS_TENSOR_PLAIN, LS_I32);
}

void ls_record_set_image(struct ls_record *record, enum ls_dtype type, const int64_t shape[3],
                         const void *data)
{
    struct ls_record_tensor *image = &record->tensor[0];
    image->type = type;
    image->shape.rank = 3;
    memcpy(image->shape.dim, shape, 3 * sizeof *shape);
    image->data = data;
}

void ls_record_set_label(struct ls_source_reader *reader, struct ls_record *record, int32_t label)
{
    reader->label = label;
    record->tensor[1].data = &reader->label;
    record->tensor[1].hash = ls_mix((uint64_t)(uint32_t)label + 1);
}

int64_t ls_tensor_numbers(const struct ls_record_tensor *tensor)
{
    return ls_shape_size(&tensor->shape);
}

size_t ls_tensor_bytes(const struct ls_record_tensor *tensor)
{
    return (size_t)ls_tensor_numbers(tensor) * ls_dtype_size(tensor->type);
}

/* Room for the sizes of all records, which are the first's until something else is known. */
static bool make_sizes(struct ls_source *source)
{
    source->sizes = ls_alloc((size_t)source->count, sizeof *source->sizes);
    for (int64_t i = 0; source->sizes != NULL && i < source->count; i++)
        for (int k = 0; k < 2; k++)
            source->sizes[i][k] = (int32_t)ls_source_image(source)[k + 1];
    return source->sizes != NULL;
}

int ls_source_note_shape(struct ls_source *source, int64_t index, const int64_t shape[3],
                         struct ls_error *error)
{
    if (!ls_record_shape_valid(shape))
        return ls_source_bad_record(ls_fail(error, LOCKSTEP_DATA, source->type->name, NULL,
                                            "record %" PRId64 " of %" PRId64 " x %" PRId64
                                            " x %" PRId64 " numbers is too large",
                                            index, shape[0], shape[1], shape[2]));
    int64_t *first = source->tensor[0].shape.dim;
    if (first[0] == 0) /* of the first; where that is bad, of the first that is not */
        memcpy(first, shape, 3 * sizeof *shape);
    if (shape[1] == first[1] && shape[2] == first[2])
        return 0;
    if (source->sizes == NULL && !make_sizes(source))
        return ls_fail_memory(error, "the sizes of records");
    source->sizes[index][0] = (int32_t)shape[1];
    source->sizes[index][1] = (int32_t)shape[2];
    source->varies = true;
    return 0;
}

int ls_source_bad_record(int status)
{
    return status == LOCKSTEP_DATA ? LS_BAD_RECORD : status;
}

static _Thread_local struct ls_error aside;

struct ls_error *ls_source_aside(const struct ls_source *source, struct ls_error *error)
{
    if (!source->forgiving && !source->skipping)
        return error;
    ls_error_clear(&aside);
    return &aside;
}

int ls_source_forgive(const struct ls_source *source, int status, struct ls_error *error)
{
    if (!source->forgiving && !source->skipping)
        return status;
    if (status == LS_BAD_RECORD || (status == LOCKSTEP_DATA && source->forgiving))
        return 0;
    if (status != 0)
        ls_error_add(error, &aside);
    return status;
}

static int find_good(struct ls_source_reader *reader, int64_t *index, struct ls_error *error)
{
    const struct ls_source *source = reader->source;
    for (int64_t i = 0; i < source->count; i++) {
        struct ls_record record;
        struct ls_error *about = ls_source_aside(source, error);
        start_record(source, i, &record);
        int status = source->type->read(reader, i, LS_ALL_TENSORS, &record, about);
        LS_TRY(ls_source_forgive(source, status, error));
        if (status == 0) {
            *index = i;
            return 0;
        }
    }
    *index = -1;
    return 0;
}

int ls_source_first_good(const struct ls_source *source, int64_t *index, struct ls_error *error)
{
    struct ls_source_reader *reader;
    *index = 0;
    if (!source->forgiving && !source->skipping)
        return 0;
    LS_TRY(ls_source_reader_open(source, &reader, error));
    int status = find_good(reader, index, error);
    ls_source_reader_close(reader);
    return status;
}

void ls_source_note_bytes(struct ls_source *source, size_t bytes)
{
    if (bytes > source->decode_bytes)
        source->decode_bytes = bytes;
}

void ls_source_shape_of(const struct ls_source *source, int64_t index, int64_t shape[3])
{
    if (source->steps > 0)
        memcpy(shape, (const int64_t[3]){1, source->steps, 1}, 3 * sizeof *shape);
    else
        memcpy(shape, ls_source_image(source), 3 * sizeof *shape);
    if (source->sizes == NULL)
        return;
    shape[1] = source->sizes[index][0];
    shape[2] = source->sizes[index][1];
}

void ls_source_tensor_shape(const struct ls_source *source, int64_t index, int tensor,
                            struct ls_shape *shape)
{
    const struct ls_tensor_info *info = &source->tensor[tensor];
    *shape = info->shape;
    if (info->role == LS_TENSOR_PLAIN || info->role == LS_TENSOR_BOXES)
        return;
    int64_t image[3];
    ls_source_shape_of(source, index, image);
    if (info->role == LS_TENSOR_SEQUENCE) {
        shape->dim[0] = image[1];
        return;
    }
    shape->rank = 3;
    shape->dim[0] = info->role == LS_TENSOR_MAP ? 1 : image[0];
    shape->dim[1] = image[1];
    shape->dim[2] = image[2];
}
