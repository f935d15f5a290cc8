/* Micro-batches that are made of records in the device's memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_SAMPLES_H
#define LS_DEVICE_SAMPLES_H

#include "ir/sample_recipe.h"

/* How a tensor of samples is made. Arrays are in the device's memory. */
struct ls_sample_making {
    struct ls_sample_recipe recipe;
    const void *records;
    const float *mean; /* of the recipe; NULL: there is none */
};

/* Numbers of a tensor of one sample. */
LS_HOST_DEVICE int64_t ls_sample_numbers(const struct ls_sample_recipe *recipe)
{
    return recipe->image ? (int64_t)recipe->channels * recipe->rows * recipe->columns
                         : (int64_t)(recipe->record_bytes / sizeof(uint32_t));
}

/* Where number `e` of sample `s` lies among those of a micro-batch. */
LS_HOST_DEVICE int64_t ls_sample_place_of(const struct ls_sample_recipe *recipe, int64_t samples,
                                          int64_t s, int64_t e)
{
    const int64_t part = ls_sample_numbers(recipe) / (int64_t)recipe->runs;
    return (e / part * samples + s) * part + e % part;
}

#endif
