/* Files of text become files of ids. See text/tokenize.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/tokenize.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/memory.h"
#include "text/token_sheet.h"

static const uint64_t TELL_BYTES = (uint64_t)64 << 20; /* from one sign of life to the next */

/* ---- Options --------------------------------------------------------------------------------- */

static int usage(struct ls_error *error, const char *message)
{
    return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "%s", message);
}

/* What pairs and decoding have no use for. */
static int check_modes(const struct lockstep_tokenize_options *options, struct ls_error *error)
{
    const bool stream =
        options->separator != NULL || options->documents != NULL || options->split > 0;
    if (options->pairs && options->decode)
        return usage(error, "pairs are made of text, not decoded: give one of pairs and decode");
    if (options->pairs && (stream || options->format != NULL))
        return usage(error, "pairs have no separator, documents, split and format");
    if (options->pairs && (options->max_length == 0 || options->output == NULL))
        return usage(error, "pairs need max-length, the tokens of each, and an output");
    if (options->decode && (stream || options->max_length > 0))
        return usage(error, "decode has no separator, documents, split and max-length");
    return 0;
}

static int check_options(const struct lockstep_tokenize_options *options, struct ls_error *error)
{
    if (options->tokenizer == NULL)
        return usage(error, "a tokenizer is missing");
    LS_TRY(check_modes(options, error));
    if (!(options->split >= 0 && options->split < 1))
        return usage(error, "split is a part, more than 0 and less than 1");
    if (options->max_length < 0 || options->max_length > INT32_MAX)
        return usage(error, "max-length is a number of tokens");
    if (options->split > 0 && options->output == NULL)
        return usage(error, "split needs an output");
    if (options->input_count == 0 && options->bytes == NULL)
        return usage(error, "there is nothing to read: name text files, or - for standard input");
    if (options->output != NULL && options->input_count == 0)
        return usage(error, "an output needs text files");
    for (size_t i = 0; options->output != NULL && i < options->input_count; i++)
        if (strcmp(options->inputs[i], "-") != 0 &&
            ls_same_file(options->output, options->inputs[i]))
            return ls_fail(error, LOCKSTEP_USAGE, options->output, "give the output another name",
                           "is an input, too, and would be written over");
    return 0;
}

