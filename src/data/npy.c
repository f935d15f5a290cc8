/* Source NPY: NumPy's arrays, one .npy file for each tensor, records along axis 0.
 *
 * A file is: "\x93NUMPY", two bytes of version (1.0, 2.0, 3.0), the length of the header (16 bits,
 * from version 2.0 on 32, little-endian), the header, the numbers. The header is a dict of Python
 * in one line: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }. Numbers are in
 * C order and little-endian. A number of two bytes without a kind ("<V2") is what NumPy writes for
 * bfloat16.
 *
 * Files are views (base/guard.h); a record's bytes are copied before anything is made of them, so
 * that a file which becomes shorter is found, and never read as zeros. In place of a file there may
 * be an array in memory of that name (data/arrays.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/arrays.h"
#include "data/npy_header.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

struct npy_options {
    struct ls_option_files files;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct npy_options, files),
     .least = 1,
     .most = LS_RECORD_TENSORS,
     .help = "a .npy file; repeat it for each tensor of a record"},
    {.name = NULL}};

struct npy_file {
    char *path;
    const struct ls_memory_array *array; /* NULL: a file, */
    struct ls_mapping mapping;           /* which this is */
    size_t offset;                       /* of the numbers */
    size_t record;                       /* bytes of one */
};

struct npy {
    struct npy_file file[LS_RECORD_TENSORS];
    size_t place[LS_RECORD_TENSORS]; /* of each tensor in a reader's buffer */
    size_t bytes;                    /* of a record in that buffer */
    uint64_t stamp;
    int files;
};

/* "tokens" of "data/tokens.npy" */
static void name_tensor(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/'), *begin = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(begin, '.');
    int length = dot != NULL && strcmp(dot, ".npy") == 0 ? (int)(dot - begin) : (int)strlen(begin);
    snprintf(name, size, "%.*s", length, begin);
}

static int open_header(const char *path, struct npy_file *file, struct ls_npy_header *header,
                       struct ls_error *error)
{
    if (file->array != NULL) {
        *header = file->array->header;
        return 0;
    }
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &file->mapping, error));
    int status = ls_npy_header_read(path, file->mapping.data, file->mapping.size, header, error);
    LS_TRY(ls_file_lost(&file->mapping, path, LOCKSTEP_DATA, error));
    return status;
}

static int open_file(const char *path, struct npy_file *file, struct ls_source *source,
                     struct ls_error *error)
{
    struct ls_npy_header header;
    char name[sizeof source->tensor[0].name];
    file->path = ls_copy_string(path);
    if (file->path == NULL)
        return ls_fail_memory(error, "a path");
    LS_TRY(open_header(path, file, &header, error));
    if (source->tensors > 0 && header.count != source->count)
        return ls_fail(error, LOCKSTEP_DATA, path, "axis 0 counts the records, in every file",
                       "has %" PRId64 " records, but '%.200s' has %" PRId64, header.count,
                       ((const struct npy *)source->state)->file[0].path, source->count);
    file->offset = header.size;
    if (header.count > 0) /* ls_source_open refuses a file without records */
        LS_TRY(ls_npy_record_size(path, &header, file->array == NULL ? file->mapping.size : 0,
                                  &file->record, error));
    source->count = header.count;
    name_tensor(path, name, sizeof name);
    ls_source_add_tensor(source, name, LS_TENSOR_PLAIN, header.type)->shape = header.sample;
    return 0;
}

static int open_npy(const struct ls_source_options *options, struct ls_source *source,
                    struct ls_error *error)
{
    const struct ls_option_files *files = &((const struct npy_options *)options->own)->files;
    struct npy *npy = source->state = ls_alloc(1, sizeof *npy);
    if (npy == NULL)
        return ls_fail_memory(error, "a data source");
    for (size_t i = 0; i < files->count; i++) {
        struct npy_file *file = &npy->file[npy->files++];
        file->array = ls_arrays_find(options->definition, files->item[i]);
        /* While anything of an array is kept, no other one can be at its place. */
        npy->stamp = ls_mix(npy->stamp) + (file->array != NULL ? (uint64_t)(uintptr_t)file->array
                                                               : ls_file_stamp(files->item[i]));
        LS_TRY(open_file(files->item[i], file, source, error));
        npy->place[i] = npy->bytes;
        npy->bytes = ls_align(npy->bytes + file->record);
    }
    ls_source_note_bytes(source, npy->bytes);
    return 0;
}

static void close_npy(struct ls_source *source)
{
    struct npy *npy = source->state;
    for (int i = 0; npy != NULL && i < npy->files; i++) {
        ls_file_unmap(&npy->file[i].mapping);
        ls_free(npy->file[i].path);
    }
    ls_free(npy);
}

/* Copies record `index` of a file or array. */
static int read_record(const struct npy_file *file, int64_t index, unsigned char *copy,
                       struct ls_error *error)
{
    const size_t at = (size_t)index * file->record;
    if (file->array == NULL) {
        memcpy(copy, file->mapping.data + file->offset + at, file->record);
        return ls_file_lost(&file->mapping, file->path, LOCKSTEP_DATA, error);
    }
    if (file->array->data != NULL)
        memcpy(copy, (const unsigned char *)file->array->data + at, file->record);
    else if (file->array->read(file->array->user, index, copy) != 0)
        return ls_fail(error, LOCKSTEP_DATA, file->path, NULL,
                       "the program that brings its records could not bring record %" PRId64,
                       index);
    return 0;
}

static int read_npy(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                    struct ls_record *record, struct ls_error *error)
{
    const struct npy *npy = reader->source->state;
    unsigned char *room = ls_buffer_reserve(&reader->record, npy->bytes, 1);
    if (room == NULL)
        return ls_fail_memory(error, "a record");
    for (int k = 0; k < npy->files; k++) {
        const struct npy_file *file = &npy->file[k];
        if ((wanted & LS_TENSOR(k)) == 0)
            continue;
        unsigned char *copy = room + npy->place[k];
        LS_TRY(read_record(file, index, copy, error));
        record->tensor[k].data = copy;
        record->tensor[k].hash = ls_hash_wide(copy, file->record, 0);
    }
    return 0;
}

static uint64_t stamp_npy(const struct ls_source *source)
{
    return ((const struct npy *)source->state)->stamp;
}

const struct ls_source_type ls_source_npy = {
    .name = "NPY",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__NPY,
    .summary = "NumPy's arrays of any shape and type, one .npy file for each tensor",
    .unconvertible = "Caffe's records are images with labels, and NPY has arrays",
    .options = options_table,
    .options_size = sizeof(struct npy_options),
    .open = open_npy,
    .close = close_npy,
    .read = read_npy,
    .stamp = stamp_npy,
};
