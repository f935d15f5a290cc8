/* Tokenizers: from text to ids of tokens, and back, exactly as Hugging Face's tokenizers do it.
 *
 *     text ─► added tokens ─► normalizers ─► added tokens ─► stages ─► model ─► template ─► ids
 *
 * Added tokens are found in the text as they are. What is between them is normalized (characters
 * become others), cut into pieces by one stage after the other, and the model makes tokens of each
 * piece by itself. The template puts special tokens around what came of it. A file says what each
 * of these is; the readers (text/read_*.c) fill the structures below.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_TOKENIZER_H
#define LS_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "text/added.h"
#include "text/pattern.h"
#include "text/vocabulary.h"

enum { LS_STAGES_MAX = 32, LS_TEMPLATE_MAX = 32 };

enum ls_normal_kind {
    LS_NORMAL_CLEAN,      /* without control characters, and spaces for other white space */
    LS_NORMAL_IDEOGRAPHS, /* spaces around each */
    LS_NORMAL_NFD,
    LS_NORMAL_NFC,
    LS_NORMAL_NFKD,
    LS_NORMAL_NFKC,
    LS_NORMAL_NONSPACING, /* without marks that take no space */
    LS_NORMAL_MARKS,      /* without marks */
    LS_NORMAL_LOWERCASE,
    LS_NORMAL_STRIP,   /* without white space at the left, right */
    LS_NORMAL_PREPEND, /* `content` in front, unless there is no text */
    LS_NORMAL_REPLACE  /* `content` for each match of `pattern` */
};

struct ls_normal {
    enum ls_normal_kind kind;
    bool left, right;
    struct ls_pattern *pattern;
    char *content;
};

enum ls_stage_kind {
    LS_STAGE_PREFIX, /* a space in front of a piece that has none there */
    LS_STAGE_SPLIT,  /* cuts where something matches */
    LS_STAGE_BYTES   /* each byte becomes the character that stands for it */
};

enum ls_stage_match {
    LS_MATCH_PATTERN, /* and for the others each character by itself that is: */
    LS_MATCH_SPACE,
    LS_MATCH_PUNCTUATION,
    LS_MATCH_NUMBER,
    LS_MATCH_CHARACTER
};

enum ls_stage_behavior {
    LS_SPLIT_REMOVED,
    LS_SPLIT_ISOLATED,
    LS_SPLIT_CONTIGUOUS, /* neighbouring matches are one piece */
    LS_SPLIT_WITH_PREVIOUS,
    LS_SPLIT_WITH_NEXT
};

struct ls_stage {
    enum ls_stage_kind kind;
    enum ls_stage_match match;
    enum ls_stage_behavior behavior;
    bool invert; /* what lies between matches counts as the match, and matches as what is between */
    uint32_t character;
    struct ls_pattern *pattern;
};

enum ls_model_kind { LS_MODEL_BPE, LS_MODEL_WORDPIECE, LS_MODEL_WORDLEVEL };

/* What two neighbouring tokens become: the lower the rank, the earlier. */
struct ls_merge {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank, becomes;
};

struct ls_model {
    enum ls_model_kind kind;
    struct ls_token_vocabulary vocabulary;
    char *prefix, *suffix; /* of tokens inside of and at the end of a word; NULL: none */
    bool has_unknown;
    uint32_t unknown;        /* the token for what is not in the vocabulary */
    bool fuse_unknown;       /* BPE: one for several in a row */
    bool byte_fallback;      /* BPE: tokens <0x00> to <0xFF> instead, where all bytes have one */
    bool ignore_merges;      /* BPE: a piece that is a token is that token */
    uint32_t word_max;       /* WORDPIECE: words of more characters are unknown */
    struct ls_merge *merges; /* BPE: by hash; a `becomes` of UINT32_MAX is a free slot */
    size_t merge_slots;      /* a power of two */
};

/* A template's piece: one of the two texts, or a token. */
enum ls_template_kind { LS_TEMPLATE_FIRST, LS_TEMPLATE_SECOND, LS_TEMPLATE_TOKEN };
struct ls_template_piece {
    enum ls_template_kind kind;
    uint32_t token, segment;
};
struct ls_template {
    struct ls_template_piece pieces[LS_TEMPLATE_MAX];
    size_t count;
};

