/* Documents of a stream, and their pieces; see token_windows.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/memory.h"
#include "data/token_windows.h"

enum { CHUNK = 1 << 16 /* ids that are looked at together */ };

static int add_piece(struct ls_token_windows *w, int64_t begin, int64_t count,
                     struct ls_error *error)
{
    if (!LS_GROW(w->piece, w->pieces, w->capacity))
        return ls_fail_memory(error, "the documents of a stream");
    w->piece[w->pieces++] = (struct ls_token_piece){begin, count};
    return w->pieces <= UINT32_MAX
               ? 0
               : ls_fail(error, LOCKSTEP_DATA, w->stream.message, "use a larger window",
                         "its documents have more than 2^32 - 1 windows");
}

/* The windows of the document of places [begin, end). */
static int cut_document(struct ls_token_windows *w, int64_t begin, int64_t end,
                        struct ls_error *error)
{
    const int64_t window = w->options.window, stride = w->options.stride;
    for (int64_t at = begin; at < end; at += stride) {
        const bool last = end - at <= window;
        LS_TRY(add_piece(w, at, last ? end - at : window, error));
        if (last)
            return 0;
    }
    return 0;
}

/* Goes through all ids: a document begins with each separator. The last id is no place. */
static int find_documents(struct ls_token_windows *w, struct ls_source_reader *reader, int32_t *ids,
                          struct ls_error *error)
{
    const struct ls_token_stream *stream = &w->stream;
    const int64_t end = stream->end - 1;
    int64_t document = stream->begin;
    for (int64_t at = stream->begin; at <= end; at += CHUNK) {
        const int64_t count = end - at + 1 < CHUNK ? end - at + 1 : CHUNK;
        LS_TRY(stream->read(reader, at, count, ids, error));
        for (int64_t k = 0; k < count; k++)
            if (ids[k] == stream->separator && at + k > document) {
                LS_TRY(cut_document(w, document, at + k, error));
                document = at + k;
            }
    }
    return document < end ? cut_document(w, document, end, error) : 0;
}

int ls_token_pieces_find(struct ls_token_windows *w, struct ls_error *error)
{
    struct ls_source_reader *reader;
    if (w->stream.separator < 0)
        return w->stream.end - w->stream.begin > 1
                   ? cut_document(w, w->stream.begin, w->stream.end - 1, error)
                   : 0;
    LS_TRY(ls_source_reader_open(w->stream.source, &reader, error));
    int32_t *ids = ls_alloc(CHUNK, sizeof *ids);
    int status = ids != NULL ? find_documents(w, reader, ids, error)
                             : ls_fail_memory(error, "the documents of a stream");
    ls_free(ids);
    ls_source_reader_close(reader);
    return status;
}

static int64_t piece_length(const void *user, size_t index)
{
    return ((const struct ls_token_windows *)user)->piece[index].count;
}

int ls_token_pieces_pack(struct ls_token_windows *w, struct ls_error *error)
{
    return ls_first_fit_make(piece_length, w, w->pieces, w->options.window, &w->packing, error);
}
