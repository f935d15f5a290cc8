/* Reading of source RECORDS: sequences are filled up, or packed; see records.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "data/numbers.h"
#include "data/records_inner.h"

int64_t ls_records_steps(const struct ls_records *records, int64_t record, int array)
{
    int64_t begin, end;
    ls_record_arrays_range(&records->arrays.item[array], record, &begin, &end);
    return end - begin;
}

/* Writes a number to steps [from, to) of a tensor. */
static void fill(const struct ls_records_tensor *tensor, enum ls_dtype type, unsigned char *out,
                 int64_t from, int64_t to)
{
    const int32_t whole = type == LS_I32 ? (int32_t)tensor->pad : 0;
    const void *number = type == LS_I32 ? (const void *)&whole : (const void *)&tensor->pad;
    const size_t size = sizeof whole, end = (size_t)to * tensor->step;
    for (size_t at = (size_t)from * tensor->step; at < end; at += size)
        memcpy(out + at, number, size);
}

/* Copies rows [begin, end) of an array, which are asked for lost bytes before anything is made of
 * them. */
static int copy_rows(const struct ls_record_array *array, int64_t begin, int64_t end, void *out,
                     struct ls_error *error)
{
    memcpy(out, array->mapping.data + array->offset + (size_t)begin * array->row,
           (size_t)(end - begin) * array->row);
    return ls_file_lost(&array->mapping, array->path, LOCKSTEP_DATA, error);
}

/* The numbers of a record's sequence, behind `done` steps of a tensor with room for `steps`. */
static int put_sequence(struct ls_source_reader *reader, int k, int64_t record, int64_t done,
                        int64_t steps, unsigned char *out, uint64_t *hash, struct ls_error *error)
{
    const struct ls_records *records = reader->source->state;
    const struct ls_records_tensor *tensor = &records->tensor[k];
    const struct ls_record_array *array = &records->arrays.item[tensor->array];
    char text[LS_NUMBER_TEXT];
    int64_t begin, end;
    ls_record_arrays_range(array, record, &begin, &end);
    if (end - begin > steps - done)
        return ls_source_bad_record(
            ls_fail(error, LOCKSTEP_DATA, array->path, "records_param { window } needs the longest",
                    "record %" PRId64 ": it has %" PRId64 " steps, and a window %" PRId64, record,
                    end - begin, records->window));
    if (end == begin)
        return 0;
    const size_t bytes = (size_t)(end - begin) * array->row;
    void *raw = ls_buffer_reserve(&reader->map, bytes, 1);
    if (raw == NULL)
        return ls_fail_memory(error, "a record");
    LS_TRY(copy_rows(array, begin, end, raw, error));
    *hash = ls_hash_wide(raw, bytes, *hash);
    void *at = out + (size_t)done * tensor->step;
    const int64_t count = (int64_t)(bytes / ls_dtype_size(array->type));
    const bool integer = reader->source->tensor[k].type == LS_I32;
    const int64_t taken = integer ? ls_numbers_to_i32(array->type, raw, count, at)
                                  : ls_numbers_to_f32(array->type, raw, count, false, at);
    if (taken == count)
        return 0;
    return ls_source_bad_record(ls_fail(error, LOCKSTEP_DATA, array->path, NULL,
                                        "record %" PRId64 ": it has the number %s, which %s",
                                        record, ls_number_text(array->type, raw, taken, text),
                                        ls_number_fault(array->type, raw, taken, integer)));
}

/* What follows from lengths, of one more record that has steps [done, done + count). */
static void put_places(const struct ls_records_tensor *tensor, int32_t *out, int64_t done,
                       int64_t count, int32_t segment)
{
    for (int64_t i = 0; i < count; i++)
        switch (tensor->part) {
        case LS_PART_POSITION:
            out[done + i] = (int32_t)i;
            break;
        case LS_PART_SEGMENT:
            out[done + i] = segment;
            break;
        case LS_PART_CONT:
            out[done + i] = i > 0;
            break;
        default:
            out[done + i] = 1; /* LS_PART_MASK */
        }
}

/* A tensor of window `index`, which is a record, or several that are packed. */
static int make_sequence(struct ls_source_reader *reader, int k, int64_t index, int64_t steps,
                         unsigned char *out, uint64_t *hash, struct ls_error *error)
{
    const struct ls_records *records = reader->source->state;
    const struct ls_records_tensor *tensor = &records->tensor[k];
    const struct ls_first_fit *packing = &records->packing;
    const bool packed = packing->first != NULL;
    const uint32_t begin = packed ? packing->first[index] : 0;
    const uint32_t end = packed ? packing->first[index + 1] : 1;
    int64_t done = 0;
    int32_t segment = 0;
    for (uint32_t i = begin; i < end; i++) {
        const int64_t record = packed ? (int64_t)packing->order[i] : index;
        const int64_t count = ls_records_steps(records, record, tensor->array);
        if (tensor->part == LS_PART_NUMBERS)
            LS_TRY(put_sequence(reader, k, record, done, steps, out, hash, error));
        else
            put_places(tensor, (int32_t *)(void *)out, done,
                       count < steps - done ? count : steps - done, segment);
        done += count < steps - done ? count : steps - done;
        segment += count > 0;
    }
    if (tensor->part == LS_PART_NUMBERS || tensor->part == LS_PART_MASK)
        fill(tensor, reader->source->tensor[k].type, out, done, steps);
    else /* what is left is a record of its own */
        put_places(tensor, (int32_t *)(void *)out, done, steps - done, segment);
    return 0;
}

static int read_tensor(struct ls_source_reader *reader, int k, int64_t index,
                       struct ls_record_tensor *out, unsigned char *room, struct ls_error *error)
{
    const struct ls_records *records = reader->source->state;
    const struct ls_records_tensor *tensor = &records->tensor[k];
    const struct ls_record_array *array = &records->arrays.item[tensor->array];
    unsigned char *at = room + tensor->place;
    out->hash = 0;
    if (tensor->part == LS_PART_LENGTH) {
        const int32_t length = (int32_t)ls_records_steps(records, index, tensor->array);
        memcpy(at, &length, sizeof length);
        out->hash = ls_mix((uint64_t)length + 1);
    } else if (array->ragged) {
        LS_TRY(make_sequence(reader, k, index, out->shape.dim[0], at, &out->hash, error));
        if (tensor->part != LS_PART_NUMBERS)
            out->hash = ls_hash_wide(at, (size_t)out->shape.dim[0] * tensor->step, (uint64_t)k);
    } else {
        LS_TRY(copy_rows(array, index, index + 1, at, error));
        out->hash = ls_hash_wide(at, array->row, 0);
    }
    out->data = at;
    return 0;
}

int ls_records_read(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                    struct ls_record *record, struct ls_error *error)
{
    const struct ls_records *records = reader->source->state;
    unsigned char *room = ls_buffer_reserve(&reader->record, records->bytes, 1);
    if (room == NULL)
        return ls_fail_memory(error, "a record");
    for (int k = 0; k < record->count; k++)
        if ((wanted & LS_TENSOR(k)) != 0)
            LS_TRY(read_tensor(reader, k, index, &record->tensor[k], room, error));
    return 0;
}
