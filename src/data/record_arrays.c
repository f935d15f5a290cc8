/* The arrays of source RECORDS; see the header. Every offset is checked when the files are opened,
 * and kept, so that a file which changes cannot lead out of an array.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/record_arrays.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/npy_header.h"

static const char ending[] = ".npy", offsets_ending[] = ".offsets.npy";

static bool ends_with(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcmp(path + length - tail, end) == 0;
}

/* "tokens" of "data/tokens.npy" and of "data/tokens.offsets.npy"; the length. */
static int base_name(const char *path, const char **begin)
{
    const char *slash = strrchr(path, '/');
    *begin = slash != NULL ? slash + 1 : path;
    const size_t length = strlen(*begin);
    const char *tail = ends_with(*begin, offsets_ending) ? offsets_ending
                       : ends_with(*begin, ending)       ? ending
                                                         : "";
    return (int)(length - strlen(tail));
}

/* Checks that a file has as many numbers as its header says. */
static int check_file(const char *path, const struct ls_mapping *mapping,
                      const struct ls_npy_header *header, size_t *row, struct ls_error *error)
{
    int64_t bytes, all;
    if (!ls_shape_valid(&header->sample, false))
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "has records of no numbers, or of too many");
    if (!ls_multiply(ls_shape_size(&header->sample), (int64_t)ls_dtype_size(header->type),
                     &bytes) ||
        !ls_multiply(bytes, header->count, &all))
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "has impossible extents");
    const uint64_t there = mapping->size - header->size;
    if ((uint64_t)all != there)
        return ls_fail(error, LOCKSTEP_DATA, path, (uint64_t)all > there ? "write it again" : NULL,
                       "%s: %" PRIu64 " bytes of numbers where %" PRId64 " should be",
                       (uint64_t)all > there ? "is cut off" : "has something behind its end", there,
                       all);
    *row = (size_t)bytes;
    return 0;
}

static int open_array(const char *path, struct ls_record_array *array, struct ls_error *error)
{
    struct ls_npy_header header;
    const char *name;
    const int length = base_name(path, &name);
    if (length >= (int)sizeof array->name)
        return ls_fail(error, LOCKSTEP_DATA, path, "give it a shorter name",
                       "has a name of %d bytes; a tensor's has %zu at most", length,
                       sizeof array->name - 1);
    snprintf(array->name, sizeof array->name, "%.*s", length, name);
    array->path = ls_copy_string(path);
    if (array->path == NULL)
        return ls_fail_memory(error, "a path");
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &array->mapping, error));
    int status = ls_npy_header_read(path, array->mapping.data, array->mapping.size, &header, error);
    if (status == 0)
        status = check_file(path, &array->mapping, &header, &array->row, error);
    LS_TRY(ls_file_lost(&array->mapping, path, LOCKSTEP_DATA, error));
    LS_TRY(status);
    array->offset = header.size;
    array->type = header.type;
    array->sample = header.sample;
    array->rows = header.count;
    return 0;
}

/* ---- Offsets --------------------------------------------------------------------------------- */

/* The i-th number of some that are little-endian integers; INT64_MAX where it is larger. */
static int64_t integer_at(const unsigned char *numbers, enum ls_dtype type, int64_t i)
{
    uint64_t bits = 0;
    const size_t size = ls_dtype_size(type);
    for (size_t b = size; b-- > 0;)
        bits = bits << 8 | numbers[(size_t)i * size + b];
    if (type == LS_I32)
        return (int32_t)(uint32_t)bits;
    return type == LS_U64 && bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

static int check_offset(const char *path, const struct ls_record_array *array, int64_t i,
                        struct ls_error *error)
{
    const int64_t now = array->begins[i], before = i > 0 ? array->begins[i - 1] : 0;
    if (i == 0 && now != 0)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "begins with %" PRId64 "; the first record begins at 0", now);
    if (now < before || now > array->rows)
        return ls_fail(
            error, LOCKSTEP_DATA, path, "numpy.cumsum([0] + [len(record) for record in records])",
            "its number %" PRId64 " is %" PRId64 ", which lies outside of %" PRId64 " to %" PRId64,
            i, now, before, array->rows);
    return 0;
}

