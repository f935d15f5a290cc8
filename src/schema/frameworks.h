/* What PyTorch, Keras and transformers call things that have another name here.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_FRAMEWORKS_H
#define LS_SCHEMA_FRAMEWORKS_H

#include <protobuf-c/protobuf-c.h>

#include "base/text.h"

/* What to write in place of a layer type ("Linear"), or NULL. */
const char *ls_framework_type(const char *type);

/* Adds what to write in place of a field ("lr") that `type` does not have. False: nothing is known
 * of it. */
bool ls_framework_field(const ProtobufCMessageDescriptor *type, const char *field,
                        struct ls_text *hint);

#endif
