/* Masks as a definition writes them: slices of a parameter.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_MASKS_H
#define LS_GRAPH_MASKS_H

#include "ir/layer.h"
#include "ir/value.h"

/* Whether what a `param` block says of a mask can be meant for this blob. */
int ls_graph_check_mask(const struct ls_layer *layer, int blob, const Lockstep__ParamSpec *spec,
                        struct ls_error *error);
/* The mask of the slices of a `param` block that ls_graph_check_mask has accepted; *mask is NULL
 * where it has none. */
int ls_graph_make_mask(const struct ls_layer *layer, int blob, const Lockstep__ParamSpec *spec,
                       struct ls_mask **mask, struct ls_error *error);
/* That a layer masks a shared parameter as its owner does, or says nothing of it. */
int ls_graph_check_shared_mask(const struct ls_layer *layer, int blob,
                               const struct ls_parameter *owner, const Lockstep__ParamSpec *spec,
                               struct ls_error *error);

#endif
