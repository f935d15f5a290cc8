/* Source HDF5: arrays of HDF5 files, records along axis 0.
 *
 * `source` is an HDF5 file, or a list file with the path of one in each line, as Caffe's HDF5Data
 * layer has it. Records are those of the first file, then those of the second, and so on. A tensor
 * is an array of the same name in every file; all arrays of a file have the same number of records.
 * Numbers of any type become fp32, as in Caffe.
 *
 * Arrays that lie in one piece are read by all readers at a time. Others (in chunks, compressed, of
 * other types) go through the library, one reader at a time, some records at once: a record of each
 * chunk would decompress all of it every time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/hdf5_arrays.h"
#include "base/memory.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

enum { BLOCK = 1 << 21 /* bytes of records that are read at once through the library */ };
static const size_t LIST_LIMIT = (size_t)1 << 26; /* bytes of a list file */

struct hdf5_options {
    struct ls_option_files files;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct hdf5_options, files),
     .least = 1,
     .most = 1000,
     .help = "an HDF5 file, or a list file with a path in each line; repeat it for more"},
    {.name = NULL}};

struct hdf5_file {
    char *path;
    struct ls_hdf5 *file;
    struct ls_file plain; /* the same file, to read from without the library */
    int64_t first;        /* number of its first record */
    int64_t count;
    struct ls_hdf5_place place[LS_RECORD_TENSORS];
};

struct hdf5 {
    struct hdf5_file *file;
    size_t files, capacity;
    char *name[LS_RECORD_TENSORS]; /* "/data" */
    size_t numbers[LS_RECORD_TENSORS];
    size_t start[LS_RECORD_TENSORS]; /* of a tensor in a record in memory */
    size_t bytes;                    /* of a record there */
    size_t widest;                   /* bytes of a record's largest tensor as it is stored */
    uint64_t stamp;
};

/* The records that a reader has read at once; in front of its buffer. */
struct block {
    int64_t first, count; /* count 0: none */
};

/* ---- Names ----------------------------------------------------------------------------------- */

static int add_name(struct ls_source *source, const char *name, struct ls_error *error)
{
    struct hdf5 *h = source->state;
    struct ls_text path = {0};
    if (source->tensors == LS_RECORD_TENSORS)
        return ls_fail(error, LOCKSTEP_DATA, h->file[0].path,
                       "data_param { tensor { name: ... } } says which ones are wanted",
                       "has more than %d arrays", LS_RECORD_TENSORS);
    if (strlen(name) >= sizeof source->tensor[0].name)
        return ls_fail(error, LOCKSTEP_DATA, h->file[0].path, NULL,
                       "the name '%.80s' of an array is too long", name);
    ls_text_format(&path, "/%s", name);
    if (path.failed)
        return ls_fail_memory(error, "a name");
    h->name[source->tensors] = path.data;
    ls_source_add_tensor(source, name, LS_TENSOR_PLAIN, LS_F32);
    return 0;
}

/* Without a choice all arrays of the first file that have records. */
static int add_all_names(struct ls_source *source, struct ls_error *error)
{
    const struct hdf5 *h = source->state;
    struct ls_hdf5_names names;
    LS_TRY(ls_hdf5_list(h->file[0].file, "/", &names, error));
    int status = 0;
    for (size_t i = 0; i < names.count && status == 0; i++) {
        struct ls_hdf5_shape shape;
        char path[1024];
        snprintf(path, sizeof path, "/%.1000s", names.items[i]);
        const enum ls_hdf5_kind kind = ls_hdf5_kind(h->file[0].file, path);
        if (kind == LS_HDF5_GROUP || kind == LS_HDF5_OTHER)
            continue; /* what cannot be followed or read is none of them: it is named */
        status = ls_hdf5_shape(h->file[0].file, path, &shape, error);
        if (status == 0 && shape.rank > 0)
            status = add_name(source, names.items[i], error);
    }
    ls_hdf5_names_free(&names);
    if (status == 0 && source->tensors == 0)
        return ls_fail(error, LOCKSTEP_DATA, h->file[0].path, NULL, "has no arrays of numbers");
    return status;
}

