/* Source TOKENS: a stream of token ids in one or several files, cut into windows.
 *
 * A file is an array of NumPy of one axis (u2, u4 or i4), a file of llm.c, or ids without a header.
 * llm.c's begin with 256 numbers of 32 bits: a magic number, a version, how many ids follow; of the
 * first kind are 16-bit ids, of the second 32-bit ones. Everything is little-endian.
 *
 * Files are views (base/guard.h). Each id is read from them once, then checked; whether the file
 * became shorter meanwhile is asked before anything is made of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/npy_header.h"
#include "data/numbers.h"
#include "data/token_windows.h"
#include "text/token_sheet.h"

enum { FILES_MOST = 65536, LLMC_HEADER = 1024, BYTES_MOST = 1 << 24 };
/* Of ids without a header: how many are looked at, and at least, and what an id can be. */
enum { LOOKED_AT = 4096, LOOK_LEAST = 32, HIGH_HALF_MOST = 3, ID_MOST = (1 << 24) - 1 };

struct tokens_options {
    struct ls_option_files files;
    struct ls_window_options windows;
    int64_t vocab_size;
    int type; /* of TokensParameter */
    const char *bytes_file;
};

static const struct ls_option options_table[] = {
    {.name = "source",
     .kind = LS_OPTION_FILES,
     .offset = offsetof(struct tokens_options, files),
     .least = 1,
     .most = FILES_MOST,
     .help = "a file of ids: .npy, llm.c's .bin, or ids alone; several are one stream"},
    LS_WINDOW_OPTIONS("tokens_param", struct tokens_options, windows,
                      "the id that documents begin with (or end with)"),
    {.name = "tokens_param.vocab_size",
     .kind = LS_OPTION_INTEGER,
     .offset = offsetof(struct tokens_options, vocab_size),
     .most = INT32_MAX,
     .help = "ids lie below it, which is checked as they are read; 0: it is not known"},
    {.name = "tokens_param.type",
     .kind = LS_OPTION_CHOICE,
     .offset = offsetof(struct tokens_options, type),
     .help = "of the ids in files without a header"},
    {.name = "tokens_param.bytes_file",
     .kind = LS_OPTION_FILE,
     .offset = offsetof(struct tokens_options, bytes_file),
     .help = "a .npy file that says how many bytes each id stands for, for the tensor bytes"},
    {.name = NULL}};

struct tokens_file {
    char *path;
    struct ls_mapping mapping;
    size_t offset;  /* of the ids, in bytes */
    size_t size;    /* of an id, 2 or 4 bytes */
    bool is_signed; /* an id below 0 could be there */
    int64_t first;  /* number of its first id in the stream */
    int64_t count;
    struct ls_token_sheet sheet; /* what is known of its ids */
};

struct tokens {
    struct tokens_file *file;
    size_t files;
    int32_t *bytes; /* of each id; NULL: not known */
    uint64_t stamp;
    struct ls_token_windows windows;
};

/* ---- Files ----------------------------------------------------------------------------------- */

