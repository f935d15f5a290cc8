/* Nets of texts that can be computed token by token: what they make of a token depends on that
 * token, on its position, and on what their recurrent layers and their causal attention keep of
 * those in front of it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_STEPWISE_H
#define LS_GRAPH_STEPWISE_H

#include "ir/graph.h"
#include "schema/language_net.h"

/* Looks for an op that brings tokens together in another way, in the graph of a net for at least
 * two tokens of one sample; *mixer is its layer, or NULL: there is none. */
int ls_graph_find_token_mixer(const struct ls_graph *graph, const struct ls_language_net *language,
                              const struct ls_layer **mixer, struct ls_error *error);

/* Whether texts may be of any length: all that a stepwise net knows of earlier tokens is in the
 * states of recurrent layers. */
bool ls_graph_is_endless(const struct ls_graph *graph, const struct ls_language_net *language);

#endif
