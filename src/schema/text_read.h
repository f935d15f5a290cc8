/* Inside of the text reader: what its two files share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_TEXT_READ_H
#define LS_SCHEMA_TEXT_READ_H

#include <stdint.h>
#include <stdio.h>

#include "schema/lex.h"
#include "schema/places.h"
#include "schema/text_format.h"
#include "schema/unknown.h"

struct ls_text_reader {
    struct ls_definition *definition;
    struct ls_error *error;
    struct ls_lexer lexer;
    struct ls_text string;         /* scratch: the string being read */
    const char *source;            /* of places; NULL: the definition's file */
    bool whole;                    /* places are `source` without line and column */
    bool no_memory;                /* to note something in passing */
    bool ended;                    /* the text is broken: nothing more is read */
    int depth;                     /* messages that are open */
    int problems;                  /* reported so far */
    const ProtobufCMessage *layer; /* the layer that is being read, or NULL */
    struct ls_unknown_list unknown;
};

/* Any value but a message, as protobuf-c stores it. */
union ls_scalar {
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f;
    double d;
    protobuf_c_boolean b;
    char *s;
    ProtobufCBinaryData bytes;
};

enum ls_scalar_result {
    LS_SCALAR_OK,
    LS_SCALAR_WRONG,  /* reported; what stood there has been read over */
    LS_SCALAR_BROKEN, /* there is no value here */
    LS_SCALAR_NO_MEMORY
};

/* Reads a value of a field. */
enum ls_scalar_result ls_read_scalar(struct ls_text_reader *reader,
                                     const ProtobufCFieldDescriptor *field, union ls_scalar *value);

/* Reports a problem at a token. `hint` may be NULL. */
void ls_reader_problem(struct ls_text_reader *reader, const struct ls_token *token,
                       const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Notes that something of the layer that is being read could not be read. */
void ls_reader_damage(struct ls_text_reader *reader);
/* A token for a message, cut where it is long: "'abc'", "the end of the text". */
const char *ls_token_shown(const struct ls_token *token, char buffer[48]);

#endif
