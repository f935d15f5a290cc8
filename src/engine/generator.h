/* Texts that are written token by token: logits of the next token of each of several texts, the
 * *rows*, which all have as many tokens.
 *
 * A net that is *stepwise* (graph/stepwise.h) is planned twice, for one token and for a chunk of
 * them; what it keeps of earlier tokens, states per sample and caches of keys and values, belongs
 * to the generator, row by row. Another net is computed for the whole window, of which the last
 * places are filled with token 0, up to its head, which is computed for the last token alone.
 *
 * A text longer than the window goes on with a part of it: when it is full, the last half of its
 * tokens is kept, rounded down, and computed anew as if the text began there. A stepwise
 * net that knows of no positions and has recurrent layers alone needs none of that.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_GENERATOR_H
#define LS_ENGINE_GENERATOR_H

#include "engine/engine.h"
#include "schema/language_net.h"

enum { LS_GENERATOR_CHUNK = 64 }; /* tokens that are computed at once, at most */

struct ls_generator;

struct ls_generator_options {
    const struct ls_language_net *language; /* outlives the generator, as nets do */
    struct ls_net *net;                     /* for one token, or for the whole window */
    struct ls_net *chunk; /* for a chunk of tokens; NULL: `net` is for the window */
    struct ls_net *head;  /* makes logits of a token of what `net` ends with; NULL: `net` does */
    int64_t rows;
};

/* Nets have been bound to the engine, which has the weights. *generator is NULL on failure. */
int ls_generator_create(struct ls_engine *engine, const struct ls_generator_options *options,
                        struct ls_generator **generator, struct ls_error *error);
void ls_generator_free(struct ls_generator *generator);

/* How many logits there are for a token. */
size_t ls_generator_vocabulary(const struct ls_generator *generator);
/* The tokens of a text that count; 0: all of them. */
int64_t ls_generator_window(const struct ls_generator *generator);

/* All rows begin anew, with the same tokens, at least one. */
int ls_generator_begin(struct ls_generator *generator, const int32_t *tokens, size_t count,
                       struct ls_error *error);
/* *logits: those of the token behind the last one of each row, [rows, vocabulary], the generator's
 * until the next call. Once for each token. */
int ls_generator_logits(struct ls_generator *generator, const float **logits,
                        struct ls_error *error);
/* The next token of each row. */
int ls_generator_append(struct ls_generator *generator, const int32_t *tokens,
                        struct ls_error *error);

#endif
