/* Characters of UTF-8 and what they are. See text/characters.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/characters.h"

#include <utf8proc.h>

#include "base/json.h"

size_t ls_utf8_valid_length(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        const size_t size = text[at] != '\0' ? ls_utf8_length(text + at, length - at) : 1;
        if (size == 0)
            break;
        at += size;
    }
    return at;
}

size_t ls_utf8_step(char first)
{
    const unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

uint32_t ls_utf8_take(const char *text, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text + *at;
    const size_t size = ls_utf8_step(text[*at]);
    *at += size;
    switch (size) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    case 3:
        return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    default:
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
    }
}

void ls_utf8_add(struct ls_text *out, uint32_t character)
{
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t size = utf8proc_encode_char((utf8proc_int32_t)character, bytes);
    ls_text_add_bytes(out, bytes, (size_t)size);
}

bool ls_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool ls_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO;
}

bool ls_is_number(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_ND && is <= UTF8PROC_CATEGORY_NO;
}

bool ls_is_mark(uint32_t c)
{
    const utf8proc_category_t is = category(c);
    return is >= UTF8PROC_CATEGORY_MN && is <= UTF8PROC_CATEGORY_ME;
}

bool ls_is_nonspacing_mark(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_MN;
}

bool ls_is_control(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    const utf8proc_category_t is = category(c);
    return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CF || is == UTF8PROC_CATEGORY_CO;
}

bool ls_is_ideograph(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}
