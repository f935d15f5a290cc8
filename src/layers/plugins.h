/* Layer types of plugins: shared objects that are loaded while the program runs
 * (include/lockstep/plugin.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_PLUGINS_H
#define LS_LAYERS_PLUGINS_H

#include "ir/layer.h"
#include "lockstep/plugin.h"

/* Loads a plugin, whose types are found by ls_layer_type_find from then on; it stays until the
 * process ends. One that is loaded already is left as it is. May be called by several threads.
 * *out, which may be NULL, becomes the plugin. */
int ls_plugin_load(const char *path, const struct ls_plugin **out, struct ls_error *error);

/* A type that a plugin brought. */
struct ls_plugin_type {
    struct ls_layer_type type; /* first: what layers point to */
    const struct lockstep_plugin_layer *layer;
};

/* The record of such a type: `type->plugin` is not NULL. */
static inline const struct ls_plugin_type *ls_plugin_type_of(const struct ls_layer_type *type)
{
    return (const struct ls_plugin_type *)(const void *)type;
}

/* Makes the functions of a layer type those of plugins (layers/plugin.c). */
void ls_plugin_fill_type(struct ls_plugin_type *type);

/* A copy of a filler for parameters, which outlive the layers that ask for them: equal ones are
 * one, and stay. NULL: no memory. */
const Lockstep__FillerParameter *ls_plugin_keep_filler(const Lockstep__FillerParameter *filler);

/* Whether what a layer answered to its setup can be: shapes, blobs, in the words of a message of
 * `size` bytes. `samples` is what axis 0 of the tops must be; 0: anything. */
bool ls_plugin_setup_ok(const struct lockstep_plugin_setup *setup, int64_t samples, char *message,
                        size_t size);

#endif
