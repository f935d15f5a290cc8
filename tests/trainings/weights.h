/* The weights of a trainer's parameters, to look at and to change.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_TRAININGS_WEIGHTS_H
#define LS_TESTS_TRAININGS_WEIGHTS_H

#include <stdlib.h>

#include "engine/store.h"

static inline float *stored_weights(const struct ls_store *store, size_t parameter)
{
    float *weights;
    if (ls_store_weights(store, (int)parameter, &weights, NULL) != 0)
        abort();
    return weights;
}

#endif
