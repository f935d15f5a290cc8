/* Scanning and writing protocol buffers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/wire.h"

struct ls_wire ls_wire_open(const void *bytes, size_t size)
{
    return (struct ls_wire){bytes, size, false};
}

bool ls_wire_varint(struct ls_wire *wire, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && wire->left > 0; shift += 7) {
        unsigned char byte = *wire->at++;
        wire->left--;
        if (shift == 63 && byte > 1)
            break; /* beyond 64 bits */
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    wire->damaged = true;
    return false;
}

static bool take_bytes(struct ls_wire *wire, struct ls_wire_field *field, uint64_t size)
{
    if (size > wire->left) {
        wire->damaged = true;
        return false;
    }
    field->bytes = wire->at;
    field->size = (size_t)size;
    wire->at += size;
    wire->left -= (size_t)size;
    return true;
}

bool ls_wire_next(struct ls_wire *wire, struct ls_wire_field *field)
{
    uint64_t key, size;
    if (wire->left == 0 || wire->damaged || !ls_wire_varint(wire, &key))
        return false;
    *field = (struct ls_wire_field){.number = (uint32_t)(key >> 3),
                                    .type = (enum ls_wire_type)(key & 7)};
    if (field->number != 0 && key >> 32 == 0) {
        switch (field->type) {
        case LS_WIRE_VARINT:
            return ls_wire_varint(wire, &field->value);
        case LS_WIRE_64:
            return take_bytes(wire, field, 8);
        case LS_WIRE_BYTES:
            return ls_wire_varint(wire, &size) && take_bytes(wire, field, size);
        case LS_WIRE_32:
            return take_bytes(wire, field, 4);
        }
    }
    wire->damaged = true; /* groups are as old as they are unused here */
    return false;
}

unsigned char *ls_wire_put_varint(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

void ls_wire_add_varint(struct ls_text *text, uint64_t value)
{
    unsigned char bytes[LS_WIRE_VARINT_MAX];
    ls_text_add_bytes(text, bytes, (size_t)(ls_wire_put_varint(bytes, value) - bytes));
}

void ls_wire_add_head(struct ls_text *text, uint32_t number, uint64_t size)
{
    ls_wire_add_varint(text, (uint64_t)number << 3 | LS_WIRE_BYTES);
    ls_wire_add_varint(text, size);
}

void ls_wire_add_bytes(struct ls_text *text, uint32_t number, const void *bytes, size_t size)
{
    ls_wire_add_head(text, number, size);
    ls_text_add_bytes(text, bytes, size);
}
