/* Writing JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Bytes of the character of UTF-8 at `p`; 0 if there is none (RFC 3629: no overlong forms, no
 * halves of UTF-16, nothing above U+10FFFF). */
static int utf8_length(const unsigned char *p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *p < 0x80 ? 1 : *p < 0xc0 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf8 ? 4 : 0;
    if (length < 2)
        return length;
    uint32_t code = *p & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) /* the end of the text is none, too */
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    bool valid = code >= least[length] && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    return valid ? length : 0;
}

/* Names come from files: what is not UTF-8 becomes the replacement character. */
static void put_quoted(FILE *stream, const char *text)
{
    putc('"', stream);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        int length = utf8_length(p);
        if (*p == '"' || *p == '\\')
            fprintf(stream, "\\%c", *p);
        else if (*p == '\n')
            fputs("\\n", stream);
        else if (*p < 0x20)
            fprintf(stream, "\\u%04x", *p);
        else if (length == 0)
            fputs("\\ufffd", stream);
        else
            fwrite(p, 1, (size_t)length, stream);
        p += length > 0 ? length : 1;
    }
    putc('"', stream);
}

/* What stands before every value. */
static void begin(struct ls_json_writer *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->stream);
    json->comma = true;
    if (key != NULL) {
        put_quoted(json->stream, key);
        fputs(": ", json->stream);
    }
}

void ls_json_open(struct ls_json_writer *json, const char *key, char bracket)
{
    begin(json, key);
    putc(bracket, json->stream);
    json->comma = false;
}

void ls_json_close(struct ls_json_writer *json, char bracket)
{
    putc(bracket, json->stream);
    json->comma = true;
}

void ls_json_string(struct ls_json_writer *json, const char *key, const char *value)
{
    begin(json, key);
    if (value != NULL)
        put_quoted(json->stream, value);
    else
        fputs("null", json->stream);
}

void ls_json_number(struct ls_json_writer *json, const char *key, double value)
{
    char text[32] = "null";
    begin(json, key);
    /* The shortest form that reads back to the same number. */
    for (int digits = 6; isfinite(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, json->stream);
}

void ls_json_integer(struct ls_json_writer *json, const char *key, int64_t value)
{
    begin(json, key);
    fprintf(json->stream, "%" PRId64, value);
}

void ls_json_bytes(struct ls_json_writer *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->stream, "%" PRIu64, value);
}

void ls_json_boolean(struct ls_json_writer *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->stream);
}
