/* Snappy: the size of all as a number of 7 bits a byte, then elements. The low two bits of an
 * element's first byte say what it is: bytes as they are, or a copy of bytes that came before.
 *
 *   0  its upper six bits are the length - 1, or 60 to 63: that is in the next 1 to 4 bytes
 *   1  length - 4 in three bits; offset in the upper three bits and the next byte
 *   2, 3  length - 1 in six bits; offset in the next 2 or 4 bytes
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/snappy.h"

#include <string.h>

enum { RATIO_MAX = 32 /* the best element makes 64 bytes of 3 */ };

struct input {
    const uint8_t *at, *end;
};

/* A number of `count` bytes, the lowest first; false: there are not so many. */
static bool take(struct input *in, int count, size_t *number)
{
    if (in->end - in->at < count)
        return false;
    *number = 0;
    for (int i = 0; i < count; i++)
        *number |= (size_t)in->at[i] << (8 * i);
    in->at += count;
    return true;
}

static bool take_size(struct input *in, size_t *size)
{
    *size = 0;
    for (int shift = 0; shift < 35 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        *size |= (size_t)(byte & 127) << shift;
        if (byte < 128)
            return *size <= UINT32_MAX;
    }
    return false;
}

bool ls_snappy_size(const uint8_t *bytes, size_t size, size_t *plain)
{
    struct input in = {bytes, bytes + size};
    return take_size(&in, plain) && *plain / RATIO_MAX <= size;
}

/* Length and offset of an element; offset 0: bytes as they are. */
static bool take_element(struct input *in, size_t *length, size_t *offset)
{
    const uint8_t tag = *in->at++;
    *offset = 0;
    *length = (size_t)(tag >> 2) + 1;
    switch (tag & 3) {
    case 0:
        if (tag >> 2 < 60)
            return true;
        if (!take(in, (tag >> 2) - 59, length))
            return false;
        *length += 1;
        return true;
    case 1:
        *length = (size_t)(tag >> 2 & 7) + 4;
        if (!take(in, 1, offset))
            return false;
        *offset |= (size_t)(tag >> 5) << 8;
        break;
    default:
        if (!take(in, (tag & 3) == 2 ? 2 : 4, offset))
            return false;
    }
    return *offset > 0;
}

bool ls_snappy_read(const uint8_t *bytes, size_t size, uint8_t *out, size_t plain)
{
    struct input in = {bytes, bytes + size};
    size_t length, offset, done = 0;
    if (!take_size(&in, &length) || length != plain)
        return false;
    while (in.at < in.end) {
        if (!take_element(&in, &length, &offset) || length > plain - done)
            return false;
        if (offset == 0) {
            if (length > (size_t)(in.end - in.at))
                return false;
            memcpy(out + done, in.at, length);
            in.at += length;
        } else {
            if (offset > done)
                return false;
            for (size_t i = 0; i < length; i++) /* the two may overlap */
                out[done + i] = out[done + i - offset];
        }
        done += length;
    }
    return done == plain;
}
