/* See steps.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/steps.h"

#include "base/memory.h"

enum { BLOCK = 32 };

/* Appends the step of term k, with the one that follows it in its chain if both meet the same
 * place and stand in the same block. Returns the term that comes next in the chain. */
static int64_t add_step(struct ls_bf16_steps *steps, int64_t channels, int64_t k, int64_t end)
{
    const int64_t channel = k % channels;
    const bool two = k + 2 < end && channel + 2 < channels;
    /* Its number for now; find_planes gives it another. */
    steps->step[steps->count++] = (struct ls_bf16_step){
        .upper = k, .lower = two ? k + 2 : -1, .plane = two ? channel : channels + channel};
    return two ? k + 4 : k + 2;
}

/* Chains in turn, as long as both go on. */
static struct ls_bf16_chains add_block(struct ls_bf16_steps *steps, int64_t channels, int64_t begin,
                                       int64_t end)
{
    struct ls_bf16_chains chains = {0};
    int64_t even = begin, odd = begin + 1;
    while (even < end && odd < end) {
        even = add_step(steps, channels, even, end);
        odd = add_step(steps, channels, odd, end);
        chains.even++;
        chains.odd++;
    }
    for (; even < end; chains.even++)
        even = add_step(steps, channels, even, end);
    for (; odd < end; chains.odd++)
        odd = add_step(steps, channels, odd, end);
    return chains;
}

/* Numbers the pairs of channels, and the channels alone, that there are steps of. */
static void find_planes(struct ls_bf16_steps *steps, int64_t channels, int64_t *number)
{
    for (int64_t i = 0; i < 2 * channels; i++)
        number[i] = -1;
    for (int64_t s = 0; s < steps->count; s++) {
        const int64_t kind = steps->step[s].plane, channel = kind % channels;
        if (number[kind] < 0) {
            number[kind] = steps->planes;
            steps->plane[steps->planes++] = (struct ls_bf16_pair_planes){
                .upper = (int32_t)channel, .lower = kind < channels ? (int32_t)channel + 2 : -1};
        }
        steps->step[s].plane = number[kind];
    }
}

int ls_bf16_steps_new(int64_t taps, int64_t channels, struct ls_bf16_steps **result,
                      struct ls_error *error)
{
    const int64_t terms = taps * channels;
    struct ls_bf16_steps *steps = ls_alloc(1, sizeof *steps);
    *result = NULL;
    if (steps == NULL)
        return ls_fail_memory(error, "a convolution");
    steps->fours = channels % 4 == 0;
    steps->blocks = (terms + BLOCK - 1) / BLOCK;
    steps->step = ls_alloc((size_t)terms, sizeof *steps->step);
    steps->block = ls_alloc((size_t)steps->blocks, sizeof *steps->block);
    steps->plane = ls_alloc((size_t)(2 * channels), sizeof *steps->plane);
    int64_t *number = ls_alloc((size_t)(2 * channels), sizeof *number);
    const bool there =
        steps->step != NULL && steps->block != NULL && steps->plane != NULL && number != NULL;
    if (there) {
        for (int64_t b = 0, k = 0; b < steps->blocks; b++, k += BLOCK)
            steps->block[b] = add_block(steps, channels, k, terms - k > BLOCK ? k + BLOCK : terms);
        find_planes(steps, channels, number);
        *result = steps;
    } else {
        ls_bf16_steps_free(steps);
    }
    ls_free(number);
    return there ? 0 : ls_fail_memory(error, "the terms of a convolution");
}

void ls_bf16_steps_free(struct ls_bf16_steps *steps)
{
    if (steps == NULL)
        return;
    ls_free(steps->step);
    ls_free(steps->block);
    ls_free(steps->plane);
    ls_free(steps);
}