static int add_names(const struct ls_source_options *options, struct ls_source *source,
                     struct ls_error *error)
{
    const Lockstep__DataParameter *data =
        options->layer != NULL ? options->layer->data_param : NULL;
    size_t wanted = 0;
    for (size_t i = 0; data != NULL && i < data->n_tensor; i++) {
        const char *name = data->tensor[i]->name;
        bool known = name == NULL;
        for (int k = 0; k < source->tensors && !known; k++)
            known = strcmp(source->tensor[k].name, name) == 0;
        wanted += name != NULL;
        if (!known)
            LS_TRY(add_name(source, name, error));
    }
    return wanted > 0 ? 0 : add_all_names(source, error);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* An array that a file does not have: names those that it has. */
static int fail_absent(const struct hdf5_file *file, const char *name, struct ls_error *error)
{
    struct ls_hdf5_names names;
    struct ls_text hint = {0};
    LS_TRY(ls_hdf5_list(file->file, "/", &names, error));
    ls_text_add(&hint, "a top is read from the array of its name; the file has");
    for (size_t i = 0; i < names.count && i < 8; i++)
        ls_text_format(&hint, "%s '%.80s'", i > 0 ? "," : "", names.items[i]);
    ls_text_add(&hint, names.count == 0 ? " none" : names.count > 8 ? ", ..." : "");
    int status = hint.failed
                     ? ls_fail_memory(error, "a message")
                     : ls_fail(error, LOCKSTEP_DATA, file->path, hint.data, "has no '%s'", name);
    ls_text_free(&hint);
    ls_hdf5_names_free(&names);
    return status;
}

/* The shape of a tensor's records in a file, which is that of the first file. */
static int note_array(struct ls_source *source, struct hdf5_file *file, int k,
                      struct ls_error *error)
{
    const struct hdf5 *h = source->state;
    struct ls_hdf5_shape shape;
    struct ls_shape sample = {0};
    if (ls_hdf5_kind(file->file, h->name[k]) == LS_HDF5_ABSENT)
        return fail_absent(file, h->name[k], error);
    LS_TRY(ls_hdf5_shape(file->file, h->name[k], &shape, error));
    LS_TRY(ls_hdf5_place(file->file, h->name[k], &file->place[k], error));
    if (shape.rank < 1 || shape.rank > LS_RANK_MAX)
        return ls_fail(error, LOCKSTEP_DATA, file->path, "axis 0 counts the records",
                       "'%s' has %d axes", h->name[k], shape.rank);
    sample.rank = shape.rank - 1;
    for (int i = 0; i < sample.rank; i++)
        sample.dim[i] = shape.dim[i + 1];
    if (!ls_shape_valid(&sample, false))
        return ls_fail(error, LOCKSTEP_DATA, file->path, NULL,
                       "'%s' has records of no numbers, or of too many", h->name[k]);
    if (k > 0 && shape.dim[0] != file->count)
        return ls_fail(error, LOCKSTEP_DATA, file->path, "axis 0 counts the records",
                       "'%s' has %" PRId64 " records, but '%s' has %" PRId64, h->name[k],
                       shape.dim[0], h->name[0], file->count);
    file->count = shape.dim[0];
    if (file == h->file)
        source->tensor[k].shape = sample;
    else if (!ls_shape_equal(&sample, &source->tensor[k].shape))
        return ls_fail(error, LOCKSTEP_DATA, file->path, NULL,
                       "the records of '%s' have another shape than in %.200s", h->name[k],
                       h->file[0].path);
    return 0;
}

static int open_file(const char *path, const struct ls_source_options *options,
                     struct ls_source *source, struct ls_error *error)
{
    struct hdf5 *h = source->state;
    if (!LS_GROW(h->file, h->files, h->capacity))
        return ls_fail_memory(error, "a data source");
    struct hdf5_file *file = &h->file[h->files++];
    *file = (struct hdf5_file){.plain.fd = -1, .first = source->count};
    file->path = ls_copy_string(path);
    if (file->path == NULL)
        return ls_fail_memory(error, "a path");
    h->stamp = ls_mix(h->stamp) + ls_file_stamp(path);
    LS_TRY(ls_hdf5_open(path, LOCKSTEP_DATA, &file->file, error));
    LS_TRY(ls_file_open(path, LOCKSTEP_DATA, &file->plain, error));
    if (h->files == 1)
        LS_TRY(add_names(options, source, error));
    for (int k = 0; k < source->tensors; k++)
        LS_TRY(note_array(source, file, k, error));
    source->count += file->count;
    return 0;
}

/* Opens the file that a line of a list names. */
static int open_listed(const char *list, int number, const char *line,
                       const struct ls_source_options *options, struct ls_source *source,
                       struct ls_error *error)
{
    char place[1100];
    snprintf(place, sizeof place, "%.1000s:%d", list, number);
    char *resolved = ls_resolve_path(line, list);
    if (resolved == NULL)
        return ls_fail_memory(error, "a path");
    int status = ls_file_exists(resolved)
                     ? open_file(resolved, options, source, error)
                     : ls_fail(error, LOCKSTEP_DATA, place,
                               "a path is tried from the working directory, then from the list's "
                               "folder",
                               "there is no file '%.200s'", line);
    ls_free(resolved);
    return status;
}

/* Opens the files of a list, one in each line. */
static int open_list(const char *path, const struct ls_source_options *options,
                     struct ls_source *source, struct ls_error *error)
{
    char *text;
    size_t size, found = 0;
    LS_TRY(ls_file_read_text(path, LIST_LIMIT, LOCKSTEP_DATA, &text, &size, error));
    int status = 0;
    if (memchr(text, '\0', size) != NULL)
        status = ls_fail(error, LOCKSTEP_DATA, path, NULL,
                         "is neither an HDF5 file nor a list of such files");
    char *rest = text;
    int number = 0;
    for (char *line; status == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        size_t length = strlen(line);
        while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
            line[--length] = '\0';
        if (length == 0)
            continue;
        status = open_listed(path, number, line, options, source, error);
        found++;
    }
    ls_free(text);
    if (status == 0 && found == 0)
        status = ls_fail(error, LOCKSTEP_DATA, path, NULL, "lists no files");
    return status;
}

static int open_source(const char *path, const struct ls_source_options *options,
                       struct ls_source *source, struct ls_error *error)
{
    struct ls_file file;
    char begin[8];
    LS_TRY(ls_file_open(path, LOCKSTEP_DATA, &file, error));
    int status = 0;
    bool short_file = file.size < sizeof begin;
    if (!short_file)
        status = ls_file_read_at(&file, path, 0, begin, sizeof begin, LOCKSTEP_DATA, error);
    ls_file_close(&file);
    LS_TRY(status);
    return !short_file && ls_hdf5_begins(begin, sizeof begin)
               ? open_file(path, options, source, error)
               : open_list(path, options, source, error);
}

/* Where tensors lie in the memory of a record. */
static void lay_out(struct ls_source *source)
{
    struct hdf5 *h = source->state;
    for (int k = 0; k < source->tensors; k++) {
        h->numbers[k] = (size_t)ls_shape_size(&source->tensor[k].shape);
        h->start[k] = h->bytes;
        h->bytes = ls_align(h->bytes + h->numbers[k] * ls_dtype_size(LS_F32));
        size_t stored = h->numbers[k] * sizeof(double);
        h->widest = stored > h->widest ? stored : h->widest;
    }
    ls_source_note_bytes(source, h->bytes + h->widest + BLOCK);
}

static int open_hdf5(const struct ls_source_options *options, struct ls_source *source,
                     struct ls_error *error)
{
    const struct ls_option_files *files = &((const struct hdf5_options *)options->own)->files;
    source->state = ls_alloc(1, sizeof(struct hdf5));
    if (source->state == NULL)
        return ls_fail_memory(error, "a data source");
    for (size_t i = 0; i < files->count; i++)
        LS_TRY(open_source(files->item[i], options, source, error));
    lay_out(source);
    return 0;
}

static void close_hdf5(struct ls_source *source)
{
    struct hdf5 *h = source->state;
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->files; i++) {
        ls_hdf5_close(h->file[i].file);
        if (h->file[i].plain.fd >= 0)
            ls_file_close(&h->file[i].plain);
        ls_free(h->file[i].path);
    }
    for (int k = 0; k < source->tensors; k++)
        ls_free(h->name[k]);
    ls_free(h->file);
    ls_free(h);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The file that has a record: the last one that begins at it or before, so that none without
 * records is found. */
static const struct hdf5_file *file_of(const struct hdf5 *h, int64_t index)
{
    size_t begin = 0, end = h->files;
    while (end - begin > 1) {
        size_t middle = begin + (end - begin) / 2;
        if (h->file[middle].first <= index)
            begin = middle;
        else
            end = middle;
    }
    return &h->file[begin];
}

/* A tensor that lies in one piece. */
static int read_plain(struct ls_source_reader *reader, const struct hdf5_file *file, int k,
                      int64_t row, float *out, struct ls_error *error)
{
    const struct hdf5 *h = reader->source->state;
    const struct ls_hdf5_place *place = &file->place[k];
    const size_t bytes = h->numbers[k] * (size_t)place->bytes;
    const uint64_t offset = place->offset + (uint64_t)row * bytes;
    if (place->bytes == (int)ls_dtype_size(LS_F32))
        return ls_file_read_at(&file->plain, file->path, offset, out, bytes, LOCKSTEP_DATA, error);
    double *wide = ls_buffer_reserve(&reader->file, h->numbers[k], sizeof *wide);
    if (wide == NULL)
        return ls_fail_memory(error, "a record");
    LS_TRY(ls_file_read_at(&file->plain, file->path, offset, wide, bytes, LOCKSTEP_DATA, error));
    for (size_t i = 0; i < h->numbers[k]; i++)
        out[i] = (float)wide[i];
    return 0;
}

/* Reads rows of a file into a block. */
static int fill_block(const struct ls_source_reader *reader, const struct hdf5_file *file,
                      struct block *block, int64_t row, int64_t count, struct ls_error *error)
{
    const struct hdf5 *h = reader->source->state;
    const size_t rows = h->bytes >= BLOCK ? 1 : BLOCK / h->bytes;
    *block = (struct block){file->first + row, 0};
    for (int k = 0; k < reader->source->tensors; k++) {
        char *numbers = (char *)block + ls_align(sizeof *block) + rows * h->start[k];
        if (file->place[k].bytes == 0)
            LS_TRY(ls_hdf5_read_rows(file->file, h->name[k], row, count, (float *)(void *)numbers,
                                     error));
    }
    block->count = count;
    return 0;
}

/* The block of records around `index` in the reader's memory, all tensors of it that the library
 * must read. Tensor k of the block's records lies behind start[k] x rows bytes. */
static int read_block(struct ls_source_reader *reader, const struct hdf5_file *file, int64_t index,
                      const struct block **out, struct ls_error *error)
{
    const struct hdf5 *h = reader->source->state;
    const int64_t rows = h->bytes >= BLOCK ? 1 : (int64_t)(BLOCK / h->bytes);
    const size_t head = ls_align(sizeof(struct block));
    struct block *block = reader->map.data;
    *out = block;
    if (block != NULL && index >= block->first && index < block->first + block->count)
        return 0;
    /* Records in their order come many at a time, those of a shuffled epoch one by one. */
    const bool in_order = block != NULL && block->count > 0 && index >= block->first &&
                          index < block->first + 2 * rows;
    block = ls_buffer_reserve(&reader->map, head + (size_t)rows * h->bytes, 1);
    if (block == NULL)
        return ls_fail_memory(error, "records");
    const int64_t at = index - file->first, row = in_order ? at / rows * rows : at;
    const int64_t most = in_order ? rows : 1;
    const int64_t count = file->count - row < most ? file->count - row : most;
    *out = block;
    /* Beside a bad record there are good ones, whatever is read together. */
    if (count > 1 && fill_block(reader, file, block, row, count, NULL) == 0)
        return 0;
    return fill_block(reader, file, block, at, 1, error);
}

static int read_tensor(struct ls_source_reader *reader, const struct hdf5_file *file, int64_t index,
                       int k, float *out, struct ls_error *error)
{
    const struct hdf5 *h = reader->source->state;
    if (file->place[k].bytes > 0)
        return read_plain(reader, file, k, index - file->first, out, error);
    const struct block *block;
    LS_TRY(read_block(reader, file, index, &block, error));
    const size_t rows = h->bytes >= BLOCK ? 1 : BLOCK / h->bytes;
    const char *numbers = (const char *)block + ls_align(sizeof *block) + rows * h->start[k];
    memcpy(out, numbers + (size_t)(index - block->first) * h->numbers[k] * sizeof *out,
           h->numbers[k] * sizeof *out);
    return 0;
}

static int read_hdf5(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                     struct ls_record *record, struct ls_error *error)
{
    const struct hdf5 *h = reader->source->state;
    const struct hdf5_file *file = file_of(h, index);
    char *room = ls_buffer_reserve(&reader->record, h->bytes, 1);
    if (room == NULL)
        return ls_fail_memory(error, "a record");
    for (int k = 0; k < reader->source->tensors; k++) {
        if ((wanted & LS_TENSOR(k)) == 0)
            continue;
        float *numbers = (float *)(void *)(room + h->start[k]);
        LS_TRY(read_tensor(reader, file, index, k, numbers, error));
        record->tensor[k].data = numbers;
        record->tensor[k].hash = ls_hash_wide(numbers, h->numbers[k] * sizeof *numbers, 0);
    }
    return 0;
}

static uint64_t stamp_hdf5(const struct ls_source *source)
{
    return ((const struct hdf5 *)source->state)->stamp;
}

/* "part2.h5, row 17" */
static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct hdf5_file *file = file_of(source->state, index);
    const char *slash = strrchr(file->path, '/');
    ls_text_format(text, "%s, row %" PRId64, slash != NULL ? slash + 1 : file->path,
                   index - file->first);
}

const struct ls_source_type ls_source_hdf5 = {
    .name = "HDF5",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__HDF5,
    .summary = "arrays of HDF5 files, or of the files that a list file names",
    .unconvertible = "Caffe's records are images with labels, and HDF5 has arrays",
    .options = options_table,
    .options_size = sizeof(struct hdf5_options),
    .open = open_hdf5,
    .close = close_hdf5,
    .read = read_hdf5,
    .stamp = stamp_hdf5,
    .name_record = name_record,
};
