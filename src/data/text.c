/* Source TEXT: text files as a stream of characters or bytes, cut into windows.
 *
 * Characters of UTF-8 have different sizes: of each file the place of every 256th character is
 * kept, from which a window's first one is found. Files are views (base/guard.h), and are decoded
 * as windows are read; they were decoded once when they were opened.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/token_windows.h"
#include "base/utf8.h"
#include "data/vocabulary.h"

enum {
    FILES_MOST = 65536,
    MARK = 256 /* characters from one known place to the next */
};

struct text_options {
    struct ls_option_files files;
    struct ls_window_options windows;
    int unit; /* of TextParameter */
    const char *vocabulary;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct text_options, files),
     .least = 1,
     .most = FILES_MOST,
     .help = "a text file; several are one text"},
    LS_WINDOW_OPTIONS("text_param", struct text_options, windows,
                      "the code point that documents begin with (or end with): 10 ends a line"),
    {.name = "text_param.unit",
     .kind = LS_OPTION_CHOICE,
     .offset = offsetof(struct text_options, unit),
     .help = "what a token is; characters are those of UTF-8"},
    {.name = "text_param.vocabulary",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct text_options, vocabulary),
     .help = "unit CHARACTER: a text that has all characters; by default it is source"},
    {.name = NULL}};

struct text_file {
    char *path;
    struct ls_mapping mapping;
    uint64_t *mark; /* owned; byte of every MARK-th character. NULL: a character is a byte */
    int64_t first;  /* number of its first character in the stream */
    int64_t count;
};

struct text {
    struct text_file *file;
    size_t files;
    bool bytes; /* a token is a byte */
    struct ls_vocabulary vocabulary;
    uint64_t stamp;
    struct ls_token_windows windows;
};

/* ---- The vocabulary -------------------------------------------------------------------------- */

/* Reads the vocabulary of the layer of the train phase, from its own paths. */
static int read_training(const struct ls_source_options *options,
                         const Lockstep__LayerParameter *layer, struct ls_vocabulary *vocabulary,
                         struct ls_error *error)
{
    const Lockstep__TextParameter *own = layer->data_param->text_param;
    const bool given = own != NULL && own->vocabulary != NULL && own->vocabulary[0] != '\0';
    const size_t count = given ? 1 : layer->data_param->n_source;
    char **paths = ls_alloc(count + 1, sizeof *paths);
    int status = paths == NULL ? ls_fail_memory(error, "a vocabulary") : 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        const char *path = given ? own->vocabulary : layer->data_param->source[i];
        paths[i] = ls_resolve_path(path, options->definition->file);
        status = paths[i] == NULL ? ls_fail_memory(error, "a vocabulary") : 0;
    }
    const struct ls_option_files files = {(const char *const *)paths, count};
    if (status == 0)
        status = ls_vocabulary_read(&files, vocabulary, error);
    for (size_t i = 0; paths != NULL && i < count; i++)
        ls_free(paths[i]);
    ls_free((void *)paths);
    return status;
}

static int read_vocabulary(const struct ls_source_options *options, struct text *text,
                           struct ls_source *source, struct ls_error *error)
{
    const struct text_options *own = options->own;
    const Lockstep__LayerParameter *training = ls_source_training_layer(options);
    int status;
    if (text->bytes && own->vocabulary != NULL)
        return ls_option_fail(options, "text_param.vocabulary", NULL, error,
                              "vocabulary is for unit: CHARACTER; bytes are 0 to 255");
    if (text->bytes)
        return ls_vocabulary_name(NULL, source, error);
    if (own->vocabulary != NULL) {
        const struct ls_option_files files = {&own->vocabulary, 1};
        status = ls_vocabulary_read(&files, &text->vocabulary, error);
    } else {
        status = training != NULL ? read_training(options, training, &text->vocabulary, error)
                                  : ls_vocabulary_read(&own->files, &text->vocabulary, error);
    }
    LS_TRY(status);
    text->stamp = ls_hash(text->vocabulary.code,
                          (size_t)text->vocabulary.count * sizeof *text->vocabulary.code, 0);
    return ls_vocabulary_name(&text->vocabulary, source, error);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static int fail_character(const struct text_file *file, uint64_t at, uint32_t code,
                          struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_DATA, file->path,
                   "text_param { vocabulary } names a text that has all characters",
                   "has U+%04" PRIX32 " at byte %" PRIu64 ", which the vocabulary does not have",
                   code, at);
}

