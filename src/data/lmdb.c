/* Source LMDB: databases of Datum records, as Caffe's tools write them and `lockstep convert` does.
 *
 * `source` is the folder of the database (with data.mdb in it), or the file itself. Records come in
 * the order of their keys, as Caffe's cursor reads them, and have numbers from 0. Encoded records
 * are decoded (JPEG, PNG) to BGR or grey. A view of the file serves to open it and to name records;
 * records themselves are read, so that a file which changes is no more than a bad record.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/datum.h"
#include "data/lmdb_index.h"
#include "data/picture.h"
#include "data/resize.h"
#include "data/source.h"
#include "ir/dtype.h"
#include "lockstep.pb-c.h"

/* A database of at most this many bytes is looked through when it is opened, so that a bad record
 * is found before training; a larger one would take minutes on a disk. */
static const size_t CHECK_LIMIT = (size_t)1 << 30;
enum { SAMPLE = 1024 /* records of a larger one that are looked at */ };

struct lmdb_options {
    struct ls_option_files folder;
    bool encoded_color, color, gray;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct lmdb_options, folder),
     .least = 1,
     .most = 1,
     .help = "the folder of the database, or its data.mdb"},
    {.name = "force_encoded_color",
     .kind = LS_OPTION_FLAG,
     .offset = offsetof(struct lmdb_options, encoded_color),
     .help = "encoded records become blue, green, red",
     .instead = "is_color"},
    {.name = "transform_param.force_color",
     .kind = LS_OPTION_FLAG,
     .offset = offsetof(struct lmdb_options, color),
     .help = "encoded records become blue, green, red",
     .of = "encoded records of",
     .instead = "is_color"},
    {.name = "transform_param.force_gray",
     .kind = LS_OPTION_FLAG,
     .offset = offsetof(struct lmdb_options, gray),
     .help = "encoded records become grey",
     .of = "encoded records of",
     .instead = "is_color"},
    {.name = NULL}};

struct database {
    char *file; /* the path of data.mdb */
    struct ls_mapping mapping;
    struct ls_file reading;
    uint64_t stamp;
    struct ls_lmdb_entry *entry;
    int channels; /* 3 or 1: what encoded records become; 0: as they are */
};

static int bad_record(const struct ls_source *source, int64_t index,
                      const struct ls_problem *problem, struct ls_error *error)
{
    const struct database *db = source->state;
    const struct ls_lmdb_entry *entry = &db->entry[index];
    struct ls_text key = {0};
    ls_text_add_bytes(&key, db->mapping.data + entry->key, entry->key_size);
    for (size_t i = 0; i < key.length; i++)
        if ((unsigned char)key.data[i] < ' ' || key.data[i] == 0x7f)
            key.data[i] = '?';
    int status = ls_fail(error, problem->status, db->file, NULL, "record %lld (key \"%.100s\"): %s",
                         (long long)index, key.data != NULL ? key.data : "", problem->message);
    ls_text_free(&key);
    return ls_source_bad_record(status);
}

/* Reads a record from its bytes; NULL: as they are in the view. */
static int read_datum(const struct ls_source *source, int64_t index, const uint8_t *bytes,
                      struct ls_datum *datum, struct ls_error *error)
{
    const struct database *db = source->state;
    const struct ls_lmdb_entry *entry = &db->entry[index];
    if (bytes == NULL)
        bytes = db->mapping.data + entry->value;
    struct ls_problem problem;
    int status = ls_datum_read(bytes, entry->value_size, datum, &problem);
    if (status == 0)
        status = ls_datum_check(datum, &problem);
    return status == 0 ? 0 : bad_record(source, index, &problem, error);
}

/* The shape of a record after decoding, from its header; *bytes: what decoding it takes. */
static int datum_shape(const struct ls_source *source, int64_t index, const struct ls_datum *datum,
                       int64_t shape[3], size_t *bytes, struct ls_error *error)
{
    const struct database *db = source->state;
    if (!datum->encoded) {
        *bytes = datum->data_size > 0 ? 0 : datum->float_count * ls_dtype_size(LS_F32);
        memcpy(shape, datum->shape, sizeof datum->shape);
        return 0;
    }
    struct ls_picture_header header;
    struct ls_problem problem;
    if (ls_picture_look(datum->data, datum->data_size, &header, &problem) != 0)
        return bad_record(source, index, &problem, error);
    shape[0] = db->channels != 0 ? db->channels : header.channels;
    shape[1] = header.height;
    shape[2] = header.width;
    *bytes = ls_picture_bytes(&header, db->channels, 0, 0);
    return 0;
}

