/* Nets that say which token comes next, as they are needed to write texts: with inputs in place of
 * data, for any number of tokens, ending with the logits of the next one.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_LANGUAGE_NET_H
#define LS_SCHEMA_LANGUAGE_NET_H

#include "schema/net.h"

/* What a top of a layer that brings data holds: of each token [N, T], or time-major [T, N]. */
enum ls_token_input {
    LS_TOKEN_IDS,
    LS_TOKEN_CONT,      /* 0 at the first token of a text, else 1 */
    LS_TOKEN_POSITIONS, /* the number of the token in its text, from 0 */
    LS_TOKEN_SEGMENTS,  /* which text of those in a window it belongs to */
    LS_TOKEN_MASK,      /* 1 */
    LS_TOKEN_UNUSED     /* what logits do not depend on: targets, for example */
};

struct ls_language_input {
    const Lockstep__LayerParameter *layer;
    int top;
    enum ls_token_input what;
};

/* A net that was looked at. Its lists belong to the definition's arena. */
struct ls_language_net {
    struct ls_net_definition definition; /* cut at `logits` */
    const char *logits; /* the blob; its last axis is that of the tokens' numbers */
    struct ls_language_input *inputs;
    size_t input_count;
    int64_t window;    /* how many tokens it is defined for */
    int64_t tokens;    /* the rows of the table that token ids are looked up in; 0: there is none */
    int64_t separator; /* what its Data layer says begins documents: an id, or of a text a code
                          point; -1: nothing, or there is no such layer */
    bool recurrent;    /* it has layers whose state goes on from window to window */
    /* By layer: the Data layer that it is an input in place of; NULL: none. */
    const Lockstep__LayerParameter **data;
    /* What makes the logits of a token of its first bottom alone: the last layer, an InnerProduct
     * over the last of three axes. NULL: there is none. */
    const Lockstep__LayerParameter *head;
};

/* Finds logits and inputs of a net, filtered for its test phase. The logits are blob `output`, or,
 * where that is NULL, what the last LinearSoftmaxLoss or SoftmaxWithLoss layer makes probabilities
 * of, or else the last top that no layer reads, in front of its Softmax layer if there is one.
 * LOCKSTEP_DEFINITION where it is none that says how a text goes on. */
int ls_language_net_find(const struct ls_net_definition *from, const char *output,
                         struct ls_language_net *net, struct ls_error *error);

struct ls_language_part {
    int64_t steps;  /* tokens that are computed */
    bool body;      /* without the head, which is there */
    int64_t cached; /* tokens whose keys and values are kept from run to run; 0: none are */
};
/* A part of the net; its products that do not say an algorithm are PORTABLE, so that logits of a
 * token do not depend on how many there are. *definition lives as long as `net` does. */
int ls_language_net_make(const struct ls_language_net *net, const struct ls_language_part *part,
                         struct ls_net_definition *definition, struct ls_error *error);
/* The head of one token; its input is the blob that the body ends with, of these three axes, with
 * samples along `sample_axis`. */
int ls_language_net_make_head(const struct ls_language_net *net, const int64_t *dim,
                              int sample_axis, struct ls_net_definition *definition,
                              struct ls_error *error);

/* A net that tells the logits of its LinearSoftmaxLoss layers, which themselves have none: a
 * product with the layer's weights is in the place of each. Its top is called "logits", or
 * LAYER_logits where the net has such a blob. Layers that read the losses are left out. `from`
 * itself where there is no such layer; else *to lives as long as it does. */
int ls_language_net_with_logits(const struct ls_net_definition *from, struct ls_net_definition *to,
                                struct ls_error *error);

/* How many tokens a window of a Data layer has; 0: it reads no text, or does not say it. */
int64_t ls_language_data_window(const Lockstep__LayerParameter *layer);

/* What the input of a graph is that is called like this; LS_TOKEN_UNUSED where it is none of the
 * net's. */
enum ls_token_input ls_language_net_input(const struct ls_language_net *net, const char *blob);

#endif
