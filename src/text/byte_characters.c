/* Characters that stand for bytes. See text/byte_characters.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/byte_characters.h"

#include <stdint.h>

#include "base/utf8.h"

static bool stands_for_itself(uint32_t byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
           (byte >= 0xae && byte <= 0xff);
}

/* How many bytes below this one do not stand for themselves: 0 to 0x20, 0x7f to 0xa0, and 0xad. */
static uint32_t others_below(uint32_t byte)
{
    return byte <= 0x20 ? byte : byte <= 0xa0 ? 0x21 + byte - 0x7f : 0x43;
}

void ls_bytes_to_characters(const char *bytes, size_t length, struct ls_text *out)
{
    for (size_t i = 0; i < length; i++) {
        const uint32_t byte = (unsigned char)bytes[i];
        const uint32_t c = stands_for_itself(byte) ? byte : 0x100 + others_below(byte);
        char two[2] = {(char)c, 0};
        if (c >= 0x80) {
            two[0] = (char)(0xc0 | c >> 6);
            two[1] = (char)(0x80 | (c & 0x3f));
        }
        ls_text_add_bytes(out, two, c >= 0x80 ? 2 : 1);
    }
}

/* -1: it stands for no byte */
static int byte_of(uint32_t c)
{
    if (c < 0x100)
        return stands_for_itself(c) ? (int)c : -1;
    const uint32_t index = c - 0x100;
    if (index <= 0x20)
        return (int)index;
    if (index < 0x43)
        return (int)(index - 0x21 + 0x7f);
    return index == 0x43 ? 0xad : -1;
}

bool ls_characters_to_bytes(const char *text, size_t length, struct ls_text *out)
{
    const size_t before = out->length;
    for (size_t at = 0; at < length;) {
        const int byte = byte_of(ls_utf8_take(text, &at));
        if (byte < 0) {
            out->length = before;
            return false;
        }
        const char one = (char)byte;
        ls_text_add_bytes(out, &one, 1);
    }
    return true;
}
