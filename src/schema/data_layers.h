/* Layers that bring data. Caffe has one type for each kind of files, each with a parameter message
 * of its own. What they say is brought into the terms of the two that there are here, Data and
 * Input, before anything else looks at it; they keep their types, and messages about them their
 * places. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_DATA_LAYERS_H
#define LS_SCHEMA_DATA_LAYERS_H

#include <stdbool.h>

#include "schema/definition.h"

/* Gives a layer of such a type data_param or input_param with what its own message says; that
 * message is gone then, but for WindowData, whose own fields have no others like them. A data_param
 * that stands beside it adds Lockstep's fields (cache, on_bad_record, ...). `layer` is a copy that
 * may be changed, not what it points to. Other layers stay as they are. Errors: a field that both
 * messages have. */
int ls_data_layer_complete(struct ls_definition *definition, Lockstep__LayerParameter *layer,
                           struct ls_error *error);

/* Whether a layer is of a type that reads data sets (Data, ImageData, ...), or one that takes what
 * the calling program hands in (Input, MemoryData). */
bool ls_data_layer_reads(const Lockstep__LayerParameter *layer);
bool ls_data_layer_takes_input(const Lockstep__LayerParameter *layer);

#endif
