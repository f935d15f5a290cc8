/* Conversion of elements between types: exact where the target has the value, else rounded once to
 * the nearest, ties to even. The same bits on every device and in every thread: all is done in
 * integers, so that flushing of denormals and the thread's rounding do not matter.
 *
 *   - Denormal numbers are numbers like others, in source and target.
 *   - What is too large for the target becomes infinite.
 *   - What is not a number stays so: its sign and the upper bits of its payload are kept, and it is
 *     made quiet.
 *   - Integers of I8, U8 and I32 become floating-point numbers; the other way there is no
 *     conversion, since it would have to choose a scale.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_CONVERT_H
#define LS_IR_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"
#include "ir/dtype.h"

/* A floating-point format of IEEE 754: bits of exponent and fraction, the sign in front of them. */
struct ls_float_format {
    int exponent, fraction;
};

/* Bits in front of the first that is set; bits is not 0. */
LS_HOST_DEVICE int ls_leading_zeros(uint64_t bits)
{
#ifdef __CUDA_ARCH__
    return __clzll((long long)bits);
#else
    return __builtin_clzll(bits);
#endif
}

/* Binary64 bits of the value that `bits` has in a format; all its values are there. */
LS_HOST_DEVICE uint64_t ls_float_widen(uint64_t bits, struct ls_float_format format)
{
    const uint64_t largest = (UINT64_C(1) << format.exponent) - 1;
    const int bias = (1 << (format.exponent - 1)) - 1;
    uint64_t sign = (bits >> (format.exponent + format.fraction) & 1) << 63;
    uint64_t fraction = bits & ((UINT64_C(1) << format.fraction) - 1);
    int64_t exponent = (int64_t)(bits >> format.fraction & largest);
    if ((uint64_t)exponent == largest)
        return sign | UINT64_C(0x7ff) << 52 | fraction << (52 - format.fraction) |
               (uint64_t)(fraction != 0) << 51;
    if (exponent == 0 && (fraction == 0 || format.fraction == 52))
        return sign | fraction;
    if (exponent == 0) { /* denormal: its first bit becomes the implicit one */
        int shift = ls_leading_zeros(fraction) - (63 - format.fraction);
        fraction = fraction << shift & ((UINT64_C(1) << format.fraction) - 1);
        exponent = 1 - shift;
    }
    return sign | (uint64_t)(exponent - bias + 1023) << 52 | fraction << (52 - format.fraction);
}

/* The nearest that a format has to binary64 bits. */
LS_HOST_DEVICE uint64_t ls_float_narrow(uint64_t bits, struct ls_float_format format)
{
    const uint64_t infinite = ((UINT64_C(1) << format.exponent) - 1) << format.fraction;
    const int bias = (1 << (format.exponent - 1)) - 1;
    uint64_t sign = bits >> 63 << (format.exponent + format.fraction);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);
    int dropped = 52 - format.fraction;
    if (exponent == 0x7ff && fraction != 0)
        return sign | infinite | fraction >> dropped | UINT64_C(1) << (format.fraction - 1);
    if (exponent == 0x7ff)
        return sign | infinite;
    if (dropped == 0)
        return bits;
    /* Below 2^-1022 all other formats have only zero. */
    uint64_t whole = exponent == 0 ? 0 : fraction | UINT64_C(1) << 52;
    int64_t there = exponent - 1023 + bias; /* the exponent's bits, if it is not denormal there */
    if (there < 1) {
        dropped += (int)(1 - there);
        there = 1;
    }
    if (dropped > 53) /* less than half of the least that there is */
        return sign;
    uint64_t kept = whole >> dropped, rest = whole & ((UINT64_C(1) << dropped) - 1);
    uint64_t half = UINT64_C(1) << (dropped - 1);
    kept += rest > half || (rest == half && kept % 2 == 1);
    /* `kept` has the implicit bit, unless it is denormal; a carry raises the exponent. */
    uint64_t magnitude = ((uint64_t)(there - 1) << format.fraction) + kept;
    return sign | (magnitude < infinite ? magnitude : infinite);
}

/* The format of a floating-point type that ops compute with. */
LS_HOST_DEVICE struct ls_float_format ls_dtype_format(enum ls_dtype type)
{
    struct ls_float_format format = {8, 23};
    switch (type) {
    case LS_F64:
        format.exponent = 11;
        format.fraction = 52;
        break;
    case LS_F16:
        format.exponent = 5;
        format.fraction = 10;
        break;
    case LS_BF16:
        format.fraction = 7;
        break;
    default:
        break;
    }
    return format;
}

/* Binary64 bits of the value that an element with these bits has: of a floating-point type, or of
 * I8, U8, I32. A double has every integer of 32 bits. */
LS_HOST_DEVICE uint64_t ls_dtype_widen(enum ls_dtype type, uint64_t element)
{
    const bool integer = type == LS_I8 || type == LS_U8 || type == LS_I32;
    if (!integer)
        return ls_float_widen(element, ls_dtype_format(type));
    const double real = (double)(type == LS_I8   ? (int32_t)(int8_t)(uint8_t)element
                                 : type == LS_U8 ? (int32_t)(uint8_t)element
                                                 : (int32_t)(uint32_t)element);
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

/* ls_float_narrow from fp32 to bf16, and ls_float_widen back. */
LS_HOST_DEVICE uint16_t ls_bf16_narrow(uint32_t bits)
{
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

LS_HOST_DEVICE uint32_t ls_bf16_widen(uint16_t number)
{
    const uint32_t bits = (uint32_t)number << 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits;
}

/* Whether elements are converted from the one type to the other: between floating-point types, from
 * I8, U8 and I32 to these, and from each type to itself. */
bool ls_dtype_converts(enum ls_dtype from, enum ls_dtype to);
/* Converts n elements, one after the other; the arrays do not overlap, and need not be aligned. The
 * types are such that ls_dtype_converts. */
void ls_dtype_convert(enum ls_dtype from, const void *in, enum ls_dtype to, void *out, size_t n);

#endif
