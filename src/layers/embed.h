/* The gradient of a table by the positions that name its rows, for Embed and EmbeddingBag.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_EMBED_H
#define LS_LAYERS_EMBED_H

#include "ir/layer.h"

/* Emits the gradient of blob 0, if it is trained, from dy, whose rows belong to the positions of
 * `index`, and hands it to the sums: by the rows that occur, where they are fewer than those of the
 * table, which changes no sum. `db`: that of a bias, or NULL. */
void ls_embed_emit_gradient(struct ls_layer *layer, struct ls_value *dy, struct ls_value *index,
                            struct ls_value *db);

#endif
