/* Scanning JSON. See base/json.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

/* Notes the first problem; always false, so that a caller can return it. */
static bool fail(struct ls_json *json, const char *problem)
{
    if (json->problem == NULL)
        json->problem = problem;
    return false;
}

static void skip_space(struct ls_json *json)
{
    while (json->at < json->size) {
        char c = json->text[json->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return;
        json->at++;
    }
}

bool ls_json_take(struct ls_json *json, char wanted)
{
    skip_space(json);
    if (json->at >= json->size || json->text[json->at] != wanted)
        return false;
    json->at++;
    return true;
}

bool ls_json_expect(struct ls_json *json, char wanted, const char *problem)
{
    return ls_json_take(json, wanted) || fail(json, problem);
}

bool ls_json_end(struct ls_json *json)
{
    skip_space(json);
    return json->at == json->size;
}

/* Four hexadecimal digits after "\u"; -1 if they are not there. */
static int take_hex(struct ls_json *json)
{
    if (json->size - json->at < 4)
        return -1;
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = json->text[json->at++];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The character of "\uXXXX", or of two of them that form a surrogate pair. */
static bool take_unicode(struct ls_json *json, struct ls_text *out)
{
    int high = take_hex(json);
    if (high < 0)
        return fail(json, "an escape without four hexadecimal digits");
    if (high == 0)
        return fail(json, "a NUL character in a string");
    if (high >= 0xdc00 && high <= 0xdfff)
        return fail(json, "half of a surrogate pair");
    if (high < 0xd800 || high > 0xdbff) {
        ls_utf8_add(out, (uint32_t)high);
        return true;
    }
    if (json->size - json->at < 6 || memcmp(json->text + json->at, "\\u", 2) != 0)
        return fail(json, "half of a surrogate pair");
    json->at += 2;
    int low = take_hex(json);
    if (low < 0xdc00 || low > 0xdfff)
        return fail(json, "half of a surrogate pair");
    ls_utf8_add(out, 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
    return true;
}

static bool take_escape(struct ls_json *json, struct ls_text *out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    if (json->at >= json->size)
        return fail(json, "a string without an end");
    char c = json->text[json->at++];
    if (c == 'u')
        return take_unicode(json, out);
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    if (found == NULL)
        return fail(json, "an unknown escape");
    ls_text_add_bytes(out, &meanings[found - letters], 1);
    return true;
}

bool ls_json_read_string(struct ls_json *json, struct ls_text *out)
{
    if (!ls_json_expect(json, '"', "a string was expected"))
        return false;
    ls_text_add_bytes(out, "", 0);
    for (;;) {
        size_t begin = json->at;
        while (json->at < json->size && (unsigned char)json->text[json->at] >= 0x20 &&
               json->text[json->at] != '"' && json->text[json->at] != '\\')
            json->at++;
        if (!ls_utf8_valid(json->text + begin, json->at - begin))
            return fail(json, "a string that is not UTF-8");
        ls_text_add_bytes(out, json->text + begin, json->at - begin);
        if (json->at >= json->size)
            return fail(json, "a string without an end");
        char c = json->text[json->at++];
        if (c == '"')
            return true;
        if (c != '\\')
            return fail(json, "a control character in a string");
        if (!take_escape(json, out))
            return false;
    }
}

bool ls_json_read_integer(struct ls_json *json, int64_t *value)
{
    skip_space(json);
    size_t begin = json->at;
    int64_t number = 0;
    while (json->at < json->size && json->text[json->at] >= '0' && json->text[json->at] <= '9') {
        int digit = json->text[json->at++] - '0';
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return fail(json, "a number that is too large");
    }
    if (json->at == begin || (json->text[begin] == '0' && json->at > begin + 1))
        return fail(json, "a whole number of zero or more was expected");
    *value = number;
    return true;
}
