/* Growing strings, numbers as text, and words that look alike.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/utf8.h"

/* Room for `more` bytes and a NUL; false (and `failed`) when there is none to be had. */
static bool reserve(struct ls_text *text, size_t more)
{
    size_t wanted;
    if (text->failed || __builtin_add_overflow(text->length, more, &wanted) ||
        wanted >= SIZE_MAX / 2) {
        text->failed = true;
        return false;
    }
    if (wanted < text->capacity)
        return true;
    size_t capacity = text->capacity < 64 ? 64 : text->capacity;
    while (capacity <= wanted)
        capacity *= 2;
    char *data = ls_resize(text->data, capacity, 1);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void ls_text_add_bytes(struct ls_text *text, const void *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length > 0)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void ls_text_add(struct ls_text *text, const char *string)
{
    ls_text_add_bytes(text, string, strlen(string));
}

/* Numbers are written with a point whatever the host program's locale says: the C locale is set
 * for this thread while we print. */
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t enter_c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return c_locale != (locale_t)0 ? uselocale(c_locale) : (locale_t)0;
}

static void leave_c_locale(locale_t previous)
{
    if (previous != (locale_t)0)
        uselocale(previous);
}

void ls_text_format(struct ls_text *text, const char *format, ...)
{
    va_list arguments;
    locale_t previous = enter_c_locale();
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0 && reserve(text, (size_t)length)) {
        va_start(arguments, format);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
        va_end(arguments);
        text->length += (size_t)length;
    } else {
        text->failed = true;
    }
    leave_c_locale(previous);
}

void ls_text_add_json(struct ls_text *text, const char *string)
{
    ls_text_add(text, "\"");
    for (const char *p = string; *p != '\0';) {
        size_t plain = 0;
        for (size_t step = 1; step > 0; plain += step)
            step = (unsigned char)p[plain] >= 0x20 && p[plain] != '"' && p[plain] != '\\'
                       ? ls_utf8_length(p + plain, LS_UTF8_LONGEST)
                       : 0;
        ls_text_add_bytes(text, p, plain);
        p += plain;
        if (plain > 0)
            continue;
        if (*p == '\n')
            ls_text_add(text, "\\n");
        else if ((unsigned char)*p < 0x20)
            ls_text_format(text, "\\u%04x", (unsigned)*p);
        else if ((unsigned char)*p >= 0x80)
            ls_text_add(text, "\\ufffd"); /* no UTF-8 */
        else
            ls_text_add_bytes(text, (const char[]){'\\', *p}, 2);
        p++;
    }
    ls_text_add(text, "\"");
}

void ls_text_free(struct ls_text *text)
{
    ls_free(text->data);
    *text = (struct ls_text){0};
}

/* The value of a float as a double, also where the thread flushes denormals (a conversion
 * instruction would make them zero). */
static double widen(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & UINT32_C(0x7f800000)) != 0)
        return value;
    double magnitude = (double)(bits & UINT32_C(0x007fffff)) * 0x1p-149;
    return bits >> 31 ? -magnitude : magnitude;
}

/* "nan", "inf" and "-inf" without a sign or payload of NaN; false for finite numbers. */
static bool format_special(char out[32], double value)
{
    if (value != value)
        snprintf(out, 32, "nan");
    else if (value - value != 0)
        snprintf(out, 32, value < 0 ? "-inf" : "inf");
    else
        return false;
    return true;
}

void ls_format_float(char out[32], float value)
{
    double wide = widen(value);
    if (format_special(out, wide))
        return;
    locale_t previous = enter_c_locale();
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, 32, "%.*g", digits, wide);
        float back = strtof(out, NULL);
        if (memcmp(&back, &value, sizeof back) == 0)
            break;
    }
    leave_c_locale(previous);
}

void ls_format_double(char out[32], double value)
{
    if (format_special(out, value))
        return;
    locale_t previous = enter_c_locale();
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        double back = strtod(out, NULL);
        if (memcmp(&back, &value, sizeof back) == 0)
            break;
    }
    leave_c_locale(previous);
}

void ls_format_number(char out[32], double value)
{
    const double size = fabs(value);
    const bool narrow = size >= (double)FLT_MIN && size <= (double)FLT_MAX;
    if (format_special(out, value))
        return;
    locale_t previous = enter_c_locale();
    const bool whole = size < 0x1p53 && value == trunc(value);
    snprintf(out, 32, "%.0f", value);
    for (int digits = 1; digits <= 17 && !whole; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        const double back = strtod(out, NULL);
        if (back == value || (narrow && (float)back == (float)value))
            break;
    }
    leave_c_locale(previous);
}

double ls_parse_double(const char *text)
{
    locale_t previous = enter_c_locale();
    double value = strtod(text, NULL);
    leave_c_locale(previous);
    return value;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Wagner and Fischer's table, one row at a time. */
int ls_edit_distance(const char *a, const char *b, int limit)
{
    size_t rows = strlen(a), columns = strlen(b);
    size_t apart = rows > columns ? rows - columns : columns - rows;
    if (apart > (size_t)limit)
        return limit + 1;
    int *row = ls_alloc(columns + 1, sizeof *row);
    if (row == NULL)
        return limit + 1;
    for (size_t j = 0; j <= columns; j++)
        row[j] = (int)j;
    int best = 0; /* of a row: distances never fall below it further down */
    for (size_t i = 0; i < rows && best <= limit; i++) {
        int diagonal = row[0];
        best = row[0] = (int)i + 1;
        for (size_t j = 0; j < columns; j++) {
            int replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = smaller(replaced, smaller(row[j + 1], row[j]) + 1);
            best = smaller(best, row[j + 1]);
        }
    }
    int distance = best > limit ? limit + 1 : smaller(row[columns], limit + 1);
    ls_free(row);
    return distance;
}

const char *ls_suggest(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word);
    if (length > 200)
        return NULL;
    /* One slip in three letters is a typing error; more is another word. */
    int nearest = length <= 3 ? 2 : length <= 6 ? 3 : 4; /* exclusive */
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(word, candidates[i]) == 0)
            return candidates[i];
        int distance = ls_edit_distance(word, candidates[i], nearest);
        if (distance < nearest && (size_t)distance < length) {
            nearest = distance;
            found = candidates[i];
        }
    }
    return found;
}
