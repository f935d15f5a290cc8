/* The binary format of protocol buffers (caffemodel, mean files, Datum records).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_BINARY_H
#define LS_SCHEMA_BINARY_H

#include <stdint.h>

#include "schema/definition.h"

/* Reads bytes as a message of `type`; unknown fields are dropped. `file` is for messages, `status`
 * what a failure is reported as. The bytes may be freed afterwards. On failure *out is NULL. */
int ls_binary_read(const char *file, const void *bytes, size_t length,
                   const ProtobufCMessageDescriptor *type, int status, struct ls_definition **out,
                   struct ls_error *error);

/* The binary form of a message: *bytes (free with ls_free) and *length. Fails beyond 2 GiB, which
 * other readers of the format refuse, and for a missing required field. */
int ls_binary_write(const ProtobufCMessage *message, uint8_t **bytes, size_t *length,
                    struct ls_error *error);

#endif