/* Little-endian, from any address. */
static uint32_t number_at(const unsigned char *at, size_t size)
{
    uint32_t number = at[0] | (uint32_t)at[1] << 8;
    return size == 2 ? number : number | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* That a file has as many ids behind its header as that says. */
static int check_length(const struct tokens_file *file, uint64_t count, struct ls_error *error)
{
    const uint64_t there = file->mapping.size - file->offset;
    const bool cut = there / file->size < count;
    if (count <= INT64_MAX / 8 && there == count * file->size)
        return 0;
    return ls_fail(error, LOCKSTEP_DATA, file->path, cut ? "write it again" : NULL,
                   "%s: its header says %" PRIu64 " ids of %zu bytes, and %" PRIu64
                   " bytes follow it",
                   cut ? "is cut off" : "has something behind its end", count, file->size, there);
}

static int read_npy_header(struct tokens_file *file, struct ls_error *error)
{
    struct ls_npy_header header;
    LS_TRY(ls_npy_header_read(file->path, file->mapping.data, file->mapping.size, &header, error));
    if (header.sample.rank != 0)
        return ls_fail(error, LOCKSTEP_DATA, file->path, "numpy.save(file, array.reshape(-1))",
                       "has %d axes; a stream of ids has one", header.sample.rank + 1);
    if (header.type != LS_U16 && header.type != LS_U32 && header.type != LS_I32)
        return ls_fail(error, LOCKSTEP_DATA, file->path,
                       "numpy.save(file, array.astype(numpy.uint16)), or uint32",
                       "has numbers of type %s; ids are of 16 or 32 bits",
                       ls_dtype_name(header.type));
    file->offset = header.size;
    file->size = ls_dtype_size(header.type);
    file->is_signed = header.type == LS_I32;
    LS_TRY(check_length(file, (uint64_t)header.count, error));
    file->count = header.count;
    return 0;
}

/* Whether a file is one of llm.c, by its first eight bytes. */
static int look_for_llmc(struct tokens_file *file, bool *is, struct ls_error *error)
{
    static const struct {
        uint32_t magic, version;
        size_t size; /* of an id */
    } kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
    const struct ls_mapping *mapping = &file->mapping;
    *is = false;
    if (mapping->size < LLMC_HEADER)
        return 0;
    const uint32_t magic = number_at(mapping->data, 4), version = number_at(mapping->data + 4, 4);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (magic != kinds[i].magic)
            continue;
        if (version != kinds[i].version)
            return ls_fail(error, LOCKSTEP_DATA, file->path,
                           "take its first 1024 bytes away, and say what the ids are: "
                           "tokens_param { type }",
                           "has a header of llm.c of version %" PRIu32
                           " (at byte 4), and only %" PRIu32 " is known for its magic number",
                           version, kinds[i].version);
        file->size = kinds[i].size;
        *is = true;
    }
    return 0;
}

/* The first ids of a file without a header. */
struct first_ids {
    size_t count;
    uint32_t even, odd;   /* the largest of those at even and at odd places */
    size_t beyond, first; /* how many are more than an id can be, and the first of them */
};

static struct first_ids look_at_ids(const struct tokens_file *file)
{
    struct first_ids first = {.count = file->mapping.size / file->size};
    if (first.count > LOOKED_AT)
        first.count = LOOKED_AT;
    for (size_t i = 0; i < first.count; i++) {
        const uint32_t id = number_at(file->mapping.data + i * file->size, file->size);
        uint32_t *largest = i % 2 == 0 ? &first.even : &first.odd;
        *largest = id > *largest ? id : *largest;
        if (id > ID_MOST && first.beyond++ == 0)
            first.first = i;
    }
    return first;
}

/* Ids without a header can be taken for those of another size: halves of ids of 32 bits are ids of
 * 16 bits, of which every second one is 0, or nearly; pairs of ids of 16 bits are numbers that no
 * tokenizer has. */
static int check_type(const struct tokens_file *file, struct ls_error *error)
{
    const struct first_ids first = look_at_ids(file);
    if (first.count < LOOK_LEAST)
        return 0;
    if (file->size == 2 && file->mapping.size % 4 == 0 && first.odd <= HIGH_HALF_MOST &&
        first.even > first.odd)
        return ls_fail(error, LOCKSTEP_DATA, file->path,
                       "tokens_param { type: U32 } is for ids of 32 bits; an array of NumPy says "
                       "itself what it holds",
                       "every second one of its first %zu ids of 16 bits is %s%" PRIu32
                       " (from byte 2 on): these are ids of 32 bits",
                       first.count, first.odd > 0 ? "at most " : "", first.odd);
    if (file->size == 4 && first.beyond > first.count / 2)
        return ls_fail(
            error, LOCKSTEP_DATA, file->path, "tokens_param { type: U16 } is for ids of 16 bits",
            "%zu of its first %zu ids of 32 bits are numbers that no tokenizer has, such "
            "as number %zu (at byte %zu), %" PRIu32 ": are these ids of 16 bits?",
            first.beyond, first.count, first.first, first.first * 4,
            number_at(file->mapping.data + first.first * 4, 4));
    return 0;
}

