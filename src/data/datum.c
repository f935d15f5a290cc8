/* Datum in the wire format of protocol buffers (base/wire.h), field by field: channels = 1, height
 * = 2, width = 3, data = 4 (bytes), label = 5, float_data = 6 (fixed32, packed or not), encoded
 * = 7. A general unpacker would copy every picture once; this one points into the database. Unknown
 * fields are skipped, the last of several values counts, as the format wants it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/datum.h"

#include <string.h>

#include "base/wire.h"

/* The fields of a Datum, by number; what they should be in wire types. */
static int take(struct ls_datum *d, const struct ls_wire_field *f, struct ls_problem *problem)
{
    if (f->number == 4) {
        if (f->type != LS_WIRE_BYTES)
            return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                                  "its data is not a string of bytes");
        d->data = f->bytes;
        d->data_size = f->size;
    } else if (f->number == 6) {
        if ((f->type != LS_WIRE_BYTES && f->type != LS_WIRE_32) || f->size % 4 != 0)
            return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                                  "its float_data is not made of floats");
        d->float_count += f->size / 4;
    } else if (f->number <= 7) {
        if (f->type != LS_WIRE_VARINT)
            return ls_problem_set(problem, LOCKSTEP_DATA, NULL, "a number of it has another type");
        if (f->number == 7) {
            d->encoded = f->value != 0;
            return 0;
        }
        int64_t value = (int32_t)(uint32_t)f->value; /* int32 fields are sign extended */
        if (f->value > UINT32_MAX && (int64_t)f->value != value)
            return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                                  f->number == 5 ? "its label has more than 32 bits"
                                                 : "a number of it has more than 32 bits");
        if (f->number == 5)
            d->label = (int32_t)value;
        else
            d->shape[f->number - 1] = value;
    }
    return 0;
}

int ls_datum_read(const uint8_t *bytes, size_t size, struct ls_datum *datum,
                  struct ls_problem *problem)
{
    *datum = (struct ls_datum){0};
    struct ls_wire wire = ls_wire_open(bytes, size);
    struct ls_wire_field field;
    while (ls_wire_next(&wire, &field))
        LS_TRY(take(datum, &field, problem));
    return wire.damaged ? ls_problem_set(problem, LOCKSTEP_DATA, NULL, "it is not a Datum") : 0;
}

void ls_datum_floats(const uint8_t *bytes, size_t size, float *floats)
{
    struct ls_wire wire = ls_wire_open(bytes, size);
    struct ls_wire_field field;
    while (ls_wire_next(&wire, &field)) {
        if (field.number != 6)
            continue;
        for (size_t i = 0; i < field.size; i += 4) {
            const uint8_t *b = field.bytes + i;
            uint32_t bits =
                (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
            memcpy(floats++, &bits, sizeof bits);
        }
    }
}

int ls_datum_check(const struct ls_datum *datum, struct ls_problem *problem)
{
    if (datum->encoded && datum->data_size == 0)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "it says it is encoded and has no data");
    if (datum->encoded)
        return 0;
    if (!ls_record_shape_valid(datum->shape))
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "its channels, height and width make no sense");
    size_t size = (size_t)ls_record_size(datum->shape);
    /* As in Caffe, bytes win over floats where a record has both. */
    if (datum->data_size > 0 ? datum->data_size != size : datum->float_count != size)
        return ls_problem_set(problem, LOCKSTEP_DATA, NULL,
                              "it has not as many numbers as its channels, height and width say");
    return 0;
}

static uint8_t *write_number(uint8_t *at, int number, int64_t value)
{
    at = ls_wire_put_varint(at, (uint64_t)number << 3 | LS_WIRE_VARINT);
    return ls_wire_put_varint(at, (uint64_t)value);
}

/* float_data is not declared packed in Caffe's schema: a tag before each number. */
static uint8_t *write_floats(uint8_t *at, const float *floats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        *at++ = 6 << 3 | LS_WIRE_32;
        for (int b = 0; b < 4; b++)
            *at++ = (uint8_t)(bits >> (8 * b));
    }
    return at;
}

const uint8_t *ls_datum_write(const struct ls_record *record, bool has_label,
                              struct ls_buffer *buffer, size_t *size)
{
    const struct ls_record_tensor *image = &record->tensor[0];
    bool floats = image->type == LS_F32;
    size_t count = (size_t)ls_tensor_numbers(image);
    size_t room = 10 * LS_WIRE_VARINT_MAX + (floats ? 5 * count : count);
    uint8_t *start = ls_buffer_reserve(buffer, room, 1);
    if (start == NULL)
        return NULL;
    uint8_t *at = start;
    for (int i = 0; i < 3; i++)
        at = write_number(at, i + 1, image->shape.dim[i]);
    if (!floats) {
        at = ls_wire_put_varint(at, 4 << 3 | LS_WIRE_BYTES);
        at = ls_wire_put_varint(at, count);
        memcpy(at, image->data, count);
        at += count;
    }
    if (has_label)
        at = write_number(at, 5, *(const int32_t *)record->tensor[1].data);
    if (floats)
        at = write_floats(at, image->data, count);
    *size = (size_t)(at - start);
    return start;
}

const uint8_t *ls_datum_write_file(const uint8_t *file, size_t file_size, int32_t label,
                                   struct ls_buffer *buffer, size_t *size)
{
    uint8_t *start = ls_buffer_reserve(buffer, 10 * LS_WIRE_VARINT_MAX + file_size, 1);
    if (start == NULL)
        return NULL;
    uint8_t *at = ls_wire_put_varint(start, 4 << 3 | LS_WIRE_BYTES);
    at = ls_wire_put_varint(at, file_size);
    memcpy(at, file, file_size);
    at = write_number(at + file_size, 5, label);
    at = write_number(at, 7, 1);
    *size = (size_t)(at - start);
    return start;
}
