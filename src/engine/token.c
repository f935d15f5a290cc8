/* Choosing tokens. See engine/token.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/token.h"

#include <math.h>
#include <sleef.h>

#include "base/heap.h"
#include "base/random.h"

int ls_token_options_check(const struct ls_token_options *options, struct ls_error *error)
{
    if (!(options->temperature >= 0) || !isfinite(options->temperature))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "0 takes the most probable token each time",
                       "a temperature of %g is not possible", options->temperature);
    if (options->top_k < 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "0 leaves no token out",
                       "the %lld most probable tokens cannot be chosen from",
                       (long long)options->top_k);
    if (!(options->top_p > 0) || options->top_p > 1)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "top_p is above 0 and at most 1",
                       "tokens of a probability of %g cannot be chosen from", options->top_p);
    return 0;
}

/* The token with the largest logit, of equal ones the first. */
static int token_find_largest(const float *logits, size_t count, uint32_t *token,
                              struct ls_error *error)
{
    size_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return ls_fail(error, LOCKSTEP_DIVERGED, NULL,
                           "'lockstep test' names the layer that makes a number that is not finite",
                           "the logit of token %zu is %s", i,
                           isnan(logits[i]) ? "not a number" : "infinite");
        if (logits[i] > logits[largest])
            largest = i;
    }
    *token = (uint32_t)largest;
    return logits[largest] != -INFINITY
               ? 0
               : ls_fail(error, LOCKSTEP_DIVERGED, NULL,
                         "'lockstep test' names the layer that makes a number that is not finite",
                         "no token is possible: the logits of all are -inf");
}

static bool token_comes_first(const void *a, const void *b, const void *user)
{
    const struct ls_token_candidate *first = a, *second = b;
    (void)user;
    return first->logit > second->logit ||
           (first->logit == second->logit && first->token < second->token);
}

/* Puts the candidates in order, the largest first, as many as `options` let count; how many. */
static size_t token_order(const struct ls_token_options *options, size_t count,
                          struct ls_token_candidate *candidates)
{
    const struct ls_heap heap = {
        .elements = candidates, .size = sizeof *candidates, .before = token_comes_first};
    if (options->top_k == 0 || (uint64_t)options->top_k >= count) {
        ls_heap_sort(&heap, (int64_t)count);
        return count;
    }
    /* The first `kept` are a heap turned around, whose top is the one that goes for a larger one.
     */
    const int64_t kept = options->top_k;
    for (int64_t i = kept / 2; i-- > 0;)
        ls_heap_sift(&heap, i, kept, true);
    for (size_t i = (size_t)kept; i < count; i++)
        if (token_comes_first(&candidates[i], &candidates[0], NULL)) {
            candidates[0] = candidates[i];
            ls_heap_sift(&heap, 0, kept, true);
        }
    ls_heap_sort(&heap, kept);
    return (size_t)kept;
}

/* The probability of a candidate, times a number that all have in common. */
static double token_weight(const struct ls_token_options *options, float logit, float largest)
{
    return Sleef_cinz_expd1_u10purec(((double)logit - (double)largest) / options->temperature);
}

/* How many of the candidates, which are in order, top_p lets count. */
static size_t token_cut(const struct ls_token_options *options, size_t count,
                        const struct ls_token_candidate *candidates)
{
    const float largest = candidates[0].logit;
    double all = 0, sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        all += token_weight(options, candidates[i].logit, largest);
    do
        sum += token_weight(options, candidates[kept++].logit, largest);
    while (kept < count && sum < options->top_p * all);
    return kept;
}

/* 53 bits, at least 0 and below 1. */
static double token_random(const struct ls_token_options *options, uint64_t sample,
                           uint64_t position)
{
    uint32_t bits[4];
    ls_philox(ls_random_key(options->seed, LS_RANDOM_TOKEN, NULL), sample, position, bits);
    return (double)((((uint64_t)bits[0] << 32) | bits[1]) >> 11) * 0x1p-53;
}

int ls_token_choose(const struct ls_token_options *options, const float *logits, size_t count,
                    uint64_t sample, uint64_t position, struct ls_token_candidate *room,
                    uint32_t *token, struct ls_error *error)
{
    LS_TRY(token_find_largest(logits, count, token, error));
    if (options->temperature == 0 || options->top_k == 1)
        return 0;
    const float largest = logits[*token];
    const bool some =
        (options->top_k > 0 && (uint64_t)options->top_k < count) || options->top_p < 1;
    for (size_t i = 0; i < count; i++)
        room[i] = (struct ls_token_candidate){logits[i], (uint32_t)i};
    if (some)
        count = token_order(options, count, room);
    if (options->top_p < 1)
        count = token_cut(options, count, room);
    double all = 0, sum = 0;
    for (size_t i = 0; i < count; i++)
        all += token_weight(options, room[i].logit, largest);
    const double where = token_random(options, sample, position) * all;
    for (size_t i = 0; i < count; i++) {
        sum += token_weight(options, room[i].logit, largest);
        if (sum > where) {
            *token = room[i].token;
            return 0;
        }
    }
    return 0; /* where the product was rounded up to `all`: the largest */
}