enum ls_decoder_kind {
    LS_DECODER_SPACES, /* a space between tokens: a file without a decoder */
    LS_DECODER_BYTES,  /* characters stand for bytes */
    LS_DECODER_WORDPIECE
};
struct ls_token_decoder {
    enum ls_decoder_kind kind;
    char *prefix;  /* WORDPIECE */
    bool clean_up; /* WORDPIECE: no space in front of marks of punctuation, and more of that kind */
};

struct ls_tokenizer {
    char *path;
    struct ls_added added;
    struct ls_normal normals[LS_STAGES_MAX];
    size_t normal_count;
    struct ls_stage stages[LS_STAGES_MAX];
    size_t stage_count;
    struct ls_model model;
    struct ls_template single,
        pair; /* without pieces: the text, the two texts one behind the other */
    struct ls_token_decoder decoder;
    bool has_pad;
    uint32_t pad, pad_segment; /* what fills pairs up; 0 where no file says another */
};

/* Reads a tokenizer: tokenizer.json, vocab.json (with merges.txt beside it, as GPT-2's), vocab.txt
 * (as BERT's, with tokenizer_config.json beside it or not), or a folder with one of them, the first
 * that is there. LOCKSTEP_DATA for what cannot be read, or is not supported. */
int ls_tokenizer_open(const char *path, struct ls_tokenizer **tokenizer, struct ls_error *error);
void ls_tokenizer_free(struct ls_tokenizer *tokenizer);

/* All ids are less. */
uint32_t ls_tokenizer_size(const struct ls_tokenizer *tokenizer);
/* The id of a token as its file writes it. */
bool ls_tokenizer_id(const struct ls_tokenizer *tokenizer, const char *token, size_t length,
                     uint32_t *id);
/* The token of an id as its file writes it; NULL: there is none. */
const char *ls_tokenizer_token(const struct ls_tokenizer *tokenizer, uint32_t id, size_t *length);
/* Whether it is a special token, one that stands for no text. */
bool ls_tokenizer_special(const struct ls_tokenizer *tokenizer, uint32_t id);

/* What encodes: memory that grows with the longest text. One for each thread; the tokenizer must
 * outlive it. NULL: out of memory. */
struct ls_encoder;
struct ls_encoder *ls_encoder_new(const struct ls_tokenizer *tokenizer);
void ls_encoder_free(struct ls_encoder *encoder);

/* Ids, and of which of two texts each is (its segment); they belong to the encoder, until it is
 * used again. */
struct ls_encoding {
    const uint32_t *ids, *segments;
    size_t count;
};

/* What is to be encoded. */
struct ls_encode_text {
    const char *name;  /* for messages */
    const char *first; /* need not end with NUL, and may have NULs */
    size_t first_length;
    const char *second; /* NULL: one text alone */
    size_t second_length;
    bool special; /* with the tokens that the tokenizer's template puts around it */
    size_t most; /* tokens in all: what is too much is left out at the end of a text, of two that of
                    the longer one first; 0: no limit */
};

/* Makes tokens of a text, or of two. LOCKSTEP_DATA for a text that is not UTF-8 (the message says
 * at which byte). */
int ls_encode(struct ls_encoder *encoder, const struct ls_encode_text *text,
              struct ls_encoding *encoding, struct ls_error *error);

/* Appends the bytes that a token adds to a text; `begins`: it is the first of it. The bytes of one
 * token need not be whole characters. Nothing for an id without a token, and, unless `special`, for
 * special tokens. */
void ls_decode_token(const struct ls_tokenizer *tokenizer, uint32_t id, bool begins, bool special,
                     struct ls_text *out);
/* Appends the text of many, with U+FFFD for what is not UTF-8, as the tokenizers package gives it.
 * Fails for an id without a token. */
int ls_decode(const struct ls_tokenizer *tokenizer, const char *name, const uint32_t *ids,
              size_t count, bool special, struct ls_text *out, struct ls_error *error);
/* How many bytes of text a token stands for: 0 for special ones; those of WordPiece without the
 * space in front of them. */
uint32_t ls_token_bytes(const struct ls_tokenizer *tokenizer, uint32_t id);

#endif
