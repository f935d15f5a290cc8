/* Numbers as fp32 or int32; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/numbers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/convert.h"

enum { AT_ONCE = 256 };

static const int64_t EXACT = INT64_C(1) << 24; /* integers up to here are apart in fp32 */

/* An integer of any type; false: it is beyond int64. */
static bool integer_at(enum ls_dtype type, const void *numbers, int64_t i, int64_t *value)
{
    switch (type) {
    case LS_I8:
        *value = ((const int8_t *)numbers)[i];
        return true;
    case LS_U8:
    case LS_BOOL:
        *value = ((const uint8_t *)numbers)[i];
        return true;
    case LS_I16:
        *value = ((const int16_t *)numbers)[i];
        return true;
    case LS_U16:
        *value = ((const uint16_t *)numbers)[i];
        return true;
    case LS_I32:
        *value = ((const int32_t *)numbers)[i];
        return true;
    case LS_U32:
        *value = ((const uint32_t *)numbers)[i];
        return true;
    case LS_I64:
        *value = ((const int64_t *)numbers)[i];
        return true;
    case LS_U64:
        *value = (int64_t)((const uint64_t *)numbers)[i];
        return *value >= 0;
    default:
        return false;
    }
}

/* A floating-point number of any type that can be converted. */
static double real_at(enum ls_dtype type, const void *numbers, int64_t i)
{
    double value;
    const char *at = (const char *)numbers + (size_t)i * ls_dtype_size(type);
    ls_dtype_convert(type, at, LS_F64, &value, 1);
    return value;
}

/* Whether a floating-point number is one of int32. By its bits: the thread may flush denormals, so
 * that they compare as zeros. */
static bool is_i32(double number, int64_t *value)
{
    static const double minus_zero = -0.0;
    if (!(number >= INT32_MIN && number <= INT32_MAX))
        return false;
    *value = (int64_t)number;
    double back = (double)*value;
    return memcmp(&back, &number, sizeof back) == 0 ||
           memcmp(&minus_zero, &number, sizeof number) == 0;
}

/* The numbers of small integers are theirs in fp32. */
#define SMALL_TO_F32(c_type)                                                                       \
    do {                                                                                           \
        const c_type *in = numbers;                                                                \
        for (int64_t i = 0; i < count && out != NULL; i++)                                         \
            out[i] = in[i];                                                                        \
        return count;                                                                              \
    } while (0)

/* Binary64 numbers that are binary32 numbers, too. Some at a time there and back, by integers: the
 * thread may flush denormals. */
static int64_t doubles_to_f32(const double *in, int64_t count, bool finite, float *out)
{
    for (int64_t begin = 0; begin < count; begin += AT_ONCE) {
        int64_t some = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        float narrow[AT_ONCE];
        double back[AT_ONCE];
        ls_dtype_convert(LS_F64, in + begin, LS_F32, narrow, (size_t)some);
        ls_dtype_convert(LS_F32, narrow, LS_F64, back, (size_t)some);
        for (int64_t i = 0; i < some; i++)
            if (memcmp(&back[i], &in[begin + i], sizeof back[i]) != 0 || isnan(in[begin + i]) ||
                (finite && isinf(in[begin + i])))
                return begin + i;
        if (out != NULL)
            memcpy(out + begin, narrow, (size_t)some * sizeof *out);
    }
    return count;
}

static int64_t integers_to_f32(enum ls_dtype type, const void *numbers, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        if (!integer_at(type, numbers, i, &value) || value > EXACT || value < -EXACT)
            return i;
        if (out != NULL)
            out[i] = (float)value;
    }
    return count;
}

/* Numbers that fp32 has, but for NaN and, where they must be finite, infinities: a run at a time is
 * converted, and looked at. */
static int64_t floats_to_f32(enum ls_dtype type, const void *numbers, int64_t count, bool finite,
                             float *out)
{
    const size_t size = ls_dtype_size(type);
    const float most = finite ? FLT_MAX : INFINITY;
    for (int64_t begin = 0; begin < count; begin += AT_ONCE) {
        const int64_t some = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        float room[AT_ONCE], *to = out != NULL ? out + begin : room;
        int others = 0;
        ls_dtype_convert(type, (const char *)numbers + (size_t)begin * size, LS_F32, to,
                         (size_t)some);
        for (int64_t i = 0; i < some; i++)
            others += !(fabsf(to[i]) <= most);
        for (int64_t i = 0; i < some && others > 0; i++)
            if (!(fabsf(to[i]) <= most))
                return begin + i;
    }
    return count;
}

int64_t ls_numbers_to_f32(enum ls_dtype type, const void *numbers, int64_t count, bool finite,
                          float *out)
{
    switch (type) {
    case LS_U8:
        SMALL_TO_F32(uint8_t);
    case LS_I8:
        SMALL_TO_F32(int8_t);
    case LS_U16:
        SMALL_TO_F32(uint16_t);
    case LS_I16:
        SMALL_TO_F32(int16_t);
    case LS_F64:
        return doubles_to_f32(numbers, count, finite, out);
    default:
        break;
    }
    if (!ls_dtype_is_float(type))
        return integers_to_f32(type, numbers, count, out);
    return floats_to_f32(type, numbers, count, finite, out);
}

int64_t ls_numbers_to_i32(enum ls_dtype type, const void *numbers, int64_t count, int32_t *out)
{
    bool real = ls_dtype_is_float(type);
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        if (real) {
            if (!is_i32(real_at(type, numbers, i), &value))
                return i;
        } else if (!integer_at(type, numbers, i, &value) || value < INT32_MIN ||
                   value > INT32_MAX) {
            return i;
        }
        if (out != NULL)
            out[i] = (int32_t)value;
    }
    return count;
}

const char *ls_number_fault(enum ls_dtype type, const void *numbers, int64_t index, bool integer)
{
    if (ls_dtype_is_float(type) && isnan(real_at(type, numbers, index)))
        return "is not finite";
    if (integer)
        return "is no integer of 32 bits";
    if (ls_dtype_is_float(type) && isinf(real_at(type, numbers, index)))
        return "is not finite";
    return ls_dtype_is_float(type) ? "fp32 does not have" : "is beyond 2^24";
}

const char *ls_number_hint(enum ls_dtype type, const void *numbers, int64_t index, bool integer)
{
    const char *at = (const char *)numbers + (size_t)index * ls_dtype_size(type);
    const bool real = ls_dtype_is_float(type);
    if (real && !isfinite(real_at(type, numbers, index)))
        return NULL;
    if (real)
        return integer ? "type: I32 is for whole numbers; leave it out"
                       : "round the numbers to fp32 when the data are written";
    return !integer && ls_numbers_to_i32(type, at, 1, NULL) == 1
               ? "data_param { tensor { type: I32 } } hands over integers as they are"
               : NULL;
}

const char *ls_number_text(enum ls_dtype type, const void *numbers, int64_t index,
                           char text[LS_NUMBER_TEXT])
{
    int64_t value;
    if (ls_dtype_is_float(type) && isnan(real_at(type, numbers, index)))
        snprintf(text, LS_NUMBER_TEXT, "NaN"); /* whatever its sign */
    else if (ls_dtype_is_float(type))
        snprintf(text, LS_NUMBER_TEXT, "%.17g", real_at(type, numbers, index));
    else if (integer_at(type, numbers, index, &value))
        snprintf(text, LS_NUMBER_TEXT, "%" PRId64, value);
    else
        snprintf(text, LS_NUMBER_TEXT, "%" PRIu64, ((const uint64_t *)numbers)[index]);
    return text;
}
