/* The rows of exact sums and their exponents. See engine/sums.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/exponents.h"

#include <limits.h>

#include "engine/sums_inner.h"

enum {
    TARGET = 40,  /* the largest element of a row becomes about 2^40 units */
    START = 32,   /* and before more is known of it than one update tells, 2^32 */
    CEILING = 50, /* units of a contribution stay below 2^50: 2^12 of them fit */
    DIGITS = 24,  /* of fp32 */
    MARGIN = 4,   /* rows may have exponents so far above that of the largest */
    LARGE = 20,   /* a row is large where it is 2^-20 of the parameter's largest, or more */
    LEAST = 10,   /* digits that a row's first contribution must have */
    EXPONENT_MIN = -150
};
_Static_assert((int)CEILING < (int)LS_EXACT_LIMIT, "contributions are rounded as they should be");

/* ---- Exponents ------------------------------------------------------------------------------- */

/* floor(log2 |x|) of an fp32 number given by its bits. */
static int exponents_magnitude(uint32_t bits)
{
    return (int)(bits >> 23) - 127;
}

/* Zero, or what computing threads flush to zero. */
static bool exponents_is_zero(uint32_t bits)
{
    return bits >> 23 == 0;
}

static uint32_t exponents_raised(const struct ls_sum *sum, size_t row)
{
    return sum->raised[row];
}

static int exponents_within(int exponent)
{
    exponent = exponent > LS_SUMS_EXPONENT_UNSET ? LS_SUMS_EXPONENT_UNSET : exponent;
    return exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent;
}

/* A state is the exponent in steps, doubled, and 1 where the row has been large. */
static int32_t exponents_state_for(int exponent, bool large)
{
    return 2 * LS_SUMS_STEPS * exponents_within(exponent) + large;
}

static bool exponents_is_large(int32_t state)
{
    return state != LS_SUMS_STATE_UNSET && state % 2 != 0;
}

static int exponents_exponent_of(int32_t state)
{
    const int32_t one = 2 * LS_SUMS_STEPS;
    return state >= 0 ? state / one : -((one - 1 - state) / one);
}

int ls_sum_least_exponent(const struct ls_sum *sum)
{
    int32_t least = LS_SUMS_EXPONENT_UNSET;
    for (size_t row = 0; row < sum->rows; row++)
        least = sum->exponent[row] < least ? sum->exponent[row] : least;
    return least;
}

void ls_sum_forget(struct ls_sum *sum)
{
    sum->total_exponent = LS_SUMS_EXPONENT_UNSET;
    for (size_t row = 0; row < sum->rows; row++) {
        sum->exponent[row] = LS_SUMS_EXPONENT_UNSET;
        sum->state[row] = LS_SUMS_STATE_UNSET;
    }
}

/* The exponents that the states say. Rows of which nothing is known get one with which as much fits
 * as the largest row has had. */
static void exponents_set_exponents(struct ls_sum *sum)
{
    for (size_t row = 0; row < sum->rows; row++)
        sum->exponent[row] = sum->state[row] == LS_SUMS_STATE_UNSET
                                 ? LS_SUMS_EXPONENT_UNSET
                                 : exponents_exponent_of(sum->state[row]);
    int least = ls_sum_least_exponent(sum);
    for (size_t row = 0; row < sum->rows; row++)
        if (sum->state[row] == LS_SUMS_STATE_UNSET)
            sum->exponent[row] = exponents_within(least + MARGIN);
}

/* Whether the exponent of a row suits what was contributed. */
static bool exponents_row_fits(const struct ls_sum *sum, size_t row)
{
    int units = exponents_magnitude(exponents_raised(sum, row)) + sum->exponent[row];
    if (exponents_is_zero(exponents_raised(sum, row)))
        return true;
    if (units >= CEILING)
        return false;
    return sum->state[row] != LS_SUMS_STATE_UNSET || units >= LEAST ||
           sum->exponent[row] == LS_SUMS_EXPONENT_UNSET;
}

static void exponents_measure_largest(struct ls_sum *sum)
{
    sum->largest = 0;
    for (size_t row = 0; row < sum->rows; row++)
        sum->largest =
            exponents_raised(sum, row) > sum->largest ? exponents_raised(sum, row) : sum->largest;
}

