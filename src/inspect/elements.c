/* Elements of any type as numbers. See inspect/elements.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "inspect/elements.h"

#include <math.h>
#include <string.h>

#include "ir/convert.h"

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* E4M3 has no infinity: of its largest exponent only one fraction is no number. */
static double read_f8(enum ls_dtype type, unsigned char bits)
{
    if (type == LS_F8_E5M2)
        return to_double(ls_float_widen(bits, (struct ls_float_format){5, 2}));
    if ((bits & 0x78) != 0x78)
        return to_double(ls_float_widen(bits, (struct ls_float_format){4, 3}));
    double value = (bits & 7) == 7 ? NAN : 256.0 + 32.0 * (bits & 7);
    return bits & 0x80 ? -value : value;
}

/* One element of a type that ls_dtype_convert does not take. */
static double read_one(enum ls_dtype type, const unsigned char *at)
{
    int16_t i16;
    uint16_t u16;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    switch (type) {
    case LS_I16:
        memcpy(&i16, at, sizeof i16);
        return i16;
    case LS_U16:
        memcpy(&u16, at, sizeof u16);
        return u16;
    case LS_U32:
        memcpy(&u32, at, sizeof u32);
        return u32;
    case LS_I64:
        memcpy(&i64, at, sizeof i64);
        return (double)i64;
    case LS_U64:
        memcpy(&u64, at, sizeof u64);
        return (double)u64;
    case LS_F8_E4M3:
    case LS_F8_E5M2:
        return read_f8(type, *at);
    default:
        return *at; /* LS_BOOL */
    }
}

void ls_elements_read(enum ls_dtype type, const void *bytes, size_t n, double *out)
{
    if (ls_dtype_converts(type, LS_F64)) {
        ls_dtype_convert(type, bytes, LS_F64, out, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = read_one(type, (const unsigned char *)bytes + i * ls_dtype_size(type));
}

struct ls_figures ls_elements_figures(enum ls_dtype type, const void *bytes, size_t n)
{
    struct ls_figures figures = {.count = (int64_t)n};
    double values[LS_ELEMENTS_BLOCK], sum = 0, squares = 0, scale = 0;
    int64_t finite = 0;
    for (size_t i = 0; i < n; i += LS_ELEMENTS_BLOCK) {
        size_t block = n - i < LS_ELEMENTS_BLOCK ? n - i : LS_ELEMENTS_BLOCK;
        ls_elements_read(type, (const unsigned char *)bytes + i * ls_dtype_size(type), block,
                         values);
        for (size_t k = 0; k < block; k++) {
            double value = values[k];
            if (!isfinite(value)) {
                figures.not_finite++;
                continue;
            }
            figures.least = finite == 0 || value < figures.least ? value : figures.least;
            figures.most = finite == 0 || value > figures.most ? value : figures.most;
            figures.zeros += value == 0;
            sum += value;
            squares += value * value;
            finite++;
        }
    }
    scale = finite > 0 ? 1 / (double)finite : 0;
    figures.mean = sum * scale;
    figures.norm = sqrt(squares);
    return figures;
}

/* One block of two arrays, of which the first element is number `base`. */
static void compare_block(const double *a, const double *b, size_t base, size_t block,
                          double squares[2], struct ls_array_difference *difference)
{
    for (size_t k = 0; k < block; k++) {
        double distance = fabs(a[k] - b[k]);
        squares[0] += isfinite(a[k]) ? a[k] * a[k] : 0;
        if (!isfinite(distance))
            continue;
        squares[1] += distance * distance;
        if (distance > difference->absolute) {
            difference->absolute = distance;
            difference->at = base + k;
        }
    }
}

void ls_elements_compare(enum ls_dtype type, const void *a, const void *b, size_t n,
                         struct ls_array_difference *difference)
{
    const unsigned char *x = a, *y = b;
    double left[LS_ELEMENTS_BLOCK], right[LS_ELEMENTS_BLOCK], squares[2] = {0};
    size_t size = ls_dtype_size(type);
    *difference = (struct ls_array_difference){0};
    for (size_t i = 0; i < n; i += LS_ELEMENTS_BLOCK) {
        size_t block = n - i < LS_ELEMENTS_BLOCK ? n - i : LS_ELEMENTS_BLOCK;
        ls_elements_read(type, x + i * size, block, left);
        ls_elements_read(type, y + i * size, block, right);
        for (size_t k = 0; k < block; k++)
            if (memcmp(x + (i + k) * size, y + (i + k) * size, size) != 0) {
                if (difference->differing++ == 0) {
                    difference->first = i + k;
                    difference->first_a = left[k];
                    difference->first_b = right[k];
                }
            }
        compare_block(left, right, i, block, squares, difference);
    }
    difference->norm = squares[0] > 0 ? sqrt(squares[1] / squares[0]) : 0;
}
