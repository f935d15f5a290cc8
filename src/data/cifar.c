/* Source CIFAR: the binary version of CIFAR-10.
 *
 * A file is a run of records of 3,073 bytes: the label (0..9), then 1,024 numbers of red, of green
 * and of blue, row by row. `source` may be given several times; records are numbered through the
 * files in the order given. If batches.meta.txt lies beside the first file, its lines are the
 * names of the classes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/source.h"
#include "lockstep.pb-c.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, CLASSES = 10, FILES_MAX = 1024 };
enum { AT_ONCE = 256 /* records that are read when a file is opened */ };

struct cifar_options {
    struct ls_option_files files;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct cifar_options, files),
     .least = 1,
     .most = FILES_MAX,
     .help = "one of the .bin files; repeat it for more"},
    {.name = NULL}};

static const char hint[] = "the binary version of CIFAR-10 has 30,730,000 bytes a file; unpack it "
                           "first if it is packed";

struct cifar {
    struct ls_file *file;
    char **path;  /* of each file */
    int64_t *end; /* number of the first record behind each file */
    size_t files;
    uint64_t stamp;
};

static int bad_label(const char *path, int64_t record, int label, struct ls_error *error)
{
    return ls_source_bad_record(ls_fail(error, LOCKSTEP_DATA, path, hint,
                                        "record %lld has label %d; CIFAR-10 has labels 0 to %d",
                                        (long long)record, label, CLASSES - 1));
}

/* The labels are checked when a file is opened: a wrong one shows that it is no CIFAR-10 file. */
static int check_labels(const char *path, const struct ls_file *file, uint8_t *room,
                        struct ls_source *source, struct ls_error *error)
{
    int64_t *largest = &source->tensor[1].largest;
    size_t count = file->size / RECORD;
    for (size_t i = 0; i < count;) {
        size_t some = count - i < AT_ONCE ? count - i : AT_ONCE;
        LS_TRY(ls_file_read_at(file, path, (uint64_t)i * RECORD, room, some * RECORD, LOCKSTEP_DATA,
                               error));
        for (size_t k = 0; k < some; k++) {
            int label = room[k * RECORD];
            if (label >= CLASSES && !source->forgiving && !source->skipping)
                return bad_label(path, (int64_t)(i + k), label, error);
            if (label > *largest)
                *largest = label;
            source->labels_hash = ls_mix(source->labels_hash + (uint64_t)label + 1);
        }
        i += some;
    }
    return 0;
}

static int check_file(const char *path, const struct ls_file *file, struct ls_source *source,
                      struct ls_error *error)
{
    if (file->size == 0)
        return ls_fail(error, LOCKSTEP_DATA, path, NULL, "is empty");
    if (file->size % RECORD != 0)
        return ls_fail(error, LOCKSTEP_DATA, path, hint,
                       "has %zu bytes, which is not a multiple of %d: it is cut off, or is not a "
                       "CIFAR-10 file",
                       file->size, RECORD);
    uint8_t *room = ls_alloc(AT_ONCE, RECORD);
    if (room == NULL)
        return ls_fail_memory(error, path);
    int status = check_labels(path, file, room, source, error);
    ls_free(room);
    return status;
}

/* Class names are optional: a file that cannot be read or has another number of lines is ignored.
 */
static void read_names(const char *path, struct ls_source *source)
{
    struct ls_text file = {0};
    const char *slash = strrchr(path, '/');
    if (slash != NULL)
        ls_text_add_bytes(&file, path, (size_t)(slash - path) + 1);
    ls_text_add(&file, "batches.meta.txt");
    char *text = NULL;
    size_t size;
    if (!file.failed && ls_file_exists(file.data))
        (void)ls_file_read(file.data, 65536, LOCKSTEP_DATA, &text, &size, NULL);
    ls_text_free(&file);
    char **names = text != NULL ? ls_alloc(CLASSES, sizeof *names) : NULL;
    int count = 0;
    char *rest = text;
    for (char *line; names != NULL && (line = strsep(&rest, "\r\n")) != NULL;) {
        if (line[0] == '\0')
            continue;
        if (count < CLASSES)
            names[count] = ls_copy_string(line);
        count++;
    }
    bool ok = names != NULL && count == CLASSES;
    for (int i = 0; ok && i < CLASSES; i++)
        ok = names[i] != NULL;
    for (int i = 0; !ok && names != NULL && i < CLASSES; i++)
        ls_free(names[i]);
    if (ok) {
        source->class_name = names;
        source->class_count = CLASSES;
    } else {
        ls_free(names);
    }
    ls_free(text);
}

