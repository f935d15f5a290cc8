/* Characters of UTF-8 (RFC 3629); see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/utf8.h"

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
