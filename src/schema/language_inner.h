/* What the files of schema/language_net.h share.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_LANGUAGE_INNER_H
#define LS_SCHEMA_LANGUAGE_INNER_H

#include "schema/language_net.h"

/* A copy of a layer, whose parts are shared; NULL: there is no memory. */
Lockstep__LayerParameter *ls_language_copy(struct ls_definition *definition,
                                           const Lockstep__LayerParameter *layer);

/* *product: an InnerProduct in place of the LinearSoftmaxLoss at `index`, with its weights and the
 * same sums, whose top is called `logits`. */
int ls_language_product(const struct ls_net_definition *from, size_t index, const char *logits,
                        Lockstep__LayerParameter **product, struct ls_error *error);

/* The axis of the shape of an Input layer's top along which tokens follow each other; -1: it is no
 * [N, T]. */
int ls_language_token_axis(const Lockstep__LayerParameter *layer, int top);

/* An Input layer with the tops of a Data layer, for one sample: *input. LOCKSTEP_DEFINITION where
 * it reads no text and no tokens, or does not say how many are in a window. */
int ls_language_data_input(const struct ls_net_definition *definition,
                           const Lockstep__LayerParameter *layer, Lockstep__LayerParameter **input,
                           struct ls_error *error);

/* What a Data layer that reads tokens or a text says begins documents; -1: nothing does. */
int64_t ls_language_data_separator(const Lockstep__LayerParameter *layer);

/* What a top of a Data layer holds, by the name of its tensor; LS_TOKEN_IDS where that says
 * nothing.
 */
enum ls_token_input ls_language_data_top(const Lockstep__LayerParameter *layer, size_t top);

#endif