static int open_cifar(const struct ls_source_options *options, struct ls_source *source,
                      struct ls_error *error)
{
    const struct ls_option_files *files = &((const struct cifar_options *)options->own)->files;
    struct cifar *cifar = source->state = ls_alloc(1, sizeof *cifar);
    if (cifar == NULL)
        return ls_fail_memory(error, "a data source");
    cifar->file = ls_alloc(files->count, sizeof *cifar->file);
    cifar->path = ls_alloc(files->count, sizeof *cifar->path);
    cifar->end = ls_alloc(files->count, sizeof *cifar->end);
    if (cifar->file == NULL || cifar->path == NULL || cifar->end == NULL)
        return ls_fail_memory(error, "a data source");
    ls_source_add_image(source);
    ls_source_add_label(source);
    for (size_t i = 0; i < files->count; i++) {
        struct ls_file *file = &cifar->file[i];
        cifar->stamp = ls_mix(cifar->stamp) + ls_file_stamp(files->item[i]);
        LS_TRY(ls_file_open(files->item[i], LOCKSTEP_DATA, file, error));
        cifar->files++;
        cifar->path[i] = ls_copy_string(files->item[i]);
        if (cifar->path[i] == NULL)
            return ls_fail_memory(error, "a path");
        LS_TRY(check_file(files->item[i], file, source, error));
        source->count += (int64_t)(file->size / RECORD);
        cifar->end[i] = source->count;
    }
    source->tensor[0].shape = (struct ls_shape){.rank = 3, .dim = {3, 32, 32}};
    ls_source_note_bytes(source, RECORD);
    read_names(files->item[0], source);
    return 0;
}

static void close_cifar(struct ls_source *source)
{
    struct cifar *cifar = source->state;
    if (cifar == NULL)
        return;
    for (size_t i = 0; i < cifar->files; i++) {
        ls_file_close(&cifar->file[i]);
        ls_free(cifar->path[i]);
    }
    ls_free(cifar->file);
    ls_free(cifar->path);
    ls_free(cifar->end);
    ls_free(cifar);
}

static int read_cifar(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                      struct ls_record *record, struct ls_error *error)
{
    const struct cifar *cifar = reader->source->state;
    bool pixels = (wanted & LS_TENSOR(0)) != 0;
    size_t file = 0; /* a handful of files: a search from the front is the fastest */
    while (index >= cifar->end[file])
        file++;
    int64_t start = file > 0 ? cifar->end[file - 1] : 0;
    uint8_t *bytes = ls_buffer_reserve(&reader->record, RECORD, 1);
    if (bytes == NULL)
        return ls_fail_memory(error, "a record");
    LS_TRY(ls_file_read_at(&cifar->file[file], cifar->path[file],
                           (uint64_t)(index - start) * RECORD, bytes, pixels ? RECORD : 1,
                           LOCKSTEP_DATA, error));
    if (bytes[0] >= CLASSES) /* it was not when the file was opened */
        return bad_label(cifar->path[file], index - start, bytes[0], error);
    ls_record_set_label(reader, record, bytes[0]);
    if (pixels) {
        record->tensor[0].data = bytes + 1;
        record->tensor[0].hash = ls_hash_wide(bytes + 1, PIXELS, 0);
    }
    return 0;
}

static uint64_t stamp_cifar(const struct ls_source *source)
{
    return ((const struct cifar *)source->state)->stamp;
}

const struct ls_source_type ls_source_cifar = {
    .name = "CIFAR",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__CIFAR,
    .summary = "CIFAR-10's binary version",
    .options = options_table,
    .options_size = sizeof(struct cifar_options),
    .open = open_cifar,
    .close = close_cifar,
    .read = read_cifar,
    .stamp = stamp_cifar,
};
