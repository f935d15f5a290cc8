/* The table of layer types.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_LAYERS_H
#define LS_LAYERS_LAYERS_H

#include "ir/layer.h"

/* The type called `name`, or NULL. */
const struct ls_layer_type *ls_layer_type_find(const char *name);
/* The types that plugins have brought so far, in the order of loading: the index-th, or NULL. */
const struct ls_layer_type *ls_layer_type_of_plugin(size_t index);
/* All types, NULL-terminated, sorted by name. */
extern const struct ls_layer_type *const ls_layer_types[];

#endif