/* Looks at a record's head: its shape, its label. */
static int check_record(struct ls_source *source, int64_t index, int64_t *label,
                        struct ls_error *error)
{
    struct ls_datum datum;
    int64_t shape[3] = {0};
    size_t bytes = 0;
    LS_TRY(read_datum(source, index, NULL, &datum, error));
    LS_TRY(datum_shape(source, index, &datum, shape, &bytes, error));
    const struct database *db = source->state;
    ls_source_note_bytes(source, bytes + db->entry[index].value_size);
    if (datum.label > *label)
        *label = datum.label;
    if (shape[0] != ls_source_image(source)[0]) {
        struct ls_problem problem;
        ls_problem_set(&problem, LOCKSTEP_DATA, NULL,
                       "it has another number of channels than the first");
        return bad_record(source, index, &problem, error);
    }
    return ls_source_note_shape(source, index, shape, error);
}

static int check_records(struct ls_source *source, struct ls_error *error)
{
    int64_t largest = INT32_MIN;
    for (int64_t i = 0; i < source->count; i++)
        LS_TRY(ls_source_forgive(
            source, check_record(source, i, &largest, ls_source_aside(source, error)), error));
    source->tensor[1].largest = largest;
    return 0;
}

/* A large database whose records are used as they are: where the sizes of some differ, all must be
 * known. */
static int check_sample(struct ls_source *source, struct ls_error *error)
{
    int64_t label = INT32_MIN;
    int64_t step = source->count / SAMPLE + 1;
    for (int64_t i = 0; i < source->count && !source->varies; i += step)
        LS_TRY(ls_source_forgive(
            source, check_record(source, i, &label, ls_source_aside(source, error)), error));
    return source->varies ? check_records(source, error) : 0;
}

/* The field that asks for colours or grey. */
static const char *forced_by(const struct lmdb_options *own)
{
    return own->gray    ? "transform_param.force_gray"
           : own->color ? "transform_param.force_color"
                        : "force_encoded_color";
}

static int inspect(struct ls_source *source, const struct ls_source_options *options,
                   struct ls_error *error)
{
    struct database *db = source->state;
    struct ls_datum datum;
    int64_t first;
    LS_TRY(ls_source_first_good(source, &first, error));
    first = first < 0 ? 0 : first; /* what is wrong with it is reported */
    LS_TRY(read_datum(source, first, NULL, &datum, error));
    if (!datum.encoded && db->channels != 0)
        return ls_option_fail(options, forced_by(options->own),
                              "records of this database are stored as pixels: leave it out", error,
                              "force_color and force_gray are for encoded records only");
    size_t bytes = 0;
    LS_TRY(datum_shape(source, first, &datum, source->tensor[0].shape.dim, &bytes, error));
    ls_source_note_bytes(source, bytes + db->entry[first].value_size);
    source->encoded = datum.encoded;
    source->tensor[0].type = datum.encoded || datum.data_size > 0 ? LS_U8 : LS_F32;
    source->bgr = ls_source_image(source)[0] == 3;
    if (db->mapping.size <= CHECK_LIMIT)
        return check_records(source, error);
    return options->crop == 0 ? check_sample(source, error) : 0;
}

