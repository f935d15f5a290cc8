/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/convert.h"

#include <string.h>

bool ls_dtype_converts(enum ls_dtype from, enum ls_dtype to)
{
    bool number = ls_dtype_is_float(from) || from == LS_I8 || from == LS_U8 || from == LS_I32;
    return from == to || (number && ls_dtype_is_float(to));
}

/* ls_float_narrow, for many numbers. */
static void round_to_bf16(const void *in, void *out, size_t n)
{
    const unsigned char *from = in;
    unsigned char *to = out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        const uint16_t number = ls_bf16_narrow(bits);
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
        uint64_t element = 0;
        memcpy(&element, (const unsigned char *)in + i * read, read); /* little endian */
        const uint64_t bits = ls_float_narrow(ls_dtype_widen(from, element), format);
        memcpy((unsigned char *)out + i * written, &bits, written);
    }
}
