/* Writing JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/json.h"

#include <inttypes.h>
#include <math.h>

#include "lockstep/observe.h"
#include "monitor/terminal.h"

/* Names come from files: what is not UTF-8 becomes the replacement character. */
static void put_quoted(FILE *stream, const char *text)
{
    putc('"', stream);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        int length = ls_character_bytes((const char *)p);
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
    if (isfinite(value))
        lockstep_number_text(value, text);
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
