/* Updates in tiles that stay in the first-level cache between a step and its average.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/update.h"

#include "device/plain.h"
#include "ir/mask.h"
#include "ops/cpu/vector/update.h"

enum { TILE = 1024 }; /* elements; with weights, histories and averages 20 KiB */

/* Elements [from, from + n) of the slice. */
static void apply_tile(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                       size_t from, size_t n, struct ls_update_seen *seen)
{
    const struct ls_vector_update *vector = ls_vector_update();
    float *weight = slice->weight + from, *history[2];
    const float *gradient = slice->gradient != NULL ? slice->gradient + from : NULL;
    for (int i = 0; i < 2; i++)
        history[i] = slice->history[i] != NULL ? slice->history[i] + from : NULL;
    if (slice->direction != NULL) {
        vector->lamb_look(rule, gradient, weight, history[0], history[1], slice->direction + from,
                          n, seen);
        return;
    }
    if (rule->kind == LS_UPDATE_LAMB)
        vector->lamb_move(rule, weight, history[0], history[1], n, seen);
    else
        vector->step[rule->kind](rule, gradient, weight, history[0], history[1], n, seen);
    if (slice->average != NULL)
        vector->average(rule->average_decay, slice->average + from, weight, n);
}

int ls_update_apply(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                    struct ls_update_seen *seen, struct ls_error *error)
{
    /* What is between their passes takes the time. */
    if (rule->kind == LS_UPDATE_MUON || rule->kind == LS_UPDATE_ADAFACTOR)
        return ls_plain_update(rule, slice, seen, error);
    *seen = (struct ls_update_seen){0};
    for (size_t from = 0; from < slice->n; from += TILE) {
        size_t left = slice->n - from;
        apply_tile(rule, slice, from, left < TILE ? left : TILE, seen);
    }
    return 0;
}

/* Whole words of the mask in vector registers, what is before and behind them one by one. */
int ls_update_clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                           struct ls_error *error)
{
    size_t head = (LS_MASK_WORD - first % LS_MASK_WORD) % LS_MASK_WORD;
    head = head < n ? head : n;
    size_t words = (n - head) / LS_MASK_WORD, tail = head + words * LS_MASK_WORD;
    LS_TRY(ls_plain_clear_masked(mask, first, numbers, head, error));
    ls_vector_update()->clear(mask + (first + head) / LS_MASK_WORD, numbers + head, words);
    return ls_plain_clear_masked(mask, first + tail, numbers + tail, n - tail, error);
}
