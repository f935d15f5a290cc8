/* The text format of protocol buffers, over protobuf-c's descriptors: reader and writer.
 *
 * The whole language: comments, `a: 1`, `m { }`, `m: < >`, lists `[1, 2]`, separators `,` and `;`,
 * strings in either quote with all escapes, joined when they follow each other, enum values by
 * name or number, decimal, hexadecimal and octal integers, inf and nan, a suffix f on floats. As
 * in protobuf a field that is not repeated may be given once only.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_TEXT_FORMAT_H
#define LS_SCHEMA_TEXT_FORMAT_H

#include "base/text.h"
#include "schema/definition.h"

enum { LS_NESTING_MAX = 64 }; /* messages within messages */

/* Reads `length` bytes of text as a message of `type`. `file` is for places. All problems are
 * reported in one go (status LOCKSTEP_DEFINITION), except that the first broken piece of syntax
 * ends the reading. On failure *out is NULL. */
int ls_text_read(const char *file, const char *text, size_t length,
                 const ProtobufCMessageDescriptor *type, struct ls_definition **out,
                 struct ls_error *error);

/* As ls_text_read, but after problems that are not of syntax *out has what could be read. */
int ls_text_read_partly(const char *file, const char *text, size_t length,
                        const ProtobufCMessageDescriptor *type, struct ls_definition **out,
                        struct ls_error *error);

/* Reads more fields into `message` of a definition. If `whole` is true, the place of all of them
 * is `source` without line and column (an option of the command line); `source` is copied. Does
 * not check required fields. */
int ls_text_merge(struct ls_definition *definition, ProtobufCMessage *message, const char *source,
                  bool whole, const char *text, size_t length, struct ls_error *error);

/* How many of the fields that stand outermost in a text belong to `type`; -1 if the text cannot
 * be read that far. Tells a net from a solver. */
int ls_text_affinity(const char *text, size_t length, const ProtobufCMessageDescriptor *type);

/* Appends the canonical text of a message: fields in the order of their numbers, two spaces of
 * indentation, what is not set left out, the shortest decimals that read back to the same
 * numbers. Reading it gives the same message. Check out->failed. */
void ls_text_write(const ProtobufCMessage *message, struct ls_text *out);
/* Appends the value of one field ("0.01", "\"SGD\"", "[1, 2]"); of its default if it is not set,
 * and "unset" if there is none. */
void ls_text_write_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                         struct ls_text *out);
/* Appends bytes as a quoted string with escapes. */
void ls_text_write_string(const void *bytes, size_t length, struct ls_text *out);

#endif