/* How far the largest is above what the row with the largest gradients has had lately. */
static void exponents_measure_growth(struct ls_sum *sum)
{
    int least = ls_sum_least_exponent(sum);
    int growth = exponents_magnitude(sum->largest) + least - TARGET;
    if (!exponents_is_zero(sum->largest) && least < LS_SUMS_EXPONENT_UNSET && growth > sum->growth)
        sum->growth = growth;
}

/* The exponent for a row whose largest contribution is 2^`largest`: `margin` at most, unless that
 * leaves it fewer digits than fp32 has and it has never been large. */
static int exponents_exponent_for(int target, int largest, int margin, bool large)
{
    int exponent = target - largest;
    if (large || largest + margin >= DIGITS)
        return exponent < margin ? exponent : margin;
    return START - largest;
}

/* Measures rows anew: all, or those that do not fit and those of which nothing was known, so that
 * one repeat suffices. */
static void exponents_measure(struct ls_sum *sum, bool all)
{
    int least = ls_sum_least_exponent(sum), level = START - exponents_magnitude(sum->largest);
    int margin = (level < least || all ? level : least) + MARGIN;
    for (size_t row = 0; row < sum->rows; row++) {
        int32_t state = sum->state[row];
        if (exponents_is_zero(exponents_raised(sum, row)) ||
            (!all && state != LS_SUMS_STATE_UNSET && exponents_row_fits(sum, row)))
            continue;
        sum->state[row] = exponents_state_for(
            exponents_exponent_for(START, exponents_magnitude(exponents_raised(sum, row)), margin,
                                   exponents_is_large(state)),
            exponents_is_large(state));
    }
    exponents_set_exponents(sum);
}

/* Whether the exponents suit what was contributed; if not, they are changed. */
static bool exponents_fit(struct ls_sum *sum, bool calibrate)
{
    bool fit = true;
    exponents_measure_largest(sum);
    if (exponents_is_zero(sum->largest))
        return true;
    if (!calibrate)
        exponents_measure_growth(sum);
    for (size_t row = 0; row < sum->rows && fit && !calibrate; row++)
        fit = exponents_row_fits(sum, row);
    if (!fit || calibrate)
        exponents_measure(sum, calibrate);
    return fit;
}

static enum ls_sums_result exponents_find_not_finite(const struct ls_sums *sums, int *parameter,
                                                     int *micro_batch)
{
    enum ls_sums_result result = LS_SUMS_GOOD;
    int first = INT_MAX;
    for (size_t i = 0; i < sums->count; i++) {
        int bad = sums->items[i].first_not_finite;
        if (bad < first) {
            first = bad;
            *parameter = (int)i;
            *micro_batch = bad;
            result = LS_SUMS_NOT_FINITE;
        }
    }
    return result;
}

enum ls_sums_result ls_sums_end(struct ls_sums *sums, int *parameter, int *micro_batch)
{
    enum ls_sums_result result = exponents_find_not_finite(sums, parameter, micro_batch);
    if (result != LS_SUMS_GOOD)
        return result;
    for (size_t i = 0; i < sums->count; i++)
        if (!exponents_fit(&sums->items[i], sums->calibrate) && result == LS_SUMS_GOOD) {
            result = LS_SUMS_REPEAT;
            *parameter = (int)i;
        }
    return result;
}

/* What all rows of a parameter have in common when their next exponents are chosen. */
struct level {
    int coherent; /* the total was 2^coherent times as large as contributions */
    int recent;   /* 2^recent: the largest total of late, by the row with the largest */
    int margin;   /* the highest exponent with which as much fits */
};

static struct level exponents_find_level(const struct ls_sum *sum, uint32_t total)
{
    struct level level = {0};
    int least = LS_SUMS_EXPONENT_UNSET, largest = exponents_magnitude(sum->largest);
    bool known = false;
    for (size_t row = 0; row < sum->rows; row++)
        if (sum->state[row] != LS_SUMS_STATE_UNSET) {
            least = sum->exponent[row] < least ? sum->exponent[row] : least;
            known = true;
        }
    if (total > sum->largest)
        level.coherent = exponents_magnitude(total) - largest;
    int now = (known ? TARGET : START) - largest - level.coherent;
    least = known && least < now ? least : now;
    level.recent = TARGET - least;
    level.margin = exponents_within(least + MARGIN);
    return level;
}