/* Takes the offsets of an array from a file. */
static int take_offsets(const char *path, const struct ls_mapping *mapping,
                        struct ls_record_array *array, struct ls_error *error)
{
    struct ls_npy_header header;
    size_t row;
    LS_TRY(ls_npy_header_read(path, mapping->data, mapping->size, &header, error));
    if (header.sample.rank != 0 || (header.type != LS_I64 && header.type != LS_U64 &&
                                    header.type != LS_I32 && header.type != LS_U32))
        return ls_fail(error, LOCKSTEP_DATA, path,
                       "numpy.cumsum([0] + [len(record) for record in records])",
                       "has no list of whole numbers of 32 or 64 bits");
    LS_TRY(check_file(path, mapping, &header, &row, error));
    if (header.count < 1)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "has no numbers; records have one more");
    const int64_t records = header.count - 1;
    array->begins = ls_alloc((size_t)header.count, sizeof *array->begins);
    if (array->begins == NULL)
        return ls_fail_memory(error, "the offsets of records");
    array->ragged = true;
    for (int64_t i = 0; i <= records; i++) {
        array->begins[i] = integer_at(mapping->data + header.size, header.type, i);
        LS_TRY(check_offset(path, array, i, error));
    }
    if (array->begins[records] != array->rows)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                       "its last number is %" PRId64 ", and '%.200s' has %" PRId64 " rows",
                       array->begins[records], array->path, array->rows);
    array->rows = records;
    return 0;
}

static int read_offsets(const char *path, struct ls_record_arrays *arrays, struct ls_error *error)
{
    struct ls_record_array *array = NULL;
    struct ls_mapping mapping;
    const char *name;
    const int length = base_name(path, &name);
    for (int i = 0; i < arrays->count; i++)
        if ((int)strlen(arrays->item[i].name) == length &&
            memcmp(arrays->item[i].name, name, (size_t)length) == 0)
            array = &arrays->item[i];
    if (array == NULL)
        return ls_fail(error, LOCKSTEP_DATA, path, "source: \"x.npy\" source: \"x.offsets.npy\"",
                       "has the offsets of %.*s.npy, which is no source", length, name);
    if (array->ragged)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "'%s' has other offsets already",
                       array->name);
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, error));
    int status = take_offsets(path, &mapping, array, error);
    int lost = ls_file_lost(&mapping, path, LOCKSTEP_DATA, error);
    ls_file_unmap(&mapping);
    return lost != 0 ? lost : status;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static int check_counts(struct ls_record_arrays *arrays, struct ls_error *error)
{
    for (int i = 0; i < arrays->count; i++) {
        const struct ls_record_array *array = &arrays->item[i], *first = &arrays->item[0];
        if (array->rows != first->rows)
            return ls_fail(error, LOCKSTEP_DATA, array->path,
                           "x.offsets.npy says where records of x.npy begin, if they differ in "
                           "length",
                           "has %" PRId64 " records, but '%.200s' has %" PRId64, array->rows,
                           first->path, first->rows);
    }
    arrays->records = arrays->item[0].rows;
    return 0;
}

int ls_record_arrays_open(const struct ls_source_options *options,
                          const struct ls_option_files *files, struct ls_record_arrays *arrays,
                          struct ls_error *error)
{
    *arrays = (struct ls_record_arrays){0};
    for (size_t i = 0; i < files->count; i++) {
        if (ends_with(files->item[i], offsets_ending))
            continue;
        if (arrays->count == LS_RECORD_TENSORS)
            return ls_option_fail(options, "source", NULL, error,
                                  "a record can have at most %d tensors", LS_RECORD_TENSORS);
        LS_TRY(open_array(files->item[i], &arrays->item[arrays->count++], error));
    }
    if (arrays->count == 0)
        return ls_option_fail(options, "source", "source: \"x.npy\" source: \"x.offsets.npy\"",
                              error, "there are offsets, and no arrays");
    for (size_t i = 0; i < files->count; i++)
        if (ends_with(files->item[i], offsets_ending))
            LS_TRY(read_offsets(files->item[i], arrays, error));
    return check_counts(arrays, error);
}

void ls_record_arrays_close(struct ls_record_arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        ls_file_unmap(&arrays->item[i].mapping);
        ls_free(arrays->item[i].path);
        ls_free(arrays->item[i].begins);
    }
}

void ls_record_arrays_range(const struct ls_record_array *array, int64_t record, int64_t *begin,
                            int64_t *end)
{
    *begin = array->ragged ? array->begins[record] : record;
    *end = array->ragged ? array->begins[record + 1] : record + 1;
}
