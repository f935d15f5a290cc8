/* Layers that repeat: the blocks of a net, written out.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_BLOCKS_H
#define LS_SCHEMA_BLOCKS_H

#include "schema/definition.h"

enum { LS_BLOCK_LAYERS_MAX = 4096 }; /* of a net with blocks, when they are written out */

/* Puts the layers of all copies in place of the blocks of a net, which has none afterwards. Layers
 * of the older forms have been upgraded. Problems are reported with places; the net is then of no
 * use. */
int ls_blocks_expand(struct ls_definition *definition, Lockstep__NetParameter *net,
                     struct ls_error *error);

/* Calls `visit` with each layer of a net, those of blocks among them (once, not for each copy),
 * until it returns something other than 0. */
int ls_blocks_each(const ProtobufCMessage *net,
                   int (*visit)(void *user, Lockstep__LayerParameter *layer), void *user);

#endif
