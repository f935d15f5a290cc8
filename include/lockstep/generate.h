/* Writing texts with a net that says which token comes next. A part of lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_GENERATE_H
#define LOCKSTEP_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lockstep_generator_options {
    size_t struct_size; /* set by lockstep_generator_options_init, like all the rest */
    int workers;        /* 0: lockstep_default_workers(); they share the texts */
    const char *isa;    /* as in lockstep_train_options */
    const char *device;
    int level; /* the net's state, for include and exclude rules */
    const char *const *stages;
    size_t stage_count;
    struct lockstep_callbacks callbacks; /* notices and warnings */
    const char *map;                     /* as in lockstep_model_options */
    const char *output;                  /* the blob of the logits; NULL: as the net ends */
    int samples;                         /* texts that are written side by side; 0: 1 */
    int whole;          /* compute the whole window anew for each token, even where that need not be
                           (the result is the same but for rounding) */
    double temperature; /* logits are divided by it; 0: the most probable token each time */
    int64_t top_k;      /* choose from the so many most probable tokens; 0: from all */
    double top_p;  /* choose from the fewest most probable tokens whose probabilities add up to at
                      least this, above 0 and at most 1 */
    uint64_t seed; /* a text is a function of net, prompt, these options and its number */
    const char *tokenizer; /* as of lockstep_tokenizer_load, which says what tokens stand for; NULL:
                              the weights name characters or bytes, or it is not known */
};
/* One text, a temperature of 1, all tokens, seed 0. */
LOCKSTEP_API void lockstep_generator_options_init(struct lockstep_generator_options *options);

/* A net in its test phase with weights, and texts that it writes. */
struct lockstep_generator;

/* `path` and `weights` as in lockstep_model_load. The net has one input of token ids, of the shape
 * [samples, tokens] or time-major; others may say of each token whether a text goes on (cont), its
 * position, its segment, or that it counts (mask). A Data layer that reads texts, tokens or records
 * of them counts as such inputs. The net ends with the logits of the next token of each, or a loss
 * of them. LOCKSTEP_DEFINITION where it is no such net; LOCKSTEP_USAGE where the tokenizer has more
 * tokens than it. */
LOCKSTEP_API int lockstep_generator_load(const char *path, const char *weights,
                                         const struct lockstep_generator_options *options,
                                         struct lockstep_generator **generator,
                                         struct lockstep_error *error);
LOCKSTEP_API void lockstep_generator_free(struct lockstep_generator *generator);

/* Tokens are the numbers below this. */
LOCKSTEP_API size_t lockstep_generator_vocabulary(const struct lockstep_generator *generator);
/* How many tokens of a text count for the next one; 0: all of them. A longer text goes on with the
 * last half of them whenever so many are full. */
LOCKSTEP_API int64_t lockstep_generator_window(const struct lockstep_generator *generator);

/* The tokens of a text of `length` bytes: *ids has *count of them, and is the generator's until its
 * next call. They are those of the tokenizer, or else characters or bytes, where the weights are a
 * snapshot of a net that was trained on these. LOCKSTEP_USAGE where it is not known what tokens
 * stand for, and for what is not among them. */
LOCKSTEP_API int lockstep_generator_encode(struct lockstep_generator *generator, const char *text,
                                           size_t length, const int32_t **ids, size_t *count,
                                           struct lockstep_error *error);
/* The bytes that a token adds to a text, of which it is the first (`begins`) or a later one. They
 * need not be whole characters, and are the generator's until its next call; NULL: not known. */
LOCKSTEP_API const char *lockstep_generator_token(struct lockstep_generator *generator, int32_t id,
                                                  int begins, size_t *length);
/* The token in front of a text's first one: what the tokenizer or the definition says begins or
 * separates texts, or the end of a line; -1: there is none. */
LOCKSTEP_API int32_t lockstep_generator_start(const struct lockstep_generator *generator);
/* Whether a token says that the text is over: what the tokenizer or the definition says ends or
 * separates texts. */
LOCKSTEP_API int lockstep_generator_ends(const struct lockstep_generator *generator, int32_t id);

/* All texts begin anew, with these `count` tokens, at least one. */
LOCKSTEP_API int lockstep_generator_begin(struct lockstep_generator *generator, const int32_t *ids,
                                          size_t count, struct lockstep_error *error);
/* The next token of each text, `samples` of them. LOCKSTEP_DIVERGED where a logit is no number;
 * LOCKSTEP_USAGE before lockstep_generator_begin. */
LOCKSTEP_API int lockstep_generator_next(struct lockstep_generator *generator, int32_t *ids,
                                         struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