/* Goes through a file: counts its characters, marks their places, and finds what is none. */
static int scan_characters(const struct text *text, struct text_file *file, struct ls_error *error)
{
    const struct ls_mapping *mapping = &file->mapping;
    file->mark = ls_alloc(mapping->size / MARK + 1, sizeof *file->mark);
    if (file->mark == NULL)
        return ls_fail_memory(error, "the places of characters");
    for (size_t at = 0, size; at < mapping->size; at += size) {
        const int32_t code = ls_utf8_read(mapping->data + at, mapping->size - at, &size);
        if (code < 0)
            return ls_fail_utf8(file->path, at, error);
        if (ls_vocabulary_find(&text->vocabulary, (uint32_t)code) < 0)
            return fail_character(file, at, (uint32_t)code, error);
        if (file->count % MARK == 0)
            file->mark[file->count / MARK] = at;
        file->count++;
    }
    if (file->count == (int64_t)mapping->size) {
        ls_free(file->mark);
        file->mark = NULL;
    }
    return 0;
}

static int open_file(const char *path, const struct text *text, struct text_file *file,
                     struct ls_error *error)
{
    file->path = ls_copy_string(path);
    if (file->path == NULL)
        return ls_fail_memory(error, "a path");
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &file->mapping, error));
    if (text->bytes) {
        file->count = (int64_t)file->mapping.size;
        return 0;
    }
    int status = scan_characters(text, file, error);
    LS_TRY(ls_file_lost(&file->mapping, path, LOCKSTEP_DATA, error));
    return status;
}

/* ---- The stream ------------------------------------------------------------------------------ */

/* The file that a token of the stream is in. */
static const struct text_file *find_file(const struct text *text, int64_t at)
{
    size_t begin = 0, end = text->files;
    while (end - begin > 1) {
        const size_t middle = begin + (end - begin) / 2;
        if (text->file[middle].first <= at)
            begin = middle;
        else
            end = middle;
    }
    return &text->file[begin];
}

/* The byte at which a character of a file begins; its size where it is cut off meanwhile. */
static size_t find_place(const struct text_file *file, int64_t character)
{
    if (file->mark == NULL)
        return (size_t)character;
    size_t at = (size_t)file->mark[character / MARK], size;
    for (int64_t k = character / MARK * MARK; k < character && at < file->mapping.size; k++) {
        (void)ls_utf8_read(file->mapping.data + at, file->mapping.size - at, &size);
        at += size;
    }
    return at;
}

/* Reads `count` tokens of a file from number `from` on. What lies there has been looked at: if it
 * is something else now, the file has changed. */
static int read_file(const struct text *text, const struct text_file *file, int64_t from,
                     int64_t count, int32_t *ids, struct ls_error *error)
{
    const struct ls_mapping *mapping = &file->mapping;
    size_t at = text->bytes ? (size_t)from : find_place(file, from), size = 1;
    int64_t done = 0;
    for (; done < count && at < mapping->size; done++, at += size) {
        const int32_t code = text->bytes
                                 ? mapping->data[at]
                                 : ls_utf8_read(mapping->data + at, mapping->size - at, &size);
        ids[done] =
            text->bytes || code < 0 ? code : ls_vocabulary_find(&text->vocabulary, (uint32_t)code);
        if (ids[done] < 0)
            break;
    }
    LS_TRY(ls_file_lost(mapping, file->path, LOCKSTEP_DATA, error));
    if (done == count)
        return 0;
    return ls_fail(error, LOCKSTEP_DATA, file->path, "files must not change while they are in use",
                   "has other characters at byte %zu than when it was opened", at);
}

static int read_ids(struct ls_source_reader *reader, int64_t at, int64_t count, int32_t *ids,
                    struct ls_error *error)
{
    const struct text *text = reader->source->state;
    const struct text_file *file = find_file(text, at);
    for (int64_t done = 0; done < count; file++) {
        const int64_t from = at + done - file->first, left = file->count - from;
        const int64_t here = left < count - done ? left : count - done;
        if (here > 0)
            LS_TRY(read_file(text, file, from, here, ids + done, error));
        done += here;
    }
    return 0;
}