static int set_up(struct ls_tokenize *work)
{
    const struct lockstep_tokenize_options *options = work->options;
    const char *documents = options->documents != NULL ? options->documents : "files";
    LS_TRY(check_options(options, work->error));
    LS_TRY(ls_token_format_find(options->format, &work->format, work->error));
    work->lines = strcmp(documents, "lines") == 0;
    if (!work->lines && strcmp(documents, "files") != 0)
        return ls_fail(work->error, LOCKSTEP_USAGE, NULL, NULL,
                       "documents are files or lines, not '%s'", documents);
    LS_TRY(ls_tokenizer_open(options->tokenizer, &work->tokenizer, work->error));
    const uint32_t size = ls_tokenizer_size(work->tokenizer);
    work->counts->size = size;
    work->counts->type_size = ls_token_type_size(size);
    work->encoder = ls_encoder_new(work->tokenizer);
    work->seen = ls_alloc((size_t)size + 1, 1);
    if (work->encoder == NULL || work->seen == NULL)
        return ls_fail_memory(work->error, "a tokenizer");
    work->has_separator = options->separator != NULL;
    if (work->has_separator && !ls_tokenizer_id(work->tokenizer, options->separator,
                                                strlen(options->separator), &work->separator))
        return ls_fail(work->error, LOCKSTEP_USAGE, NULL, NULL,
                       "the separator '%s' is no token of %s", options->separator,
                       work->tokenizer->path);
    return 0;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static size_t count_characters(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

static void count_ids(struct ls_tokenize *work, const uint32_t *ids, size_t count)
{
    const struct ls_model *model = &work->tokenizer->model;
    struct lockstep_tokenize_counts *counts = work->counts;
    counts->tokens += (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        counts->unknown += model->has_unknown && ids[i] == model->unknown;
        if (ids[i] < counts->size && !work->seen[ids[i]]) {
            work->seen[ids[i]] = 1;
            counts->distinct++;
        }
    }
}

int ls_tokenize_note(struct ls_tokenize *work, const char *text, size_t length, const uint32_t *ids,
                     size_t count)
{
    struct lockstep_tokenize_counts *counts = work->counts;
    const struct lockstep_callbacks *callbacks = &work->options->callbacks;
    counts->bytes += (int64_t)length;
    counts->characters += (int64_t)count_characters(text, length);
    count_ids(work, ids, count);
    if ((uint64_t)counts->bytes - work->told < TELL_BYTES)
        return 0;
    work->told = (uint64_t)counts->bytes;
    if (callbacks->poll != NULL && callbacks->poll(callbacks->user) == LOCKSTEP_SNAPSHOT_AND_STOP)
        return ls_fail(work->error, LOCKSTEP_STOPPED, NULL, NULL,
                       "stopped after %" PRId64 " bytes; nothing is written", counts->bytes);
    if (callbacks->event != NULL) {
        char line[96];
        snprintf(line, sizeof line, "Read %" PRId64 " MiB of text, made %" PRId64 " tokens.",
                 counts->bytes >> 20, counts->tokens);
        const struct lockstep_event event = {
            .kind = LOCKSTEP_EVENT_NOTICE, .text = line, .test_net = -1};
        callbacks->event(callbacks->user, &event);
    }
    return 0;
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* Where documents begin in the stream, where a split needs to know it. */
struct starts {
    uint64_t *items;
    size_t count, capacity;
};

static int add_document(struct ls_tokenize *work, struct ls_token_spool *spool,
                        struct starts *starts, const char *name, const char *text, size_t length)
{
    const struct lockstep_tokenize_options *options = work->options;
    const struct ls_encode_text what = {
        .name = name, .first = text, .first_length = length, .special = options->special};
    struct ls_encoding encoding;
    LS_TRY(ls_encode(work->encoder, &what, &encoding, work->error));
    if (options->max_length > 0 && encoding.count > (size_t)options->max_length) {
        const struct ls_encode_text cut = {.name = name,
                                           .first = text,
                                           .first_length = length,
                                           .special = options->special,
                                           .most = (size_t)options->max_length};
        work->counts->cut++;
        LS_TRY(ls_encode(work->encoder, &cut, &encoding, work->error));
    }
    work->counts->documents++;
    if (starts != NULL) {
        if (!LS_GROW(starts->items, starts->count, starts->capacity))
            return ls_fail_memory(work->error, "documents");
        starts->items[starts->count++] = spool->count;
    }
    if (work->has_separator) {
        count_ids(work, &work->separator, 1);
        if (spool->fd >= 0)
            LS_TRY(ls_token_spool_add(spool, &work->separator, 1, work->error));
    }
    if (spool->fd >= 0)
        LS_TRY(ls_token_spool_add(spool, encoding.ids, encoding.count, work->error));
    return ls_tokenize_note(work, text, length, encoding.ids, encoding.count);
}

static int add_file(struct ls_tokenize *work, struct ls_token_spool *spool, struct starts *starts,
                    const char *path)
{
    struct ls_text_input input;
    const char *text;
    size_t length;
    int status = ls_text_input_open(path, &input, work->error);
    while (status == 0) {
        char name[400];
        status = work->lines ? ls_text_input_line(&input, &text, &length, work->error)
                             : ls_text_input_all(&input, &text, &length, work->error);
        if (status != 0 || text == NULL)
            break;
        if (work->lines && length == 0)
            continue;
        snprintf(name, sizeof name, "%.300s:%" PRIu64, input.name, input.line);
        status = add_document(work, spool, starts, work->lines ? name : input.name, text, length);
    }
    ls_text_input_close(&input);
    return status;
}

/* "dir/tokens.bin" and "_train" make "dir/tokens_train.bin"; owned by the caller. */
static char *with_part(const char *path, const char *part)
{
    struct ls_text text = {0};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    const char *end = dot != NULL && dot > name ? dot : path + strlen(path);
    ls_text_add_bytes(&text, path, (size_t)(end - path));
    ls_text_add(&text, part);
    ls_text_add(&text, end);
    if (text.failed)
        ls_text_free(&text);
    return text.data;
}

/* Ids [begin, end) as a file, and beside it what they are. */
static int write_part(struct ls_tokenize *work, struct ls_token_spool *spool, const char *path,
                      uint64_t begin, uint64_t end)
{
    const struct ls_token_sheet sheet = {.tokenizer = ls_token_sheet_hash(work->tokenizer),
                                         .vocabulary = work->counts->size,
                                         .type_size = spool->type_size,
                                         .count = end - begin};
    LS_TRY(ls_token_spool_write(spool, path, work->format, begin, end, work->error));
    return ls_token_sheet_write(path, work->tokenizer->path, &sheet, work->error);
}

static int write_split(struct ls_tokenize *work, struct ls_token_spool *spool,
                       const struct starts *starts)
{
    const double part = work->options->split;
    const char *output = work->options->output;
    uint64_t cut = (uint64_t)(part * (double)spool->count);
    if (work->lines) {
        const size_t index = (size_t)(part * (double)starts->count);
        cut = index < starts->count ? starts->items[index] : spool->count;
    }
    char *train = with_part(output, "_train"), *test = with_part(output, "_test");
    int status = 0;
    if (train == NULL || test == NULL)
        status = ls_fail_memory(work->error, output);
    if (status == 0 && (cut == 0 || cut == spool->count))
        status = ls_fail(work->error, LOCKSTEP_DATA, output, NULL,
                         "there is too little text for two parts: %" PRIu64 " tokens of %" PRId64
                         " documents",
                         spool->count, work->counts->documents);
    if (status == 0)
        status = write_part(work, spool, train, 0, cut);
    if (status == 0)
        status = write_part(work, spool, test, cut, spool->count);
    if (status == 0)
        work->counts->train = (int64_t)cut;
    ls_free(train);
    ls_free(test);
    return status;
}

static int make_stream(struct ls_tokenize *work)
{
    const struct lockstep_tokenize_options *options = work->options;
    struct ls_token_spool spool = {.fd = -1};
    struct starts starts = {0};
    int status = 0;
    if (options->output != NULL)
        status = ls_token_spool_open(options->output, work->counts->type_size, &spool, work->error);
    for (size_t i = 0; i < options->input_count && status == 0; i++)
        status = add_file(work, &spool, work->lines && options->split > 0 ? &starts : NULL,
                          options->inputs[i]);
    if (status == 0 && options->output != NULL)
        status = options->split > 0 ? write_split(work, &spool, &starts)
                                    : write_part(work, &spool, options->output, 0, spool.count);
    ls_token_spool_close(&spool);
    ls_free(starts.items);
    return status;
}

/* How many bytes each id stands for, as an array of NumPy. */
static int write_bytes(const struct ls_tokenize *work)
{
    const uint32_t count = work->counts->size;
    const char *path = work->options->bytes;
    char header[LS_NPY_HEADER];
    struct ls_atomic_file *file;
    ls_npy_header_write("<i4", count, 0, header);
    LS_TRY(ls_atomic_open(path, &file, work->error));
    int status = ls_atomic_write(file, header, sizeof header, work->error);
    for (uint32_t id = 0; id < count && status == 0; id++) {
        const uint32_t bytes = ls_token_bytes(work->tokenizer, id);
        const unsigned char number[4] = {(unsigned char)bytes, (unsigned char)(bytes >> 8),
                                         (unsigned char)(bytes >> 16),
                                         (unsigned char)(bytes >> 24)};
        status = ls_atomic_write(file, number, sizeof number, work->error);
    }
    if (status == 0)
        return ls_atomic_commit(file, work->error);
    ls_atomic_abandon(file);
    return status;
}

int ls_tokenize(const struct lockstep_tokenize_options *options,
                struct lockstep_tokenize_counts *counts, struct ls_error *error)
{
    struct lockstep_tokenize_counts ignored;
    struct ls_tokenize work = {
        .options = options, .counts = counts != NULL ? counts : &ignored, .error = error};
    *work.counts = (struct lockstep_tokenize_counts){0};
    int status = set_up(&work);
    if (status == 0 && options->bytes != NULL)
        status = write_bytes(&work);
    if (status == 0)
        status = options->pairs    ? ls_tokenize_pairs(&work)
                 : options->decode ? ls_tokenize_decode(&work)
                                   : make_stream(&work);
    ls_free(work.seen);
    ls_encoder_free(work.encoder);
    ls_tokenizer_free(work.tokenizer);
    return status;
}
