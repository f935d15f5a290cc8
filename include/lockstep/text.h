/* Text: tokenizers, and files of token ids. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_TEXT_H
#define LOCKSTEP_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer: from text to ids of tokens and back, with the ids that Hugging Face's tokenizers
 * give. */
struct lockstep_tokenizer;

/* Reads tokenizer.json (byte pair encoding, WordPiece, whole words), GPT-2's vocab.json with
 * merges.txt beside it, BERT's vocab.txt, or a folder with one of them. LOCKSTEP_DATA for what
 * cannot be read, or has parts that are not supported. */
LOCKSTEP_API int lockstep_tokenizer_load(const char *path, struct lockstep_tokenizer **tokenizer,
                                         struct lockstep_error *error);
LOCKSTEP_API void lockstep_tokenizer_free(struct lockstep_tokenizer *tokenizer);
/* All ids are less. */
LOCKSTEP_API uint32_t lockstep_tokenizer_size(const struct lockstep_tokenizer *tokenizer);
/* The id of a token as the file writes it ("<|endoftext|>"), or -1. */
LOCKSTEP_API int64_t lockstep_tokenizer_id(const struct lockstep_tokenizer *tokenizer,
                                           const char *token);

/* Makes tokens of `length` bytes of UTF-8; `special`: with the tokens that the file's template puts
 * around a text. The ids belong to the tokenizer, until it encodes again. */
LOCKSTEP_API int lockstep_tokenizer_encode(struct lockstep_tokenizer *tokenizer, const char *text,
                                           size_t length, int special, const uint32_t **ids,
                                           size_t *count, struct lockstep_error *error);
/* The bytes that one token adds to a text, for text that is shown while it is made; `begins`: it is
 * the first one. They need not be whole characters, and there are none for special tokens unless
 * `special`. They belong to the tokenizer, until it decodes again. */
LOCKSTEP_API int lockstep_tokenizer_decode_token(struct lockstep_tokenizer *tokenizer, uint32_t id,
                                                 int begins, int special, const char **bytes,
                                                 size_t *length, struct lockstep_error *error);
/* The text of many tokens, with U+FFFD for bytes that are no characters, likewise. */
LOCKSTEP_API int lockstep_tokenizer_decode(struct lockstep_tokenizer *tokenizer,
                                           const uint32_t *ids, size_t count, int special,
                                           const char **text, size_t *length,
                                           struct lockstep_error *error);

/* What lockstep_tokenize does: files of text become a file of ids, or back. */
struct lockstep_tokenize_options {
    size_t struct_size;
    const char *tokenizer;     /* as of lockstep_tokenizer_load */
    const char *const *inputs; /* files, "-": standard input */
    size_t input_count;
    const char *output;    /* NULL: nothing is written but `bytes` */
    const char *format;    /* of ids: "bin" (alone, of 16 or 32 bits), "npy", "llmc"; NULL: bin */
    const char *documents; /* what is encoded by itself: "files" or "lines"; NULL: files */
    const char *separator; /* a token in front of every document; NULL: none */
    const char *bytes;     /* a .npy file of the number of bytes that each id stands for; or NULL */
    double split; /* the part of tokens (lines: of documents) that OUTPUT_train gets, and the rest
                     OUTPUT_test; 0: all goes to `output` */
    int64_t max_length; /* tokens of a document, with its template; 0: as many as it has */
    int special;        /* with the tokens that the tokenizer's template puts around a text */
    int pairs;          /* lines of two texts with a tab between them: OUTPUT_ids.npy, _segments.npy
                           and _mask.npy, each [pairs, max_length] */
    int decode; /* inputs are ids, of `format`; the output, "-" or NULL: standard output, is text */
    struct lockstep_callbacks callbacks; /* NOTICE events with a text now and then */
};
LOCKSTEP_API void lockstep_tokenize_options_init(struct lockstep_tokenize_options *options);

struct lockstep_tokenize_counts {
    int64_t documents, bytes, characters; /* of the texts */
    int64_t tokens;   /* with separators and special ones, as they are written */
    int64_t unknown;  /* of these the token for what the vocabulary lacks */
    int64_t distinct; /* different ones */
    int64_t cut;      /* documents of which max_length left something out */
    int64_t train;    /* tokens of OUTPUT_train; 0 without `split` */
    uint32_t size;    /* ids are less */
    int type_size;    /* bytes of an id in the file */
};
/* `counts` may be NULL. */
LOCKSTEP_API int lockstep_tokenize(const struct lockstep_tokenize_options *options,
                                   struct lockstep_tokenize_counts *counts,
                                   struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
