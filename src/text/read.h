/* What the readers of tokenizers' files share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_READ_H
#define LS_TEXT_READ_H

#include "base/json_tree.h"
#include "text/tokenizer.h"

static const size_t LS_TOKENIZER_FILE_MAX = (size_t)256 << 20;

struct ls_token_reader {
    const struct ls_json_tree *tree;
    struct ls_tokenizer *tokenizer;
    struct ls_error *error;
};

/* LOCKSTEP_DATA with the place of a value in front of the message. */
int ls_read_refuse(const struct ls_token_reader *reader, const struct ls_json_node *node,
                   const char *hint, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A failure is never 0, as in base/error.h. */
#if defined(__clang_analyzer__) && !defined(LS_READ_C)
#define ls_read_refuse(reader, node, ...)                                                          \
    (ls_analyzed((reader), (node), __VA_ARGS__), (int)LOCKSTEP_DATA)
#endif

/* Fails unless `node` is an object whose members are all named in `known`, which ends with NULL. */
int ls_read_known(const struct ls_token_reader *reader, const struct ls_json_node *node,
                  const char *what, const char *const *known);

/* A member of an object: *value stays as it is where there is none, or null. */
int ls_read_bool(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *name, bool *value);
int ls_read_integer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                    const char *name, int64_t most, int64_t *value);
/* The text belongs to the tree. */
int ls_read_text(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *name, const char **value);
/* A copy, owned by the caller. */
int ls_read_copy(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *name, char **value);
/* The member "type" of an object; "" where there is none. */
int ls_read_type(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *what, const char **type);
/* {"Regex": "..."} or {"String": "..."} as a pattern. */
int ls_read_pattern(const struct ls_token_reader *reader, const struct ls_json_node *node,
                    struct ls_pattern **pattern);
/* An array member's first value; NULL for an empty one. Fails where there is no such array. */
int ls_read_array(const struct ls_token_reader *reader, const struct ls_json_node *node,
                  const char *name, const struct ls_json_node **first);

/* The parts of a tokenizer.json; `node` may be NULL, or null. */
int ls_read_normalizer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                       int depth);
int ls_read_pre_tokenizer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                          int depth);
int ls_read_post_processor(const struct ls_token_reader *reader, const struct ls_json_node *node,
                           int depth);
int ls_read_decoder(const struct ls_token_reader *reader, const struct ls_json_node *node);
int ls_read_model(const struct ls_token_reader *reader, const struct ls_json_node *node);

/* Adds what several kinds of files consist of; LOCKSTEP_RESOURCE: out of memory, LOCKSTEP_DATA: too
 * many. BERT's normalizer strips accents where `strip` says so. */
int ls_add_normal(struct ls_tokenizer *tokenizer, enum ls_normal_kind kind, struct ls_error *error);
int ls_add_stage(struct ls_tokenizer *tokenizer, const struct ls_stage *stage,
                 struct ls_error *error);
int ls_add_bert_normals(struct ls_tokenizer *tokenizer, bool clean, bool ideographs, bool strip,
                        bool lowercase, struct ls_error *error);
int ls_add_bert_stages(struct ls_tokenizer *tokenizer, struct ls_error *error);
int ls_add_byte_stages(struct ls_tokenizer *tokenizer, bool prefix, bool cut,
                       struct ls_error *error);
/* A special or other added token, whose bytes are looked for in texts. `place` is for messages. */
int ls_add_token(struct ls_tokenizer *tokenizer, const char *place, const char *token,
                 size_t length, const struct ls_added_token *what, struct ls_error *error);
/* Puts all added tokens into their trees, normalized tokens as the normalizers leave them; once all
 * else has been read. */
int ls_finish_added(struct ls_tokenizer *tokenizer, struct ls_error *error);
/* Puts a token of the model into its vocabulary, with messages about what is wrong with it. */
int ls_add_model_token(struct ls_model *model, const char *place, const char *token, size_t length,
                       int64_t id, struct ls_error *error);
/* Room for the merges of a model. */
int ls_make_merges(struct ls_model *model, size_t count, struct ls_error *error);
/* Merge number `rank` of two tokens. */
int ls_add_merge(struct ls_model *model, const char *place, const char *left, size_t left_length,
                 const char *right, size_t right_length, uint32_t rank, struct ls_error *error);

int ls_read_tokenizer_json(const char *path, struct ls_tokenizer *tokenizer,
                           struct ls_error *error);
int ls_read_gpt2(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error);
int ls_read_bert(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error);

#endif
