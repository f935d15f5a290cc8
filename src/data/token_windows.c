/* Windows of a stream of tokens; see the header.
 *
 * Where documents do not matter a window follows from its number: with a stride of s and windows of
 * T places, window i of order FORWARD begins at place i s, and window i of order STREAMS with n
 * streams of p places each is window i / n of stream i mod n, which begins at (i mod n) p + (i / n)
 * T. Else windows are lists of pieces of documents (token_pieces.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/token_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* The tensors of a record, in their order; `bytes` only where it is known. */
enum { TOKENS, TARGET, POSITION, SEGMENT, CONT, MASK, BYTES, TENSORS };
static const char *const names[TENSORS] = {"tokens", "target", "position", "segment",
                                           "cont",   "mask",   "bytes"};

/* Tokens that are read together, and among which a separator is looked for. */
enum { CHUNK = 1 << 16, LOOKED_AT = 1 << 22 };

enum {
    FORWARD = LOCKSTEP__TOKENS_PARAMETER__ORDER__FORWARD,
    STREAMS = LOCKSTEP__TOKENS_PARAMETER__ORDER__STREAMS,
    CROSS = LOCKSTEP__TOKENS_PARAMETER__DOCUMENTS__CROSS,
    PAD = LOCKSTEP__TOKENS_PARAMETER__LENGTHS__PAD,
    BUCKET = LOCKSTEP__TOKENS_PARAMETER__LENGTHS__BUCKET,
    PACK = LOCKSTEP__TOKENS_PARAMETER__LENGTHS__PACK
};

void ls_token_split(const struct ls_split *split, int64_t length, int64_t *begin, int64_t *end)
{
    const int64_t cut = split->all ? length : (int64_t)((double)length * split->fraction);
    *begin = split->all || split->train ? 0 : cut;
    *end = split->all || !split->train ? length : cut;
}

/* ---- Options that do not fit together -------------------------------------------------------- */

/* What is wrong, the field that says so, and what to do about it. */
struct misfit {
    bool is;
    const char *field, *message, *hint;
};