static void count_bytes(const struct ls_source *source, const int32_t *ids, int64_t count,
                        int32_t *bytes)
{
    const struct text *text = source->state;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = text->bytes ? 1 : ls_utf8_size(text->vocabulary.code[ids[i]]);
}

/* ---- The source ------------------------------------------------------------------------------ */

static int open_files(const struct text_options *own, struct text *text, int64_t *length,
                      struct ls_error *error)
{
    text->file = ls_alloc(own->files.count, sizeof *text->file);
    if (text->file == NULL)
        return ls_fail_memory(error, "a data source");
    for (size_t i = 0; i < own->files.count; i++) {
        struct text_file *file = &text->file[text->files++];
        file->first = *length;
        LS_TRY(open_file(own->files.item[i], text, file, error));
        *length += file->count;
        text->stamp = ls_mix(text->stamp) + ls_file_stamp(own->files.item[i]);
    }
    return 0;
}

/* The id of the separator. */
static int find_separator(const struct ls_source_options *options, const struct text *text,
                          int64_t *id, struct ls_error *error)
{
    const int64_t code = ((const struct text_options *)options->own)->windows.separator;
    if (code == LS_NO_SEPARATOR)
        return 0;
    *id = text->bytes ? (code < 256 ? code : -1)
                      : ls_vocabulary_find(&text->vocabulary, (uint32_t)code);
    if (*id >= 0)
        return 0;
    return ls_option_fail(
        options, "text_param.separator", "separator: 10 begins a document with each line", error,
        "separator is %" PRId64 ", a character that the text does not have", code);
}

static int open_text(const struct ls_source_options *options, struct ls_source *source,
                     struct ls_error *error)
{
    const struct text_options *own = options->own;
    struct text *text = source->state = ls_alloc(1, sizeof *text);
    if (text == NULL)
        return ls_fail_memory(error, "a data source");
    text->bytes = own->unit == LOCKSTEP__TEXT_PARAMETER__UNIT__BYTE;
    LS_TRY(read_vocabulary(options, text, source, error));
    struct ls_token_stream stream = {.source = source,
                                     .message = "text_param",
                                     .separator = -1,
                                     .vocabulary = source->class_count,
                                     .bytes = true,
                                     .read = read_ids,
                                     .count_bytes = count_bytes};
    LS_TRY(open_files(own, text, &stream.length, error));
    LS_TRY(find_separator(options, text, &stream.separator, error));
    ls_token_split(&options->split, stream.length, &stream.begin, &stream.end);
    return ls_token_windows_open(options, &own->windows, &stream, source, &text->windows, error);
}

static void close_text(struct ls_source *source)
{
    struct text *text = source->state;
    if (text == NULL)
        return;
    for (size_t i = 0; i < text->files; i++) {
        ls_file_unmap(&text->file[i].mapping);
        ls_free(text->file[i].mark);
        ls_free(text->file[i].path);
    }
    ls_token_windows_close(&text->windows);
    ls_vocabulary_free(&text->vocabulary);
    ls_free(text->file);
    ls_free(text);
}

static int read_text(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                     struct ls_record *record, struct ls_error *error)
{
    const struct text *text = reader->source->state;
    return ls_token_windows_read(&text->windows, reader, index, wanted, record, error);
}

static uint64_t stamp_text(const struct ls_source *source)
{
    return ((const struct text *)source->state)->stamp;
}

static void name_text(const struct ls_source *source, int64_t index, struct ls_text *name)
{
    const struct text *text = source->state;
    ls_token_windows_name(&text->windows, index, name);
}

const struct ls_source_type ls_source_text = {
    .name = "TEXT",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__TEXT,
    .summary = "text files as characters or bytes, cut into windows; see text_param",
    .splits = true,
    .batches = true,
    .unconvertible = "Caffe's records are images with labels; TEXT has windows of ids",
    .options = options_table,
    .options_size = sizeof(struct text_options),
    .open = open_text,
    .close = close_text,
    .read = read_text,
    .stamp = stamp_text,
    .name_record = name_text,
};