/* Ids alone: of the type that the text beside them says, or the definition. */
static int take_alone(struct tokens_file *file, int type, struct ls_error *error)
{
    const struct ls_mapping *mapping = &file->mapping;
    const bool known = file->sheet.there;
    file->size = type == LOCKSTEP__TOKENS_PARAMETER__TYPE__U16 ? 2 : 4;
    file->is_signed = type == LOCKSTEP__TOKENS_PARAMETER__TYPE__I32;
    if (known && (int)file->sheet.type_size != (int)file->size && file->size == 4)
        return ls_fail(error, LOCKSTEP_DATA, file->path, "tokens_param { type: U16 }",
                       "has ids of 16 bits, as the text beside it says");
    if (known)
        file->size = (size_t)file->sheet.type_size;
    if (mapping->size % file->size != 0)
        return ls_fail(error, LOCKSTEP_DATA, file->path,
                       "tokens_param { type } says what ids without a header are",
                       "has %zu bytes, which are no whole number of ids of %zu bytes",
                       mapping->size, file->size);
    file->count = (int64_t)(mapping->size / file->size);
    return known ? 0 : check_type(file, error);
}

static int read_header(struct tokens_file *file, int type, struct ls_error *error)
{
    static const char magic[] = "\x93NUMPY";
    const struct ls_mapping *mapping = &file->mapping;
    bool llmc;
    if (mapping->size >= sizeof magic - 1 && memcmp(mapping->data, magic, sizeof magic - 1) == 0)
        return read_npy_header(file, error);
    LS_TRY(look_for_llmc(file, &llmc, error));
    if (!llmc)
        return take_alone(file, type, error);
    const uint32_t count = number_at(mapping->data + 8, 4);
    file->offset = LLMC_HEADER;
    LS_TRY(check_length(file, count, error));
    file->count = count;
    return 0;
}

static int open_file(const char *path, int type, struct tokens_file *file, struct ls_error *error)
{
    file->path = ls_copy_string(path);
    if (file->path == NULL)
        return ls_fail_memory(error, "a path");
    LS_TRY(ls_token_sheet_read(path, &file->sheet, error));
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &file->mapping, error));
    int status = read_header(file, type, error);
    if (status == 0 && file->sheet.there && file->sheet.count != (uint64_t)file->count)
        status = ls_fail(error, LOCKSTEP_DATA, path, "remove the text, or write the ids again",
                         "has %" PRId64 " ids, and %" PRIu64
                         " by the text beside it (.about): that is of another file",
                         file->count, file->sheet.count);
    LS_TRY(ls_file_lost(&file->mapping, path, LOCKSTEP_DATA, error));
    return status;
}

/* How many bytes each id stands for, from an array of integers. */
static int take_bytes(const char *path, const struct ls_mapping *mapping, struct tokens *tokens,
                      int64_t *count, struct ls_error *error)
{
    struct ls_npy_header header;
    LS_TRY(ls_npy_header_read(path, mapping->data, mapping->size, &header, error));
    const size_t each = ls_dtype_size(header.type);
    if (header.sample.rank != 0 || ls_dtype_is_float(header.type) || header.count < 1 ||
        header.count > BYTES_MOST || mapping->size - header.size != (size_t)header.count * each)
        return ls_fail(error, LOCKSTEP_DATA, path,
                       "numpy.save(file, numpy.array([len(bytes) for each id], numpy.uint16))",
                       "is no list of whole numbers, one for each id");
    void *copy = ls_alloc_aligned((size_t)header.count * each);
    tokens->bytes = ls_alloc((size_t)header.count, sizeof *tokens->bytes);
    if (copy == NULL || tokens->bytes == NULL) {
        ls_free_aligned(copy);
        return ls_fail_memory(error, "the lengths of tokens");
    }
    memcpy(copy, mapping->data + header.size, (size_t)header.count * each);
    *count = ls_numbers_to_i32(header.type, copy, header.count, tokens->bytes);
    ls_free_aligned(copy);
    for (int64_t i = 0; i < header.count; i++)
        if (i >= *count || tokens->bytes[i] < 0 || tokens->bytes[i] > LS_WINDOW_MOST)
            return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                           "says of id %" PRId64 " what cannot be a number of bytes", i);
    return 0;
}

