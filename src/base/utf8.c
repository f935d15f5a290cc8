/* Characters of UTF-8 (RFC 3629). See base/utf8.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/utf8.h"

int ls_utf8_size(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

int32_t ls_utf8_read(const unsigned char *bytes, size_t left, size_t *size)
{
    const uint32_t first = bytes[0];
    *size = 1;
    if (first < 0x80)
        return (int32_t)first;
    const size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || left <= more)
        return -1;
    uint32_t code = first & (0x3fU >> more);
    for (size_t i = 1; i <= more; i++) {
        const uint32_t byte = bytes[i];
        if ((byte & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (byte & 0x3f);
    }
    *size = more + 1;
    if (ls_utf8_size(code) != (int)*size || code >= LS_CODE_POINTS ||
        (code >= 0xd800 && code < 0xe000))
        return -1;
    return (int32_t)code;
}

int ls_utf8_write(uint32_t code, char out[4])
{
    const int size = ls_utf8_size(code);
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(marks[size] | code);
    return size;
}

void ls_utf8_add(struct ls_text *out, uint32_t code)
{
    char bytes[4];
    const int size = ls_utf8_write(code, bytes);
    ls_text_add_bytes(out, bytes, (size_t)size);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

size_t ls_utf8_length(const char *bytes, size_t room)
{
    size_t size;
    return ls_utf8_read((const unsigned char *)bytes, room, &size) > 0 ? size : 0;
}

bool ls_utf8_valid(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        const size_t step = ls_utf8_length(bytes + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

size_t ls_utf8_valid_length(const char *text, size_t length)
{
    size_t at = 0, size;
    while (at < length && ls_utf8_read((const unsigned char *)text + at, length - at, &size) >= 0)
        at += size;
    return at;
}

size_t ls_utf8_step(char first)
{
    const unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

uint32_t ls_utf8_take(const char *text, size_t *at)
{
    const unsigned char *bytes = (const unsigned char *)text + *at;
    const size_t size = ls_utf8_step(text[*at]);
    uint32_t code = size == 1 ? bytes[0] : bytes[0] & (0x7fU >> size);
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (bytes[i] & 0x3f);
    *at += size;
    return code;
}
