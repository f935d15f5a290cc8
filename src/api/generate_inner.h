/* A generator: what the files api/generate*.c share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_GENERATE_INNER_H
#define LS_API_GENERATE_INNER_H

#include "api/api.h"
#include "api/characters.h"
#include "engine/generator.h"
#include "engine/token.h"
#include "solver/fit.h"
#include "text/encode.h"

enum {
    LS_GENERATE_NETS = 2,
    LS_GENERATE_ENDS = 7 /* tokens that end a text */
};

struct lockstep_generator {
    struct lockstep_callbacks outer_callbacks, callbacks; /* the caller's, and around them */
    struct ls_definition *file;
    struct ls_language_net language;
    struct ls_net_definition made[LS_GENERATE_NETS];
    struct ls_net *nets[LS_GENERATE_NETS];
    size_t net_count;
    /* Of them: that of a token, or of the window; then NULL, or that of a chunk, or the head. */
    struct ls_net *net, *chunk, *head;
    struct ls_parameter_set *parameters;
    struct ls_view_set views;
    const struct ls_device *device;
    int card; /* -1: none */
    struct ls_forecast forecast;
    struct ls_comm *comm; /* of one rank */
    struct ls_engine *engine;
    struct ls_generator *inner;
    struct ls_token_options choice;
    struct ls_token_candidate *candidates;
    size_t vocabulary;
    int64_t samples;
    uint64_t position; /* of the next token in its text */
    bool begun;
    int32_t *chosen; /* by sample */
    /* What tokens stand for; none, and NULL: it is not known. */
    struct ls_characters characters;
    struct ls_tokenizer *tokenizer;
    uint64_t trained_tokenizer; /* whose ids the net was trained on; 0: not known */
    struct ls_encoder *encoder;
    int32_t start, ends[LS_GENERATE_ENDS]; /* -1: there is none */
    int32_t *ids;                          /* what was encoded last */
    struct ls_text text;                   /* what was decoded last */
};

void ls_generate_notice(void *generator, const char *line);

/* Opens the nets; `whole`: the window is computed anew for each token in any case. */
int ls_generate_open_nets(struct lockstep_generator *generator, bool whole, struct ls_error *error);

/* Reads the tokenizer, if `path` is not NULL, when the characters of the weights and the number of
 * logits are known, and sets how many tokens there are to choose from. */
int ls_generate_set_vocabulary(struct lockstep_generator *generator, const char *path,
                               struct ls_error *error);
void ls_generate_free_vocabulary(struct lockstep_generator *generator);

#endif