static int open_database(const struct ls_source_options *options, struct ls_source *source,
                         struct ls_error *error)
{
    const struct lmdb_options *own = options->own;
    const char *path = own->folder.item[0];
    struct database *db = source->state = ls_alloc(1, sizeof *db);
    if (db == NULL)
        return ls_fail_memory(error, "a database");
    ls_source_add_image(source);
    ls_source_add_label(source); /* a record without one has 0, as in Caffe */
    if ((own->color || own->encoded_color) && own->gray)
        return ls_option_fail(options, "transform_param.force_gray", NULL, error,
                              "force_color and force_gray cannot both hold");
    db->reading.fd = -1;
    db->channels = own->color || own->encoded_color ? 3 : own->gray ? 1 : 0;
    struct ls_text file = {0};
    ls_text_add(&file, path);
    if (ls_is_directory(path))
        ls_text_add(&file, "/data.mdb");
    db->file = file.data;
    if (file.failed)
        return ls_fail_memory(error, "a path");
    db->stamp = ls_file_stamp(db->file);
    LS_TRY(ls_file_open(db->file, LOCKSTEP_DATA, &db->reading, error));
    LS_TRY(ls_file_map(db->file, LOCKSTEP_DATA, &db->mapping, error));
    size_t count = 0;
    int status =
        ls_lmdb_index(db->file, db->mapping.data, db->mapping.size, &db->entry, &count, error);
    source->count = (int64_t)count;
    if (status == 0 && count > 0)
        status = inspect(source, options, error);
    int lost = ls_file_lost(&db->mapping, db->file, LOCKSTEP_DATA, error);
    return status != 0 ? status : lost;
}

static void close_database(struct ls_source *source)
{
    struct database *db = source->state;
    if (db == NULL)
        return;
    ls_file_unmap(&db->mapping);
    if (db->file != NULL)
        ls_file_close(&db->reading);
    ls_free(db->entry);
    ls_free(db->file);
    ls_free(db);
}

static int decode(struct ls_source_reader *reader, int64_t index, const struct ls_datum *datum,
                  struct ls_record *record, struct ls_error *error)
{
    const struct database *db = reader->source->state;
    struct ls_picture picture;
    struct ls_problem problem;
    int status = ls_picture_decode(datum->data, datum->data_size, db->channels, &reader->picture,
                                   &picture, &problem);
    if (status == 0)
        status = ls_picture_to_record(&picture, &reader->record, record, &problem);
    return status == 0 ? 0 : bad_record(reader->source, index, &problem, error);
}

static int read_record(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                       struct ls_record *record, struct ls_error *error)
{
    const struct database *db = reader->source->state;
    const struct ls_lmdb_entry *entry = &db->entry[index];
    struct ls_record_tensor *image = &record->tensor[0];
    bool pixels = (wanted & LS_TENSOR(0)) != 0;
    struct ls_datum datum;
    size_t bytes = 0;
    uint8_t *value = ls_buffer_reserve(&reader->file, entry->value_size, 1);
    if (value == NULL)
        return ls_fail_memory(error, "a record");
    LS_TRY(ls_file_read_at(&db->reading, db->file, entry->value, value, entry->value_size,
                           LOCKSTEP_DATA, error));
    if (pixels)
        image->hash = ls_hash_wide(value, entry->value_size, 0);
    if (reader->hash_only && ls_datum_read(value, entry->value_size, &datum, NULL) != 0) {
        ls_record_set_label(reader, record, 0);
        return 0; /* it is no record, and that is what is hashed */
    }
    LS_TRY(read_datum(reader->source, index, value, &datum, error));
    ls_record_set_label(reader, record, datum.label);
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
    ls_datum_floats(value, entry->value_size, floats);
    ls_record_set_image(record, LS_F32, datum.shape, floats);
    return 0;
}

/* The key without the number that Caffe's tools put before it ("00000012_dog/a.jpg"). */
static void name_record(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct database *db = source->state;
    const struct ls_lmdb_entry *entry = &db->entry[index];
    const char *key = (const char *)db->mapping.data + entry->key;
    size_t digits = 0;
    while (digits < entry->key_size && key[digits] >= '0' && key[digits] <= '9')
        digits++;
    size_t skip = digits < entry->key_size && key[digits] == '_' ? digits + 1
                  : digits == entry->key_size                    ? digits
                                                                 : 0;
    ls_text_add_bytes(text, key + skip, entry->key_size - skip);
}

static uint64_t stamp(const struct ls_source *source)
{
    return ((const struct database *)source->state)->stamp;
}

const struct ls_source_type ls_source_lmdb = {
    .name = "LMDB",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__LMDB,
    .summary = "a database of Datum records, as Caffe's tools and lockstep convert write it",
    .options = options_table,
    .options_size = sizeof(struct lmdb_options),
    .open = open_database,
    .close = close_database,
    .read = read_record,
    .stamp = stamp,
    .name_record = name_record,
};
