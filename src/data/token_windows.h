/* Windows: how a stream of token ids becomes records; TOKENS and TEXT share it.
 *
 * A stream of L ids has L - 1 places, each an id and the one behind it, its target. A window is a
 * run of places: record tensors `tokens` and `target`, and those that follow from where documents
 * begin:
 *
 *   position   from 0 in each document of the window
 *   segment    number of the document in the window
 *   cont       0 where the state before does not belong to what follows, else 1
 *   mask       1; 0 where the window is filled up
 *   bytes      that the target stands for, where this is known
 *
 * A document begins at each separator, and with the stream. The separator is the first token of one
 * document and the last target of the one before, so that every place belongs to one document,
 * whether a separator was meant to stand in front of documents or behind them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_TOKEN_WINDOWS_H
#define LS_DATA_TOKEN_WINDOWS_H

#include "data/first_fit.h"
#include "data/source.h"

/* The options that TOKENS and TEXT have in common. */
struct ls_window_options {
    int64_t window, stride, streams, separator, pad, bucket, ignore_label;
    int order, documents, lengths; /* of TokensParameter */
};

enum { LS_WINDOW_MOST = 1 << 24 /* tokens of one */ };
/* What `separator` is where there is none. */
#define LS_NO_SEPARATOR UINT32_MAX

/* A row of a table of options. */
/* clang-format off */
#define LS_WINDOW_OPTION(message, type, member, field, kind_, fallback_, least_, most_, help_)     \
    {.name = message "." #field,                                                                   \
     .kind = (kind_),                                                                              \
     .offset = offsetof(type, member) + offsetof(struct ls_window_options, field),                 \
     .fallback = (fallback_),                                                                      \
     .least = (least_),                                                                            \
     .most = (most_),                                                                              \
     .help = (help_)}

#define LS_WINDOW_OPTIONS(message, type, member, separator_help)                                   \
    LS_WINDOW_OPTION(message, type, member, window, LS_OPTION_INTEGER, 0, 0, LS_WINDOW_MOST,       \
                     "tokens of a sample"),                                                        \
    LS_WINDOW_OPTION(message, type, member, stride, LS_OPTION_INTEGER, 0, 0, LS_WINDOW_MOST,       \
                     "tokens from where a window begins to where the next one does; 0: window"),      \
    LS_WINDOW_OPTION(message, type, member, order, LS_OPTION_CHOICE, 0, 0, 0,                      \
                     "STREAMS: sample r of each batch is the next window of part r"),  \
    LS_WINDOW_OPTION(message, type, member, streams, LS_OPTION_INTEGER, 0, 0, 1 << 24,             \
                     "order STREAMS: how many parts; 0: batch_size"),                           \
    LS_WINDOW_OPTION(message, type, member, separator, LS_OPTION_INTEGER, LS_NO_SEPARATOR, 0,      \
                     UINT32_MAX, separator_help),                                                  \
    LS_WINDOW_OPTION(message, type, member, documents, LS_OPTION_CHOICE, 0, 0, 0,                  \
                     "WHOLE: no window goes on into the next document"),                           \
    LS_WINDOW_OPTION(message, type, member, lengths, LS_OPTION_CHOICE, 0, 0, 0,                    \
                     "documents WHOLE: what is done where a document is shorter than a window"),   \
    LS_WINDOW_OPTION(message, type, member, pad, LS_OPTION_INTEGER, 0, 0, INT32_MAX,               \
                     "the id that fills windows up"),                                              \
    LS_WINDOW_OPTION(message, type, member, bucket, LS_OPTION_INTEGER, 0, 0, LS_WINDOW_MOST,       \
                     "lengths BUCKET: samples are filled up to a multiple of it"),                 \
    LS_WINDOW_OPTION(message, type, member, ignore_label, LS_OPTION_INTEGER, -1, INT32_MIN,        \
                     INT32_MAX, "the target where a window is filled up")
/* clang-format on */

/* A stream of ids, as its source reads it. */
struct ls_token_stream {
    const struct ls_source *source;
    const char *message; /* "tokens_param", for messages about options */
    int64_t length;      /* ids */
    int64_t begin, end;  /* of the part that `split` leaves */
    int64_t separator;   /* its id; -1: there is none */
    int64_t vocabulary;  /* ids lie below; 0: not known */
    bool bytes;          /* is known how many an id stands for */
    /* Reads ids [at, at + count), of which all are checked. Errors: LOCKSTEP_DATA or
     * LS_BAD_RECORD, naming file and place. */
    int (*read)(struct ls_source_reader *reader, int64_t at, int64_t count, int32_t *ids,
                struct ls_error *error);
    /* How many bytes each of some ids stands for. */
    void (*count_bytes)(const struct ls_source *source, const int32_t *ids, int64_t count,
                        int32_t *bytes);
};

/* Places [begin, begin + count) of a stream, all of one document where it has documents. */
struct ls_token_piece {
    int64_t begin, count;
};

struct ls_token_windows {
    struct ls_window_options options;
    struct ls_token_stream stream;
    int64_t streams; /* order STREAMS: how many; else 0 */
    int64_t part;    /* places of each of them */
    /* Owned. Documents WHOLE: the pieces of all documents, of which each is a record. NULL: windows
     * follow from their numbers. */
    struct ls_token_piece *piece;
    size_t pieces, capacity;
    struct ls_first_fit packing; /* lengths PACK: which pieces each record has */
};

/* Cuts a stream: sets the records of `source`, their number, tensors, sizes. The windows must be
 * closed even if this fails. Errors: LOCKSTEP_DEFINITION for options that do not fit together,
 * LOCKSTEP_DATA for a stream that is too short, and what reading it leads to. */
int ls_token_windows_open(const struct ls_source_options *options,
                          const struct ls_window_options *own, const struct ls_token_stream *stream,
                          struct ls_source *source, struct ls_token_windows *windows,
                          struct ls_error *error);
void ls_token_windows_close(struct ls_token_windows *windows);
/* The part of a stream of `length` ids that a split leaves: the first share of it, or the rest. */
void ls_token_split(const struct ls_split *split, int64_t length, int64_t *begin, int64_t *end);
/* As a source's read. */
int ls_token_windows_read(const struct ls_token_windows *windows, struct ls_source_reader *reader,
                          int64_t index, uint32_t wanted, struct ls_record *record,
                          struct ls_error *error);
/* "tokens 128 to 191" */
void ls_token_windows_name(const struct ls_token_windows *windows, int64_t index,
                           struct ls_text *text);

/* ---- token_pieces.c, for token_windows.c ---- */

/* Finds the documents, and cuts them into pieces. */
int ls_token_pieces_find(struct ls_token_windows *windows, struct ls_error *error);
/* Lengths PACK: puts them into windows. */
int ls_token_pieces_pack(struct ls_token_windows *windows, struct ls_error *error);

#endif