static int read_bytes(const struct ls_source_options *options, struct tokens *tokens,
                      int64_t *vocabulary, struct ls_error *error)
{
    const char *path = ((const struct tokens_options *)options->own)->bytes_file;
    struct ls_mapping mapping;
    int64_t count = 0;
    if (path == NULL)
        return 0;
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, error));
    int status = take_bytes(path, &mapping, tokens, &count, error);
    int lost = ls_file_lost(&mapping, path, LOCKSTEP_DATA, error);
    ls_file_unmap(&mapping);
    LS_TRY(lost);
    LS_TRY(status);
    tokens->stamp = ls_mix(tokens->stamp) + ls_file_stamp(path);
    if (*vocabulary > count)
        return ls_option_fail(options, "tokens_param.bytes_file", NULL, error,
                              "bytes_file knows %" PRId64 " ids, and vocab_size is %" PRId64, count,
                              *vocabulary);
    if (*vocabulary == 0)
        *vocabulary = count;
    return 0;
}

/* ---- The stream ------------------------------------------------------------------------------ */

/* The file that an id of the stream is in. */
static const struct tokens_file *find_file(const struct tokens *tokens, int64_t at)
{
    size_t begin = 0, end = tokens->files;
    while (end - begin > 1) {
        const size_t middle = begin + (end - begin) / 2;
        if (tokens->file[middle].first <= at)
            begin = middle;
        else
            end = middle;
    }
    return &tokens->file[begin];
}

/* An id that is none. */
static int fail_id(const struct tokens *tokens, const struct tokens_file *file, int64_t at,
                   int32_t id, struct ls_error *error)
{
    const int64_t place = at - file->first, vocabulary = tokens->windows.stream.vocabulary;
    const size_t byte = file->offset + (size_t)place * file->size;
    const int64_t shown = file->is_signed ? id : (int64_t)(uint32_t)id;
    if (vocabulary > 0)
        return ls_source_bad_record(
            ls_fail(error, LOCKSTEP_DATA, file->path,
                    "tokens_param { type } says what ids without a header are",
                    "id number %" PRId64 " (at byte %zu) is %" PRId64
                    ", and the vocabulary has 0 to %" PRId64,
                    place, byte, shown, vocabulary - 1));
    return ls_source_bad_record(ls_fail(
        error, LOCKSTEP_DATA, file->path, NULL,
        "id number %" PRId64 " (at byte %zu) is %" PRId64 ", which is no id", place, byte, shown));
}

static int read_ids(struct ls_source_reader *reader, int64_t at, int64_t count, int32_t *ids,
                    struct ls_error *error)
{
    const struct tokens *tokens = reader->source->state;
    const int64_t vocabulary = tokens->windows.stream.vocabulary;
    const uint32_t least = vocabulary > 0 ? (uint32_t)vocabulary : (uint32_t)INT32_MAX + 1;
    const struct tokens_file *file = find_file(tokens, at);
    for (int64_t done = 0; done < count; file++) {
        if (file->count == 0)
            continue; /* a view of nothing has no address */
        const int64_t place = at + done - file->first;
        const int64_t left = file->count - place;
        const int64_t here = left < count - done ? left : count - done;
        const unsigned char *from = file->mapping.data + file->offset + (size_t)place * file->size;
        int64_t wrong = -1;
        for (int64_t i = 0; i < here; i++) {
            const uint32_t id = number_at(from + (size_t)i * file->size, file->size);
            ids[done + i] = (int32_t)id;
            if (id >= least && wrong < 0)
                wrong = i;
        }
        LS_TRY(ls_file_lost(&file->mapping, file->path, LOCKSTEP_DATA, error));
        if (wrong >= 0)
            return fail_id(tokens, file, at + done + wrong, ids[done + wrong], error);
        done += here;
    }
    return 0;
}

static void count_bytes(const struct ls_source *source, const int32_t *ids, int64_t count,
                        int32_t *bytes)
{
    const struct tokens *tokens = source->state;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = tokens->bytes[ids[i]];
}

/* ---- The source ------------------------------------------------------------------------------ */

static int open_files(const struct tokens_options *own, struct tokens *tokens, int64_t *length,
                      struct ls_error *error)
{
    tokens->file = ls_alloc(own->files.count, sizeof *tokens->file);
    if (tokens->file == NULL)
        return ls_fail_memory(error, "a data source");
    for (size_t i = 0; i < own->files.count; i++) {
        struct tokens_file *file = &tokens->file[tokens->files++];
        file->first = *length;
        LS_TRY(open_file(own->files.item[i], own->type, file, error));
        *length += file->count;
        tokens->stamp = ls_mix(tokens->stamp) + ls_file_stamp(own->files.item[i]);
    }
    return 0;
}

