/* Writing JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void put_quoted(FILE *stream, const char *text)
{
    putc('"', stream);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(stream, "\\%c", *p);
        else if (*p == '\n')
            fputs("\\n", stream);
        else if (*p < 0x20)
            fprintf(stream, "\\u%04x", *p);
        else
            putc(*p, stream);
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
