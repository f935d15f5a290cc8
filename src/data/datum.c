/* Datum in the wire format of protocol buffers, field by field: channels = 1, height = 2, width =
 * 3, data = 4 (bytes), label = 5, float_data = 6 (fixed32, packed or not), encoded = 7. A general
 * unpacker would copy every picture once; this one points into the database.
 *
 * A field is a varint tag (number << 3 | wire type) and a value: type 0 a varint, 1 eight bytes, 2
 * a varint length and that many bytes, 5 four bytes. Unknown fields are skipped, the last of
 * several values counts, as the format wants it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/datum.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct cursor {
    const uint8_t *at, *end;
};

static bool read_varint(struct cursor *c, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            return false; /* beyond 64 bits */
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* One field; for varints `value`, else `bytes` of `length`. */
struct field {
    uint64_t number;
    int type;
    uint64_t value;
    const uint8_t *bytes;
    size_t length;
};

static bool read_field(struct cursor *c, struct field *field)
{
    uint64_t tag;
    *field = (struct field){0};
    if (!read_varint(c, &tag))
        return false;
    field->number = tag >> 3;
    field->type = (int)(tag & 7);
    uint64_t length = 0;
    if (field->number == 0)
        return false;
    if (field->type == VARINT)
        return read_varint(c, &field->value);
    if (field->type == FIXED64)
        length = 8;
    else if (field->type == FIXED32)
        length = 4;
    else if (field->type != BYTES || !read_varint(c, &length))
        return false;
    if (length > (uint64_t)(c->end - c->at))
        return false;
    field->bytes = c->at;
    field->length = (size_t)length;
    c->at += length;
    return true;
}

/* The fields of a Datum, by number; what they should be in wire types. */
static const char *take(struct ls_datum *d, const struct field *f)
{
    if (f->number == 4) {
        if (f->type != BYTES)
            return "its data is not a string of bytes";
        d->data = f->bytes;
        d->data_size = f->length;
    } else if (f->number == 6) {
        if ((f->type != BYTES && f->type != FIXED32) || f->length % 4 != 0)
            return "its float_data is not made of floats";
        d->float_count += f->length / 4;
    } else if (f->number <= 7) {
        if (f->type != VARINT)
            return "a number of it has another type";
        int64_t value = (int32_t)(uint32_t)f->value; /* int32 fields are sign extended */
        if (f->number <= 3) {
            d->shape[f->number - 1] = value;
        } else if (f->number == 5) {
            d->label = (int32_t)value;
        } else {
            d->encoded = f->value != 0;
        }
    }
    return NULL;
}

const char *ls_datum_read(const uint8_t *bytes, size_t size, struct ls_datum *datum)
{
    *datum = (struct ls_datum){0};
    struct cursor c = {bytes, bytes + size};
    while (c.at < c.end) {
        struct field field;
        if (!read_field(&c, &field))
            return "it is not a Datum";
        const char *problem = take(datum, &field);
        if (problem != NULL)
            return problem;
    }
    return NULL;
}

void ls_datum_floats(const uint8_t *bytes, size_t size, float *floats)
{
    struct cursor c = {bytes, bytes + size};
    struct field field;
    while (c.at < c.end && read_field(&c, &field)) {
        if (field.number != 6)
            continue;
        for (size_t i = 0; i < field.length; i += 4) {
            const uint8_t *b = field.bytes + i;
            uint32_t bits =
                (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
            memcpy(floats++, &bits, sizeof bits);
        }
    }
}

const char *ls_datum_check(const struct ls_datum *datum)
{
    if (datum->encoded)
        return datum->data_size > 0 ? NULL : "it says it is encoded and has no data";
    if (!ls_record_shape_valid(datum->shape))
        return "its channels, height and width make no sense";
    size_t size = (size_t)ls_record_size(datum->shape);
    /* As in Caffe, bytes win over floats where a record has both. */
    if (datum->data_size > 0 ? datum->data_size != size : datum->float_count != size)
        return "it has not as many numbers as its channels, height and width say";
    return NULL;
}

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

static uint8_t *write_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *write_number(uint8_t *at, int number, int64_t value)
{
    at = write_varint(at, (uint64_t)number << 3 | VARINT);
    return write_varint(at, (uint64_t)value);
}

/* float_data is not declared packed in Caffe's schema: a tag before each number. */
static uint8_t *write_floats(uint8_t *at, const float *floats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        *at++ = 6 << 3 | FIXED32;
        for (int b = 0; b < 4; b++)
            *at++ = (uint8_t)(bits >> (8 * b));
    }
    return at;
}

const uint8_t *ls_datum_write(const struct ls_record *record, bool has_label,
                              struct ls_buffer *buffer, size_t *size)
{
    size_t count = (size_t)ls_record_size(record->shape);
    size_t room = 64 + (record->bytes != NULL ? count + varint_size(count) : 5 * count);
    uint8_t *start = ls_buffer_reserve(buffer, room, 1);
    if (start == NULL)
        return NULL;
    uint8_t *at = start;
    for (int i = 0; i < 3; i++)
        at = write_number(at, i + 1, record->shape[i]);
    if (record->bytes != NULL) {
        at = write_varint(at, 4 << 3 | BYTES);
        at = write_varint(at, count);
        memcpy(at, record->bytes, count);
        at += count;
    }
    if (has_label)
        at = write_number(at, 5, record->label);
    if (record->bytes == NULL)
        at = write_floats(at, record->floats, count);
    *size = (size_t)(at - start);
    return start;
}