/* Whose ids they are, where the texts beside the files say it: of one tokenizer. */
static int take_tokenizer(const struct tokens *tokens, struct ls_source *source,
                          int64_t *vocabulary, struct ls_error *error)
{
    for (size_t i = 0; i < tokens->files; i++) {
        const struct ls_token_sheet *sheet = &tokens->file[i].sheet;
        if (!sheet->there)
            continue;
        if (source->tokenizer != 0 && source->tokenizer != sheet->tokenizer)
            return ls_fail(error, LOCKSTEP_DATA, tokens->file[i].path,
                           "make all with one tokenizer (lockstep tokenize --tokenizer)",
                           "its ids are those of another tokenizer than those of the files before");
        source->tokenizer = sheet->tokenizer;
        if (*vocabulary == 0)
            *vocabulary = sheet->vocabulary;
    }
    return 0;
}

static int open_tokens(const struct ls_source_options *options, struct ls_source *source,
                       struct ls_error *error)
{
    const struct tokens_options *own = options->own;
    struct tokens *tokens = source->state = ls_alloc(1, sizeof *tokens);
    if (tokens == NULL)
        return ls_fail_memory(error, "a data source");
    struct ls_token_stream stream = {.source = source,
                                     .message = "tokens_param",
                                     .separator = -1,
                                     .vocabulary = own->vocab_size,
                                     .read = read_ids,
                                     .count_bytes = count_bytes};
    LS_TRY(open_files(own, tokens, &stream.length, error));
    LS_TRY(take_tokenizer(tokens, source, &stream.vocabulary, error));
    LS_TRY(read_bytes(options, tokens, &stream.vocabulary, error));
    stream.bytes = tokens->bytes != NULL;
    ls_token_split(&options->split, stream.length, &stream.begin, &stream.end);
    if (own->windows.separator != LS_NO_SEPARATOR) {
        stream.separator = own->windows.separator;
        const int64_t ids = stream.vocabulary > 0 ? stream.vocabulary : INT64_C(1) << 31;
        if (stream.separator >= ids)
            return ls_option_fail(options, "tokens_param.separator", NULL, error,
                                  "separator is %" PRId64 ", and ids lie below %" PRId64,
                                  stream.separator, ids);
    }
    return ls_token_windows_open(options, &own->windows, &stream, source, &tokens->windows, error);
}

static void close_tokens(struct ls_source *source)
{
    struct tokens *tokens = source->state;
    if (tokens == NULL)
        return;
    for (size_t i = 0; i < tokens->files; i++) {
        ls_file_unmap(&tokens->file[i].mapping);
        ls_free(tokens->file[i].path);
    }
    ls_token_windows_close(&tokens->windows);
    ls_free(tokens->file);
    ls_free(tokens->bytes);
    ls_free(tokens);
}

static int read_tokens(struct ls_source_reader *reader, int64_t index, uint32_t wanted,
                       struct ls_record *record, struct ls_error *error)
{
    const struct tokens *tokens = reader->source->state;
    return ls_token_windows_read(&tokens->windows, reader, index, wanted, record, error);
}

static uint64_t stamp_tokens(const struct ls_source *source)
{
    return ((const struct tokens *)source->state)->stamp;
}

static void name_tokens(const struct ls_source *source, int64_t index, struct ls_text *text)
{
    const struct tokens *tokens = source->state;
    ls_token_windows_name(&tokens->windows, index, text);
}

const struct ls_source_type ls_source_tokens = {
    .name = "TOKENS",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__TOKENS,
    .summary = "a stream of token ids in files, cut into windows; see tokens_param",
    .splits = true,
    .batches = true,
    .unconvertible = "Caffe's records are images with labels; TOKENS has windows of ids",
    .options = options_table,
    .options_size = sizeof(struct tokens_options),
    .open = open_tokens,
    .close = close_tokens,
    .read = read_tokens,
    .stamp = stamp_tokens,
    .name_record = name_tokens,
};
