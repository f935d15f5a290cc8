/* Any source to an LMDB database.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/convert.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/datum.h"
#include "data/lmdb_write.h"
#include "data/picture_write.h"
#include "data/selection.h"

enum { RECORDS_MAX = 100000000 /* beyond, keys of eight digits would be out of order */ };
static const size_t FILE_MAX = (size_t)1 << 30;

struct writer {
    struct ls_selection *selection;
    const struct lockstep_source_options *options;
    struct ls_buffer datum;
    struct ls_error *error;
};

/* "%08d_name"; of a name that is too long the end is kept, because it differs between records. */
static int make_key(const struct writer *writer, int64_t i, struct ls_text *key)
{
    const struct ls_source *source = writer->selection->source;
    struct ls_text name = {0};
    if (source->type->name_record != NULL)
        source->type->name_record(source, ls_selection_index(writer->selection, i), &name);
    size_t skip = name.length > LS_LMDB_KEY_MAX - 16 ? name.length - (LS_LMDB_KEY_MAX - 16) : 0;
    ls_text_format(key, "%08" PRId64, i);
    if (name.length > 0)
        ls_text_format(key, "_%s", name.data + skip);
    const bool failed = name.failed;
    ls_text_free(&name);
    return failed ? ls_fail_memory(writer->error, "a key") : 0;
}

/* Whether a file can be taken as it is: it has the type that is wanted, by its name. */
static bool is_wanted_file(const struct lockstep_source_options *options, const char *path)
{
    const char *dot = strrchr(path, '.'), *wanted = options->encode_type;
    if (options->resize_height > 0 || options->resize_width > 0 || options->gray)
        return false;
    if (wanted == NULL)
        return true;
    if (dot == NULL)
        return false;
    const bool jpeg = strcasecmp(wanted, "jpg") == 0 || strcasecmp(wanted, "jpeg") == 0;
    return strcasecmp(dot + 1, wanted) == 0 ||
           (jpeg && (strcasecmp(dot + 1, "jpg") == 0 || strcasecmp(dot + 1, "jpeg") == 0));
}

/* A record that holds a picture file: the source's own, or one that is made of the pixels. */
static int make_encoded(struct writer *writer, int64_t i, const uint8_t **datum, size_t *size)
{
    const struct ls_source *source = writer->selection->source;
    const struct lockstep_source_options *options = writer->options;
    const int64_t index = ls_selection_index(writer->selection, i);
    const char *path =
        source->type->record_file != NULL ? source->type->record_file(source, index) : NULL;
    struct ls_record record;
    uint8_t *file = NULL;
    size_t file_size = 0;
    /* Read in any case: a picture that cannot be decoded is found now. */
    LS_TRY(ls_selection_read(writer->selection, i, &record, writer->error));
    const int32_t label = *(const int32_t *)record.tensor[1].data;
    if (path != NULL && is_wanted_file(options, path))
        LS_TRY(
            ls_file_read(path, FILE_MAX, LOCKSTEP_DATA, (char **)&file, &file_size, writer->error));
    else if (record.tensor[0].type != LS_U8)
        return ls_fail(writer->error, LOCKSTEP_DATA, source->type->name, NULL,
                       "its records are no pictures of bytes, which a file could hold");
    else
        LS_TRY(ls_picture_encode(record.tensor[0].data, record.tensor[0].shape.dim,
                                 options->encode_type != NULL ? options->encode_type : "png", &file,
                                 &file_size, writer->error));
    *datum = ls_datum_write_file(file, file_size, label, &writer->datum, size);
    ls_free(file);
    return *datum != NULL ? 0 : ls_fail_memory(writer->error, "a record");
}

static int make_raw(struct writer *writer, int64_t i, const uint8_t **datum, size_t *size)
{
    struct ls_record record;
    LS_TRY(ls_selection_read(writer->selection, i, &record, writer->error));
    *datum = ls_datum_write(&record, true, &writer->datum, size);
    return *datum != NULL ? 0 : ls_fail_memory(writer->error, "a record");
}

static int make_record(void *user, int64_t i, struct ls_text *key, const uint8_t **bytes,
                       size_t *size, struct ls_error *error)
{
    struct writer *writer = user;
    writer->error = error;
    LS_TRY(writer->options->encoded ? make_encoded(writer, i, bytes, size)
                                    : make_raw(writer, i, bytes, size));
    return make_key(writer, i, key);
}

static int report_progress(void *user, int64_t done, struct ls_error *error)
{
    const struct writer *writer = user;
    return ls_selection_progress(writer->selection, done, error);
}

/* A database does not say in which order its channels are, and is taken for blue, green, red. */
static void warn_of_order(const struct ls_source *source,
                          const struct lockstep_callbacks *callbacks)
{
    static const char text[] =
        "channels stay red, green, blue, as they are there; what shows pictures of a database, or "
        "predicts for a picture file with a net that was trained on it, takes them for blue, "
        "green, red";
    const struct lockstep_event event = {
        .kind = LOCKSTEP_EVENT_WARNING, .text = text, .test_net = -1};
    if (!source->bgr && ls_source_has_image(source) && ls_source_image(source)[0] == 3 &&
        callbacks->event != NULL)
        callbacks->event(callbacks->user, &event);
}

static int convert_into(struct ls_selection *selection,
                        const struct lockstep_source_options *options, const char *path,
                        struct ls_error *error)
{
    struct writer writer = {.selection = selection, .options = options};
    struct ls_text names = {0};
    for (int i = 0; i < selection->source->class_count; i++)
        ls_text_format(&names, "%s\n", selection->source->class_name[i]);
    if (names.failed)
        return ls_fail_memory(error, "class names");
    const struct ls_lmdb_records records = {.count = selection->count,
                                            .make = make_record,
                                            .progress = report_progress,
                                            .names = names.data,
                                            .user = &writer};
    int status = ls_lmdb_write(path, &records, error);
    ls_buffer_free(&writer.datum);
    ls_text_free(&names);
    return status;
}

int ls_convert(const struct lockstep_source_options *source, const struct ls_class_names *known,
               const char *path, int64_t *records, struct ls_error *error)
{
    if (path[0] == '\0')
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "the database needs a name");
    struct stat info;
    if (lstat(path, &info) == 0)
        return ls_fail(error, LOCKSTEP_USAGE, path, "remove it, or take another name",
                       "exists already; a database is never written over something else");
    struct ls_selection selection;
    LS_TRY(ls_selection_check(source, error));
    int status = ls_selection_open(source, known, &selection, error);
    if (status == 0 && selection.count > RECORDS_MAX)
        status = ls_fail(error, LOCKSTEP_DATA, source->backend, NULL,
                         "has more than %d records, which Caffe's keys of eight digits cannot "
                         "number",
                         RECORDS_MAX);
    if (status == 0)
        warn_of_order(selection.source, &source->callbacks);
    if (status == 0)
        status = convert_into(&selection, source, path, error);
    if (status == 0 && records != NULL)
        *records = selection.count;
    ls_selection_close(&selection);
    return status;
}