static int check_options(const struct ls_source_options *options, const char *message,
                         const struct ls_window_options *own, struct ls_error *error)
{
    const bool whole = own->documents != CROSS;
    const struct misfit misfits[] = {
        {own->window < 1, "window", "a window needs a number of tokens",
         "window: 256, for example"},
        {own->order == STREAMS && own->stride != 0 && own->stride != own->window, "stride",
         "order: STREAMS has windows that follow each other", "leave stride out"},
        {own->order == STREAMS && whole, "documents",
         "order: STREAMS goes on from document to document",
         "leave documents out; cont is 0 where one begins"},
        {own->order != STREAMS && own->streams != 0, "streams", "streams is for order: STREAMS",
         NULL},
        {!whole && own->lengths != PAD, "lengths",
         "BUCKET and PACK are for documents: WHOLE: all windows have one length here", NULL},
        {own->lengths == BUCKET && own->bucket == 0, "lengths", "lengths: BUCKET needs a bucket",
         "bucket: 32 fills samples up to a multiple of 32 tokens"},
        {own->lengths != BUCKET && own->bucket != 0, "bucket", "bucket is for lengths: BUCKET",
         NULL},
        {own->lengths == PACK && own->stride != 0 && own->stride != own->window, "stride",
         "lengths: PACK has each token once", "leave stride out"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++) {
        char field[64];
        if (!misfits[i].is)
            continue;
        snprintf(field, sizeof field, "%s.%s", message, misfits[i].field);
        return ls_option_fail(options, field, misfits[i].hint, error, "%s", misfits[i].message);
    }
    return 0;
}

/* That the id which fills windows up is one. */
static int check_pad(const struct ls_source_options *options,
                     const struct ls_token_windows *windows, struct ls_error *error)
{
    const struct ls_token_stream *stream = &windows->stream;
    char field[64];
    snprintf(field, sizeof field, "%s.pad", stream->message);
    if (stream->vocabulary == 0 || windows->options.pad < stream->vocabulary)
        return 0;
    return ls_option_fail(options, field, NULL, error,
                          "pad is %" PRId64 ", and the vocabulary has ids 0 to %" PRId64,
                          windows->options.pad, stream->vocabulary - 1);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int too_short(const struct ls_source_options *options, const struct ls_token_windows *w,
                     int64_t needed, struct ls_error *error)
{
    const struct ls_token_stream *stream = &w->stream;
    return ls_fail(error, LOCKSTEP_DATA, ls_source_options_name(options),
                   "a window of T tokens takes T + 1, as its last one needs a target",
                   "%s %" PRId64 " tokens, fewer than the %" PRId64 " that %s",
                   options->split.all ? "has" : "this part of it has", stream->end - stream->begin,
                   needed, w->streams > 0 ? "a window of each stream takes" : "a window takes");
}

/* Where windows follow from their numbers: how many there are. */
static int count_windows(const struct ls_source_options *options, struct ls_token_windows *w,
                         struct ls_source *source, struct ls_error *error)
{
    const struct ls_window_options *own = &w->options;
    const int64_t places = w->stream.end - w->stream.begin - 1;
    if (own->order == STREAMS) {
        w->part = places > 0 ? places / w->streams : 0;
        if (w->part < own->window)
            return too_short(options, w, w->streams * own->window + 1, error);
        source->count = w->part / own->window * w->streams;
        source->streams = w->streams;
        return 0;
    }
    if (places < own->window)
        return too_short(options, w, own->window + 1, error);
    source->count = (places - own->window) / own->stride + 1;
    return 0;
}

/* How many streams there are: samples of a batch go on in the next one. */
static int find_streams(const struct ls_source_options *options, struct ls_token_windows *w,
                        struct ls_error *error)
{
    const int64_t batch = options->batch;
    char field[64];
    snprintf(field, sizeof field, "%s.streams", w->stream.message);
    if (w->options.order != STREAMS)
        return 0;
    w->streams = w->options.streams > 0 ? w->options.streams : batch;
    if (batch < 1)
        return ls_option_fail(options, NULL, "batch_size: 32, for example", error,
                              "order: STREAMS needs batch_size");
    if (w->streams % batch == 0)
        return 0;
    return ls_option_fail(
        options, field, "with iter_size: k there are k x batch_size streams", error,
        "streams is %" PRId64 ", which is no multiple of batch_size, %" PRId64, w->streams, batch);
}

/* How many steps record i has. */
static int64_t padded(const struct ls_token_windows *w, int64_t count)
{
    const int64_t bucket = w->options.bucket, window = w->options.window;
    if (w->options.lengths != BUCKET)
        return window;
    const int64_t full = (count + bucket - 1) / bucket * bucket;
    return full < window ? full : window;
}

static int set_sizes(const struct ls_token_windows *w, struct ls_source *source,
                     struct ls_error *error)
{
    if (w->options.lengths != BUCKET)
        return 0;
    source->sizes = ls_alloc((size_t)source->count, sizeof *source->sizes);
    if (source->sizes == NULL)
        return ls_fail_memory(error, "the lengths of records");
    for (int64_t i = 0; i < source->count; i++) {
        source->sizes[i][0] = (int32_t)padded(w, w->piece[i].count);
        source->sizes[i][1] = 1;
        source->varies = source->varies || source->sizes[i][0] != source->sizes[0][0];
    }
    source->steps = source->sizes[0][0];
    return 0;
}

static int cut_documents(const struct ls_source_options *options, struct ls_token_windows *w,
                         struct ls_source *source, struct ls_error *error)
{
    LS_TRY(ls_token_pieces_find(w, error));
    if (w->pieces == 0)
        return too_short(options, w, 2, error);
    source->count = (int64_t)w->pieces;
    if (w->options.lengths == PACK) {
        LS_TRY(ls_token_pieces_pack(w, error));
        source->count = w->packing.windows;
    }
    LS_TRY(check_pad(options, w, error));
    return set_sizes(w, source, error);
}

static void add_tensors(const struct ls_token_windows *w, struct ls_source *source)
{
    for (int k = 0; k < (w->stream.bytes ? TENSORS : BYTES); k++) {
        struct ls_tensor_info *info =
            ls_source_add_tensor(source, names[k], LS_TENSOR_SEQUENCE, LS_I32);
        info->shape = (struct ls_shape){.rank = 1, .dim = {source->steps}};
    }
    if (w->stream.vocabulary > 0)
        for (int k = TOKENS; k <= TARGET; k++)
            source->tensor[k].largest = w->stream.vocabulary - 1;
}

/* Looks for a separator; where there is none all is one document, and that is said once. */
static int check_separator(const struct ls_source_options *options,
                           const struct ls_token_windows *w, struct ls_source *source,
                           struct ls_error *error)
{
    const struct ls_token_stream *stream = &w->stream;
    const int64_t most = stream->end - stream->begin, looked = most < LOOKED_AT ? most : LOOKED_AT;
    struct ls_source_reader *reader = NULL;
    if (stream->separator < 0)
        return 0;
    int32_t *ids = ls_alloc(CHUNK, sizeof *ids);
    if (ids == NULL)
        return ls_fail_memory(error, "the documents of a stream");
    int status = ls_source_reader_open(source, &reader, error);
    bool found = status != 0;
    for (int64_t at = 0; at < looked && !found; at += CHUNK) {
        const int64_t count = looked - at < CHUNK ? looked - at : CHUNK;
        /* An id that is none is a bad record, which is found when it is read. */
        found = stream->read(reader, stream->begin + at, count, ids, NULL) != 0;
        for (int64_t k = 0; k < count && !found; k++)
            found = ids[k] == stream->separator;
    }
    struct ls_text text = {0};
    if (!found)
        ls_text_format(&text,
                       "%.200s: the separator (%s.separator, id %" PRId64 ") does not occur in "
                       "its %s%" PRId64 " tokens: they are one document",
                       ls_source_options_name(options), stream->message, stream->separator,
                       looked < most ? "first " : "", looked);
    source->warning = text.data;
    if (text.failed)
        status = ls_fail_memory(error, "a data source");
    if (reader != NULL)
        ls_source_reader_close(reader);
    ls_free(ids);
    return status;
}

int ls_token_windows_open(const struct ls_source_options *options,
                          const struct ls_window_options *own, const struct ls_token_stream *stream,
                          struct ls_source *source, struct ls_token_windows *windows,
                          struct ls_error *error)
{
    *windows = (struct ls_token_windows){.options = *own, .stream = *stream};
    LS_TRY(check_options(options, stream->message, own, error));
    LS_TRY(find_streams(options, windows, error));
    if (own->stride == 0)
        windows->options.stride = own->window;
    source->steps = own->window;
    int status = own->documents == CROSS ? count_windows(options, windows, source, error)
                                         : cut_documents(options, windows, source, error);
    LS_TRY(status);
    LS_TRY(check_separator(options, windows, source, error));
    add_tensors(windows, source);
    ls_source_note_bytes(source, (size_t)own->window * (TENSORS + 1) * sizeof(int32_t));
    return 0;
}

void ls_token_windows_close(struct ls_token_windows *windows)
{
    ls_free(windows->piece);
    ls_first_fit_free(&windows->packing);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A record that is being made: room for the steps of each tensor, and what is known so far. */
struct making {
    const struct ls_token_windows *windows;
    struct ls_source_reader *reader;
    int32_t *out[TENSORS]; /* NULL: not wanted */
    int32_t *ids;          /* of a piece, and the one behind it */
    int64_t steps, done;
    int32_t segment, position; /* of the next step */
    uint64_t hash[TENSORS];
};

static void put(const struct making *m, int tensor, int64_t step, int32_t value)
{
    if (m->out[tensor] != NULL)
        m->out[tensor][step] = value;
}

/* What follows from where documents begin, step by step. `goes_on`: the state before the piece
 * belongs to it. */
static void put_places(struct making *m, int64_t count, bool goes_on)
{
    const int64_t separator = m->windows->stream.separator;
    for (int64_t k = 0; k < count; k++) {
        const int64_t step = m->done + k;
        const bool begins = m->ids[k] == separator;
        if (step > 0 && (begins || k == 0)) {
            m->segment++;
            m->position = 0;
        }
        put(m, POSITION, step, m->position++);
        put(m, SEGMENT, step, m->segment);
        put(m, CONT, step, !begins && (k > 0 || goes_on));
        put(m, MASK, step, 1);
    }
}

/* A piece of the stream, behind those that are there. */
static int put_piece(struct making *m, const struct ls_token_piece *piece, bool goes_on,
                     struct ls_error *error)
{
    const struct ls_token_stream *stream = &m->windows->stream;
    const size_t bytes = (size_t)piece->count * sizeof *m->ids;
    LS_TRY(stream->read(m->reader, piece->begin, piece->count + 1, m->ids, error));
    if (m->out[TOKENS] != NULL)
        memcpy(m->out[TOKENS] + m->done, m->ids, bytes);
    if (m->out[TARGET] != NULL)
        memcpy(m->out[TARGET] + m->done, m->ids + 1, bytes);
    if (m->out[BYTES] != NULL)
        stream->count_bytes(m->reader->source, m->ids + 1, piece->count, m->out[BYTES] + m->done);
    put_places(m, piece->count, goes_on);
    m->done += piece->count;
    return 0;
}

/* What is left of the window is a document of its own. */
static void fill_up(struct making *m)
{
    const struct ls_window_options *own = &m->windows->options;
    for (int64_t step = m->done; step < m->steps; step++) {
        put(m, TOKENS, step, (int32_t)own->pad);
        put(m, TARGET, step, (int32_t)own->ignore_label);
        put(m, POSITION, step, (int32_t)(step - m->done));
        put(m, SEGMENT, step, m->segment + 1);
        put(m, CONT, step, step > m->done);
        put(m, MASK, step, 0);
        put(m, BYTES, step, 0);
    }
}

/* The piece of the stream that window `index` is, where that follows from the number. *goes_on: the
 * window before it in the same row of a batch ends where it begins. */
static void find_window(const struct ls_token_windows *w, int64_t index,
                        struct ls_token_piece *piece, bool *goes_on)
{
    const int64_t window = w->options.window;
    piece->count = window;
    *goes_on = w->streams > 0 && index >= w->streams;
    piece->begin = w->stream.begin +
                   (w->streams > 0 ? index % w->streams * w->part + index / w->streams * window
                                   : index * w->options.stride);
}

static int make_record(struct making *m, int64_t index, struct ls_error *error)
{
    const struct ls_token_windows *w = m->windows;
    struct ls_token_piece piece;
    bool goes_on = false;
    if (w->piece == NULL) {
        find_window(w, index, &piece, &goes_on);
        return put_piece(m, &piece, goes_on, error);
    }
    const struct ls_first_fit *packing = &w->packing;
    if (packing->first == NULL)
        LS_TRY(put_piece(m, &w->piece[index], false, error));
    else
        for (uint32_t i = packing->first[index]; i < packing->first[index + 1]; i++)
            LS_TRY(put_piece(m, &w->piece[packing->order[i]], false, error));
    fill_up(m);
    return 0;
}

int ls_token_windows_read(const struct ls_token_windows *windows, struct ls_source_reader *reader,
                          int64_t index, uint32_t wanted, struct ls_record *record,
                          struct ls_error *error)
{
    struct making m = {
        .windows = windows, .reader = reader, .steps = record->tensor[0].shape.dim[0]};
    const size_t window = (size_t)windows->options.window;
    int32_t *room = ls_buffer_reserve(&reader->record, window * TENSORS, sizeof *room);
    m.ids = ls_buffer_reserve(&reader->map, window + 1, sizeof *m.ids);
    if (room == NULL || m.ids == NULL)
        return ls_fail_memory(error, "a window of tokens");
    for (int k = 0; k < record->count; k++)
        if ((wanted & LS_TENSOR(k)) != 0)
            m.out[k] = room + (size_t)k * window;
    LS_TRY(make_record(&m, index, error));
    for (int k = 0; k < record->count; k++)
        if (m.out[k] != NULL) {
            record->tensor[k].data = m.out[k];
            record->tensor[k].hash =
                ls_hash_wide(m.out[k], (size_t)m.steps * sizeof *m.out[k], (uint64_t)k);
        }
    return 0;
}

void ls_token_windows_name(const struct ls_token_windows *windows, int64_t index,
                           struct ls_text *text)
{
    const struct ls_first_fit *packing = &windows->packing;
    struct ls_token_piece piece;
    bool goes_on;
    uint32_t more = 0;
    if (windows->piece == NULL) {
        find_window(windows, index, &piece, &goes_on);
    } else if (packing->first == NULL) {
        piece = windows->piece[index];
    } else {
        piece = windows->piece[packing->order[packing->first[index]]];
        more = packing->first[index + 1] - packing->first[index] - 1;
    }
    ls_text_format(text, "tokens %" PRId64 " to %" PRId64, piece.begin,
                   piece.begin + piece.count - 1);
    if (more > 0)
        ls_text_format(text, " and %" PRIu32 " more pieces", more);
}
