/* See base/grow.h. SPDX-License-Identifier: BSD-2-Clause */
#include "base/grow.h"

#include <string.h>

#include "base/memory.h"

char *ls_copy_string(const char *text)
{
    return text != NULL ? ls_copy_bytes(text, strlen(text)) : NULL;
}

bool ls_multiply(int64_t a, int64_t b, int64_t *product)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

bool ls_grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted <= count) {
        if (__builtin_mul_overflow(wanted, (size_t)2, &wanted))
            return false;
    }
    /* The caller's pointer has another type than void *: read and write it as bytes, which is
     * what the aliasing rules allow. */
    void *old;
    memcpy(&old, items, sizeof old);
    void *grown = ls_resize(old, wanted, size);
    if (grown == NULL)
        return false;
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
