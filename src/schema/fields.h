/* Fields of messages by their descriptors: what readers, writers and comparisons have in common.
 *
 * protobuf-c keeps a singular scalar or bytes beside a `has_` flag, a singular string or message as
 * a pointer (NULL, or the default's, if it is not set), and a repeated field as a count and an
 * array.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_FIELDS_H
#define LS_SCHEMA_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "schema/arena.h"

/* Bytes of one value of its C type. */
size_t ls_field_size(const ProtobufCFieldDescriptor *field);
bool ls_field_is_repeated(const ProtobufCFieldDescriptor *field);
/* How many values are set: 0 or 1 of a singular field. A required scalar counts as set. */
size_t ls_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The index-th value; of a singular field that is not set, where its value would be (a scalar's
 * default is there). */
const void *ls_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        size_t index);
/* A field of a type by its name, or NULL. */
const ProtobufCFieldDescriptor *ls_field_named(const ProtobufCMessageDescriptor *type,
                                               const char *name);

/* Makes a field unset, with its default. */
void ls_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Room for one more value (of a singular field: its only one), marked as set, zeroed. NULL: no
 * memory. The arena must be the one that the message's lists come from. */
void *ls_field_add(struct ls_arena *arena, ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field);
/* As ls_field_add with the value *value, shared, not copied, if it is a string or message. */
bool ls_field_put(struct ls_arena *arena, ProtobufCMessage *message,
                  const ProtobufCFieldDescriptor *field, const void *value);

/* Whether two messages of one type say the same: what is not set is equal to its default. */
bool ls_message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);
/* Whether a field's effective values are the same in two messages of one type; floats by their
 * bits. */
bool ls_field_equal(const ProtobufCMessage *a, const ProtobufCMessage *b,
                    const ProtobufCFieldDescriptor *field);

enum { LS_FIELD_PATH_MAX = 192 };
/* Told of a field that differs: `path` leads to it ("conv.kernel_size"), and `a` and `b` are the
 * messages, of one type, that hold it. */
typedef void ls_difference_fn(void *user, const char *path, const ProtobufCMessage *a,
                              const ProtobufCMessage *b, const ProtobufCFieldDescriptor *field);
/* Calls `tell` for every field in which two messages of one type differ, within messages that both
 * hold as often for the fields of those. `prefix` is put before the paths. */
void ls_message_differences(const char *prefix, const ProtobufCMessage *a,
                            const ProtobufCMessage *b, ls_difference_fn *tell, void *user);

#endif
