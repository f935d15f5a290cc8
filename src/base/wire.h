/* The wire format of protocol buffers, as far as files of weights and records of data need it.
 *
 * A message is a sequence of fields: a varint (number << 3 | wire type) and the value. We read
 * such files with this scanner and not with generated code, because it copies nothing: of files of
 * weights only names and blobs matter (Caffe's many forks give the same numbers to other fields),
 * and a record's picture stays where the database is mapped.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_WIRE_H
#define LS_BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum ls_wire_type { LS_WIRE_VARINT = 0, LS_WIRE_64 = 1, LS_WIRE_BYTES = 2, LS_WIRE_32 = 5 };

/* What remains of a message. */
struct ls_wire {
    const unsigned char *at;
    size_t left;
    bool damaged; /* a field was cut off, or had a wire type that is not read */
};

struct ls_wire_field {
    uint32_t number;
    enum ls_wire_type type;
    uint64_t value;             /* VARINT */
    const unsigned char *bytes; /* 64, BYTES, 32: not aligned */
    size_t size;
};

struct ls_wire ls_wire_open(const void *bytes, size_t size);
/* Takes the next field. False at the end of the message or where it is damaged. */
bool ls_wire_next(struct ls_wire *wire, struct ls_wire_field *field);
/* Takes the next number of a packed list of varints, likewise. */
bool ls_wire_varint(struct ls_wire *wire, uint64_t *value);

enum { LS_WIRE_VARINT_MAX = 10 }; /* bytes */
/* Writes a varint to `at` and returns where it ends. */
unsigned char *ls_wire_put_varint(unsigned char *at, uint64_t value);

/* Writing of keys and fields to a text. */
void ls_wire_add_varint(struct ls_text *text, uint64_t value);
void ls_wire_add_bytes(struct ls_text *text, uint32_t number, const void *bytes, size_t size);
/* The key and length of a field whose `size` bytes the caller writes. */
void ls_wire_add_head(struct ls_text *text, uint32_t number, uint64_t size);

#endif
