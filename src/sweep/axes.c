/* A field of a sweep: lists of values, ranges, and what is drawn from them.
 *
 * A drawn number is a function of seed, field, run and attempt (base/random.h), rounded to four
 * digits, so that it can be typed again. Powers are products of square roots, which every processor
 * rounds alike.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "sweep/sweep.h"

enum { DIGITS = 4 };
static const double integer_limit = 2147483647;

static int refuse(const char *set, const char *hint, struct ls_error *error, const char *message)
{
    char place[320];
    snprintf(place, sizeof place, "--set %s", set);
    return ls_fail(error, LOCKSTEP_USAGE, place, hint, "%s", message);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* "-1.5e-4": a decimal number and nothing else, of at most 40 characters. */
static bool read_number(const char *text, double *number)
{
    const char *at = text;
    at += *at == '-' || *at == '+';
    size_t digits = count_digits(at);
    at += digits;
    if (*at == '.') {
        const size_t more = count_digits(++at);
        digits += more;
        at += more;
    }
    if (digits == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        const size_t power = count_digits(at);
        if (power == 0 || power > 4)
            return false;
        at += power;
    }
    if (*at != '\0' || at - text > 40)
        return false;
    *number = ls_parse_double(text);
    return isfinite(*number);
}

/* The number with DIGITS digits, in its shortest form. */
static void write_number(char out[32], double number)
{
    char rounded[32];
    snprintf(rounded, sizeof rounded, "%.*e", DIGITS - 1, number);
    for (char *at = rounded; *at != '\0'; at++)
        if (*at == ',') /* of a locale */
            *at = '.';
    ls_format_double(out, ls_parse_double(rounded));
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum ls_axis_kind kind_of(const char *values)
{
    return starts(values, "log:")   ? LS_AXIS_LOG
           : starts(values, "lin:") ? LS_AXIS_LIN
           : starts(values, "int:") ? LS_AXIS_INT
                                    : LS_AXIS_LIST;
}

static int read_range(const char *set, const char *range, struct ls_axis *axis,
                      struct ls_error *error)
{
    static const char form[] = "write log:1e-4..1e-1, lin:0..0.01 or int:16..128";
    const char *dots = strstr(range, "..");
    char *low = dots != NULL ? ls_copy_bytes(range, (size_t)(dots - range)) : NULL;
    const bool read =
        low != NULL && read_number(low, &axis->low) && read_number(dots + 2, &axis->high);
    ls_free(low);
    if (!read)
        return refuse(set, form, error, "a range is two numbers with two dots between them");
    if (!(axis->low < axis->high))
        return refuse(set, form, error, "the first number of a range is the smaller one");
    if (axis->kind == LS_AXIS_LOG && !(axis->low > 0))
        return refuse(set, "lin: takes such a range", error,
                      "only numbers above 0 have a logarithm");
    if (axis->kind == LS_AXIS_INT &&
        (axis->low != floor(axis->low) || axis->high != floor(axis->high) ||
         fabs(axis->low) > integer_limit || fabs(axis->high) > integer_limit))
        return refuse(set, form, error, "both ends are whole numbers of 32 bits");
    return 0;
}

/* Bytes of the value that comes next: to a comma outside of quotes and brackets. */
static size_t length_of_value(const char *text)
{
    int depth = 0;
    char quote = '\0';
    size_t at = 0;
    for (; text[at] != '\0' && (text[at] != ',' || depth > 0 || quote != '\0'); at++) {
        if (quote != '\0') {
            if (text[at] == '\\' && text[at + 1] != '\0')
                at++;
            else if (text[at] == quote)
                quote = '\0';
        } else if (text[at] == '"' || text[at] == '\'') {
            quote = text[at];
        } else if (strchr("[{(", text[at]) != NULL) {
            depth++;
        } else if (strchr("]})", text[at]) != NULL && depth > 0) {
            depth--;
        }
    }
    return at;
}

static int add_value(const char *set, const char *text, size_t length, struct ls_axis *axis,
                     struct ls_error *error)
{
    if (length == 0)
        return refuse(set, "write --set base_lr=0.1,0.05; an empty text is \"\"", error,
                      "a value is missing");
    for (size_t i = 0; i < axis->count; i++)
        if (strlen(axis->values[i]) == length && memcmp(axis->values[i], text, length) == 0)
            return refuse(set, "each value stands there once", error,
                          "one of the values comes twice");
    if (axis->count == LOCKSTEP_SWEEP_LIMIT)
        return refuse(set, NULL, error, "these are more values than a sweep may have runs");
    char *value = ls_copy_bytes(text, length);
    if (value == NULL || !LS_GROW(axis->values, axis->count, axis->room)) {
        ls_free(value);
        return ls_fail_memory(error, "a sweep");
    }
    axis->values[axis->count++] = value;
    return 0;
}

static int read_list(const char *set, const char *text, struct ls_axis *axis,
                     struct ls_error *error)
{
    for (;;) {
        const size_t length = length_of_value(text);
        LS_TRY(add_value(set, text, length, axis, error));
        if (text[length] == '\0')
            return 0;
        text += length + 1;
    }
}

int ls_axis_read(const char *set, bool random, struct ls_axis *axis, struct ls_error *error)
{
    const char *equals = strchr(set, '=');
    *axis = (struct ls_axis){.field = NULL};
    if (equals == NULL || equals == set || (equals == set + 1 && *set == '?'))
        return refuse(set, "write --set base_lr=0.1,0.05", error,
                      "a field, '=' and its values are expected");
    const size_t length = (size_t)(equals - set);
    axis->field = ls_copy_bytes(set, length);
    axis->name = ls_copy_bytes(set, length - (equals[-1] == '?'));
    if (axis->field == NULL || axis->name == NULL)
        return ls_fail_memory(error, "a sweep");
    axis->kind = kind_of(equals + 1);
    if (axis->kind == LS_AXIS_LIST)
        return read_list(set, equals + 1, axis, error);
    if (!random)
        return refuse(set, "add --random N, or name the values: base_lr=0.1,0.05", error,
                      "of a range values must be drawn");
    return read_range(set, equals + 1 + strlen("log:"), axis, error);
}

void ls_axis_free(struct ls_axis *axis)
{
    for (size_t i = 0; i < axis->count; i++)
        ls_free(axis->values[i]);
    ls_free(axis->values);
    ls_free(axis->field);
    ls_free(axis->name);
}

bool ls_axis_varies(const struct ls_axis *axis)
{
    return axis->kind != LS_AXIS_LIST || axis->count > 1;
}

/* ---- Drawing --------------------------------------------------------------------------------- */

/* ratio^part, for a part in [0, 1) of 32 bits: bit by bit, from the square root on. */
static double power(double ratio, uint32_t part)
{
    double result = 1, root = ratio;
    for (int bit = 31; bit >= 0; bit--) {
        root = sqrt(root);
        if ((part >> bit & 1) != 0)
            result *= root;
    }
    return result;
}

/* A number of a range, rounded; what rounding has put outside becomes the nearest end. */
static void draw_number(const struct ls_axis *axis, uint32_t part, char out[32])
{
    double number;
    if (axis->kind == LS_AXIS_INT) {
        const uint64_t there = (uint64_t)(axis->high - axis->low) + 1;
        number = axis->low + (double)((uint64_t)part * there >> 32);
        snprintf(out, 32, "%.0f", number);
        return;
    }
    if (axis->kind == LS_AXIS_LOG)
        number = axis->low * power(axis->high / axis->low, part);
    else
        number = axis->low + (axis->high - axis->low) * ((double)part * 0x1p-32);
    write_number(out, number);
    number = ls_parse_double(out);
    if (number < axis->low)
        ls_format_double(out, axis->low);
    else if (number > axis->high)
        ls_format_double(out, axis->high);
}

char *ls_axis_draw(const struct ls_axis *axis, uint64_t seed, size_t run, size_t draw)
{
    const uint64_t key = ls_random_key(seed, LS_RANDOM_SWEEP, axis->name);
    char number[32];
    if (axis->kind == LS_AXIS_LIST)
        return ls_copy_string(axis->values[ls_random_below(key, run, draw, (uint32_t)axis->count)]);
    draw_number(axis, ls_random_u32(key, run, draw), number);
    return ls_copy_string(number);
}
