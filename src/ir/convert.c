/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/convert.h"

#include <string.h>

struct ls_float_format ls_dtype_format(enum ls_dtype type)
{
    switch (type) {
    case LS_F64:
        return (struct ls_float_format){11, 52};
    case LS_F16:
        return (struct ls_float_format){5, 10};
    case LS_BF16:
        return (struct ls_float_format){8, 7};
    default:
        return (struct ls_float_format){8, 23};
    }
}

bool ls_dtype_converts(enum ls_dtype from, enum ls_dtype to)
{
    bool number = ls_dtype_is_float(from) || from == LS_I8 || from == LS_U8 || from == LS_I32;
    return from == to || (number && ls_dtype_is_float(to));
}

/* Binary64 bits of the element at `at`. A double has every integer of 32 bits. */
static uint64_t read_element(enum ls_dtype type, const unsigned char *at)
{
    uint64_t bits = 0;
    int32_t integer = 0;
    double real;
    if (ls_dtype_is_float(type)) {
        memcpy(&bits, at, ls_dtype_size(type)); /* little endian, as files are */
        return ls_float_widen(bits, ls_dtype_format(type));
    }
    if (type == LS_I32)
        memcpy(&integer, at, sizeof integer);
    else
        integer = type == LS_I8 ? (int8_t)*at : *at;
    real = integer;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

/* ls_float_narrow, for many numbers. */
static void round_to_bf16(const void *in, void *out, size_t n)
{
    const unsigned char *from = in;
    unsigned char *to = out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
                       quiet = bits >> 16 | 0x40;
        const uint16_t number = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
        memcpy(to + i * sizeof number, &number, sizeof number);
    }
}

void ls_dtype_convert(enum ls_dtype from, const void *in, enum ls_dtype to, void *out, size_t n)
{
    size_t read = ls_dtype_size(from), written = ls_dtype_size(to);
    struct ls_float_format format = ls_dtype_format(to);
    if (from == to) {
        if (n > 0)
            memcpy(out, in, n * read);
        return;
    }
    if (from == LS_F32 && to == LS_BF16) {
        round_to_bf16(in, out, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits =
            ls_float_narrow(read_element(from, (const unsigned char *)in + i * read), format);
        memcpy((unsigned char *)out + i * written, &bits, written);
    }
}
