/* See device/plain.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/plain.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "device/update_rule.h"
#include "ir/convert.h"

/* ---- Exact sums ---- */

static int largest(const float *x, size_t n, uint32_t *bits, struct ls_error *error)
{
    (void)error;
    *bits = 0;
    for (size_t i = 0; i < n; i++)
        *bits = ls_larger(*bits, ls_magnitude(x[i]));
    return 0;
}

/* Chunks by halves, and the elements of one in 16 lanes, which are added by halves, too. */
static double norm(const float *x, size_t n, bool squared)
{
    const size_t chunks = (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    double lane[LS_EXACT_LANES] = {0};
    if (chunks > 1) {
        const size_t half = (chunks - chunks / 2) * LS_EXACT_CHUNK;
        return norm(x, half, squared) + norm(x + half, n - half, squared);
    }
    for (size_t i = 0; i < n; i++)
        lane[i % LS_EXACT_LANES] += squared ? (double)x[i] * (double)x[i] : fabs((double)x[i]);
    for (int width = LS_EXACT_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

static int squares(const float *x, size_t n, double *sum, struct ls_error *error)
{
    (void)error;
    *sum = norm(x, n, true);
    return 0;
}

static int magnitudes(const float *x, size_t n, double *sum, struct ls_error *error)
{
    (void)error;
    *sum = norm(x, n, false);
    return 0;
}

const struct ls_device_sums ls_plain_sums = {
    .largest = largest,
    .squares = squares,
    .magnitudes = magnitudes,
};

/* ---- Update rules ---- */

int ls_plain_update(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                    struct ls_update_seen *seen, struct ls_error *error)
{
    (void)error;
    *seen = (struct ls_update_seen){0};
    for (size_t i = 0; i < slice->n; i++)
        ls_update_element(rule, slice, i, seen);
    return 0;
}

/* ---- Masks ---- */

int ls_plain_clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                          struct ls_error *error)
{
    (void)error;
    for (size_t i = 0; i < n; i++)
        if (ls_mask_get(mask, (int64_t)(first + i)))
            numbers[i] = 0;
    return 0;
}

/* ---- Fillers ---- */

/* Of a normal filler a number may be dropped: base/random.h has the bits. */
static double number(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, uint64_t i)
{
    if (filler->kind != LS_FILLER_NORMAL)
        return ls_filler_number(filler, i, (double)ls_random_uniform(key, ordinal, i));
    if (filler->keep >> 32 == 0 && ls_random_u32(ls_mix(key + 1), ordinal, i) >= filler->keep)
        return 0;
    return filler->first + ls_random_normal(key, ordinal, i) * filler->second;
}

void ls_plain_fill(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)number(filler, key, ordinal, i);
    const size_t row = filler->kind == LS_FILLER_UNITBALL ? (size_t)filler->row : n;
    for (size_t i = 0; filler->kind == LS_FILLER_UNITBALL && i < n; i += row) {
        double sum = 0;
        for (size_t j = i; j < i + row; j++)
            sum += (double)out[j];
        for (size_t j = i; j < i + row; j++)
            out[j] = (float)(sum > 0 ? (double)out[j] / sum : 1 / (double)row);
    }
}

/* ---- Views ---- */

struct plain_converter {
    enum ls_dtype type;
    size_t elements;
};

int ls_plain_converter_new(const struct ls_layout *from, const struct ls_layout *to,
                           const struct ls_shape *shape, enum ls_dtype type,
                           struct ls_converter **out, struct ls_error *error)
{
    *out = NULL;
    if (from->block != 1 || to->block != 1 || !ls_dtype_converts(LS_F32, type)) /* not plain */
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "weights cannot be converted from %s %s to %s %s", from->name,
                       ls_dtype_name(LS_F32), to->name, ls_dtype_name(type));
    struct plain_converter *converter = ls_alloc(1, sizeof *converter);
    if (converter == NULL)
        return ls_fail_memory(error, "a view of weights");
    converter->type = type;
    converter->elements = (size_t)ls_shape_size(shape);
    *out = (struct ls_converter *)(void *)converter;
    return 0;
}

int ls_plain_converter_run(struct ls_converter *opaque, const float *source, void *target,
                           struct ls_error *error)
{
    (void)error;
    const struct plain_converter *converter = (const void *)opaque;
    ls_dtype_convert(LS_F32, source, converter->type, target, converter->elements);
    return 0;
}

void ls_plain_converter_free(struct ls_converter *converter)
{
    ls_free(converter);
}

int ls_plain_parameter(const struct ls_layout *layout, const struct ls_shape *shape,
                       const float *from, float *to, struct ls_error *error)
{
    (void)layout, (void)error;
    memcpy(to, from, (size_t)ls_shape_size(shape) * sizeof *to);
    return 0;
}
