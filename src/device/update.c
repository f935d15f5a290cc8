/* What update rules have in common on all devices. See device/update.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/update.h"

#include <math.h>

#include "base/mutant.h"

int ls_update_histories(enum ls_update_kind kind)
{
    switch (kind) {
    case LS_UPDATE_ADADELTA:
    case LS_UPDATE_ADAM:
    case LS_UPDATE_ADAMW:
    case LS_UPDATE_LAMB:
        return 2;
    default:
        return 1;
    }
}

bool ls_update_decouples(enum ls_update_kind kind)
{
    return kind >= LS_UPDATE_ADAMW;
}

/* By squaring: libm's pow may round differently on another machine. */
static double power(double base, int64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

float ls_adam_correction(float momentum, float momentum2, int64_t t)
{
    if (LS_MUTANT(CORRECTION)) /* rounded once more */
        return (float)sqrt(1 - power(momentum2, t)) / (float)(1 - power(momentum, t));
    return (float)(sqrt(1 - power(momentum2, t)) / (1 - power(momentum, t)));
}

float ls_adam_delta(float delta, float momentum2, int64_t t)
{
    return (float)((double)delta * sqrt(1 - power(momentum2, t)));
}