/* The state of a row after an update whose largest contribution to it was 2^`largest`. */
static int32_t exponents_next_state(int32_t state, int largest, const struct level *level)
{
    bool new = state == LS_SUMS_STATE_UNSET;
    bool large = exponents_is_large(state) || largest >= level->recent - LARGE;
    int exponent = exponents_exponent_for((new ? START : TARGET) - level->coherent, largest,
                                          level->margin, large);
    int32_t wanted = exponents_state_for(exponent, large), step = 2;
    if (new)
        return wanted;
    if (largest + exponents_exponent_of(state) < DIGITS)
        step *= LS_SUMS_STEPS;
    state = state - exponents_is_large(state) + large + step;
    return wanted < state ? wanted : state;
}

/* A row that had only zeros this time forgets what it has had, until others hold it back. */
static int32_t exponents_aged_state(int32_t state, const struct level *level)
{
    return state < exponents_state_for(level->margin, false) ? state + 2 : state;
}

void ls_sums_next(struct ls_sums *sums, int parameter, uint32_t largest)
{
    struct ls_sum *sum = &sums->items[parameter];
    sum->growth = 0;
    if (exponents_is_zero(sum->largest))
        return;
    struct level level = exponents_find_level(sum, largest);
    for (size_t row = 0; row < sum->rows; row++)
        sum->state[row] =
            exponents_is_zero(exponents_raised(sum, row))
                ? exponents_aged_state(sum->state[row], &level)
                : exponents_next_state(sum->state[row],
                                       exponents_magnitude(exponents_raised(sum, row)), &level);
    exponents_set_exponents(sum);
}

/* ---- State ----------------------------------------------------------------------------------- */

bool ls_sums_measured(const struct ls_sums *sums)
{
    bool any = false;
    for (size_t i = 0; i < sums->count; i++) {
        const struct ls_sum *sum = &sums->items[i];
        any |= sum->elements > 0;
        for (size_t row = 0; sum->elements > 0 && row < sum->rows; row++)
            if (sum->state[row] != LS_SUMS_STATE_UNSET)
                return true;
    }
    return !any;
}

int ls_sums_exponent(const struct ls_sums *sums, int parameter)
{
    return ls_sum_least_exponent(&sums->items[parameter]);
}

int ls_sums_total_exponent(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].total_exponent;
}

int32_t ls_sums_state_of(int exponent)
{
    return exponent >= LS_SUMS_EXPONENT_UNSET ? LS_SUMS_STATE_UNSET
                                              : exponents_state_for(exponent, false);
}

void ls_sums_set_exponent(struct ls_sums *sums, int parameter, int exponent)
{
    struct ls_sum *sum = &sums->items[parameter];
    for (size_t row = 0; row < sum->rows; row++)
        sum->state[row] = ls_sums_state_of(exponent);
    exponents_set_exponents(sum);
}

const int32_t *ls_sums_state(const struct ls_sums *sums, int parameter)
{
    return sums->items[parameter].state;
}

void ls_sums_set_state(struct ls_sums *sums, int parameter, const int32_t *state)
{
    struct ls_sum *sum = &sums->items[parameter];
    for (size_t row = 0; row < sum->rows; row++) {
        const int32_t least = exponents_state_for(EXPONENT_MIN, false);
        const int32_t most = exponents_state_for(LS_SUMS_EXPONENT_UNSET, true);
        sum->state[row] = state[row] >= LS_SUMS_STATE_UNSET ? LS_SUMS_STATE_UNSET
                          : state[row] > most               ? most
                          : state[row] < least              ? least
                                                            : state[row];
    }
    exponents_set_exponents(sum);
}

int ls_sums_growth(const struct ls_sums *sums, int *parameter)
{
    int most = 0;
    for (size_t i = 0; i < sums->count; i++)
        if (sums->items[i].growth > most) {
            most = sums->items[i].growth;
            *parameter = (int)i;
        }
    return most;
}
